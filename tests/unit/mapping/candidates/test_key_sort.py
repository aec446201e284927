"""Seeds sorted by key, few and many."""

import numpy as np
import pytest

from mummergpu.mapping.candidates.key_sort import FEW_ROWS, new_sort_room, sort_by_key

MOST = 5000


@pytest.mark.parametrize("count", [0, 1, 2, FEW_ROWS, FEW_ROWS + 1, 300, MOST])
@pytest.mark.parametrize("bits", [1, 7, 16, 62])
def test_rows_are_sorted_by_key_and_then_by_value(count, bits):
    """Digits that all keys share are left out; an odd and an even number of them is sorted."""
    generator = np.random.default_rng(count + bits)
    room = new_sort_room(MOST)
    for shared in (0, 5 << 8, 1 << 61):
        keys = generator.integers(0, 1 << bits, count) | shared
        values = generator.integers(0, 1 << 62, count)
        room.keys[:count], room.values[:count] = keys, values
        sort_by_key(room, count)
        order = np.lexsort((values, keys))
        assert np.array_equal(room.keys[:count], keys[order])
        assert np.array_equal(room.values[:count], values[order])
