"""Every failure of the system where compiled code is kept: never one of the run."""

import errno
import re
import shutil

import pytest
from helpers.faulty_runs import ERRORS, Task

TASKS = {name: Task(("out/kept",), name=f"keep_{name}") for name in ("kernels", "code")}
FUNCTION = Task(("out/kept",), name="compile_function")
NOTICE = re.compile(
    r"(compiled (code|kernels) (cannot be kept in|cannot be read from|is damaged in) .*\n)?"
)
tasks = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def kept(runs):
    """Return the files that hold code, and those that were left unfinished."""
    paths = [path for path in runs.outputs.rglob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in paths}


def check_well(runs, task):
    """A run that says nothing, and fails in nothing; return its calls."""
    outcome = runs.run(task)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    return outcome.calls


@tasks
@pytest.mark.parametrize("error", ERRORS)
def test_a_cache_that_fails_costs_time_only(runs, task, error):
    check_well(runs, task)
    sound = kept(runs)
    assert len(sound) == 2
    runs.clear()
    told = set()
    for outcome in runs.each_failure(task, error):
        assert (outcome.status, outcome.out) == (0, ""), outcome
        assert NOTICE.fullmatch(outcome.err), outcome
        told.add(outcome.failed_call if outcome.err else "")
        # Whatever is there is whole, and nothing unfinished is left beside it.
        assert kept(runs).items() <= sound.items(), outcome
        runs.clear()
    assert told >= {"", "mkdir", "write", "close"}
    assert "rename" in told or task is not TASKS["kernels"]


@tasks
@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_a_cache_that_is_left_by_a_killed_process_is_of_use(runs, task, filled):
    check_well(runs, task)
    sound = kept(runs)
    if not filled:
        runs.clear()
    for outcome in runs.each_kill(task):
        left = [one for one in kept(runs).items() if not one[0].endswith((".part", ".unfinished"))]
        assert set(left) <= sound.items(), outcome
        check_well(runs, task)
        if not filled:
            runs.clear()


@tasks
def test_halves_of_what_is_asked_for_are_enough(runs, task):
    outcome = runs.run(task, halves=True)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    assert len(kept(runs)) == 2


@pytest.mark.parametrize("error", [errno.EIO, pytest.param(errno.ENOSPC, marks=pytest.mark.slow)])
def test_code_that_cannot_be_read_is_compiled(runs, error):
    assert runs.run(FUNCTION).status == 0
    assert kept(runs)
    calls = check_well(runs, FUNCTION)
    assert "write" not in calls
    for outcome in runs.each_failure(FUNCTION, error):
        assert (outcome.status, outcome.out) == (0, ""), outcome
        assert NOTICE.fullmatch(outcome.err), outcome
    assert {"open_to_read", "read"} <= set(calls)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_code_that_cannot_be_kept_is_compiled(runs, error):
    for outcome in runs.each_failure(FUNCTION, error):
        assert (outcome.status, outcome.out) == (0, ""), outcome
        assert NOTICE.fullmatch(outcome.err), outcome
        # What has been kept is of use to the next run, or is made anew.
        check_well(runs, FUNCTION)
        shutil.rmtree(runs.outputs / "kept", ignore_errors=True)
