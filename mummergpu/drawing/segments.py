"""Matches and records as figures need them, and the order in which a dot plot shows queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen

TURNED_MARK: Final = "*"
"""The mark of a record that is drawn as its reverse complement, as in mummerplot."""


@frozen
class Chromosomes:
    """Records in the order in which they are drawn.

    `title` is the name of their file, or of their role. `turned` says which records are drawn as
    their reverse complements; None for none.
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


def in_layout(segments: Segments, order: bool | None) -> Segments:
    """Return the segments as they are drawn, the queries from the bottom to the top.

    With `order` the queries are ordered and turned (`arranged`); by default if there are several.
    """
    wanted = segments.queries.count > 1 if order is None else order
    return arranged(segments) if wanted else segments


def arranged(segments: Segments) -> Segments:
    """Return the segments with the queries in the best order and orientation.

    Each query goes to the record of the reference with which it shares most matched bases, and
    there to the middle of these bases. Queries without a match come last, in the order of the
    input.
    """
    order, is_turned = best_layout(segments)
    queries = segments.queries
    placed = Chromosomes(
        [queries.names[number] for number in order.tolist()],
        queries.lengths[order],
        queries.title,
        is_turned[order],
    )
    offsets = np.empty(queries.count, dtype=np.int64)
    offsets[order] = placed.offsets[:-1]
    numbers = queries.numbers_of(segments.query_positions)
    inside = segments.query_positions - queries.offsets[numbers]
    turned = is_turned[numbers]
    from_end = queries.lengths[numbers] - inside - segments.lengths
    return replace(
        segments,
        queries=placed,
        query_positions=offsets[numbers] + np.where(turned, from_end, inside),
        is_reverse=segments.is_reverse ^ turned,
    )


def best_layout(segments: Segments) -> tuple[Int64Array, BoolArray]:
    """Return the query at each place, and which queries, by number, are turned around."""
    count, records = segments.queries.count, segments.references.count
    queries = segments.queries.numbers_of(segments.query_positions)
    references = segments.references.numbers_of(segments.reference_positions)
    pairs = queries * records + references
    best = _heaviest_pairs(pairs, segments.lengths, count, records)
    in_best = best[queries] == pairs
    queries, lengths = queries[in_best], segments.lengths[in_best]
    signed = np.where(segments.is_reverse[in_best], -lengths, lengths)
    balance = np.bincount(queries, weights=signed, minlength=count)
    is_turned = balance < 0
    middles = segments.reference_positions[in_best] + lengths // 2
    place = np.full(count, segments.references.base_count, dtype=np.int64)
    _set_medians(place, queries, middles, lengths)
    return np.argsort(place, kind="stable"), is_turned


def _heaviest_pairs(
    pairs: Int64Array, lengths: Int64Array, query_count: int, record_count: int
) -> Int64Array:
    """Return the pair of query and record that shares most bases, for each query; -1 for none."""
    found, inverse = np.unique(pairs, return_inverse=True)
    bases = np.bincount(inverse, weights=lengths, minlength=found.size)
    best = np.full(query_count, -1, dtype=np.int64)
    # Of several pairs of a query the last one stays: the heaviest, and of equals the first.
    rising = np.lexsort((-found, bases))
    best[found[rising] // record_count] = found[rising]
    return best


def _set_medians(
    medians: Int64Array, groups: Int64Array, values: Int64Array, weights: Int64Array
) -> None:
    """Set the weighted median of the values of each group that has any."""
    if not groups.size:
        return
    order = np.lexsort((values, groups))
    groups, values, sums = groups[order], values[order], np.cumsum(weights[order])
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    ends = np.append(begins[1:], groups.size) - 1
    before = np.where(begins > 0, sums[begins - 1], 0)
    half = before + (sums[ends] - before + 1) // 2
    medians[groups[begins]] = values[np.searchsorted(sums, half)]
