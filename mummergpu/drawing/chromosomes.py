"""The records on an axis of a dot plot, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np

from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.frozen import frozen

TURNED_MARK: Final = "*"
"""The mark of a record that is drawn as its reverse complement, as in mummerplot."""


@frozen
class Chromosomes:
    """Records in the order in which they are drawn.

    Attributes
    ----------
    lengths : ndarray, dtype=int64, shape=(n_records,)
        In bases.
    title : str
        The name of their file, or of their role.
    turned : ndarray, dtype=bool, shape=(n_records,), or None
        Whether a record is drawn as its reverse complement; None if none is.
    """

    names: Sequence[str]
    lengths: Int64Array
    title: str
    turned: BoolArray | None = None

    @cached_property
    def offsets(self) -> Int64Array:
        """The starts of the records on the axis, and its end: shape=(n_records + 1,)."""
        offsets = np.zeros(self.lengths.size + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        return offsets

    @cached_property
    def is_turned(self) -> BoolArray:
        """Whether each record is drawn as its reverse complement."""
        return np.zeros(self.count, dtype=np.bool_) if self.turned is None else self.turned

    @property
    def count(self) -> int:
        """The number of records."""
        return self.lengths.size

    @property
    def base_count(self) -> int:
        """The bases of all records."""
        return int(self.offsets[-1])

    def label(self, number: int) -> str:
        """Return the name of a record, after a mark if it is turned around."""
        return (TURNED_MARK if self.is_turned[number] else "") + self.names[number]

    def numbers_of(self, positions: Int64Array) -> Int64Array:
        """Return the number of the record at each position of the axis: int64, same shape."""
        return np.searchsorted(self.offsets, positions, side="right").astype(np.int64) - 1
