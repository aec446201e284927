"""NVIDIA's own bindings, with a driver that is played: what no driver for tests in Python shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def environment(nvrtc, driver_library, tmp_path_factory):
    """The environment of a program for which the played driver is the driver."""
    folder = tmp_path_factory.mktemp("driver")
    folder.joinpath("libcuda.so.1").symlink_to(driver_library)
    paths = [HERE.parents[1], HERE.parent, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")]),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }


def run(environment, *words):
    command = [sys.executable, "-W", "error", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_calls_reach_the_driver_as_they_are_meant(environment):
    words = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    told = run(environment, *words, str(HERE / "bindings_calls.py"))
    assert re.search(r"^5\d passed in", told, re.MULTILINE), told


def test_searches_find_the_same_matches(environment, compiler, library_folder):
    found = run(environment, str(HERE / "bindings_search.py"), str(library_folder))
    assert found == "the backends agree\n"
