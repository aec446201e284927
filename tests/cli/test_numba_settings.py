"""Variables of the environment that set numba up: each works, or one line names it."""

import os
import subprocess
import sys

import pytest
from helpers.sequences import write_fasta

BASES = "ACGTTGCATTAGCAGGATCCATTGACCAGTCAATCGGATTCCGATAGCAATTCGGACTTACGGTTA"


def search(folder, **variables):
    """Search a read in another process."""
    write_fasta(folder / "r.fa", [("r", BASES)])
    write_fasta(folder / "q.fa", [("q", BASES[10:40])])
    command = [sys.executable, "-m", "mummergpu", "-q", "-C", "r.fa", "q.fa"]
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("NUMBA_DISABLE_JIT", "1", "numba is told to compile nothing"),
        ("NUMBA_DEBUG", "1", "numba would print to standard output"),
        ("NUMBA_DUMP_IR", "1", "numba would print to standard output"),
        ("NUMBA_DEBUG_TYPEINFER", "1", "numba would print to standard output"),
    ],
)
def test_a_variable_that_hinders_is_named(name, value, problem, tmp_path):
    done = search(tmp_path, **{name: value})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"mummergpu: error: {problem}")
    assert done.stderr.endswith(f": unset {name}\n") and done.stderr.count("\n") == 1


def test_a_file_of_settings_is_named(tmp_path):
    (tmp_path / ".numba_config.yaml").write_text("disable_jit: 1\n")
    done = search(tmp_path)
    if done.returncode == 0:
        pytest.skip("numba reads this file with PyYAML only")
    expected = "mummergpu: error: numba is told to compile nothing: unset .numba_config.yaml\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


def test_other_variables_change_nothing(tmp_path):
    others = {
        "NUMBA_THREADING_LAYER": "nonsense",
        "NUMBA_CACHE_DIR": "/nonexistent/x",
        "NUMBA_NUM_THREADS": "1",
        "NUMBA_DEBUG": "0",
        "NUMBA_DISABLE_JIT": "0",
        "NUMBA_CAPTURED_ERRORS": "nonsense",
    }
    expected = search(tmp_path)
    assert (expected.returncode, len(expected.stdout.splitlines())) == (0, 2)
    done = search(tmp_path, **others)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")
