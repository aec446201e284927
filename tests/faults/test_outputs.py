"""Every failure of the system while matches, statistics and trees are written."""

import errno
import json
import os

import pytest
from helpers.faulty_runs import ERRORS, OLDER, Task, check_every_failure

MATCH = ("-C", "-t", "2", "r.fa", "q.fa", "-l", "12", "-o", "out/a")
PLAIN = Task(MATCH)
STATS = Task((*MATCH, "--stats", "out/s"))
LARGE = Task(("-C", "-t", "2", "repeat.fa", "many.fa", "-l", "12", "-o", "out/a"))

FIRST = (errno.ENOSPC, False)
SECOND = (errno.EIO, True)
BOTH = [
    pytest.param(error, older, marks=() if (error, older) in (FIRST, SECOND) else pytest.mark.slow)
    for error in ERRORS
    for older in (False, True)
]
"""Each error, and without and with an older file; half of that for every change."""
ONE = [SECOND, pytest.param(*FIRST, marks=pytest.mark.slow)]

OF_OUTPUTS = {"open_to_read", "read", "close", "write"}


def whole_outputs(runs, task):
    """Return what tells of the outputs of a task whether they are complete."""
    assert runs.run(task).status == 0
    good = runs.contents()
    assert good["a"].startswith(b"> q0\n")
    runs.clear()
    return {"a": good["a"].__eq__} | ({"s": is_report} if "s" in good else {})


def is_report(content):
    """Tell whether a file of statistics is complete."""
    return content.endswith(b"\n") and "end_to_end" in json.loads(content)["stages"]


@pytest.mark.parametrize(("error", "older"), BOTH)
def test_an_output_is_whole_or_not_there(runs, error, older):
    whole = whole_outputs(runs, PLAIN)
    failed = check_every_failure(runs, PLAIN, error, whole, ["a"] if older else [])
    assert failed >= OF_OUTPUTS | {"open", "rename"} | ({"fchmod"} if older else set())


@pytest.mark.parametrize(("error", "older"), ONE)
def test_statistics_are_whole_or_not_there(runs, error, older):
    whole = whole_outputs(runs, STATS)
    check_every_failure(runs, STATS, error, whole, ["a", "s"] if older else [])


@pytest.mark.parametrize("error", [errno.ENOSPC, pytest.param(errno.EIO, marks=pytest.mark.slow)])
def test_a_large_output_is_whole_or_not_there(runs, error):
    whole = whole_outputs(runs, LARGE)
    failed = check_every_failure(runs, LARGE, error, whole, first_look="repeat.fa")
    assert failed >= {"fallocate", "ftruncate", "write"}


@pytest.mark.parametrize("task", [STATS, LARGE], ids=["stats", "large"])
def test_halves_of_what_is_asked_for_are_enough(runs, task):
    """The system may always read or write less than it is asked for."""
    whole = whole_outputs(runs, task)
    calls = runs.run(task).calls
    runs.clear()
    outcome = runs.run(task, halves=True)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.calls.count("write") > 2 * calls.count("write")
    assert all(whole[name](content) for name, content in runs.contents().items())
    assert runs.contents().keys() == whole.keys()


@pytest.mark.parametrize("older", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_process_that_is_killed_anywhere_leaves_no_name(runs, older):
    whole = whole_outputs(runs, STATS)
    names = ["a", "s"] if older else []
    runs.clear(names)
    for _ in runs.each_kill(STATS):
        contents = runs.contents()
        for name in [name for name in contents if name.endswith(".part")]:
            del contents[name]
        assert contents.keys() <= whole.keys()
        for name, content in contents.items():
            assert whole[name](content) or (older and content == OLDER)
        assert contents.keys() >= set(names)
        assert os.listdir(runs.temporary) == []
        runs.clear(names)
