"""The order and the orientation in which a dot plot shows the queries.

Queries are drawn in the order of where they lie on the reference, and those that match mostly on
the reverse strand are turned around, so that long matches come to lie near a rising diagonal, as in
mummerplot's layout.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mummergpu.drawing.chromosomes import Chromosomes
from mummergpu.drawing.segments import Segments
from mummergpu.runtime.arrays import BoolArray, Int64Array


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
