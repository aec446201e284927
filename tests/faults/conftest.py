"""A process in which the n-th call of the system fails, and what it works on."""

import os
import random
import shlex
import subprocess
from pathlib import Path

import pytest
from helpers.faulty_runs import FaultyRuns
from helpers.requirements import program_of
from helpers.sequences import random_bases

SOURCE = Path(__file__).with_name("faults.c")


@pytest.fixture(scope="session")
def fault_library(tmp_path_factory):
    """The library that lets calls fail, compiled with $CC, or gcc."""
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    program_of(compiler[0], "CXX", "Debian: apt-get install gcc libc6-dev")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler, *options, "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


@pytest.fixture(scope="session")
def warm_process(fault_library, tmp_path_factory):
    """A folder with references and reads, and a process that does what it is told with them."""
    folder = tmp_path_factory.mktemp("work").resolve()
    made = random.Random(9)
    reference = random_bases(made, 150)
    starts = [made.randrange(110) for _ in range(30)]
    (folder / "r.fa").write_text(f">r\n{reference}\n")
    (folder / "q.fa").write_text(
        "".join(f">q{n}\n{reference[start : start + 40]}\n" for n, start in enumerate(starts))
    )
    # Matches that take several megabytes of text.
    unit = reference[:50]
    (folder / "repeat.fa").write_text(f">r\n{unit * 40}\n")
    (folder / "many.fa").write_text("".join(f">q{n}\n{unit}\n" for n in range(4000)))
    faulty = FaultyRuns(fault_library, folder)
    yield faulty
    faulty.close()


@pytest.fixture
def runs(warm_process):
    """The same for every test, with nothing in the folder of outputs."""
    warm_process.clear()
    return warm_process
