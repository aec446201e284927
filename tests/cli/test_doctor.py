"""``mummergpu doctor``: what it finds, in text and as JSON, and what no broken part may do."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.children import COMMAND, child

from mummergpu.cli import doctor
from mummergpu.cli.main import main
from mummergpu.cuda import requirements
from mummergpu.cuda.driver import DeviceFacts, DriverFacts
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.nvrtc import INSTALL
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.requirements import CompilerFacts, CudaFacts
from mummergpu.runtime.optional_imports import Library
from mummergpu.version import __version__

PACKAGE_FOLDER = Path(doctor.__file__).parent.parent
H200 = DeviceFacts(0, "NVIDIA H200", (9, 0), 132, 150_000_000_000, 149_000_000_000, None)
SOUND = CudaFacts(
    DriverFacts((13, 0), (H200, replace(H200, number=1, free_bytes=None, problem="busy")), None),
    Library("pycuda", "2026.1", None),
    Library("cuda-bindings", "13.0.1", None),
    CompilerFacts((13, 5), (80, 90), None),
)
BARE = CudaFacts(
    DriverFacts(None, (), "no NVIDIA driver (not found)"),
    Library("pycuda", None, "not installed"),
    Library("cuda-bindings", None, "not installed"),
    CompilerFacts(None, (), "cuda-bindings cannot be imported"),
)


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """The folder that the environment names for compiled kernels; not made yet."""
    folder = tmp_path / "kept"
    monkeypatch.setenv("MUMMERGPU_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def code(kernels):
    """The folder for the processor's code, with two files of it."""
    folder = kernels / "processor"
    (folder / "generation").mkdir(parents=True)
    for name in ("a.code", "b.code"):
        (folder / "generation" / name).write_bytes(bytes(1024))
    return folder


def ask(facts, monkeypatch, capfd):
    monkeypatch.setattr(requirements, "cuda_facts", lambda measure_memory: facts)
    assert main(["doctor"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out.splitlines()


def row(lines, label):
    (line,) = (line for line in lines if line.startswith(f"{label:<16}  "))
    return line[18:]


def check(lines, expected):
    """Compare the rows that a table of labels and texts names."""
    for line in expected.strip().splitlines():
        label, _, text = line.strip().partition(": ")
        assert row(lines, label) == text


def test_a_machine_that_has_all(kernels, code, monkeypatch, capfd):
    cache = KernelCache(kernels, pytest.fail, version=lambda: (13, 5))
    program = ProgramSource("none", "tree/program.cu")
    for architecture in ("sm_80", "sm_90"):
        cache.cubin({"tree/program.cu": ""}, program, architecture, lambda *_: bytes(2048 - 88))
    lines = ask(SOUND, monkeypatch, capfd)
    assert row(lines, "Python").startswith(".".join(map(str, sys.version_info[:3])) + " on Linux")
    device = "NVIDIA H200, compute capability 9.0, 132 multiprocessors, 139.7 GiB"
    check(
        lines,
        f"""
        mummergpu: {__version__}
        compiled code: {code}: writable, 2 files, 2.0 KiB
        driver: for CUDA 13.0
        device 0: {device}, 138.8 GiB free
        device 1: {device}, busy
        PyCUDA: 2026.1
        cuda-bindings: 13.0.1
        NVRTC: 13.5, compiles for sm_80 sm_90
        device library: --device-library auto takes pycuda
        kernels: {kernels}: writable, 2 files, 3.9 KiB
        backend: --backend auto takes cuda""",
    )
    assert not any(line.startswith("missing") for line in lines)
    lines = ask(replace(SOUND, pycuda=BARE.pycuda), monkeypatch, capfd)
    check(
        lines,
        """
        PyCUDA: not installed
        device library: --device-library auto takes cuda-bindings
        backend: --backend auto takes cuda""",
    )
    assert not any(line.startswith("missing") for line in lines)


def test_a_machine_that_has_nothing_but_a_processor(kernels, monkeypatch, capfd):
    lines = ask(BARE, monkeypatch, capfd)
    check(
        lines,
        f"""
        driver: no NVIDIA driver (not found)
        PyCUDA: not installed
        NVRTC: cuda-bindings cannot be imported
        kernels: {kernels}: writable, 0 files, 0 bytes
        backend: --backend auto takes cpu""",
    )
    missing = [line[18:] for line in lines if line.startswith("missing for cuda  ")]
    assert len(missing) == 2
    assert missing[1].startswith(f"cuda-bindings: not installed: {INSTALL} (in a clone: ")
    assert not any(line.startswith("device library") for line in lines)
    # A machine is looked at, not changed.
    assert not kernels.exists()


def test_this_machine_whatever_it_has(kernels, capfd):
    assert main(["doctor"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert row(lines, "backend") in ("--backend auto takes cpu", "--backend auto takes cuda")
    assert len({line.split("  ")[0] for line in lines} & {"driver", "PyCUDA", "NVRTC"}) == 3


def test_json_holds_what_the_text_tells(kernels, monkeypatch, capfd):
    monkeypatch.setattr(requirements, "cuda_facts", lambda measure_memory: SOUND)
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["auto_backend"] == "cuda"
    assert report["device_library"] == "pycuda"
    assert report["obstacles"] == []
    assert report["cuda"]["driver"]["cuda_version"] == [13, 0]
    assert report["cuda"]["driver"]["devices"][0]["total_bytes"] == 150_000_000_000
    assert report["cuda"]["compiler"]["architectures"] == [80, 90]
    assert report["kernels"] == {"folder": str(kernels), "writable": True, "entries": 0, "bytes": 0}
    own = {"name": "mummergpu", "version": __version__, "problem": None}
    assert report["libraries"][-1] == own


def test_libraries_of_single_commands_are_told_with_their_extra(monkeypatch, capfd):
    def find(name, module):
        state = {"scipy": "not installed", "jinja2": "cannot be imported: why"}.get(name)
        version = None if name == "scipy" else "1.2"
        return Library(name, version, state)

    monkeypatch.setattr(doctor.optional_imports, "find", find)
    lines = ask(BARE, monkeypatch, capfd)
    assert row(lines, "scipy") == "not installed (pip install 'mummergpu[report]')"
    assert row(lines, "jinja2") == "1.2, cannot be imported: why"
    assert row(lines, "matplotlib") == "1.2"
    # They keep no backend from working.
    assert row(lines, "backend") == "--backend auto takes cpu"


def test_a_folder_that_cannot_be_written_is_told(tmp_path, monkeypatch, capfd):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MUMMERGPU_CACHE_DIR", str(tmp_path / "file" / "x"))
    lines = ask(BARE, monkeypatch, capfd)
    assert row(lines, "kernels") == f"{tmp_path}/file/x: NOT writable, 0 files, 0 bytes"


def test_no_home_is_no_error(monkeypatch, capfd):
    monkeypatch.delenv("MUMMERGPU_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "nowhere")
    assert row(ask(BARE, monkeypatch, capfd), "kernels").startswith("no place for them")


def test_a_backend_that_cannot_be_looked_at_is_a_line(monkeypatch, capfd):
    def refuse(measure_memory):
        raise RuntimeError("it is broken\nbadly")

    monkeypatch.setattr(requirements, "cuda_facts", refuse)
    assert main(["doctor"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert row(lines, "cuda") == "cannot be looked at: it is broken"
    assert row(lines, "backend") == "--backend auto takes cpu"


@pytest.mark.parametrize("library", ["numba", "pysam"])
def test_a_broken_library_is_a_line_and_exit_code_1(library, tmp_path):
    (tmp_path / f"{library}.py").write_text("raise ImportError('it is broken')\n")
    paths = os.pathsep.join([str(tmp_path), str(PACKAGE_FOLDER.parent)])
    done = child(*COMMAND, "doctor", env={"PYTHONPATH": paths}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert row(lines, library).endswith("cannot be imported: it is broken")
    assert row(lines, "backend") == f"none works; pip install --force-reinstall {library}"
