"""A compiler for the host, without which the kernels' own source cannot be run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.host_libraries import host_compiler, prune

from mummergpu.matching.backends import memory_plan as plan
from mummergpu.matching.backends.streaming import STREAMS
from mummergpu.matching.kmer.cuda_text import KmerTextBackend

HERE = Path(__file__).resolve().parent

REQUIRE_CXX = "MUMMERGPU_REQUIRE_CXX"
"""Set to 1 where tests that run the kernels on the host must not be skipped."""


@pytest.fixture(scope="session")
def cxx() -> str:
    """The compiler: $CXX, or g++.

    Without it the test is skipped, or fails where `REQUIRE_CXX` is set to 1.
    """
    name = host_compiler()
    if shutil.which(name) is not None:
        return name
    reason = f"there is no {name} (Debian: apt-get install g++)"
    if os.environ.get(REQUIRE_CXX) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def sanitizing(cxx: str) -> dict[str, str]:
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
def library_folder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled kernels are kept, also for later runs if pytest may keep anything."""
    kept = getattr(pytestconfig, "cache", None)
    if kept is None:
        return tmp_path_factory.mktemp("kernels")
    folder: Path = kept.mkdir("host-libraries")
    prune(folder)
    return folder


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Lets plans be small; returns a limit of memory with 57,600 bytes for each block."""
    monkeypatch.setattr(plan, "SMALLEST_BLOCK", 16)
    return 2 * STREAMS * 300 * plan.WORK_BYTES_PER_BASE


@pytest.fixture(autouse=True)
def text_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the device make text, which it does not do by default."""
    monkeypatch.setattr(KmerTextBackend, "may_make_text", True)
