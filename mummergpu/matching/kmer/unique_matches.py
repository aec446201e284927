"""The unique matches that are found at a minimizer of a query."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.index.kmer_table import EntryArray
from mummergpu.index.minimizer_table import POSITION_SHIFT
from mummergpu.matching.row_order import ColumnArray
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts, prefetch
from mummergpu.sequence.codes import MARGIN, STEP, CodeArray
from mummergpu.sequence.contexts import BROKEN, CONTEXT_BASES, equal_sides, sides_mask
from mummergpu.sequence.extension import extend_left, extend_right
from mummergpu.sequence.minimizers import PlaceArray, RankArray
from mummergpu.sequence.reverse_extension import extend_left_reversed, extend_right_reversed

Rows = tuple[ColumnArray, ColumnArray, ColumnArray]
"""Where matches begin in a block of queries and in the reference, and their lengths."""

NUMBER, QUERY, FORWARD_ROWS, REVERSE_ROWS = 0, 1, 2, 3
"""The elements of the state of a search: the next minimizer, its query, and the filled rows."""

_PLACE_SHIFT: Final = np.uint64(POSITION_SHIFT - 1)


@inline_without_refcounts
def write_matches(
    entries: EntryArray,
    listed: tuple[int, int],
    context: np.uint64,
    reference: CodeArray,
    codes: CodeArray,
    lengths: tuple[int, int, int],
    minimizers: tuple[PlaceArray, RankArray, ColumnArray],
    count: int,
    sample: tuple[int, int, int, int],
    state: Int64Array,
    forward: Rows,
    reverse: Rows,
) -> bool:
    """Write the unique matches that are found at a minimizer; return False if the rows are full."""
    kmer_length, window, least_length = lengths
    places, ranks, candidates = minimizers
    number, place, begin, end = sample
    at = place >> 1
    is_broken = (
        context & BROKEN != 0
        or at - begin < CONTEXT_BASES
        or end - at - kmer_length < CONTEXT_BASES
    )
    first_row, first_reverse = state[FORWARD_ROWS], state[REVERSE_ROWS]
    # The bases of a context in which a match agrees that begins before the window; none where it
    # cannot tell.
    earlier = np.uint64(0)
    if not is_broken and window <= CONTEXT_BASES:
        earlier = sides_mask(0, window) if place & 1 == 1 else sides_mask(window, 0)
    coming = listed[0]
    while coming < listed[1]:
        coming, candidate_count = find_candidates(
            entries, coming, listed[1], context, window, earlier, reference, candidates
        )
        for candidate in range(candidate_count):
            one = candidates[as_index(candidate)]
            entry = entries[as_index(one)]
            before, after = equal_sides(entry ^ context)
            other = as_int64(entry >> _PLACE_SHIFT)
            is_reverse = (other ^ place) & 1 == 1
            found = MARGIN + (other >> 1)
            left = after if place & 1 == 1 else before
            if is_broken or entry & BROKEN or (left == CONTEXT_BASES and left < window):
                most = min(window, at - begin)
                left = bases_left(codes, at, reference, found, kmer_length, is_reverse, most)
            if left >= window or not is_first(places, ranks, count, number, at - left, window):
                continue
            right = bases_right(codes, at, reference, found, kmer_length, is_reverse, end - at)
            if right < kmer_length or left + right < least_length:
                continue
            if is_elsewhere(
                entries, listed, one, context, reference, codes, place, kmer_length, left, right
            ):
                continue
            start, length = at - left - MARGIN, left + right
            if is_reverse:
                row, found = state[REVERSE_ROWS], found + kmer_length - right - MARGIN
                if row == reverse[0].size:
                    return False
                write_row(reverse, first_reverse, row, start, found, length)
                state[REVERSE_ROWS] = row + 1
            else:
                row, found = state[FORWARD_ROWS], found - left - MARGIN
                if row == forward[0].size:
                    return False
                write_row(forward, first_row, row, start, found, length)
                state[FORWARD_ROWS] = row + 1
    return True


@inline_without_refcounts
def find_candidates(
    entries: EntryArray,
    coming: int,
    listed_end: int,
    context: np.uint64,
    window: int,
    earlier: np.uint64,
    reference: CodeArray,
    candidates: ColumnArray,
) -> tuple[int, int]:
    """Write the next entries that may be in a match, and prefetch the reference there.

    Return the next entry to look at, and the number of candidates. `earlier` are the bits in which
    the context of an entry without a break agrees if its match begins before all windows of the
    k-mer; 0 if that is not known.
    """
    # Where so many bases beside a k-mer match, half of them do on one of its sides.
    near = (min(window - 1, CONTEXT_BASES) + 1) // 2
    near_before, near_after = sides_mask(near, 0), sides_mask(0, near)
    count = 0
    while coming < listed_end and count < candidates.size:
        entry = entries[as_index(coming)]
        differing = entry ^ context
        is_near = differing & near_before == 0 or differing & near_after == 0
        if is_near and (earlier == 0 or differing & (earlier | BROKEN) != 0):
            before, after = equal_sides(differing)
            if before + after >= window - 1 or max(before, after) == CONTEXT_BASES:
                candidates[as_index(count)] = coming
                count += 1
                prefetch(reference, MARGIN + as_int64(entry >> np.uint64(POSITION_SHIFT)))
        coming += 1
    return coming, count


@inline_without_refcounts
def write_row(
    rows: Rows, first_row: int, row: int, start: int, reference_start: int, length: int
) -> None:
    """Write a match to its place among those of its minimizer, which ascend by start."""
    starts, reference_starts, lengths = rows
    while row > first_row and starts[as_index(row - 1)] > start:
        starts[as_index(row)] = starts[as_index(row - 1)]
        reference_starts[as_index(row)] = reference_starts[as_index(row - 1)]
        lengths[as_index(row)] = lengths[as_index(row - 1)]
        row -= 1
    starts[as_index(row)] = start
    reference_starts[as_index(row)] = reference_start
    lengths[as_index(row)] = length


@inline_without_refcounts
def bases_left(
    codes: CodeArray,
    at: int,
    reference: CodeArray,
    found: int,
    kmer_length: int,
    is_reverse: bool,
    most: int,
) -> int:
    """Return how many bases before a k-mer of a query match beside one of the reference.

    `at` and `found` are where the k-mer begins on both forward strands; `is_reverse` says that it
    is the reverse complement in the reference.
    """
    if is_reverse:
        return extend_left_reversed(codes, at, reference, found + kmer_length, most)
    return extend_left(codes, at, reference, found, most)


@inline_without_refcounts
def bases_right(
    codes: CodeArray,
    at: int,
    reference: CodeArray,
    found: int,
    kmer_length: int,
    is_reverse: bool,
    most: int,
) -> int:
    """Return how many bases from a k-mer on match, its own among them, as `bases_left` does."""
    if is_reverse:
        return extend_right_reversed(codes, at, reference, found + kmer_length, most)
    return extend_right(codes, at, reference, found, most)


@inline_without_refcounts
def is_first(
    places: PlaceArray, ranks: RankArray, count: int, number: int, start: int, window: int
) -> bool:
    """Return whether a minimizer is the first one with the lowest rank of a window."""
    rank = ranks[as_index(number)]
    other = number - 1
    while other >= 0 and places[as_index(other)] >> 1 >= start:
        if ranks[as_index(other)] <= rank:
            return False
        other -= 1
    other = number + 1
    while other < count and places[as_index(other)] >> 1 < start + window:
        if ranks[as_index(other)] < rank:
            return False
        other += 1
    return True


@inline_without_refcounts
def is_elsewhere(
    entries: EntryArray,
    listed: tuple[int, int],
    own: int,
    context: np.uint64,
    reference: CodeArray,
    codes: CodeArray,
    place: int,
    kmer_length: int,
    left: int,
    right: int,
) -> bool:
    """Return whether all bases of a match occur a second time, on the same strand.

    `own` is the match's entry; it has `left` bases before the k-mer, and `right` from the k-mer on.
    """
    at = place >> 1
    strand = entries[as_index(own)] >> _PLACE_SHIFT & np.uint64(1)
    is_reverse = strand != np.uint64(place & 1)
    behind = right - kmer_length
    # Seen along the strand on which the k-mer is the lower number.
    least_before = min(behind if place & 1 == 1 else left, CONTEXT_BASES)
    least_after = min(left if place & 1 == 1 else behind, CONTEXT_BASES)
    least = sides_mask(least_before, least_after)
    for other in range(listed[0], listed[1]):
        entry = entries[as_index(other)]
        if (entry ^ context) & least != 0 or other == own:
            continue
        if entry >> _PLACE_SHIFT & np.uint64(1) != strand:
            continue
        found = MARGIN + as_int64(entry >> np.uint64(POSITION_SHIFT))
        if bases_left(codes, at, reference, found, kmer_length, is_reverse, left) < left:
            continue
        # Copies of a tandem repeat, which agree for long, end at different distances.
        last = min(right, STEP)
        if is_reverse:
            end = found + kmer_length - right
            if end < MARGIN:
                continue
            if extend_left_reversed(codes, at + right, reference, end, last) < last:
                continue
        else:
            end = found + right
            if end > reference.size - MARGIN:
                continue
            if extend_left(codes, at + right, reference, end, last) < last:
                continue
        if bases_right(codes, at, reference, found, kmer_length, is_reverse, right) == right:
            return True
    return False
