"""Records on an axis: which one a position is in, and what they are called."""

import numpy as np

from mummergpu.drawing.segments import Chromosomes


def records(*lengths):
    return Chromosomes([f"r{n}" for n in range(len(lengths))], np.array(lengths, np.int64), "made")


def test_positions_belong_to_records_that_are_not_empty():
    made = records(0, 3, 0, 0, 2, 0)
    assert made.base_count == 5
    assert made.numbers_of(np.arange(5)).tolist() == [1, 1, 1, 4, 4]


def test_a_turned_record_is_marked():
    made = Chromosomes(["a", "b"], np.array([1, 1]), "made", np.array([False, True]))
    assert [made.label(number) for number in range(2)] == ["a", "*b"]
    assert records(1).label(0) == "r0"
