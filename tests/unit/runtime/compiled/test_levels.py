"""Levels of processors: code for one is used on every processor that has its features."""

import os
import platform
import subprocess
import sys

import pytest
from helpers.claimed_processor import CLAIM, describe

from mummergpu.runtime.compiled import levels
from mummergpu.runtime.compiled.levels import (
    LEVELS,
    compile_for,
    machine_levels,
    settings_of_code,
    usable_levels,
)

V4, V3, V2 = LEVELS
FEW = frozenset({b"fpu", b"sse2"})


@pytest.fixture(autouse=True)
def forgotten():
    """Lets what a test finds out be forgotten."""
    for found in (machine_levels, usable_levels):
        found.cache_clear()
    yield
    levels._compiled_for.clear()
    for found in (machine_levels, usable_levels):
        found.cache_clear()


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", LEVELS[V4] | FEW, (V4, V3, V2)),
        ("x86_64", LEVELS[V3] | FEW, (V3, V2)),
        ("x86_64", LEVELS[V3] - {b"bmi2"}, (V2,)),
        ("x86_64", LEVELS[V2] - {b"popcnt"}, ()),
        ("x86_64", None, ()),
        ("aarch64", LEVELS[V4], ()),
    ],
)
def test_a_machine_runs_the_levels_whose_features_it_has(machine, flags, expected, monkeypatch):
    def described():
        if flags is None:
            raise FileNotFoundError
        return {b"flags": b" ".join(flags)}

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(levels, "first_processor", described)
    assert machine_levels() == usable_levels() == expected


def test_a_process_that_compiles_for_a_level_uses_no_other_code(monkeypatch):
    compile_for(V2)
    assert usable_levels() == (V2,)


def test_settings_of_numba_leave_the_code_to_it(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    assert settings_of_code() == ()
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert settings_of_code() == ("NUMBA_OPT=1",) and usable_levels() == ()
    (tmp_path / ".numba_config.yaml").write_text("opt: 2")
    assert settings_of_code() == ("NUMBA_OPT=1", "opt: 2")


CALL = """
import numpy as np
from mummergpu.runtime import jit
from mummergpu.runtime.compiled.levels import compile_for
jit.on_first_compilation(lambda: print("compiles", end=" "))
for level in sys.argv[1:]:
    compile_for(level)
from mummergpu.sequence.codes import write_reverse_complements
result = np.zeros(4, np.uint8)
write_reverse_complements(np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 4]), result)
print(*result, "numba" if "numba" in sys.modules else "no numba")
"""
"""Calls a compiled function; tells whether it was compiled, and whether numba was needed."""


def call(cache, description, *level, **settings):
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    environment |= {"MUMMERGPU_CACHE_DIR": str(cache), **settings}
    command = [sys.executable, "-c", CLAIM + CALL, str(description), *level]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.code")}


@pytest.mark.skipif(V2 not in machine_levels(), reason="no level is like this machine")
def test_code_of_a_level_runs_on_every_processor_that_has_the_features(tmp_path):
    cache = tmp_path / "cache"
    other = describe(tmp_path / "other", LEVELS[V3] | FEW)
    lesser = describe(tmp_path / "lesser", FEW)
    assert call(cache, other, V2) == "compiles 3 1 1 2 numba"
    kept = contents(cache)
    assert len(kept) == 1
    assert call(cache, other) == "3 1 1 2 no numba"
    # It was not kept again, as if it were for that processor.
    assert contents(cache) == kept
    # A setting of numba has it imported, and keep the code itself.
    assert call(cache, other, NUMBA_OPT="3") == "compiles 3 1 1 2 numba"
    assert call(cache, other, NUMBA_OPT="3") == "3 1 1 2 numba"
    assert call(cache, lesser).startswith("compiles")
    assert contents(cache) == kept
