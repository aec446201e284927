"""What the tests share that run the kernels' own source on the host: a compiler, without which
there is nothing to run, and a machine whose GPU is the host's."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from helpers.host_device import HostDevice
from helpers.host_libraries import host_compiler, library_of, prune
from helpers.opened_backends import OpenedTables, OpenedTrees, close_all
from helpers.played_machine import SOUND, Machine, write_files
from helpers.requirements import program_of
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.cli.main import main
from mummergpu.index.tree.policy import Policy
from mummergpu.matching import open_cuda as opening
from mummergpu.matching.backends import memory_plan as plan
from mummergpu.matching.backends.cuda_streams import STREAMS
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def cxx():
    """The compiler: $CXX, or g++."""
    name = host_compiler()
    program_of(name, "CXX", "Debian: apt-get install g++")
    return name


@pytest.fixture(scope="session")
def sanitizing(cxx):
    """The environment of a program whose kernels are sanitized.

    The sanitizers' runtime must be the first library of a process.
    """
    command = [cxx, "-print-file-name=libasan.so"]
    runtime = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert os.path.isabs(runtime), f"{cxx} has no address sanitizer"
    folders = [HERE.parents[1], HERE.parent, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "LD_PRELOAD": runtime,
        # Python itself never gives back all of its memory.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
    }


@pytest.fixture(scope="session")
def library_folder(pytestconfig, tmp_path_factory):
    """Where compiled kernels are kept, also for later runs if pytest may keep anything."""
    kept = getattr(pytestconfig, "cache", None)
    if kept is None:
        return tmp_path_factory.mktemp("kernels")
    folder = kept.mkdir("host-libraries")
    prune(folder)
    return folder


@pytest.fixture(scope="session")
def driver_library(cxx, library_folder):
    """The driver that is played; without the name of the real one, which others look for."""
    options = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    return library_of(library_folder, "driver", HERE / "played_driver.cpp", [], options)


@pytest.fixture(scope="module")
def compiler(cxx, library_folder):
    return WatchedCompiler(library_folder)


@pytest.fixture
def cache(compiler):
    """What `helpers.device_cases` compiles with."""
    return compiler


@pytest.fixture
def devices():
    """What `helpers.device_cases` tries: a block of threads, some, or more than there are items."""
    made = [HostDevice(1 << 32, blocks) for blocks in (1, 3, 100_000)]
    yield made
    assert not any(device.buffers or device.shared for device in made)


@pytest.fixture
def small_blocks(monkeypatch):
    """Lets plans be small; returns a limit of memory with 57,600 bytes for each block."""
    monkeypatch.setattr(plan, "SMALLEST_BLOCK", 16)
    return 2 * STREAMS * 300 * plan.WORK_BYTES_PER_BASE


@pytest.fixture
def opened_trees(compiler):
    """Opens backends of trees, and closes them: then nothing may be left on their devices."""
    every = []

    def open_backend(code="m", device=None, memory=None, profile=False, threads=1):
        given = WatchedDevice() if device is None else device
        stats, notices, policy = Stats(), [], Policy.from_code(code)
        backend = TreeCudaBackend(
            *(given, compiler, policy, stats, notices.append, memory, profile),
            threads=threads,
            closes_device=True,
        )
        every.append(OpenedTrees(backend, given, stats, notices, policy))
        return every[-1]

    yield open_backend
    close_all(every)


@pytest.fixture
def opened_tables(compiler):
    """Opens backends of tables, and closes them: then nothing may be left on their devices."""
    every = []

    def open_backend(device=None, memory=None, threads=1):
        given = WatchedDevice() if device is None else device
        stats, notices = Stats(), []
        backend = KmerCudaBackend(
            *(given, compiler, stats, notices.append, memory), threads=threads, closes_device=True
        )
        every.append(OpenedTables(backend, given, stats, notices))
        return every[-1]

    yield open_backend
    close_all(every)


@pytest.fixture
def files(tmp_path_factory):
    """The folder of the files of `write_files`; a test may write others over them."""
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture
def machine(compiler, files, monkeypatch):
    """A machine with one sound GPU, on which the working folder has the files."""
    monkeypatch.chdir(files)
    made = Machine(monkeypatch)
    made.looks(SOUND)
    for name, kind, library in (
        ("pycuda_device", "PycudaDevice", "pycuda"),
        ("bindings_device", "BindingsDevice", "cuda-bindings"),
    ):
        played = ModuleType(f"mummergpu.cuda.{name}")
        setattr(played, kind, made.opener(library))
        monkeypatch.setitem(sys.modules, played.__name__, played)

    def cache(folder, notice):
        made.folders.append(folder)
        return compiler

    monkeypatch.setattr(opening, "KernelCache", cache)
    return made


@pytest.fixture
def output(capfdbinary):
    """Runs the command; returns what it wrote to standard output and error."""

    def run(*words):
        code = main(words)
        out, err = capfdbinary.readouterr()
        assert code == 0, err
        return out, err.decode()

    return run
