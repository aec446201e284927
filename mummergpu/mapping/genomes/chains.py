"""Chains of matches: the one with the best score of a set is a cluster."""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.genomes.anchors import NONE, Anchors
from mummergpu.mapping.genomes.joining import (
    JoinRule,
    join_close_matches,
    list_sets,
    measure_sets,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts

MOST_PREDECESSORS: Final = 4096
"""The matches before another one that it may follow in a chain, counted back from it."""

MOST_BETWEEN: Final = 4000
"""The most bases of each sequence between two matches of a cluster: all cells of their matrix fit
into `whole_matrix.MOST_CELLS`."""


SetRoom = tuple[
    tuple[Int64Array, Int64Array, Int64Array],
    tuple[Int64Array, Int64Array, Int64Array, Int64Array],
    tuple[Int64Array, Int64Array, Int64Array],
    tuple[Int64Array, Int64Array],
]
"""Memory for each match of a set: the matches of the sets that are left of it, what is listed, and
where these sets begin; the columns of `_best_chain`; what `join_close_matches` needs; and what
`measure_sets` does."""


@jit_without_refcounts
def chain_sets(
    sets: tuple[Int64Array, Int64Array],
    first: int,
    end: int,
    matches: Anchors,
    rule: JoinRule,
    least_bases: int,
    room: SetRoom,
    clusters: tuple[Int64Array, Int64Array],
    anchors: Anchors,
) -> int:
    """Take the clusters out of some sets.

    The chain with the best score is a cluster, if it has enough bases. What is left of the set is
    joined again, and each set of that is chained again.
    """
    offsets, members = sets
    (rows, listed, starts), columns, (joined, following, lists), (bases, sizes) = room
    count, place = 0, offsets[first]
    for number in range(first, end):
        filled = offsets[number + 1] - offsets[number]
        for member in range(filled):
            rows[member] = members[offsets[number] + member]
        starts[0], left = 0, 1
        # The sets that are left follow each other in `rows`; the last one is next.
        while left > 0:
            left -= 1
            begin = starts[left]
            last = _best_chain(matches, rows, begin, filled, columns)
            size = _take_chain(
                matches, rows, columns[2], last, least_bases, clusters, count, anchors, place
            )
            place += size
            count += size > 0
            filled = _close_gaps(rows, begin, filled)
            join_close_matches(matches, rows, begin, filled, rule, joined, following, lists)
            kept = measure_sets(matches[2], rows, begin, filled, joined, least_bases, bases, sizes)
            left = list_sets(rows, begin, filled, joined, sizes, listed, starts, left)
            filled = begin + kept
            for member in range(begin, filled):
                rows[member] = listed[member]
    return count


@inline_without_refcounts
def _best_chain(
    matches: Anchors,
    rows: Int64Array,
    begin: int,
    end: int,
    columns: tuple[Int64Array, Int64Array, Int64Array, Int64Array],
) -> int:
    """Chain the matches of a set; return the last one of the best chain, as an index of `rows`.

    The columns receive for each match of the set: the score of the best chain that it ends, the
    highest score up to it, the index of the match before it in its chain or -1, and how far in the
    query the matches up to it reach.
    """
    query_starts, reference_starts, lengths = matches
    scores, highest, before, furthest = columns
    best = begin
    for number in range(begin, end):
        row = rows[number]
        length = lengths[row]
        query_start, reference_start = query_starts[row], reference_starts[row]
        score, source = length, NONE
        other = number - 1
        # No chain before is better than the highest of them, and nothing is added but the length;
        # and none is near enough if that which reaches furthest is not.
        while (
            other >= begin
            and number - other <= MOST_PREDECESSORS
            and highest[other] + length > score
            and query_start - furthest[other] <= MOST_BETWEEN
        ):
            earlier = rows[other]
            gap = query_start - query_starts[earlier] - lengths[earlier]
            other_gap = reference_start - reference_starts[earlier] - lengths[earlier]
            overlap = max(0, -gap, -other_gap)
            bent = abs(
                (query_start - reference_start)
                - (query_starts[earlier] - reference_starts[earlier])
            )
            if overlap < length and max(gap, other_gap) <= MOST_BETWEEN - overlap:
                chained = scores[other] + length - overlap - bent
                if chained > score:
                    score, source = chained, other
            other -= 1
        scores[number] = score
        before[number] = source
        highest[number], furthest[number] = score, query_start + length
        if number > begin:
            highest[number] = max(score, highest[number - 1])
            furthest[number] = max(query_start + length, furthest[number - 1])
        if score > scores[best]:
            best = number
    return best


@inline_without_refcounts
def _take_chain(
    matches: Anchors,
    rows: Int64Array,
    before: Int64Array,
    last: int,
    least_bases: int,
    clusters: tuple[Int64Array, Int64Array],
    count: int,
    anchors: Anchors,
    begin: int,
) -> int:
    """Write a chain if it has enough bases, and take it out of its set; return how many anchors.

    `rows` has -1 where the chain's matches were.
    """
    query_starts, reference_starts, lengths = matches
    total, size = 0, 0
    number = last
    while number != NONE:
        total += lengths[rows[number]]
        size += 1
        number = before[number]
    if total < least_bases:
        size = 0
    place = begin + size
    number = last
    while number != NONE:
        row = rows[number]
        rows[number] = NONE
        number = before[number]
        if size == 0:
            continue
        cut = 0
        if number != NONE:
            earlier = rows[number]
            cut = max(
                0,
                query_starts[earlier] + lengths[earlier] - query_starts[row],
                reference_starts[earlier] + lengths[earlier] - reference_starts[row],
            )
        else:
            clusters[0][count], clusters[1][count] = row, size
        place -= 1
        anchors[0][place] = query_starts[row] + cut
        anchors[1][place] = reference_starts[row] + cut
        anchors[2][place] = lengths[row] - cut
    return size


@inline_without_refcounts
def _close_gaps(rows: Int64Array, begin: int, end: int) -> int:
    """Move the matches of a range together that are left; return where they end."""
    filled = begin
    for number in range(begin, end):
        if rows[number] != NONE:
            rows[filled] = rows[number]
            filled += 1
    return filled
