"""Every failure of the system while BAM is written, and turned into CRAM."""

import errno
import os

import pytest
from helpers.faulty_runs import Task, check_every_failure

WORDS = ("-C", "-t", "2", "r.fa", "q.fa", "-l", "12", "-o", "out/a", "--format")
BAM = Task(("match", *WORDS, "bam", "-b"))
CRAM = Task(("align", *WORDS, "cram", "-c", "12"))

CASES = [pytest.param(errno.EIO, False), pytest.param(errno.EIO, True, marks=pytest.mark.slow)]


@pytest.mark.parametrize("task", [BAM, CRAM], ids=["bam", "cram"])
@pytest.mark.parametrize(("error", "older"), CASES)
def test_alignments_are_whole_or_not_there(runs, task, error, older):
    assert runs.run(task).status == 0
    whole = {"a": runs.contents()["a"].__eq__}
    failed = check_every_failure(runs, task, error, whole, ["a"] if older else [])
    assert failed >= {"open_to_read", "read", "close", "write", "rename"}


def test_halves_of_what_is_asked_for_are_enough(runs):
    assert runs.run(CRAM).status == 0
    good = runs.contents()
    runs.clear()
    outcome = runs.run(CRAM, halves=True)
    assert (outcome.status, outcome.err) == (0, "")
    assert runs.contents() == good


@pytest.mark.slow
def test_a_process_that_is_killed_anywhere_leaves_nothing(runs):
    assert runs.run(CRAM).status == 0
    good = runs.contents()["a"]
    runs.clear()
    for _ in runs.each_kill(CRAM):
        assert set(runs.contents().values()) <= {good}
        assert os.listdir(runs.temporary) == []
        runs.clear()
