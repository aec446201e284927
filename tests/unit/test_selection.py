"""Which tests run with each change, and which at night; and how many processes share them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]

SMALL_SUITE = """
import os
import pytest

def test_quick(): ...

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.parametrize("size", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_of(size): ...

def test_worker(): print("worker", os.environ.get("PYTEST_XDIST_WORKER"))
"""
QUICK = ["test_of[1]", "test_quick", "test_worker"]
SLOW = ["test_of[2]", "test_slow"]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite under the rules of this one."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "tests").mkdir()
    shutil.copy(TESTS / "conftest.py", folder / "tests")
    shutil.copy(TESTS.parent / "pyproject.toml", folder)
    (folder / "tests" / "test_small.py").write_text(SMALL_SUITE)
    return folder


def run(suite: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words]
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def passed_in(report: str) -> list[str]:
    return sorted(re.findall(r"^PASSED .*::(\S+)$", report, re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], QUICK),
        (["--all"], QUICK + SLOW),
        (["-m", "slow"], SLOW),
        (["-m", "not slow"], QUICK),
        (["tests/test_small.py"], QUICK),
        (["tests/test_small.py::test_slow"], ["test_slow"]),
        (["tests/test_small.py::test_of"], ["test_of[1]", "test_of[2]"]),
        (["tests/test_small.py::test_of[2]", "tests/test_small.py"], [*QUICK, "test_of[2]"]),
    ],
    ids=" ".join,
)
def test_slow_tests_run_when_they_are_asked_for(
    suite: Path, words: list[str], expected: list[str]
) -> None:
    words = words if "tests/test_small.py" in " ".join(words) else [*words, "-n0"]
    assert passed_in(run(suite, *words)) == sorted(expected)


def test_folders_are_shared_by_processes_and_single_files_are_not(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "2")
    report = run(suite)
    assert re.search(r"^worker gw[01]$", report, re.MULTILINE)
    assert passed_in(report) == QUICK
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS")
    assert "worker None" in run(suite, "tests/test_small.py")
