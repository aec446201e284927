"""Every failure of the system while a sweep keeps its records, and every moment of a kill."""

import errno
import json
import shutil
from collections import Counter

import pytest
from helpers.faulty_runs import Task, check_error
from helpers.sweeps import read_sweep

from mummergpu.errors import InputError
from mummergpu.studies.records import RUNS_FILE, SETUP_FILE

WORDS = "-C -t 1 r.fa q.fa -l 12 -q --policies m --runs 2 --repeat-control 1 -o out/sweep"
SWEEP = Task(("sweep", *WORDS.split()))
PLANNED = Counter(
    {
        **{(policy, "run", repeat): 1 for policy in ("none", "m") for repeat in (0, 1)},
        ("none", "control", 0): 1,
    }
)


def recorded(folder):
    """The runs of a folder; none of a sweep that was never begun."""
    if not (folder / SETUP_FILE).exists():
        assert not (folder / RUNS_FILE).exists() or (folder / RUNS_FILE).stat().st_size == 0
        return Counter()
    return Counter((run.policy, run.kind, run.repeat) for run in read_sweep(folder).runs)


def goes_on(runs):
    """Assert that what a fault has left is complete after one more run."""
    folder = runs.outputs / "sweep"
    before = recorded(folder)
    assert before <= PLANNED and max(before.values(), default=1) == 1
    outcome = runs.run(SWEEP)
    assert (outcome.status, outcome.err) == (0, "")
    assert recorded(folder) == PLANNED
    lines = (folder / RUNS_FILE).read_text().splitlines()
    assert [json.loads(line)["position"] for line in lines] == list(range(len(lines)))
    names = {path.name for path in folder.iterdir()}
    assert {RUNS_FILE, SETUP_FILE} <= names


def clear(runs):
    """Remove what a sweep has left."""
    shutil.rmtree(runs.outputs)
    runs.outputs.mkdir()


def about_records(outcome):
    """Tell whether the call that failed was one about the records."""
    return outcome.path.name in (RUNS_FILE, SETUP_FILE, "sweep") or outcome.path.parent == "sweep"


@pytest.mark.parametrize(
    "error", [errno.ENOSPC, pytest.param(errno.EIO, marks=pytest.mark.slow)], ids=["full", "broken"]
)
def test_a_failure_is_one_line_and_the_sweep_goes_on(runs, error):
    folder = runs.outputs / "sweep"
    failed = set()
    for outcome in runs.each_failure(SWEEP, error):
        if outcome.hit and outcome.status != 0:
            check_error(outcome, "", runs.folder)
            failed.add(outcome.failed_call)
        elif outcome.hit:
            assert recorded(folder) == PLANNED, outcome
        goes_on(runs)
        clear(runs)
    assert failed >= {"open", "write", "rename"}


def test_a_kill_at_any_moment_loses_no_record(runs):
    for outcome in runs.each_kill(SWEEP):
        if about_records(outcome) or not outcome.hit:
            goes_on(runs)
        clear(runs)


def test_halves_of_what_is_asked_for_are_enough(runs):
    outcome = runs.run(SWEEP, halves=True)
    assert (outcome.status, outcome.err) == (0, "")
    assert recorded(runs.outputs / "sweep") == PLANNED


@pytest.mark.parametrize("kill", [False, True], ids=["full", "killed"])
def test_a_sweep_that_goes_on_fails_as_well_as_a_new_one(runs, kill):
    """The last record is cut short then, and has to be removed."""
    folder = runs.outputs / "sweep"
    assert runs.run(SWEEP).status == 0
    text = (folder / RUNS_FILE).read_bytes()
    lines = text.splitlines(keepends=True)
    setup = (folder / SETUP_FILE).read_bytes()
    names = sorted(set(runs.run(SWEEP).calls))
    for name in names:
        for call in range(1, 12):
            folder.mkdir(exist_ok=True)
            (folder / SETUP_FILE).write_bytes(setup)
            (folder / RUNS_FILE).write_bytes(b"".join(lines[:3]) + lines[3][:40])
            outcome = runs.run(SWEEP, name, call, errno.ENOSPC, kill)
            if not outcome.hit:
                break
            try:
                assert recorded(folder)[("none", "run", 0)] == 1
            except InputError as damaged:
                raise AssertionError((outcome, damaged)) from damaged
            assert (folder / RUNS_FILE).read_bytes().startswith(b"".join(lines[:3]))
            goes_on(runs)
        clear(runs)
