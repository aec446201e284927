"""Which tests run with each change, and which at night; and how many processes share them."""

import re
import shutil
from pathlib import Path

import pytest
from helpers.first_tests import STARTS, in_order
from helpers.tiers import listed
from tiers.choose import durations_of, lists_of

pytest_plugins = ["pytester"]

TESTS = Path(__file__).resolve().parents[1]

SMALL_SUITE = """
import os
import pytest

def test_quick(): ...

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.parametrize("size", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_of(size): ...

def test_dear(): ...

def test_dearest(): ...

@pytest.mark.parametrize("size", [1, 2])
def test_table(size): ...

def test_worker(): print("worker", os.environ.get("PYTEST_XDIST_WORKER"))
"""
LISTS = {
    "ci.txt": "# dear\ntests/test_small.py::test_dear compiles\n"
    "tests/test_small.py::test_table but [1]\n",
    "night.txt": "tests/test_small.py::test_dearest\n",
}
QUICK = ["test_of[1]", "test_quick", "test_table[1]", "test_worker"]
CI = ["test_dear", "test_table[2]"]
SLOW = ["test_dearest", "test_of[2]", "test_slow"]


@pytest.fixture
def suite(pytester):
    """A suite under the rules of this one."""
    folder = pytester.mkdir("tests")
    shutil.copy(TESTS / "conftest.py", folder)
    (folder / "helpers").mkdir()
    for name in ("first_tests.py", "requirements.py", "tiers.py"):
        shutil.copy(TESTS / "helpers" / name, folder / "helpers")
    shutil.copy(TESTS.parent / "pyproject.toml", pytester.path)
    (folder / "test_small.py").write_text(SMALL_SUITE)
    (folder / "tiers").mkdir()
    for name, lines in LISTS.items():
        (folder / "tiers" / name).write_text(lines)
    return pytester


def passed_in(result):
    assert result.ret == 0
    return sorted(re.findall(r"^PASSED .*::(\S+)$", result.stdout.str(), re.MULTILINE))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], QUICK),
        (["--ci"], QUICK + CI),
        (["-m", "ci"], CI),
        (["--all"], QUICK + CI + SLOW),
        (["-m", "slow"], SLOW),
        (["-m", "not slow"], QUICK),
        (["tests/test_small.py"], QUICK + CI),
        (["tests/test_small.py::test_slow"], ["test_slow"]),
        (["tests/test_small.py::test_of"], ["test_of[1]", "test_of[2]"]),
        (["tests/test_small.py::test_of[2]", "tests/test_small.py"], [*QUICK, *CI, "test_of[2]"]),
        (["tests/test_small.py::test_table"], ["test_table[1]", "test_table[2]"]),
    ],
    ids=" ".join,
)
def test_tests_of_other_tiers_run_when_they_are_asked_for(suite, words, expected):
    words = words if "tests/test_small.py" in " ".join(words) else [*words, "-n0"]
    assert passed_in(
        suite.runpytest_inprocess("-rA", "-p", "no:hypothesispytest", *words)
    ) == sorted(expected)


def test_folders_are_shared_by_processes_and_single_files_are_not(suite, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "1")
    shared = suite.runpytest_subprocess("-rA", "-p", "no:hypothesispytest")
    shared.stdout.fnmatch_lines("worker gw0")
    assert passed_in(shared) == QUICK
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS")
    alone = suite.runpytest_inprocess("-rA", "-p", "no:hypothesispytest", "tests/test_small.py")
    alone.stdout.fnmatch_lines("worker None")


def test_two_processes_begin_with_tests_of_different_rooms():
    mapping, matching = ([f"{starts[0]}{n}" for n in range(5)] for starts in STARTS)
    paths = [*(f"cli/{n}" for n in range(10)), *matching, *mapping]
    found = in_order(paths, 2, str)
    assert sorted(found) == sorted(paths) and found[:5] == mapping and found[10:15] == matching
    assert in_order(paths, 1, str) == paths


@pytest.mark.parametrize("start", [start for starts in STARTS for start in starts])
def test_what_processes_begin_with_is_there(start):
    assert list(TESTS.glob(f"{start}*"))


@pytest.mark.parametrize("name", LISTS)
def test_all_tests_of_a_list_are_there(name):
    tests = listed(TESTS / "tiers" / name)
    # Cases that kernels and devices share are tests of both.
    shared = "".join(path.read_text() for path in (TESTS / "helpers").glob("*_cases.py"))
    for test, case in tests.items():
        path, function = test.split("::")
        assert f"def {function}(" in (TESTS.parent / path).read_text() + shared, test
        assert case is None or case.startswith("[")
    assert len(tests) > 50


DURATIONS = """<testsuites><testsuite>
<testcase classname="tests.a.test_x" name="test_cheap" time="0.5"/>
<testcase classname="tests.a.test_x" name="test_dear" time="90"/>
<testcase classname="tests.a.test_x" name="test_table[a, b]" time="60"/>
<testcase classname="tests.a.test_x" name="test_table[c]" time="0.1"/>
</testsuite></testsuites>"""


def test_the_dearest_tests_are_left_out(tmp_path):
    path = tmp_path / "durations.xml"
    path.write_text(DURATIONS)
    dear, table = "tests/a/test_x.py::test_dear", "tests/a/test_x.py::test_table but [c]"
    tiers = [lists_of(durations_of(path), *seconds) for seconds in ((50, 70), (200, 0), (1, 0))]
    assert tiers == [([table], [dear]), ([], []), ([], [dear, table])]
    compiling = lists_of(durations_of(path), 200, 0, {dear})
    assert compiling == ([f"{dear} compiles"], [dear])
