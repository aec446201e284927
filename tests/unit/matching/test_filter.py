"""The order of matches by their position in the reference."""

from __future__ import annotations

import numpy as np

from mummergpu.matching.filter import order_by_reference
from mummergpu.sequence.mems import MemColumns


def test_rows_of_each_query_ascend_by_reference_position() -> None:
    columns = MemColumns(
        np.array([0, 3, 3, 5]),
        np.array([0, 4, 9, 1, 2]),
        np.array([70, 5, 30, 8, 6]),
        np.array([20, 21, 22, 23, 24]),
    )
    ordered = order_by_reference(columns)
    assert ordered.offsets.tolist() == [0, 3, 3, 5]
    assert ordered.query_starts.tolist() == [4, 9, 0, 2, 1]
    assert ordered.reference_starts.tolist() == [5, 30, 70, 6, 8]
    assert ordered.lengths.tolist() == [21, 22, 20, 24, 23]
    empty = np.empty(0, dtype=np.int64)
    nothing = order_by_reference(MemColumns(np.zeros(1, dtype=np.int64), empty, empty, empty))
    assert nothing.count == 0
