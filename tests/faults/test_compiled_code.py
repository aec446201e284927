"""Every failure of the system where machine code is kept: never one of the run."""

import errno
import re
import shutil

import pytest
from helpers.faulty_runs import ERRORS, Task

STORE = Task(("out/code",), name="keep_code")
FUNCTION = Task(("out/code",), name="compile_function")
NOTICE = re.compile(r"(compiled code (cannot be kept in|cannot be read from|is damaged in) .*\n)?")


def kept(runs):
    """Return the files that hold code, and those that were left unfinished."""
    paths = [path for path in runs.outputs.rglob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in paths}


@pytest.mark.parametrize("error", ERRORS)
def test_a_store_that_fails_costs_time_only(runs, error):
    good = runs.run(STORE)
    assert (good.status, good.out, good.err) == (0, "", "")
    sound = kept(runs)
    assert len(sound) == 2
    runs.clear()
    told = set()
    for outcome in runs.each_failure(STORE, error):
        assert (outcome.status, outcome.out) == (0, ""), outcome
        assert NOTICE.fullmatch(outcome.err), outcome
        told.add(outcome.failed_call if outcome.err else "")
        # Whatever is there is whole, and nothing unfinished is left beside it.
        assert kept(runs).items() <= sound.items(), outcome
        runs.clear()
    assert told >= {"", "mkdir", "write", "close"}


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
def test_a_store_that_is_left_by_a_killed_process_is_of_use(runs, filled):
    assert runs.run(STORE).status == 0
    sound = kept(runs)
    if not filled:
        runs.clear()
    for outcome in runs.each_kill(STORE):
        left = {name: content for name, content in kept(runs).items() if name.endswith(".code")}
        assert left.items() <= sound.items(), outcome
        again = runs.run(STORE)
        assert (again.status, again.out, again.err) == (0, "", ""), outcome
        if not filled:
            runs.clear()


def test_halves_of_what_is_asked_for_are_enough(runs):
    outcome = runs.run(STORE, halves=True)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    assert len(kept(runs)) == 2


@pytest.mark.parametrize("error", [errno.EIO, pytest.param(errno.ENOSPC, marks=pytest.mark.slow)])
def test_code_that_cannot_be_read_is_compiled(runs, error):
    assert runs.run(FUNCTION).status == 0
    assert kept(runs)
    good = runs.run(FUNCTION)
    assert (good.status, good.out, good.err) == (0, "", "")
    assert "write" not in good.calls
    for outcome in runs.each_failure(FUNCTION, error):
        assert (outcome.status, outcome.out) == (0, ""), outcome
        assert NOTICE.fullmatch(outcome.err), outcome
    assert {"open_to_read", "read"} <= set(good.calls)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_code_that_cannot_be_kept_is_compiled(runs, error):
    for outcome in runs.each_failure(FUNCTION, error):
        assert (outcome.status, outcome.out) == (0, ""), outcome
        assert NOTICE.fullmatch(outcome.err), outcome
        # What has been kept is of use to the next run, or is made anew.
        again = runs.run(FUNCTION)
        assert (again.status, again.out, again.err) == (0, "", ""), outcome
        shutil.rmtree(runs.outputs / "code", ignore_errors=True)
