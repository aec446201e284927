"""Keeps the longest of any number of matches in a limited memory, for a dot plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.arrays import BoolArray, Int64Array

MOST_SEGMENTS: Final = 1 << 22
"""So many matches are kept: more than a picture has pixels, in some 130 megabytes."""


@dataclass(frozen=True)
class SegmentColumns:
    """Matches as columns of the same length.

    Attributes
    ----------
    reference_positions, query_positions : ndarray, dtype=int64
        0-based, on the axes of the joined records.
    lengths : ndarray, dtype=int64
        In bases.
    is_reverse : ndarray, dtype=bool
        Whether the reverse complement of the query matches.
    """

    reference_positions: Int64Array
    query_positions: Int64Array
    lengths: Int64Array
    is_reverse: BoolArray

    def chosen(self, choice: BoolArray) -> SegmentColumns:
        """Return the matches whose element of `choice`, a bool array, is true."""
        return SegmentColumns(
            self.reference_positions[choice],
            self.query_positions[choice],
            self.lengths[choice],
            self.is_reverse[choice],
        )

    def longer_than(self, length: int) -> SegmentColumns:
        """Return the matches that are longer than a number of bases."""
        return self.chosen(self.lengths > length) if length else self


class SegmentStore:
    """Keeps the longest of the matches that it gets; of matches as long, the first.

    Attributes
    ----------
    longest_dropped : int
        No match of this length or a smaller one will be kept any more.
    """

    def __init__(self, most: int = MOST_SEGMENTS) -> None:
        self._most = most
        self._parts: list[SegmentColumns] = []
        self._count = 0
        self.longest_dropped = 0

    def add(self, columns: SegmentColumns) -> None:
        """Take matches, in the order of the output."""
        columns = columns.longer_than(self.longest_dropped)
        if columns.lengths.size:
            self._parts.append(columns)
            self._count += columns.lengths.size
        if self._count > self._most + self._most // 4:
            self._drop_shortest()

    def columns(self) -> SegmentColumns:
        """Return the matches that are kept, in the order in which they came."""
        if self._count > self._most:
            self._drop_shortest()
        self._join(np.ones(self._count, dtype=np.bool_))
        return self._parts[0]

    def _drop_shortest(self) -> None:
        lengths = np.concatenate([part.lengths for part in self._parts])
        limit = int(np.partition(lengths, lengths.size - self._most)[lengths.size - self._most])
        stays = lengths > limit
        equal = np.flatnonzero(lengths == limit)
        stays[equal[: self._most - int(np.count_nonzero(stays))]] = True
        del lengths, equal
        self._join(stays)
        self._count = self._most
        self.longest_dropped = limit

    def _join(self, choice: BoolArray) -> None:
        """Put the chosen matches into one part, column by column to save memory."""
        parts = self._parts

        def join(column: str) -> npt.NDArray[Any]:
            ends = np.cumsum([part.lengths.size for part in parts]).tolist()
            pieces = [
                getattr(part, column)[choice[end - part.lengths.size : end]]
                for part, end in zip(parts, ends, strict=True)
            ]
            return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)

        joined = SegmentColumns(
            join("reference_positions"),
            join("query_positions"),
            join("lengths"),
            join("is_reverse").astype(np.bool_),
        )
        self._parts = [joined]
