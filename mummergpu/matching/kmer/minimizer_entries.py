"""The entries of a minimizer of a query: which of them lie in matches, and where these end.

Most entries need no access to the reference: the bases next to their k-mers (`sequence.contexts`)
show that they occur by chance, or that a match begins before the window or ends too early. The
matches that lie in no other one are kept in a frontier: each begins later than the one before it,
and ends later. So it has at most one for each start, however many copies of a repeat there are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import EntryArray, PositionArray
from mummergpu.index.minimizer_order import PLACE_SHIFT, position_of
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, prefetch
from mummergpu.sequence.codes import MARGIN, STEP, CodeArray
from mummergpu.sequence.contexts import BROKEN, CONTEXT_BASES, equal_sides, sides_mask
from mummergpu.sequence.extension import (
    extend_left,
    extend_left_reversed,
    extend_right,
    extend_right_reversed,
)
from mummergpu.sequence.mems import MemRows
from mummergpu.sequence.minimizers import MAXIMUM_WINDOW, PlaceArray, RankArray

TWICE: Final = -1
"""In place of the reference start of a match: it occurs a second time."""


class UniqueMatchFrontier(NamedTuple):
    """The matches found at a minimizer that lie in no other one, on each strand."""

    # Where they begin and end in the codes; both ascend; (2, MAXIMUM_WINDOW).
    starts: Int64Array
    ends: Int64Array
    # Where they begin in the reference, without the margin; or `TWICE`; (2, MAXIMUM_WINDOW).
    reference_starts: Int64Array
    counts: Int64Array  # Their number.


def new_frontier() -> UniqueMatchFrontier:
    """Return an empty frontier, with room for the matches of one minimizer."""
    starts, ends, reference_starts = np.empty((3, 2, MAXIMUM_WINDOW), dtype=np.int64)
    return UniqueMatchFrontier(starts, ends, reference_starts, np.zeros(2, dtype=np.int64))


@inline
def add_to_frontier(
    frontier: UniqueMatchFrontier, strand: int, start: int, end: int, reference_start: int
) -> bool:
    """Add a match to the frontier, unless it lies in another one, and leave out what lies in it.

    Return whether it occurs a second time.
    """
    starts, ends, reference_starts = frontier.starts, frontier.ends, frontier.reference_starts
    count = frontier.counts[strand]
    for one in range(count):
        if starts[strand, one] <= start and ends[strand, one] >= end:
            # None of the others lies in this match, as they would lie in that one, too.
            if starts[strand, one] == start and ends[strand, one] == end:
                reference_starts[strand, one] = TWICE
                return True
            return False
    kept = 0
    for one in range(count):
        if starts[strand, one] < start or ends[strand, one] > end:
            starts[strand, kept] = starts[strand, one]
            ends[strand, kept] = ends[strand, one]
            reference_starts[strand, kept] = reference_starts[strand, one]
            kept += 1
    target = kept
    while target > 0 and starts[strand, target - 1] > start:
        starts[strand, target] = starts[strand, target - 1]
        ends[strand, target] = ends[strand, target - 1]
        reference_starts[strand, target] = reference_starts[strand, target - 1]
        target -= 1
    starts[strand, target], ends[strand, target] = start, end
    reference_starts[strand, target] = reference_start
    frontier.counts[strand] = kept + 1
    return False


@inline
def write_frontier(frontier: UniqueMatchFrontier, strand: int, rows: MemRows, row: int) -> int:
    """Write the matches of a frontier that occur once, from a row on; return where they end."""
    for one in range(frontier.counts[strand]):
        if frontier.reference_starts[strand, one] != TWICE:
            rows.query_starts[as_index(row)] = frontier.starts[strand, one] - MARGIN
            rows.reference_starts[as_index(row)] = frontier.reference_starts[strand, one]
            rows.lengths[as_index(row)] = frontier.ends[strand, one] - frontier.starts[strand, one]
            row += 1
    return row


class MinimizerLookup(NamedTuple):
    """The table of a reference, and the reference (`minimizer_table.MinimizerTable`)."""

    # The table.
    offsets: PositionArray
    entries: EntryArray
    # The bases of a k-mer, the k-mers of a window, and the fewest bases of a match.
    kmer_length: int
    window: int
    min_length: int
    longest_ascending: int  # Longer lists are sorted by bases.
    # These lists (`minimizer_order.OrderedLists`).
    ordered_begins: PositionArray
    reverse_begins: PositionArray
    left_begins: Int64Array
    by_preceding_bases: EntryArray
    reference: CodeArray  # The codes with margins.


class QueryKmer(NamedTuple):
    """A minimizer of a query."""

    # Its number and its place (`sequence.minimizers`).
    number: int
    place: int
    context: np.uint64  # The bases next to it (`sequence.contexts`).
    # The entries of the table that may have its k-mer.
    listed_begin: int
    listed_end: int
    # Its query, as indices of the codes with margins.
    query_begin: int
    query_end: int


class QueryMinimizers(NamedTuple):
    """The minimizers in a part of a block, and a window of bases to its left and right.

    They may be those of all queries as one sequence: the lowest ranks of all windows inside a query
    are among them.
    """

    # The minimizers (`sequence.minimizers`).
    places: PlaceArray
    ranks: RankArray
    total: int  # Their number; the arrays may be longer.
    # The part, as indices of the codes with margins.
    begin: int
    end: int


class UniqueWork(NamedTuple):
    """What a search for unique matches looks at, where it goes on, and memory."""

    lookup: MinimizerLookup
    codes: CodeArray
    minimizers: QueryMinimizers
    candidates: Int64Array
    frontier: UniqueMatchFrontier
    state: Int64Array


class StartsOfMinimizer(NamedTuple):
    """The first and the last start of the matches that are found at a minimizer, in the codes."""

    first: int
    last: int


class MatchEnds(NamedTuple):
    """Where matches met before end at the furthest, in the codes, on each strand.

    Matches that reach no farther are not wanted.
    """

    forward: int
    reverse: int


class TargetRange(NamedTuple):
    """The bounds of the matches wanted among a minimizer's entries, in bases of the query."""

    # The fewest and the most bases of a match before the k-mer.
    min_left: int
    max_left: int
    max_right: int  # The bases from the k-mer to the end of the query.
    # The fewest bases of a match from the k-mer on, on each strand.
    right: int
    right_reverse: int
    is_broken: bool  # Whether contexts do not show how far a match reaches.
    # The bases of a context that agree in a match that begins before all starts; 0 where that is
    # not known.
    earlier: np.uint64


@inline
def ends_before(
    lookup: MinimizerLookup, codes: CodeArray, query_kmer: QueryKmer, starts: StartsOfMinimizer
) -> MatchEnds:
    """Return the furthest ends of the matches that begin before those found at a minimizer."""
    at = query_kmer.place >> 1
    forward, reverse = as_int64(0), as_int64(0)
    least = at - starts.first + 1
    # No match of a query begins before it.
    if starts.first <= query_kmer.query_begin:
        return MatchEnds(forward, reverse)
    mask = flanks_mask(query_kmer, least, 0)
    # Of a repeat, those reach farthest that are first or last: others need not be followed.
    first, last = query_kmer.listed_begin, query_kmer.listed_end - 1
    while first <= last:
        for one in (first, last):
            entry = lookup.entries[as_index(one)]
            if (entry ^ query_kmer.context) & mask != 0:
                continue
            is_reverse = (as_int64(entry >> PLACE_SHIFT) ^ query_kmer.place) & 1 == 1
            end = reverse if is_reverse else forward
            found = MARGIN + position_of(entry)
            if end == query_kmer.query_end:
                continue
            if end > at and not reaches(lookup, codes, at, found, is_reverse, end + 1 - at):
                continue
            if bases_left(lookup, codes, at, found, is_reverse, least) < least:
                continue
            right = bases_right(lookup, codes, at, found, is_reverse, query_kmer.query_end - at)
            if right < lookup.kmer_length:
                continue
            if is_reverse:
                reverse = max(reverse, at + right)
            else:
                forward = max(forward, at + right)
        first, last = first + 1, last - 1
    return MatchEnds(forward, reverse)


@inline
def flanks_mask(query_kmer: QueryKmer, left: int, right: int) -> np.uint64:
    """Return the context bases that `left` query bases before a k-mer and `right` after it take.

    If they are more than a context has, these are the nearest ones.
    """
    left, right = min(left, CONTEXT_BASES), min(right, CONTEXT_BASES)
    return sides_mask(right, left) if query_kmer.place & 1 == 1 else sides_mask(left, right)


@inline
def has_candidate(lookup: MinimizerLookup, query_kmer: QueryKmer, ends: MatchEnds) -> bool:
    """Return whether an entry may be in a match that reaches beyond the ends on its strand."""
    beside = lookup.min_length - lookup.kmer_length
    # If this many bases next to a k-mer match, half of them do on one of its sides.
    near = (min(beside, CONTEXT_BASES) + 1) // 2
    near_before, near_after = sides_mask(near, 0), sides_mask(0, near)
    for one in range(query_kmer.listed_begin, query_kmer.listed_end):
        entry = lookup.entries[as_index(one)]
        differing = entry ^ query_kmer.context
        if differing & near_before != 0 and differing & near_after != 0:
            continue
        is_reverse = (as_int64(entry >> PLACE_SHIFT) ^ query_kmer.place) & 1 == 1
        if (ends.reverse if is_reverse else ends.forward) < query_kmer.query_end:
            before, after = equal_sides(differing)
            if before + after >= beside or max(before, after) == CONTEXT_BASES:
                return True
    return False


@inline
def target_at(
    lookup: MinimizerLookup, query_kmer: QueryKmer, starts: StartsOfMinimizer, ends: MatchEnds
) -> TargetRange:
    """Return the bounds of the matches wanted among the entries of a minimizer."""
    kmer_length = lookup.kmer_length
    at = query_kmer.place >> 1
    max_left, max_right = at - starts.first, query_kmer.query_end - at
    is_broken = (
        query_kmer.context & BROKEN != 0
        or at - query_kmer.query_begin < CONTEXT_BASES
        or max_right - kmer_length < CONTEXT_BASES
    )
    earlier = np.uint64(0)
    if not is_broken and max_left < CONTEXT_BASES and starts.first > query_kmer.query_begin:
        earlier = flanks_mask(query_kmer, max_left + 1, 0)
    least = max(kmer_length, lookup.min_length - max_left)
    return TargetRange(
        max(0, at - starts.last),
        max_left,
        max_right,
        max(least, ends.forward + 1 - at),
        max(least, ends.reverse + 1 - at),
        is_broken,
        earlier,
    )


@inline
def extend_at_minimizer(
    work: UniqueWork, query_kmer: QueryKmer, starts: StartsOfMinimizer, ends: MatchEnds
) -> None:
    """Add the matches with some starts that have a minimizer and reach beyond the ends.

    All of them have the minimizer; it need not be the one that they are found at.
    """
    lookup, codes, candidates = work.lookup, work.codes, work.candidates
    place = query_kmer.place
    at = place >> 1
    target = target_at(lookup, query_kmer, starts, ends)
    right, right_reverse = target.right, target.right_reverse
    coming = query_kmer.listed_begin
    while coming < query_kmer.listed_end and min(right, right_reverse) <= target.max_right:
        coming, count = find_candidates(work, query_kmer, target, right, right_reverse, coming)
        for candidate in range(count):
            entry = lookup.entries[as_index(candidates[as_index(candidate)])]
            is_reverse = (as_int64(entry >> PLACE_SHIFT) ^ place) & 1 == 1
            found = MARGIN + position_of(entry)
            least = right_reverse if is_reverse else right
            if least > target.max_right:
                continue
            if not reaches(lookup, codes, at, found, is_reverse, least):
                continue
            left = left_of_entry(lookup, codes, query_kmer, target, entry, is_reverse)
            if left < target.min_left or left > target.max_left:
                continue
            behind = bases_right(lookup, codes, at, found, is_reverse, target.max_right)
            if behind < least or left + behind < lookup.min_length:
                continue
            reference_start = found - left - MARGIN
            strand = as_int64(0)
            if is_reverse:
                reference_start = found + lookup.kmer_length - behind - MARGIN
                strand = as_int64(1)
            is_twice = add_to_frontier(
                work.frontier, strand, at - left, at + behind, reference_start
            )
            if left < target.max_left:
                continue
            # A match that begins later and ends before that lies in this one.
            least = max(least, behind)
            if is_twice and behind == target.max_right:
                least += 1
            if is_reverse:
                right_reverse = least
            else:
                right = least


@inline
def find_candidates(
    work: UniqueWork,
    query_kmer: QueryKmer,
    target: TargetRange,
    right: int,
    right_reverse: int,
    coming: int,
) -> tuple[int, int]:
    """Write the next entries that may be in a match, and prefetch the reference there.

    A match has at least `right` bases from the k-mer on, or `right_reverse` on the other strand.
    Return the next entry to look at, and the number of candidates.
    """
    lookup, candidates = work.lookup, work.candidates
    kmer_length, size = lookup.kmer_length, lookup.reference.size
    mask = flanks_mask(query_kmer, target.min_left, right - kmer_length)
    mask_reverse = flanks_mask(query_kmer, target.min_left, right_reverse - kmer_length)
    earlier, beside = target.earlier, lookup.min_length - kmer_length
    count = 0
    while coming < query_kmer.listed_end and count < candidates.size:
        entry = lookup.entries[as_index(coming)]
        differing = entry ^ query_kmer.context
        is_reverse = (as_int64(entry >> PLACE_SHIFT) ^ query_kmer.place) & 1 == 1
        needed = mask_reverse if is_reverse else mask
        if differing & needed == 0 and (earlier == 0 or differing & (earlier | BROKEN) != 0):
            before, after = equal_sides(differing)
            if before + after >= beside or max(before, after) == CONTEXT_BASES:
                candidates[as_index(count)] = coming
                count += 1
                # The last base that must match differs most often.
                found = MARGIN + position_of(entry)
                last = found + right - 1
                if is_reverse:
                    last = found + kmer_length - right_reverse
                prefetch(lookup.reference, min(max(0, last), size - 1))
        coming += 1
    return coming, count


@inline
def left_of_entry(
    lookup: MinimizerLookup,
    codes: CodeArray,
    query_kmer: QueryKmer,
    target: TargetRange,
    entry: np.uint64,
    is_reverse: bool,
) -> int:
    """Return how many bases before a k-mer match at an entry; where too many do, one too many."""
    before, after = equal_sides(entry ^ query_kmer.context)
    left = after if query_kmer.place & 1 == 1 else before
    is_open = left == CONTEXT_BASES and left <= target.max_left
    if target.is_broken or entry & BROKEN != 0 or is_open:
        at = query_kmer.place >> 1
        found = MARGIN + position_of(entry)
        most = min(target.max_left + 1, at - query_kmer.query_begin)
        left = bases_left(lookup, codes, at, found, is_reverse, most)
    return left


@inline
def reaches(
    lookup: MinimizerLookup, codes: CodeArray, at: int, found: int, is_reverse: bool, right: int
) -> bool:
    """Return whether the last of `right` bases from a k-mer on match, unless contexts show that."""
    last = min(right - lookup.kmer_length, STEP)
    if last <= CONTEXT_BASES:
        return True
    if is_reverse:
        end = found + lookup.kmer_length - right
        if end < MARGIN:
            return False
        return extend_left_reversed(codes, at + right, lookup.reference, end, last) == last
    end = found + right
    if end > lookup.reference.size - MARGIN:
        return False
    return extend_left(codes, at + right, lookup.reference, end, last) == last


@inline
def bases_left(
    lookup: MinimizerLookup, codes: CodeArray, at: int, found: int, is_reverse: bool, most: int
) -> int:
    """Return how many bases before a k-mer of a query match those before one of the reference.

    `at` and `found` are where the k-mer begins on both forward strands; `is_reverse` says that it
    is the reverse complement in the reference.
    """
    if is_reverse:
        behind = found + lookup.kmer_length
        return extend_left_reversed(codes, at, lookup.reference, behind, most)
    return extend_left(codes, at, lookup.reference, found, most)


@inline
def bases_right(
    lookup: MinimizerLookup, codes: CodeArray, at: int, found: int, is_reverse: bool, most: int
) -> int:
    """Return how many bases from a k-mer on match, its own among them, as `bases_left` does."""
    if is_reverse:
        behind = found + lookup.kmer_length
        return extend_right_reversed(codes, at, lookup.reference, behind, most)
    return extend_right(codes, at, lookup.reference, found, most)
