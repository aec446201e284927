"""Every failure of the system while queries and matches wait in temporary files."""

import errno
import os

import pytest
from helpers.faulty_runs import Task, check_every_failure

MATCH = ("-C", "-t", "2", "r.fa", "q.fa", "-l", "12", "-o", "out/a")
# A page after the other, as two do not fit.
GROUPS = (*MATCH, "--search", "tree", "--page-size", "64", "--max-memory", "10k")
BLOCKS = Task((*GROUPS, "--block-size", "700"))


@pytest.mark.parametrize(
    ("error", "older"),
    [
        (errno.ENOSPC, False),
        pytest.param(errno.EIO, True, marks=pytest.mark.slow),
        pytest.param(errno.EIO, False, marks=pytest.mark.slow),
    ],
)
def test_a_failure_of_a_temporary_file_is_told_of_its_folder(runs, error, older):
    assert runs.run(Task(MATCH)).status == 0
    whole = {"a": runs.contents()["a"].__eq__}
    good = runs.run(BLOCKS)
    assert whole["a"](runs.contents()["a"])
    # One for the queries and one for each group but the last.
    assert good.calls.count("open_nameless") >= 1 + 2
    failed = check_every_failure(runs, BLOCKS, error, whole, ["a"] if older else [])
    assert failed >= {"open_nameless", "write", "read", "close"}


def test_halves_of_what_is_asked_for_are_enough(runs):
    assert runs.run(BLOCKS).status == 0
    good = runs.contents()
    runs.clear()
    outcome = runs.run(BLOCKS, halves=True)
    assert (outcome.status, outcome.err) == (0, "")
    assert runs.contents() == good


@pytest.mark.slow
def test_a_process_that_is_killed_anywhere_leaves_no_temporary_file(runs):
    for _ in runs.each_kill(BLOCKS):
        assert all(name == "a" or name.endswith(".part") for name in runs.contents())
        assert os.listdir(runs.temporary) == []
        runs.clear()
