"""What a driver tells of its devices; it is played."""

import ctypes
from dataclasses import replace

import pytest

from mummergpu.cuda.driver import DeviceFacts, DriverFacts, ask_driver

GIB = 1 << 30
SUFFIX = "_v2"
"""Of newer versions of a function, which are played under the first name."""


@pytest.fixture
def played(driver_library):
    library = ctypes.CDLL(str(driver_library))
    library.play_anew()
    yield library
    assert library.play_retained(0) == library.play_retained(1) == library.play_contexts() == 0
    library.play_anew()


def ask(library, measure_memory=True):
    return ask_driver(measure_memory, {"libcuda.so.1": library}.__getitem__)


def test_a_driver_tells_its_devices(played):
    clocks = (1_980_000, 3_201_000)
    first = DeviceFacts(0, "Played 0", (9, 0), 132, 70 * GIB, 3 * GIB, None, *clocks)
    second = replace(first, number=1, name="Played 1", capability=(9, 1), total_bytes=71 * GIB)
    second = replace(second, memory_clock_kilohertz=0)
    assert ask(played) == DriverFacts((13, 1), (first, second), None)


def test_memory_that_is_not_measured_needs_no_context(played):
    facts = ask(played, measure_memory=False)
    assert [device.free_bytes for device in facts.devices] == [None, None]
    played.play_log.restype = ctypes.c_char_p
    assert b"Ctx" not in played.play_log()


@pytest.mark.parametrize(
    ("failing", "version", "problem"),
    [
        *(
            ({function: 803}, (13, 1), f"{function}: what 803 means")
            for function in ("cuInit", "cuDeviceGetCount", "cuDeviceGet")
        ),
        ({"cuDriverGetVersion": 3}, None, "cuDriverGetVersion: what 3 means"),
        ({"cuInit": 9, "cuGetErrorString": 1}, (13, 1), "cuInit: error 9"),
        ({}, (13, 1), "the driver has no device"),
    ],
)
def test_a_driver_that_fails_says_why(played, failing, version, problem):
    for name, error in failing.items():
        played.play_failure(name.encode(), error)
    played.play_devices(2 if failing else 0)
    assert ask(played) == DriverFacts(version, (), problem)


def test_a_driver_may_lack_a_function(played):
    class Old:
        def __getattr__(self, name):
            if name == "cuMemGetInfo_v2":
                raise AttributeError(name)
            return getattr(played, name)

    facts = ask(Old())
    assert {device.problem for device in facts.devices} == {
        "the driver has no cuMemGetInfo_v2; it is too old"
    }


@pytest.mark.parametrize(
    "function", ["cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuMemGetInfo_v2"]
)
def test_a_device_that_gives_no_context_is_described_all_the_same(played, function):
    played.play_failure(function.removesuffix(SUFFIX).encode(), 2)
    facts = ask(played)
    assert [device.name for device in facts.devices] == ["Played 0", "Played 1"]
    assert {device.problem for device in facts.devices} == {f"{function}: what 2 means"}
    assert {device.free_bytes for device in facts.devices} == {None}
