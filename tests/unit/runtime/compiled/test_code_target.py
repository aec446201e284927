"""Generic code: made for many processors, and used on those that can run it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.claimed_processor import CLAIM, describe

from mummergpu.runtime.compiled import code_target
from mummergpu.runtime.compiled.code_target import (
    GENERIC_TARGETS,
    accepted_targets,
    chosen_target,
    compile_for,
    runnable_targets,
)
from mummergpu.runtime.compiled.native.store import native_stores

V3, V2, ARM64 = GENERIC_TARGETS
FEW = frozenset({b"fpu", b"sse2"})


def names() -> list[str]:
    return [target.name for target in runnable_targets()]


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", V3.flags | FEW, ["x86-64-v3", "x86-64-v2"]),
        ("x86_64", V3.flags - {b"bmi2"}, ["x86-64-v2"]),
        ("x86_64", V2.flags, ["x86-64-v2"]),
        ("x86_64", V2.flags - {b"popcnt"}, []),
        ("x86_64", None, []),
        ("aarch64", None, ["arm64"]),
        ("arm64", FEW, ["arm64"]),
        ("riscv64", V3.flags, []),
    ],
)
def test_a_machine_runs_the_targets_whose_features_it_has(
    machine: str,
    flags: frozenset[bytes] | None,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def described() -> dict[bytes, bytes]:
        if flags is None:
            raise FileNotFoundError
        return {b"flags": b" ".join(flags)}

    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(code_target, "first_processor", described)
    assert names() == expected


def test_a_system_that_names_no_features_runs_no_generic_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(code_target, "first_processor", dict)
    assert names() == []


def test_a_process_that_compiles_for_a_target_accepts_no_other_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(code_target, "_chosen", [])
    assert accepted_targets() == runnable_targets() and chosen_target() is None
    compile_for(None)
    assert accepted_targets() == () and chosen_target() is None
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    compile_for(V2)
    assert accepted_targets() == () and chosen_target() == V2


def test_a_target_must_be_chosen_before_numba_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_target, "_chosen", [])
    monkeypatch.setitem(sys.modules, "numba", sys)
    with pytest.raises(RuntimeError, match="numba has been imported"):
        compile_for(V2)
    assert chosen_target() is None


CALL = """
import numpy as np
from mummergpu.runtime import jit
from mummergpu.runtime.compiled import code_target
jit.on_first_compilation(lambda: print("compiles", end=" "))
for name in sys.argv[1:]:
    code_target.compile_for(next(one for one in code_target.GENERIC_TARGETS if one.name == name))
from mummergpu.sequence.codes import write_reverse_complements
result = np.zeros(4, np.uint8)
write_reverse_complements(np.array([0, 1, 2, 2], np.uint8), np.array([0, 1, 4]), result)
print(*result, "numba" if "numba" in sys.modules else "no numba")
"""
"""Calls a compiled function; tells whether it was compiled, and whether numba was needed."""


def call(cache: Path, description: Path, *target: str, **settings: str) -> str:
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    environment |= {"MUMMERGPU_CACHE_DIR": str(cache), **settings}
    command = [sys.executable, "-c", CLAIM + CALL, str(description), *target]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.code")}


@pytest.mark.skipif(not runnable_targets(), reason="no generic target is like this machine")
def test_generic_code_runs_on_every_processor_that_has_the_features(tmp_path: Path) -> None:
    target = runnable_targets()[-1]
    cache = tmp_path / "cache"
    other = describe(tmp_path / "other", target.flags | FEW)
    lesser = describe(tmp_path / "lesser", FEW)
    without_numba = "3 1 1 2 " + ("no numba" if native_stores() else "numba")
    assert call(cache, other, target.name) == "compiles 3 1 1 2 numba"
    kept = contents(cache)
    assert kept
    assert call(cache, other) == without_numba
    # It was not kept again, as if it were for that processor.
    assert contents(cache) == kept
    # Any setting of numba has it imported.
    assert call(cache, other, NUMBA_OPT="3").endswith("3 1 1 2 numba")
    # Who tells numba what to compile for gets that.
    assert call(cache, other, NUMBA_CPU_NAME="core2").startswith("compiles")
    if target.flags:
        assert call(cache, lesser).startswith("compiles")
        assert len(contents(cache)) > len(kept)
