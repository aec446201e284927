"""Which backend is opened, what a driver tells of its devices, how memory is divided."""

import ctypes
import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.host_device import ALIGNMENT, HostDevice, everything_given_back
from helpers.options import match_options
from helpers.played_machine import BARE, BROKEN_PYCUDA, GIB, NO_DRIVER, NO_LIBRARY, NO_PYCUDA, SOUND

from mummergpu.cli.main import main
from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.cuda.driver import DeviceFacts, DriverFacts, ask_driver
from mummergpu.cuda.nvrtc import INSTALL
from mummergpu.cuda.stream_worker import SMALLEST_BUFFER, Workspace
from mummergpu.errors import BackendError
from mummergpu.index.tree.policy import Policy
from mummergpu.matching import open_cuda as opening
from mummergpu.matching.backends import memory_plan as plan
from mummergpu.matching.backends.memory_plan import (
    FREE_PART,
    LARGEST_BLOCK,
    SMALLEST_BLOCK,
    WORK_BYTES_PER_BASE,
    divide_memory,
)
from mummergpu.matching.open_backend import open_backend
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats

CLONE = "(in a clone: pip install '.[cuda-wheels]')"


def chosen(notices, **told):
    stats = Stats()
    options = match_options("r.fa", ("q.fa",), **told)
    backend = open_backend(options.index.kind, options.device, stats, notices.append)
    assert isinstance(backend, TreeCpuBackend | TreeCudaBackend)
    return backend, stats


@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_a_device_is_taken_where_there_is_one(machine, name):
    notices = []
    backend, stats = chosen(
        notices,
        backend=name,
        device=3,
        gpu_memory=GIB // 4,
        profile=True,
        policy=Policy.from_code("Tn"),
        kernel_folder="cubins",
    )
    assert isinstance(backend, TreeCudaBackend)
    assert (machine.numbers, machine.folders) == ([3], [Path("cubins")])
    assert stats.settings["device"] == "host"
    expected = plan.divide_memory(GIB, GIB // 4, 3)
    assert backend.page_memory == expected.tree_bytes
    assert backend.sizes.block_bases == expected.block_bases and backend.profile
    assert [notice.split(" ")[0] for notice in notices] == ["device"]
    backend.close()
    assert everything_given_back(machine.devices[0])


@pytest.mark.parametrize(
    ("facts", "wanted", "taken"),
    [
        (SOUND, "auto", "pycuda"),
        (SOUND, "pycuda", "pycuda"),
        (SOUND, "cuda-bindings", "cuda-bindings"),
        (NO_PYCUDA, "auto", "cuda-bindings"),
        (NO_PYCUDA, "cuda-bindings", "cuda-bindings"),
        (BROKEN_PYCUDA, "auto", "cuda-bindings"),
    ],
)
def test_the_library_is_the_one_that_is_wanted(machine, facts, wanted, taken):
    machine.looks(facts)
    notices = []
    backend, _ = chosen(notices, backend="cuda", device_library=wanted)
    backend.close()
    assert machine.libraries == [taken]
    broken = [notice for notice in notices if notice.startswith("PyCUDA cannot be imported: why")]
    assert len(broken) == (facts is BROKEN_PYCUDA)


def test_a_library_that_is_wanted_and_missing_is_an_error(machine):
    machine.looks(NO_PYCUDA)
    with pytest.raises(BackendError, match=r"PyCUDA is not installed: .*--device-library"):
        chosen([], backend="cuda", device_library="pycuda")
    machine.looks(BROKEN_PYCUDA)
    with pytest.raises(BackendError, match="PyCUDA cannot be imported: why: pip install --force"):
        chosen([], backend="cuda", device_library="pycuda")
    assert machine.devices == []


def test_the_command_passes_the_library_on(machine, output):
    words = ["r.fa", "q.fa", "-l", "15", "--backend", "cuda", "--stats", "stats.json"]
    expected = output(*words)[0]
    assert output(*words, "--device-library", "cuda-bindings")[0] == expected
    assert machine.libraries == ["pycuda", "cuda-bindings"]
    assert json.loads(Path("stats.json").read_text())["settings"]["device_library"] == "host"


def test_the_cpu_backend_asks_for_no_device(machine):
    def ask():
        raise AssertionError("the driver was asked")

    machine.patch.setattr(opening, "driver_facts", ask)
    notices = []
    backend, _ = chosen(notices, backend="cpu")
    assert isinstance(backend, TreeCpuBackend) and notices == []


@pytest.mark.parametrize(
    ("facts", "notice"),
    [
        (BARE, "no cuda backend: no NVIDIA driver (not found)"),
        (NO_LIBRARY, f"no cuda backend: cuda-bindings: not installed: {INSTALL}"),
    ],
)
def test_auto_takes_the_cpu_where_something_is_missing_and_says_so(machine, facts, notice):
    machine.looks(facts)
    notices = []
    backend, _ = chosen(notices, backend="auto")
    assert isinstance(backend, TreeCpuBackend)
    assert len(notices) == 1 and notices[0].startswith(notice)
    assert machine.devices == []


def test_auto_takes_the_cpu_where_the_device_is_full(machine):
    machine.memory_bytes = 1 << 20
    notices = []
    backend, _ = chosen(notices, backend="auto")
    assert isinstance(backend, TreeCpuBackend)
    assert len(notices) == 1 and "bytes of device memory are too few" in notices[0]
    assert everything_given_back(machine.devices[0])


def test_cuda_without_a_device_is_an_error(machine):
    machine.looks(NO_DRIVER)
    with pytest.raises(BackendError, match=r"no NVIDIA driver \(not found\): install NVIDIA's"):
        chosen([], backend="cuda")
    machine.looks(SOUND)
    machine.memory_bytes = 1 << 20
    with pytest.raises(BackendError, match="bytes of device memory are too few"):
        chosen([], backend="cuda")
    assert everything_given_back(machine.devices[0])


@pytest.mark.parametrize(
    ("facts", "remedies"),
    [
        (NO_DRIVER, ["install NVIDIA's driver"]),
        (NO_LIBRARY, [f"cuda-bindings: not installed: {INSTALL}", CLONE]),
        (BARE, ["install NVIDIA's driver", f"cuda-bindings: not installed: {INSTALL}"]),
    ],
)
def test_the_command_says_what_to_install(machine, capfd, facts, remedies):
    machine.looks(facts)
    assert main(["r.fa", "q.fa", "--backend", "cuda", "-o", "out"]) == 1
    out, err = capfd.readouterr()
    last = err.splitlines()[-1]
    assert out == "" and last.startswith("mummergpu: error: backend 'cuda': ")
    for remedy in remedies:
        assert remedy in last
    assert not Path("out").exists()


def test_the_command_without_a_device_says_which_backend_it_takes(machine, output):
    machine.looks(BARE)
    out, err = output("r.fa", "q.fa", "-l", "15", "--search", "tree", "-v")
    assert "mummergpu: no cuda backend: no NVIDIA driver (not found)" in err
    assert "backend cpu" in err
    assert out == output("r.fa", "q.fa", "-l", "15", "--search", "tree", "-C")[0]
    machine.looks(SOUND)
    same, err = output("r.fa", "q.fa", "-l", "15", "--search", "tree", "-v")
    assert "mummergpu: device host (sm_90)" in err and "backend cuda" in err
    assert same == out


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


LEAST = 2 * 3 * SMALLEST_BLOCK * WORK_BYTES_PER_BASE


@pytest.mark.parametrize("free", [LEAST, LEAST + 1, 1 * GIB, 5 * GIB, 80 * GIB])
@pytest.mark.parametrize("streams", [1, 2, 3])
def test_blocks_and_trees_share_the_memory(free, streams):
    plan = divide_memory(free, free, streams)
    assert plan.search_bytes == plan.block_bases * WORK_BYTES_PER_BASE
    assert streams * plan.search_bytes + plan.tree_bytes == free and plan.tree_bytes >= free // 2
    larger = (plan.block_bases + 1) * WORK_BYTES_PER_BASE
    assert plan.block_bases == LARGEST_BLOCK or streams * larger > free // 2


def test_large_devices_take_the_largest_block_and_leave_the_rest_to_trees():
    plan = divide_memory(140 * GIB, None, 3)
    assert plan.block_bases == LARGEST_BLOCK
    assert plan.tree_bytes == int(140 * GIB * FREE_PART) - 3 * LARGEST_BLOCK * WORK_BYTES_PER_BASE
    assert divide_memory(140 * GIB, None, 3, 100_000).block_bases == 100_000


@pytest.mark.parametrize(
    ("free", "limit", "budget"),
    [
        (10 * GIB, None, 9 * GIB),
        (10 * GIB, 2 * GIB, 2 * GIB),
        (10 * GIB, 10 * GIB, 10 * GIB),
        (10 * GIB, 80 * GIB, 10 * GIB),
    ],
)
def test_no_more_is_taken_than_is_allowed_or_free(free, limit, budget):
    plan = divide_memory(free, limit, 3)
    assert 3 * plan.search_bytes + plan.tree_bytes == budget


def test_too_little_memory_is_an_error_that_names_what_would_do():
    with pytest.raises(BackendError) as caught:
        divide_memory(GIB, LEAST - 1, 3)
    assert caught.value.message == (
        f"{LEAST - 1:,} bytes of device memory are too few; {LEAST:,} are the least "
        "(--gpu-memory), or use --backend cpu"
    )
    assert divide_memory(GIB, LEAST, 3).block_bases == SMALLEST_BLOCK
    with pytest.raises(BackendError, match="are too few"):
        divide_memory(LEAST, None, 3)


def test_a_buffer_is_kept_while_it_suffices():
    device = HostDevice()
    workspace = Workspace(device, GIB)
    addresses = [workspace.buffer("codes", size) for size in (4000, 1, 3999, 4000, 4400)]
    assert len(set(addresses)) == 1, "there is some slack for a little more"
    assert [buffer.size for buffer in device.buffers] == [workspace.size] == [4500]
    assert workspace.buffer("names", 4000) != addresses[0] and len(device.buffers) == 2
    workspace.free()


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 10_007])
def test_buffers_are_large_enough_and_aligned(size):
    device = HostDevice()
    workspace = Workspace(device, GIB)
    assert workspace.buffer("codes", size) % ALIGNMENT == 0
    assert workspace.size >= max(size, SMALLEST_BUFFER)
    workspace.free()
    assert (workspace.size, device.buffers) == (0, [])


def test_a_buffer_that_grows_is_given_back_first():
    device = HostDevice(memory_bytes=10_000)
    workspace = Workspace(device, 10_000)
    workspace.buffer("codes", 6_000)
    workspace.buffer("codes", 9_000)
    assert len(device.buffers) == 1 and 9_000 <= workspace.size <= 10_000
    workspace.free()


def test_all_buffers_together_stay_below_the_limit():
    device = HostDevice()
    workspace = Workspace(device, 10_000)
    workspace.buffer("codes", 5_000)
    workspace.buffer("names", 3_000)
    assert workspace.size == device.used <= 10_000
    left = 10_000 - workspace.size
    with pytest.raises(DeviceMemoryError, match=f"{left + 1} bytes for counts, and {left} are"):
        workspace.buffer("counts", left + 1)
    workspace.buffer("counts", left)
    assert workspace.size == device.used == 10_000
    assert device.refusals == 0, "the device was not even asked"
    workspace.free()
    workspace.buffer("counts", 10_000)
    workspace.free()
    assert device.buffers == []


def test_what_the_device_does_not_have_is_refused_too():
    device = HostDevice(memory_bytes=10_000)
    workspace = Workspace(device, 1 << 40)
    workspace.buffer("codes", 5_000)
    with pytest.raises(DeviceMemoryError):
        workspace.buffer("names", 6_000)
    assert device.refusals == 1
    workspace.free()
    assert device.buffers == []
