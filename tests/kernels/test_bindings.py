"""NVIDIA's own bindings, with a driver that is played: what no driver for tests in Python shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.watched_device import WatchedCompiler

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def environment(
    nvrtc: None, driver_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The environment of a program for which the played driver is the driver."""
    folder = tmp_path_factory.mktemp("driver")
    folder.joinpath("libcuda.so.1").symlink_to(driver_library)
    paths = [HERE.parents[1], HERE.parent, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")]),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }


def run(environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "-W", "error", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_calls_reach_the_driver_as_they_are_meant(environment: dict[str, str]) -> None:
    words = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    told = run(environment, *words, str(HERE / "bindings_calls.py"))
    assert re.search(r"^4\d passed in", told, re.MULTILINE), told


def test_searches_find_the_same_matches(
    environment: dict[str, str], compiler: WatchedCompiler, library_folder: Path
) -> None:
    found = run(environment, str(HERE / "bindings_search.py"), str(library_folder))
    assert found == "the backends agree\n"
