"""The processors of this machine, and of systems that tell less."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mummergpu.runtime import processors
from mummergpu.runtime.processors import first_processor, processor_count


def test_processors_that_the_process_may_not_use_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert processor_count() == 3


@pytest.mark.parametrize(("told", "expected"), [(8, 8), (None, 1)])
def test_where_a_system_does_not_tell_which_may_be_used_all_count(
    told: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: told)
    assert processor_count() == expected


def test_the_first_processor_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: A : B\nflags\t\t: x y\npower management:\n\nmodel name : C\n\n")
    monkeypatch.setattr(processors, "_DESCRIPTION", str(path))
    told = {b"model name": b"A : B", b"flags": b"x y", b"power management": b""}
    assert first_processor() == told


def test_a_description_that_is_not_complete_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: A\n")
    monkeypatch.setattr(processors, "_DESCRIPTION", str(path))
    with pytest.raises(ValueError, match="not complete"):
        first_processor()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        first_processor()
