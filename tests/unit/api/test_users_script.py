"""The package is typed for its users: `mypy --strict` checks what they write with it."""

from pathlib import Path

import pytest
from helpers.children import printed_by

import mummergpu

SCRIPT = Path(__file__).with_name("users_script.py")
PLACE = Path(mummergpu.__file__).parents[1]


def run(*words, folder):
    """Run Python where the package is installed: no part of the checker's own input."""
    return printed_by(*words, cwd=folder, env={"PYTHONPATH": str(PLACE)})


def test_the_types_of_a_users_script_are_known(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "users_script.py").write_text(SCRIPT.read_text())
    words = ["-m", "mypy", "--strict", "--config-file=", "--cache-dir=cache", "users_script.py"]
    assert "no issues found in 1 source file" in run(*words, folder=tmp_path)


def test_the_script_runs(tmp_path):
    (tmp_path / "r.fa").write_text(">one\n" + "ACGT" * 10 + "\n")
    (tmp_path / "q.fa").write_text(">a\n" + "ACGT" * 6 + "\n")
    printed = run(SCRIPT, tmp_path, folder=tmp_path).split(maxsplit=2)
    assert int(printed[0]) > 0 and int(printed[1]) > 0
    assert "not an index" in printed[2]
