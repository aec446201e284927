"""The longest matches are kept, whatever the parts in which they come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.output.matches.picture_sink import SegmentColumns, SegmentStore

parts_of_lengths = st.lists(st.lists(st.integers(1, 6), max_size=9), max_size=8)


def columns_of(lengths, first):
    places = np.arange(first, first + len(lengths), dtype=np.int64)
    return SegmentColumns(places, places + 1000, np.array(lengths, np.int64), places % 2 == 1)


@given(parts_of_lengths, st.integers(1, 20))
def test_the_longest_stay_and_of_equals_the_first(parts, most):
    store = SegmentStore(most)
    count = 0
    for lengths in parts:
        store.add(columns_of(lengths, count).longer_than(store.longest_dropped))
        count += len(lengths)
    found = store.columns()
    every = [length for lengths in parts for length in lengths]
    best = sorted(sorted(range(count), key=lambda at: (-every[at], at))[:most])
    assert found.reference_positions.tolist() == best
    assert found.query_positions.tolist() == [at + 1000 for at in best]
    assert found.lengths.tolist() == [every[at] for at in best]
    assert found.is_reverse.tolist() == [at % 2 == 1 for at in best]
    assert store.columns().lengths.tolist() == found.lengths.tolist()
