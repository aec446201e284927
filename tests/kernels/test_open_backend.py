"""Which backend is opened, with a device and without one, and what is said of it."""

import json
from pathlib import Path

import pytest
from helpers.host_device import everything_given_back
from helpers.options import match_options
from helpers.played_machine import BARE, BROKEN_PYCUDA, GIB, NO_DRIVER, NO_LIBRARY, NO_PYCUDA, SOUND

from mummergpu.cli.main import main
from mummergpu.cuda.nvrtc import INSTALL
from mummergpu.errors import BackendError
from mummergpu.index.tree.policy import Policy
from mummergpu.matching import open_cuda as opening
from mummergpu.matching.backends import memory_plan as plan
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
    assert backend.sizes.block_bases == expected.block_bases
    assert backend.profile
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
    assert isinstance(backend, TreeCpuBackend)
    assert notices == []


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
