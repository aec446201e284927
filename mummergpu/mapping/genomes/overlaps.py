"""Finds how alignments overlap: which contain others, compete with others, cover a genome."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array
from mummergpu.runtime.jit import jit


class Intervals(NamedTuple):
    """Where alignments begin and end in the query, and where they do in the reference."""

    query_begins: Int64Array
    query_ends: Int64Array
    reference_begins: Int64Array
    reference_ends: Int64Array


def not_contained(groups: Int64Array, intervals: Intervals) -> BoolArray:
    """Return which alignments no other one of their group contains; of equal ones the first."""
    begins = intervals.reference_begins
    order = np.lexsort((np.arange(groups.size), -intervals.reference_ends, begins, groups))
    keep = np.ones(groups.size, dtype=np.bool_)
    _mark_contained(groups, intervals, order, np.empty(groups.size, dtype=np.int64), keep)
    return keep


def not_repeated(groups: Int64Array, intervals: Intervals) -> BoolArray:
    """Return which alignments are the first of their group with their ranges."""
    _, firsts = np.unique(np.stack((groups, *intervals)), axis=1, return_index=True)
    keep = np.zeros(groups.size, dtype=np.bool_)
    keep[firsts] = True
    return keep


@jit
def _mark_contained(
    groups: Int64Array,
    intervals: Intervals,
    order: Int64Array,
    open_rows: Int64Array,
    keep: BoolArray,
) -> None:
    """Mark the rows that others contain; `order` ascends by group and by begin."""
    query_begins, query_ends = intervals.query_begins, intervals.query_ends
    ends = intervals.reference_ends
    count = 0
    for place in range(order.size):
        row = order[place]
        # The rows that end before this one begins contain no later one either.
        still_open = 0
        for number in range(count):
            other = open_rows[number]
            if groups[other] != groups[row] or ends[other] <= intervals.reference_begins[row]:
                continue
            open_rows[still_open] = other
            still_open += 1
            if (
                ends[other] >= ends[row]
                and query_begins[other] <= query_begins[row]
                and query_ends[other] >= query_ends[row]
            ):
                keep[row] = False
        count = still_open
        if keep[row]:
            open_rows[count] = row
            count += 1


def find_rivals(
    queries: Int64Array, begins: Int64Array, ends: Int64Array, scores: Int64Array
) -> Int64Array:
    """Return which better alignment each alignment of a query competes with.

    The alignments of a query are taken from the highest score to the lowest. One that overlaps a
    better one, which competes with none itself, by half of the shorter one or more competes with
    it; with the best one if there are several. That is the rule of minimap2 and bwa mem. Of equal
    scores, the first is the best; an alignment that competes with none has its own number.
    `begins` and `ends` are on the forward strand of the query.

    The best alignment of a query is primary. One that shares hardly any bases with a better one is
    supplementary: it continues the query somewhere else. All others are secondary.
    """
    order = np.lexsort((np.arange(scores.size), -scores, queries))
    better = np.arange(scores.size)
    room = np.empty(scores.size, dtype=np.int64), np.empty(scores.size, dtype=np.int64)
    _find_better(order, queries, begins, ends, room, better)
    return better


@jit
def _find_better(
    order: Int64Array,
    queries: Int64Array,
    begins: Int64Array,
    ends: Int64Array,
    room: tuple[Int64Array, Int64Array],
    better: Int64Array,
) -> None:
    """Find the better alignment that each one competes with, in the order of their scores."""
    # Of those that compete with none, none lies inside another one, so they ascend by their ends as
    # well as by their begins.
    free, places = room
    count, query = 0, -1
    for place in range(order.size):
        row = order[place]
        if queries[row] != query:
            count, query = 0, queries[row]
        begin, end = begins[row], ends[row]
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if ends[free[middle]] > begin:
                high = middle
            else:
                low = middle + 1
        best = -1
        number = low
        while number < count and begins[free[number]] < end:
            other = free[number]
            overlap = min(end, ends[other]) - max(begin, begins[other])
            shorter = min(end - begin, ends[other] - begins[other])
            if 2 * overlap >= shorter and (best < 0 or places[other] < places[best]):
                best = other
            number += 1
        if best >= 0:
            better[row] = best
            continue
        places[row] = place
        number = count
        while number > 0 and begins[free[number - 1]] > begin:
            free[number] = free[number - 1]
            number -= 1
        free[number] = row
        count += 1


MAX_OVERLAP: Final = 0.75
"""Two alignments are not both taken if one lies in the other with a larger share."""


def map_one_to_one(
    reference: tuple[Int64Array, Int64Array, Int64Array],
    query: tuple[Int64Array, Int64Array, Int64Array],
    identities: Float64Array,
) -> BoolArray:
    """Return which alignments map bases one to one, rearrangements allowed.

    The rule is that of MUMmer's delta-filter: of the alignments of a sequence, those are taken that
    together have the most bases, each counted with the square of its alignment's identity, and
    those of an overlap only once. Alignments taken for both the reference and the query are one
    to one. `reference` and `query` are the sequence of each alignment, and where it begins and ends
    there, on the forward strand.
    """
    return best_cover(*reference, identities) & best_cover(*query, identities)


def best_cover(
    sequences: Int64Array, begins: Int64Array, ends: Int64Array, identities: Float64Array
) -> BoolArray:
    """Return which alignments cover each sequence best."""
    count = sequences.size
    order = np.lexsort((np.arange(count), ends, begins, sequences))
    firsts = np.flatnonzero(np.diff(sequences[order], prepend=-1))
    taken = np.zeros(count, dtype=np.bool_)
    room = np.zeros(count), np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for first, end in pairwise([*firsts, count]):
        _cover(begins, ends, identities, order[first:end], room, taken)
    return taken


@jit
def _cover(
    begins: Int64Array,
    ends: Int64Array,
    identities: Float64Array,
    order: Int64Array,
    room: tuple[Float64Array, Int64Array, Int64Array],
    taken: BoolArray,
) -> None:
    """Mark the best cover of a sequence."""
    # Alignments are visited by their begins. Those that have ended before the next one begins are
    # closed for good; only those that are still open can overlap it.
    scores, before, open_rows = room
    open_count = 0
    best, best_ended = -1, -1
    for place in range(order.size):
        row = order[place]
        weight = identities[row] * identities[row]
        length = ends[row] - begins[row]
        # Of the alignments that have ended, only the best chain counts.
        still_open = 0
        for number in range(open_count):
            other = open_rows[number]
            if ends[other] > begins[row]:
                open_rows[still_open] = other
                still_open += 1
            elif best_ended < 0 or scores[other] > scores[best_ended]:
                best_ended = other
        open_count = still_open
        scores[row], before[row] = length * weight, best_ended
        if best_ended >= 0:
            scores[row] += scores[best_ended]
        for number in range(open_count):
            other = open_rows[number]
            overlap = min(ends[other], ends[row]) - begins[row]
            shorter = min(length, ends[other] - begins[other])
            score = scores[other] + (length - overlap) * weight
            if overlap <= MAX_OVERLAP * shorter and score > scores[row]:
                scores[row], before[row] = score, other
        open_rows[open_count] = row
        open_count += 1
        if best < 0 or scores[row] > scores[best]:
            best = row
    while best >= 0:
        taken[best] = True
        best = before[best]
