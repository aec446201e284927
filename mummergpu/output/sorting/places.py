"""Where alignments lie: the keys by which they are sorted, and their spans."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.output.records.rows import UNMAPPED
from mummergpu.output.records.sam_fields import TAKES_REFERENCE
from mummergpu.output.sorting.radix_order import KeyArray
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen

NOT_MAPPED: Final = 0
"""The span of a row that is not mapped."""

SpanArray = UInt32Array


@frozen
class Axis:
    """The records of a header one after the other.

    Attributes
    ----------
    starts : ndarray, dtype=int64, shape=(n_records + 1,)
        Where each record begins, and where the last one ends: the key of what has no place.
    by_reference : ndarray, dtype=int64, shape=(n_reference_records,)
        Where each record of the reference begins, empty ones included.
    lengths : ndarray, dtype=int64, shape=(n_records,)
        The bases of each record.
    """

    starts: Int64Array
    by_reference: Int64Array
    lengths: Int64Array

    @property
    def bits(self) -> int:
        """The bits of the largest key."""
        return int(self.starts[-1]).bit_length()


def axis_of(reference: Reference) -> Axis:
    """Return the axis of the records of a reference, without those that have no base."""
    lengths = reference.record_lengths.astype(np.int64)
    starts = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    has_bases = lengths > 0
    return Axis(
        np.append(starts[:-1][has_bases], starts[-1]), starts[:-1].copy(), lengths[has_bases]
    )


def keys_of(columns: AlignmentColumns, axis: Axis) -> KeyArray:
    """Return the keys that sort alignments by their places."""
    places = axis.by_reference[columns.records] + columns.positions
    return np.where(columns.records >= 0, places, axis.starts[-1]).astype(np.uint64)


def spans_of_rows(columns: AlignmentColumns) -> SpanArray:
    """Return the bases of the reference that alignments take."""
    operations = columns.cigars.astype(np.int64)
    takes = (TAKES_REFERENCE >> (operations & 15)) & 1
    ends = np.zeros(operations.size + 1, dtype=np.int64)
    np.cumsum((operations >> 4) * takes, out=ends[1:])
    spans = np.diff(ends[columns.cigar_offsets])
    is_mapped = columns.flags & UNMAPPED == 0
    return np.where(is_mapped, np.maximum(spans, 1), NOT_MAPPED).astype(np.uint32)
