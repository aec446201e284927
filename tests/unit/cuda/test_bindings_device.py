"""A device through NVIDIA's bindings, whose driver is played."""

from __future__ import annotations

import gc
import pickle
import struct
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.errors import BackendError

if TYPE_CHECKING:
    from helpers.played_driver import PlayedDriver

    from mummergpu.cuda.bindings_device import BindingsDevice

ADDRESS = 1 << 40

OpenDevice = Callable[[int], "BindingsDevice"]


@pytest.fixture
def played(nvrtc: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedDriver]:
    """The driver behind the bindings, which come with the wheels of NVRTC."""
    from helpers.played_driver import PlayedDriver

    from mummergpu.cuda import bindings_device

    made = PlayedDriver()
    made.install(monkeypatch)
    monkeypatch.setattr(
        bindings_device, "choose_architecture", lambda capability: f"sm_{capability[0]}0"
    )
    yield made
    # Each test gives back what it has taken, and leaves no context current.
    gc.collect()
    assert +made.owned == {}
    assert made.contexts == []


@pytest.fixture
def open_device(played: PlayedDriver) -> OpenDevice:
    from mummergpu.cuda.bindings_device import BindingsDevice

    return BindingsDevice


@pytest.fixture
def device(open_device: OpenDevice) -> Iterator[BindingsDevice]:
    """A device that is current during the test."""
    made = open_device(0)
    with made.current():
        yield made
    made.close()


def test_a_device_says_what_it_is(played: PlayedDriver, open_device: OpenDevice) -> None:
    device = open_device(1)
    assert (device.name, device.architecture) == ("Played 71", "sm_90")
    assert (device.block_threads, device.resident_blocks) == (256, 132 * 8)
    assert device.library == "cuda-bindings"
    with device.current():
        assert device.memory() == (3 << 30, 4 << 30)
    device.close()


def test_the_primary_context_is_retained_and_released_once(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    # Another library uses the same device.
    played.owned["context 70"] = 1
    device = open_device(0)
    assert played.owned["context 70"] == 2
    device.close()
    device.close()
    assert played.owned["context 70"] == 1
    assert not {call for call in played.calls if "Reset" in call or "CtxDestroy" in call}
    played.owned.clear()


def test_statements_may_be_nested_and_leave_what_was_current(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    one, other = open_device(0), open_device(1)
    played.contexts.append(5)
    with one.current():
        with other.current(), one.current():
            assert played.contexts == [5, 70, 71, 70]
        with pytest.raises(KeyError), other.current():
            raise KeyError
        assert played.contexts == [5, 70]
    assert played.contexts == [5]
    played.contexts.clear()
    one.close()
    other.close()


def test_bytes_go_to_the_device_and_back(played: PlayedDriver, device: BindingsDevice) -> None:
    stream, buffer = device.new_stream(), device.allocate(800)
    assert buffer.size == 800
    sent = np.arange(100, dtype=np.int64)
    stream.copy_in(buffer.address, sent)
    stream.fill_zero(buffer.address + 80, 80)
    received = device.pinned(100, np.int64)
    stream.copy_out(received, buffer.address)
    stream.synchronize()
    sent[10:20] = 0
    assert received.tolist() == sent.tolist()
    before = len(played.calls)
    for nothing in (sent[:0], np.empty((0, 3))):
        stream.copy_in(buffer.address, nothing)
        stream.copy_out(nothing, buffer.address)
    stream.fill_zero(buffer.address, 0)
    assert len(played.calls) == before
    del received
    buffer.free()
    stream.free()


def test_arguments_are_packed_as_the_kernel_reads_them(
    played: PlayedDriver, device: BindingsDevice
) -> None:
    stream, program = device.new_stream(), device.load(b"image")
    for turn in range(3):
        arguments = (ADDRESS, np.uint32(turn), np.uint32(7), np.int64(9), np.uint32(3), 11)
        stream.launch(program, "search", 1 + turn, arguments)
        # A number of 64 bits begins at a multiple of eight bytes.
        expected = struct.pack("QIIQI4xQ", ADDRESS, turn, 7, 9, 3, 11)
        assert played.packed.pop() == expected
    stream.launch(program, "nothing", 1, ())
    assert played.packed.pop() == b""
    assert played.calls.count("cuModuleGetFunction") == 2
    stream.free()


def test_threads_launch_one_kernel_at_once(played: PlayedDriver, open_device: OpenDevice) -> None:
    device = open_device(0)
    meeting = threading.Barrier(4, timeout=60)
    with device.current():
        program = device.load(b"image")

    def work(number: int) -> None:
        with device.current():
            stream = device.new_stream()
            meeting.wait()
            for turn in range(200):
                stream.launch(program, "search", 1, (number, turn))
                stream.mark()
            stream.free()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {struct.pack("QQ", number, turn) for number in range(4) for turn in range(200)}
    assert len(played.packed) == 800 and set(played.packed) == expected
    device.close()


def test_marks_that_are_gone_leave_their_events_to_others(
    played: PlayedDriver, device: BindingsDevice
) -> None:
    stream = device.new_stream()
    for _ in range(10):
        before, after = stream.mark(), stream.mark()
        assert after.milliseconds_since(before) == -before.milliseconds_since(after)
        after.wait()
    # Two are held while two are made.
    assert played.owned["events"] == 4
    del after
    stream.free()
    assert played.owned["events"] == 1
    del before
    assert played.owned["events"] == 0


def test_pinned_memory_lives_as_long_as_its_last_array(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    device = open_device(0)
    with device.current():
        numbers = device.pinned(6, np.int32)
        numbers[:] = range(6)
        part = numbers[2:].view(np.uint8)[4:]
        assert device.pinned(0, np.int64).size == 0
    del numbers
    assert part.view(np.int32).tolist() == [3, 4, 5]
    assert played.owned["pinned"] == 1
    # Nobody has made the device current where the array ends.
    del part
    assert played.owned["pinned"] == 0
    device.close()


def test_programs_go_with_their_last_user_or_with_the_device(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    device = open_device(0)
    with device.current():
        kept, dropped = device.load(b"one"), device.load(b"other")
    del dropped
    assert played.owned["modules"] == 1
    # The context may stay, because another library uses it.
    device.close()
    assert played.owned["modules"] == 0
    assert played.calls[-4:] == [
        *("cuCtxPushCurrent", "cuModuleUnload", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease")
    ]
    kept.unload()
    assert played.calls[-1] == "cuDevicePrimaryCtxRelease"


def test_everything_is_given_back_in_the_end_whatever_is_forgotten(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    device = open_device(0)
    with device.current():
        stream, buffer = device.new_stream(), device.allocate(10)
        mark = stream.mark()
    del buffer
    assert played.owned["memory"] == 0
    del mark, stream
    gc.collect()
    assert played.owned["streams"] == 0
    played.owned.pop("events", None)
    device.close()


def test_what_outlives_the_device_is_not_given_back(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    """Its address may be somebody else's by then."""
    device = open_device(0)
    with device.current():
        array, buffer, stream = device.pinned(1, np.int64), device.allocate(1), device.new_stream()
        mark = stream.mark()
    device.close()
    before = len(played.calls)
    stream.free()
    buffer.free()
    del array, mark
    assert len(played.calls) == before
    played.owned.clear()


def test_resources_are_those_that_the_driver_tells(
    played: PlayedDriver, device: BindingsDevice
) -> None:
    found = device.load(b"image").resources("search")
    assert (found.registers, found.local_bytes, found.shared_bytes) == (40, 8, 1024)
    # 65536 registers are enough for 6 of 8 blocks of 256 threads.
    assert found.occupancy == 6 / 8


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "cuStreamCreate": lambda device, stream: device.new_stream(),
    "cuMemHostAlloc": lambda device, stream: device.pinned(1, np.uint8),
    "cuModuleLoadData": lambda device, stream: device.load(b"image"),
    "cuMemGetInfo": lambda device, stream: device.memory(),
    "cuMemcpyHtoDAsync": lambda device, stream: stream.copy_in(0, np.zeros(1)),
    "cuMemcpyDtoHAsync": lambda device, stream: stream.copy_out(np.zeros(1), 0),
    "cuMemsetD8Async": lambda device, stream: stream.fill_zero(0, 1),
    "cuEventCreate": lambda device, stream: stream.mark(),
    "cuEventRecord": lambda device, stream: stream.mark(),
    "cuEventSynchronize": lambda device, stream: stream.mark().wait(),
    "cuStreamSynchronize": lambda device, stream: stream.synchronize(),
    "cuMemAlloc": lambda device, stream: device.allocate(1),
    "cuModuleGetFunction": lambda device, stream: stream.launch(device.load(b""), "x", 1, ()),
    "cuLaunchKernel": lambda device, stream: stream.launch(device.load(b""), "x", 1, ()),
    "cuFuncGetAttribute": lambda device, stream: device.load(b"").resources("x"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_the_driver_is_an_error_of_the_backend(
    played: PlayedDriver, device: BindingsDevice, name: str
) -> None:
    stream = device.new_stream()
    played.fail("ILLEGAL_ADDRESS", name)
    expected = f"the device failed: {name} failed: what 700 means"
    with pytest.raises(BackendError) as caught:
        CALLS[name](device, stream)
    assert caught.value.message == expected
    assert pickle.loads(pickle.dumps(caught.value)).message == expected
    del caught
    stream.free()


def test_too_little_memory_is_no_failure(played: PlayedDriver, device: BindingsDevice) -> None:
    played.fail("OUT_OF_MEMORY", "cuMemAlloc", "cuMemHostAlloc")
    with pytest.raises(DeviceMemoryError, match="77 bytes"):
        device.allocate(77)
    # Pinned memory is the host's: to split the work in two is in vain.
    with pytest.raises(BackendError, match="cuMemHostAlloc failed: what 2 means"):
        device.pinned(1, np.uint8)


def test_a_device_that_fails_lets_everything_else_be_given_back(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    device = open_device(0)
    with pytest.raises(BackendError, match="what 700 means"):
        with device.current():
            stream, buffer = device.new_stream(), device.allocate(1)
            played.fail("ILLEGAL_ADDRESS", "cuMemFree", "cuStreamSynchronize")
            try:
                stream.synchronize()
            finally:
                buffer.free()
                stream.free()
    assert (played.owned["memory"], played.owned["streams"]) == (1, 0)
    device.close()
    played.owned.pop("memory")


def test_a_context_that_cannot_be_made_current_is_an_error(
    played: PlayedDriver, open_device: OpenDevice
) -> None:
    device = open_device(0)
    with device.current():
        buffer = device.allocate(1)
    played.fail("ILLEGAL_ADDRESS", "cuCtxPushCurrent")
    with pytest.raises(BackendError, match="cuCtxPushCurrent failed"), device.current():
        raise AssertionError("the statement has begun")
    buffer.free()
    assert played.contexts == []
    played.owned.pop("memory")
    played.failing.clear()
    device.close()


@pytest.mark.parametrize("name", ["cuInit", "cuDeviceGetCount", "cuDevicePrimaryCtxRetain"])
def test_a_device_that_cannot_be_opened_is_an_error(
    played: PlayedDriver, open_device: OpenDevice, name: str
) -> None:
    played.fail("NO_DEVICE", name)
    with pytest.raises(BackendError) as caught:
        open_device(0)
    assert caught.value.message == f"device 0: the driver answers: {name} failed: what 100 means"


def test_a_number_of_no_device_is_an_error(played: PlayedDriver, open_device: OpenDevice) -> None:
    for number in (-1, 2):
        with pytest.raises(BackendError, match=f"there is no device {number}; the driver finds 2"):
            open_device(number)


def test_a_device_that_no_kernel_runs_on_is_released(
    played: PlayedDriver, open_device: OpenDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(capability: tuple[int, int]) -> str:
        raise BackendError("cuda", "too old")

    monkeypatch.setattr("mummergpu.cuda.bindings_device.choose_architecture", refuse)
    with pytest.raises(BackendError, match="too old"):
        open_device(0)


def test_errors_that_the_bindings_do_not_know(played: PlayedDriver) -> None:
    """The driver may be newer than the bindings, and have a code or lack a function."""
    from mummergpu.cuda.driver_calls import CallError, call

    def fail() -> tuple[Any, ...]:
        return (7777,)

    def missing() -> tuple[Any, ...]:
        raise RuntimeError('Function "cuMissing" not found\nand more')

    played.fail("INVALID_VALUE", "cuGetErrorString")
    with pytest.raises(CallError, match="fail failed: 7777"):
        call(fail)
    with pytest.raises(CallError, match=r'missing failed: Function "cuMissing" not found$'):
        call(missing)
