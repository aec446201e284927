"""The records on an axis of a figure, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, overload

import numpy as np

from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen

TURNED_MARK: Final = "*"
"""What stands before the name of a record that is drawn as its reverse complement, as in
mummerplot."""


@frozen
class Records:
    """Records in the order in which they are drawn.

    Attributes
    ----------
    lengths : ndarray, dtype=int64, shape=(n_records,)
        Their lengths in bases.
    title : str
        What they are together: the name of a file, or what they are for.
    turned : ndarray, dtype=bool, shape=(n_records,), or None
        Which of them are drawn as their reverse complement; None for none.
    """

    names: Sequence[str]
    lengths: Int64Array
    title: str
    turned: BoolArray | None = None

    @cached_property
    def offsets(self) -> Int64Array:
        """Where each record begins on the axis, and its end: int64, shape=(n_records + 1,)."""
        offsets = np.zeros(self.lengths.size + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        return offsets

    @cached_property
    def is_turned(self) -> BoolArray:
        """Which records are drawn as their reverse complement: bool, shape=(n_records,)."""
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
        """Return what to write beside a record: its name, after a mark if it is turned around."""
        return (TURNED_MARK if self.is_turned[number] else "") + self.names[number]

    def numbers_of(self, positions: Int64Array) -> Int64Array:
        """Return the number of the record at each position of the axis: int64, same shape."""
        return np.searchsorted(self.offsets, positions, side="right").astype(np.int64) - 1


class JoinedNames(Sequence[str]):
    """Names that lie one after the other in an array, without an object for each.

    `offsets` say where each name begins, and where the last one ends.
    """

    def __init__(self, text: ByteArray, offsets: Int64Array) -> None:
        self._text = text
        self._offsets = offsets

    def __len__(self) -> int:
        return self._offsets.size - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._name(number) for number in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._name(index % len(self))

    def __iter__(self) -> Iterator[str]:
        return map(self._name, range(len(self)))

    def _name(self, number: int) -> str:
        name = self._text[self._offsets[number] : self._offsets[number + 1]]
        return name.tobytes().decode(errors="replace")


class ReorderedNames(Sequence[str]):
    """The names of another sequence; `order` has the number of the name at each place."""

    def __init__(self, names: Sequence[str], order: Int64Array) -> None:
        self._names = names
        self._order = order

    def __len__(self) -> int:
        return self._order.size

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._names[number] for number in self._order[index].tolist()]
        return self._names[int(self._order[index])]
