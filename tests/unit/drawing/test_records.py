"""Records on an axis: which one a position is in, and what they are called."""

from __future__ import annotations

import numpy as np
import pytest

from mummergpu.drawing.records import JoinedNames, Records, ReorderedNames


def records(*lengths: int) -> Records:
    return Records([f"r{n}" for n in range(len(lengths))], np.array(lengths, np.int64), "made")


def test_positions_belong_to_records_that_are_not_empty() -> None:
    made = records(0, 3, 0, 0, 2, 0)
    assert made.base_count == 5
    assert made.numbers_of(np.arange(5)).tolist() == [1, 1, 1, 4, 4]


def test_names_in_one_array() -> None:
    text = np.frombuffer("alphaβ\xffx".encode("latin-1", "replace") + b"\xff", dtype=np.uint8)
    names = JoinedNames(text, np.array([0, 5, 5, text.size], dtype=np.int64))
    assert list(names) == ["alpha", "", "?\N{REPLACEMENT CHARACTER}x\N{REPLACEMENT CHARACTER}"]
    assert names[-1] == names[2] and names[:2] == ["alpha", ""] and len(names) == 3
    with pytest.raises(IndexError):
        names[3]


def test_names_in_another_order() -> None:
    names = ReorderedNames(["a", "b", "c"], np.array([2, 0, 1]))
    assert list(names) == ["c", "a", "b"] and names[1:] == ["a", "b"] and names[-1] == "b"


def test_a_turned_record_is_marked() -> None:
    made = Records(["a", "b"], np.array([1, 1]), "made", np.array([False, True]))
    assert [made.label(number) for number in range(2)] == ["a", "*b"]
    assert records(1).label(0) == "r0"
