"""Find the record of a reference in which a position lies."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts, writable

BucketArray = Int32Array

_MOST_BUCKETS: Final = 1 << 16


class RecordLookup(NamedTuple):
    """A table from which the record of a position is found, mostly without a search.

    Attributes
    ----------
    starts : ndarray, dtype=int64, shape=(n_records,)
        Where each record begins in the joined reference.
    buckets : ndarray, dtype=int32
        The last record that starts at or before each bucket of positions, and one bucket more.
    bucket_shift : int
        The binary logarithm of the positions in a bucket.
    """

    starts: Int64Array
    buckets: BucketArray
    bucket_shift: int


def record_lookup(record_starts: Int64Array, size: int) -> RecordLookup:
    """Return the table for the records of a reference.

    Parameters
    ----------
    record_starts : ndarray, dtype=int64, shape=(n_records,)
        Where each record begins in the joined reference.
    size : int
        The codes of the joined reference.

    Returns
    -------
    RecordLookup
        Few of its buckets contain the start of a record.
    """
    starts = writable(record_starts)
    count = starts.size
    buckets = max(count, min(16 * count, _MOST_BUCKETS)) if count > 1 else 1
    shift = (size // buckets).bit_length()
    edges = np.arange((size >> shift) + 2, dtype=np.int64) << shift
    last = (np.searchsorted(starts, edges, side="right") - 1).astype(np.int32)
    return RecordLookup(starts, last, shift)


@inline_without_refcounts
def record_at(starts: Int64Array, buckets: BucketArray, bucket_shift: int, position: int) -> int:
    """Return the last record that starts at or before a position.

    Parameters
    ----------
    starts : ndarray, dtype=int64
        Where each record begins in the joined reference.
    buckets : ndarray, dtype=int32
        The last record that starts at or before each bucket of positions, and one bucket more.
    bucket_shift : int
        The binary logarithm of the positions in a bucket.
    position : int
        A 0-based position in the joined reference.

    Returns
    -------
    int
        The number of the record.
    """
    bucket = position >> bucket_shift
    first = as_int64(buckets[as_index(bucket)])
    last = as_int64(buckets[as_index(bucket + 1)])
    while first < last:
        middle = (first + last + 1) >> 1
        if starts[as_index(middle)] <= position:
            first = middle
        else:
            last = middle - 1
    return first
