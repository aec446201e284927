"""Matches as figures need them: positions on the axes of the joined records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mummergpu.drawing.records import Records
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen


class Matches(Protocol):
    """Matches between queries and a reference, of any number of records each.

    Attributes
    ----------
    query, reference : ndarray, dtype=uint32, shape=(n_matches,)
        The numbers of the records.
    query_start, reference_start, length : ndarray, dtype=int64, shape=(n_matches,)
        0-based, in the records, and in bases; the query's on its forward strand.
    reverse : ndarray, dtype=bool, shape=(n_matches,)
        Whether the reverse complement of the query matches.
    query_names, reference_names : sequence of str
        The names of all records.
    query_lengths, reference_lengths : ndarray, dtype=int64
        The lengths of all records in bases.
    """

    @property
    def query(self) -> UInt32Array: ...  # noqa: D102

    @property
    def reference(self) -> UInt32Array: ...  # noqa: D102

    @property
    def query_start(self) -> Int64Array: ...  # noqa: D102

    @property
    def reference_start(self) -> Int64Array: ...  # noqa: D102

    @property
    def length(self) -> Int64Array: ...  # noqa: D102

    @property
    def reverse(self) -> BoolArray: ...  # noqa: D102

    @property
    def query_names(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def reference_names(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def query_lengths(self) -> npt.NDArray[np.integer[Any]]: ...  # noqa: D102

    @property
    def reference_lengths(self) -> npt.NDArray[np.integer[Any]]: ...  # noqa: D102


@frozen
class Segments:
    """Matches on the two axes of a dot plot.

    Attributes
    ----------
    references, queries : Records
        The records on the horizontal and on the vertical axis.
    reference_positions, query_positions : ndarray, dtype=int64, shape=(n_matches,)
        0-based, on the axes; the query's lower end, whatever the strand.
    is_reverse : ndarray, dtype=bool, shape=(n_matches,)
        Whether a match goes down from left to right, since it is on the other strand of the query
        than the one on the axis.
    match_count : int
        The number of matches, with those that are left out here, the shortest.
    query_count : int
        The number of queries, with those that are left out here, the last.
    identities : ndarray, dtype=float64, shape=(n_matches,), or None
        The percentage of equal columns; None for exact matches.
    """

    references: Records
    queries: Records
    reference_positions: Int64Array
    query_positions: Int64Array
    lengths: Int64Array
    is_reverse: BoolArray
    match_count: int
    query_count: int
    identities: Float64Array | None = None

    @property
    def count(self) -> int:
        """The number of matches here."""
        return self.lengths.size


def segments_of(matches: Matches) -> Segments:
    """Return matches as segments, with the queries in the order of their numbers."""
    references = reference_records(matches)
    lengths = np.asarray(matches.query_lengths, dtype=np.int64)
    queries = Records(matches.query_names, lengths, "query")
    return Segments(
        references,
        queries,
        reference_positions_of(matches, references),
        queries.offsets[matches.query] + np.asarray(matches.query_start, dtype=np.int64),
        np.asarray(matches.length, dtype=np.int64),
        np.asarray(matches.reverse, dtype=np.bool_),
        len(matches.length),
        queries.count,
    )


def reference_records(matches: Matches) -> Records:
    """Return the records of the reference of some matches."""
    lengths = np.asarray(matches.reference_lengths, dtype=np.int64)
    return Records(matches.reference_names, lengths, "reference")


def reference_positions_of(matches: Matches, references: Records) -> Int64Array:
    """Return where matches begin on the axis of the reference: int64, shape=(n_matches,)."""
    starts = np.asarray(matches.reference_start, dtype=np.int64)
    return references.offsets[matches.reference] + starts
