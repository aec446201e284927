"""Every failure of the system while an index file is written, or searched."""

import errno
import os

import pytest
from helpers.faulty_runs import ERRORS, OLDER, Task, check_every_failure

MAKE = ("index", "r.fa", "-l", "12", "-o", "out/r.mgi")
TABLE = Task(MAKE)
TREES = Task((*MAKE, "--search", "tree", "--page-size", "64"))

CASES = [
    pytest.param(TABLE, errno.ENOSPC, False, id="table, full"),
    pytest.param(TABLE, errno.EIO, True, id="table, broken, older"),
    pytest.param(TABLE, errno.EIO, False, id="table, broken", marks=pytest.mark.slow),
    pytest.param(TABLE, errno.ENOSPC, True, id="table, full, older", marks=pytest.mark.slow),
    pytest.param(TREES, errno.ENOSPC, False, id="trees, full", marks=pytest.mark.slow),
    pytest.param(TREES, errno.EIO, True, id="trees, broken, older", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("task", "error", "older"), CASES)
def test_an_index_is_whole_or_not_there(runs, task, error, older):
    assert runs.run(task).status == 0
    whole = {"r.mgi": runs.contents()["r.mgi"].__eq__}
    failed = check_every_failure(runs, task, error, whole, ["r.mgi"] if older else [])
    assert failed >= {"open_to_read", "write", "pwrite", "fsync", "close", "rename"}


def test_an_index_is_on_the_disk_before_it_has_its_name(runs):
    kept = [
        call for call in runs.run(TABLE).calls if call in ("write", "pwrite", "fsync", "rename")
    ]
    last = max(place for place, call in enumerate(kept) if call in ("write", "pwrite"))
    # The file, its name, and the folder that has the name.
    assert kept[last + 1 :] == ["fsync", "rename", "fsync"]


@pytest.mark.parametrize("older", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_build_that_is_killed_anywhere_leaves_no_name(runs, older):
    assert runs.run(TABLE).status == 0
    good = runs.contents()["r.mgi"]
    names = ["r.mgi"] if older else []
    runs.clear(names)
    for _ in runs.each_kill(TABLE):
        contents = runs.contents()
        for name in [name for name in contents if name.endswith(".part")]:
            del contents[name]
        for name, content in contents.items():
            assert name == "r.mgi" and (content == good or (older and content == OLDER))
        assert contents.keys() >= set(names)
        runs.clear(names)


@pytest.mark.parametrize("error", [errno.EIO, pytest.param(errno.ENOSPC, marks=pytest.mark.slow)])
def test_a_search_of_an_index_that_cannot_be_read_is_one_line(runs, error):
    index = runs.folder / "r.mgi"
    if not index.exists():
        assert runs.run(TABLE).status == 0
        os.replace(runs.outputs / "r.mgi", index)
    task = Task(("-C", "r.mgi", "q.fa", "-l", "12", "-o", "out/a"))
    assert runs.run(task).status == 0
    whole = {"a": runs.contents()["a"].__eq__}
    failed = check_every_failure(runs, task, error, whole, first_look="r.mgi")
    assert failed >= {"open_to_read", "read", "mmap", "write"}


@pytest.mark.parametrize("task", [TABLE, TREES], ids=["table", "trees"])
def test_halves_of_what_is_asked_for_are_enough(runs, task):
    assert runs.run(task).status == 0
    good = runs.contents()
    runs.clear()
    outcome = runs.run(task, error=ERRORS[0], halves=True)
    assert (outcome.status, outcome.err) == (0, "")
    assert runs.contents() == good
