"""Matches as figures need them: positions on the axes of the joined records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mummergpu.drawing.chromosomes import Chromosomes
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
    """Matches on the horizontal axis of the references and the vertical one of the queries.

    Positions are 0-based on the axes, of the query's lower end whatever the strand. A reverse match
    goes down from left to right. `match_count` and `query_count` include the shortest matches and
    the last queries, which may be left out here. `identities` are the percentages of equal columns,
    None for exact matches.
    """

    references: Chromosomes
    queries: Chromosomes
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
    references, queries = (
        Chromosomes(names, np.asarray(lengths, dtype=np.int64), title)
        for names, lengths, title in (
            (matches.reference_names, matches.reference_lengths, "reference"),
            (matches.query_names, matches.query_lengths, "query"),
        )
    )
    starts = np.asarray(matches.reference_start, dtype=np.int64)
    return Segments(
        references,
        queries,
        references.offsets[matches.reference] + starts,
        queries.offsets[matches.query] + np.asarray(matches.query_start, dtype=np.int64),
        np.asarray(matches.length, dtype=np.int64),
        np.asarray(matches.reverse, dtype=np.bool_),
        len(matches.length),
        queries.count,
    )
