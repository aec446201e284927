"""Merges sorted tables of rows, range by range; each range is merged by itself, by any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from mummergpu.output.sorting.radix_order import radix_order
from mummergpu.output.sorting.row_tables import (
    FIELDS,
    KEY,
    RowTable,
    collect_rows,
    cut_rows,
    order_rows,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen

Spread = Callable[[Callable[[int], None], Iterable[int]], Iterator[Any]]
"""Calls a function for each of some numbers: `map`, or that of a pool of threads."""

_RANGE_ROWS: Final = 1 << 16
"""About the rows of a range: what sorts them fits the second cache."""

_MOST_RANGES: Final = 1 << 12

_SAMPLES: Final = 32
"""How many keys are looked at for each range, to choose where it begins."""


@frozen
class MergedRows:
    """The rows of a range in the order of their keys.

    Attributes
    ----------
    rows : ndarray, dtype=int64, shape=(n_rows, FIELDS)
        The rows.
    ends : ndarray, dtype=int64, shape=(n_rows,)
        Where the record of each one ends, if those of all ranges are joined.
    begin : int
        Where the first one begins.
    """

    rows: RowTable
    ends: Int64Array
    begin: int


class RowRanges:
    """The rows of sorted tables, divided into ranges; equal ones stay in the order of the tables.

    The ranges have about as many rows each, also if many rows are equal.

    Attributes
    ----------
    begins : ndarray, dtype=int64, shape=(n_ranges + 1,)
        Where the first record of each range begins, and the last one of all ends.
    """

    def __init__(self, tables: Sequence[RowTable], begin: int, spread: Spread) -> None:
        # Their memory must stay where the addresses are.
        self._tables = tables
        keys, owners = _bounds_of(tables)
        cuts = np.empty((len(tables), keys.size + 1), dtype=np.int64)
        sizes = np.empty((len(tables), keys.size), dtype=np.int64)

        def cut(table: int) -> None:
            cut_rows(tables[table], table, keys, owners, cuts[table], sizes[table])

        for _ in spread(cut, range(len(tables))):
            pass
        self._keys = keys
        self._cuts = np.ascontiguousarray(cuts.T)
        self._addresses = np.array([table.ctypes.data for table in tables], dtype=np.int64)
        self.begins = np.full(keys.size + 1, begin, dtype=np.int64)
        self.begins[1:] += np.cumsum(sizes.sum(axis=0))

    @property
    def count(self) -> int:
        """The number of ranges, at least 1."""
        return self._keys.size

    def merged(self, number: int) -> MergedRows:
        """Return the rows of a range in order; any thread may call this."""
        firsts, lasts = self._cuts[number : number + 2]
        rows = np.empty((int((lasts - firsts).sum()), FIELDS), dtype=np.int64)
        collect_rows(rows.reshape(-1).view(np.uint8), self._addresses, firsts, lasts)
        keys = (rows[:, KEY] - self._keys[number]).view(np.uint64)
        order, _ = radix_order(keys, int(keys.max(initial=0)).bit_length())
        ordered, ends = np.empty_like(rows), np.empty(rows.shape[0], dtype=np.int64)
        begin = int(self.begins[number])
        order_rows(ordered, ends, rows, order, begin)
        return MergedRows(ordered, ends, begin)


def _bounds_of(tables: Sequence[RowTable]) -> tuple[Int64Array, Int64Array]:
    """Return the first key of each range, and the first table that has rows of this key in it."""
    firsts = np.cumsum([0, *(table.shape[0] for table in tables)])
    ranges = min(int(firsts[-1]) // _RANGE_ROWS + 1, _MOST_RANGES)
    step = int(firsts[-1]) // (ranges * _SAMPLES) + 1
    # Every so many rows of all tables: of many small ones, not always the first row.
    samples = [
        table[-first % step :: step, KEY]
        for table, first in zip(tables, firsts[:-1].tolist(), strict=True)
    ]
    keys = np.concatenate([np.empty(0, dtype=np.int64), *samples])
    owners = np.repeat(np.arange(len(tables)), [sample.size for sample in samples])
    order = np.argsort(keys, kind="stable")
    chosen = order[np.arange(1, ranges) * order.size // ranges]
    bounds = np.zeros((2, ranges), dtype=np.int64)
    bounds[:, 1:] = keys[chosen], owners[chosen]
    is_new = np.append(True, np.any(bounds[:, 1:] != bounds[:, :-1], axis=0))
    first, second = np.ascontiguousarray(bounds[:, is_new])
    return first, second
