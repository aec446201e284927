"""Every failure of the system in the cache of compiled kernels: never one of the run."""

import re

import pytest
from helpers.faulty_runs import ERRORS, Task

CACHE = Task(("out/kernels",), name="keep_kernels")
KERNELS = 2


def kept(runs):
    """Return the files of the cache."""
    folder = runs.outputs / "kernels"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


@pytest.mark.parametrize("error", ERRORS)
def test_a_cache_that_fails_costs_time_only(runs, error):
    good = runs.run(CACHE)
    assert (good.status, good.out, good.err) == (0, "", "")
    sound = kept(runs)
    assert len(sound) == KERNELS
    runs.clear()
    notices = set()
    for outcome in runs.each_failure(CACHE, error):
        assert (outcome.status, outcome.out) == (0, "")
        assert re.fullmatch(r"(compiled kernels cannot be kept in out/kernels: .*\n)?", outcome.err)
        notices.add(outcome.failed_call if outcome.err else "")
        # Whatever is there is whole.
        assert kept(runs).items() <= sound.items()
        runs.clear()
    assert notices >= {"", "mkdir", "write", "close", "rename"}


def test_halves_of_what_is_asked_for_are_enough(runs):
    outcome = runs.run(CACHE, halves=True)
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
    assert len(kept(runs)) == KERNELS


def test_a_process_that_is_killed_anywhere_leaves_whole_files_only(runs):
    assert runs.run(CACHE).status == 0
    sound = kept(runs)
    runs.clear()
    for _ in runs.each_kill(CACHE):
        named = {name: text for name, text in kept(runs).items() if not name.endswith(".part")}
        assert named.items() <= sound.items()
        runs.clear()
