"""Compiling in other processes what a run is going to call."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mummergpu.runtime.compiled import ahead, code_cache
from mummergpu.runtime.compiled.ahead import (
    Compilers,
    Listed,
    Progress,
    compiled_ahead,
    function_of,
    lacking,
)
from mummergpu.runtime.compiled.native.function import keeps_code
from mummergpu.runtime.compiled.native.store import native_stores
from mummergpu.sequence.offsets import longest_of

LONGEST = Listed("mummergpu.sequence.offsets", "longest_of", "[<i8,1]", 1)

pytestmark = pytest.mark.skipif(not native_stores(), reason="no code is kept without numba here")

RUN = """
import sys
import numpy as np
from mummergpu.runtime.compiled.ahead import Listed, Progress, compiled_ahead
from mummergpu.sequence.offsets import longest_of

told = []
listed = [Listed("mummergpu.sequence.offsets", "longest_of", "[<i8,1]", 100)]
progress = Progress(lambda: told.append("begin"))
with compiled_ahead(lambda: listed, 2, progress):
    found = [longest_of(np.array([0, 3, 5])) for _ in range(2)]
print(found, told, "numba" in sys.modules)
"""


@pytest.fixture
def nothing_kept(tmp_path: Path) -> Iterator[Path]:
    """Lets this process keep code in an empty folder."""
    places = code_cache.code_places()
    code_cache.keep_code_in((str(tmp_path / "processor"),))
    assert keeps_code()
    yield tmp_path
    code_cache.keep_code_in(places)


def test_a_run_calls_what_another_process_has_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(tmp_path)}
    for begun in (["begin"], []):
        done = subprocess.run(
            [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True
        )
        assert done.stdout == f"[3, 3] {begun} False\n", done.stderr


def test_what_is_listed_is_kept_and_counted(nothing_kept: Path) -> None:
    assert lacking([LONGEST]) == [LONGEST]
    for compiled in (1, 0):
        compilers = Compilers([LONGEST], 4, Progress(), None)
        compilers.wait_for(*LONGEST[:3])
        compilers.wait()
        compilers.close()
        assert compilers.compiled == compiled
        assert not lacking([LONGEST])


def test_who_waits_for_what_nobody_compiles_goes_on(
    nothing_kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = [LONGEST._replace(name="no_function"), LONGEST._replace(types="strange")]
    compilers = Compilers([*strange, LONGEST], 2, Progress(), None)
    for one in (*strange, LONGEST._replace(module="not.listed")):
        compilers.wait_for(*one[:3])
    compilers.close()
    monkeypatch.setattr(ahead, "_CHILD", "raise SystemExit(1)")
    compilers = Compilers([LONGEST], 2, Progress(), None)
    compilers.wait()
    compilers.close()
    assert compilers.compiled == 0


def test_all_processes_end_when_the_run_does() -> None:
    listed = [Listed("mummergpu.matching.kmer.cpu", "kmer_kernel", str(n), 99) for n in range(3)]
    compilers = Compilers(listed, 3, Progress(), None)
    reading = os.dup(compilers._process.stdout.fileno())  # type: ignore[union-attr]
    compilers.close()
    # Each of them holds the other end.
    while os.read(reading, 1000):
        pass
    os.close(reading)


def test_one_process_is_the_run_itself(nothing_kept: Path) -> None:
    def never() -> list[Listed]:
        raise AssertionError

    with compiled_ahead(never, 1, Progress()):
        assert longest_of(np.array([0, 3, 5])) == 3


def test_little_is_compiled_by_the_run_itself(
    nothing_kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "Compilers", None)
    with compiled_ahead(lambda: [LONGEST], 2, Progress()):
        assert longest_of(np.array([0, 3, 5])) == 3


def test_no_more_processes_are_started_than_make_it_shorter() -> None:
    assert ahead._useful_processes([60, 60, 40, 20], 16) == 4
    assert ahead._useful_processes([60, 20, 20, 10], 16) == 3
    assert ahead._useful_processes([60, 20, 20, 10], 2) == 2
    assert ahead._useful_processes([5], 16) == 1


def test_a_function_that_is_not_there_any_more_is_not_lacking() -> None:
    gone = [LONGEST._replace(name="gone"), LONGEST._replace(module="mummergpu.gone")]
    assert not lacking(gone)
    assert function_of(LONGEST._replace(name="np")) is None
