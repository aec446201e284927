"""The share of a job that is done, from the steps of its parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from mummergpu.runtime.shares import Shares


def test_parts_add_up_to_the_whole() -> None:
    told: list[float] = []
    shares = Shares(told.append)
    parts = [(shares.part(0.25, 5), 5, 0.25), (shares.part(0.75, 300), 300, 1.0)]
    with ThreadPoolExecutor(4) as pool:
        for step, count, share in parts:
            for future in [pool.submit(step) for _ in range(count)]:
                future.result()
            assert told == sorted(told) and max(told) <= 1
            assert told[-1] == pytest.approx(share)
    assert len(told) == 305


def test_a_part_without_steps_is_no_error() -> None:
    told: list[float] = []
    Shares(told.append).part(0.5, 0)
    assert told == []
