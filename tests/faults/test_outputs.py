"""Every failure of the system while files are written: outputs, indexes and temporary files."""

import errno
import json
import os

import pytest
from helpers.faulty_runs import ERRORS, OLDER, Task, check_every_failure

MATCH = ("-C", "-t", "2", "r.fa", "q.fa", "-l", "12", "-o", "out/a")
# A page after the other, as two do not fit.
GROUPS = (*MATCH, "--search", "tree", "--page-size", "64", "--max-memory", "10k")
MAKE = ("index", "r.fa", "-l", "12", "-o", "out/r.mgi")
TASKS = {
    "plain": Task(MATCH),
    "stats": Task((*MATCH, "--stats", "out/s")),
    "large": Task(("-C", "-t", "2", "repeat.fa", "many.fa", *MATCH[5:])),
    "bam": Task(("match", *MATCH, "--format", "bam", "-b")),
    "cram": Task(("align", *MATCH, "--format", "cram", "-c", "12")),
    "groups": Task((*GROUPS, "--block-size", "700")),
    "table": Task(MAKE),
    "trees": Task((*MAKE, "--search", "tree", "--page-size", "64")),
}
CALLS = {
    "plain": "open_to_read read open write close rename",
    "large": "fallocate ftruncate write",
    "bam": "open_to_read read write close rename",
    "cram": "open_to_read read write close rename",
    "groups": "open_nameless write read close",
    "table": "open_to_read write pwrite fsync close rename",
    "trees": "open_to_read write pwrite fsync close rename",
}
"""What must fail in one of the runs at least."""


def cases(by_day, by_night):
    """Cases between commas, of which the latter are slow."""
    slow = (pytest.param(case, marks=pytest.mark.slow) for case in by_night.split(", "))
    return [*by_day.split(", "), *slow]


def is_report(content):
    """Tell whether a file of statistics is complete."""
    return content.endswith(b"\n") and "end_to_end" in json.loads(content)["stages"]


def whole_outputs(runs, task):
    """Return what tells of the outputs of a task whether they are complete."""
    assert runs.run(TASKS[task]).status == 0
    good = runs.contents()
    assert good and all(good.values())
    runs.clear()
    return {name: is_report if name == "s" else text.__eq__ for name, text in good.items()}


FAILURES = cases(
    "plain full, plain broken older, stats broken older, large full, bam broken, cram broken, "
    "groups full, table full, table broken older",
    "plain full older, plain broken, stats full, large broken, bam broken older, "
    "cram broken older, groups broken, groups broken older, table broken, table full older, "
    "trees full, trees broken older",
)
"""A task, a full or a broken disk, and whether an older file stands there."""


@pytest.mark.parametrize("case", FAILURES)
def test_files_are_whole_or_not_there(runs, case):
    task, disk, *older = case.split()
    whole = whole_outputs(runs, task)
    error = {"full": errno.ENOSPC, "broken": errno.EIO}[disk]
    more = {"first_look": "repeat.fa"} if task == "large" else {}
    names = list(whole) if older else []
    failed = check_every_failure(runs, TASKS[task], error, whole, names, **more)
    assert failed >= set(CALLS.get(task, "").split())
    assert "fchmod" in failed or task != "plain" or not older


@pytest.mark.parametrize("task", ["stats", "large", "cram", "groups", "table", "trees"])
def test_halves_of_what_is_asked_for_are_enough(runs, task):
    """The system may always read or write less than it is asked for."""
    whole = whole_outputs(runs, task)
    usual = runs.run(TASKS[task]).calls
    runs.clear()
    outcome = runs.run(TASKS[task], error=ERRORS[0], halves=True)
    assert (outcome.status, outcome.err) == (0, "")
    more = outcome.calls.count("write") > 2 * usual.count("write")
    assert more or task not in ("stats", "large")
    assert all(whole[name](content) for name, content in runs.contents().items())
    assert runs.contents().keys() == whole.keys()


@pytest.mark.parametrize("case", cases("stats older, table older", "stats, table, cram, groups"))
def test_a_process_that_is_killed_anywhere_leaves_no_name(runs, case):
    task, *older = case.split()
    whole = whole_outputs(runs, task)
    names = list(whole) if older else []
    runs.clear(names)
    for _ in runs.each_kill(TASKS[task]):
        contents = runs.contents()
        for name in [name for name in contents if name.endswith(".part")]:
            del contents[name]
        assert set(names) <= contents.keys() <= whole.keys()
        for name, content in contents.items():
            assert whole[name](content) or (older and content == OLDER)
        assert os.listdir(runs.temporary) == []
        runs.clear(names)


def test_matches_of_groups_wait_in_temporary_files(runs):
    whole = whole_outputs(runs, "plain")
    calls = runs.run(TASKS["groups"]).calls
    assert whole["a"](runs.contents()["a"])
    # One for the queries and one for each group but the last.
    assert calls.count("open_nameless") >= 1 + 2


def test_an_index_is_on_the_disk_before_it_has_its_name(runs):
    calls = runs.run(TASKS["table"]).calls
    kept = [call for call in calls if call in ("write", "pwrite", "fsync", "rename")]
    last = max(place for place, call in enumerate(kept) if call in ("write", "pwrite"))
    # The file, its name, and the folder that has the name.
    assert kept[last + 1 :] == ["fsync", "rename", "fsync"]


@pytest.mark.parametrize("error", [errno.EIO, pytest.param(errno.ENOSPC, marks=pytest.mark.slow)])
def test_a_search_of_an_index_that_cannot_be_read_is_one_line(runs, error):
    index = runs.folder / "r.mgi"
    if not index.exists():
        assert runs.run(TASKS["table"]).status == 0
        os.replace(runs.outputs / "r.mgi", index)
    task = Task(("-C", "r.mgi", "q.fa", "-l", "12", "-o", "out/a"))
    assert runs.run(task).status == 0
    whole = {"a": runs.contents()["a"].__eq__}
    failed = check_every_failure(runs, task, error, whole, first_look="r.mgi")
    assert failed >= {"open_to_read", "read", "mmap", "write"}
