"""The entries of a frequent minimizer: only those of the longest matches are looked at.

A long list is sorted by the bases after its k-mers, and again by those before them
(`index.minimizer_order`). All entries of matches that reach far enough lie side by side in the
first order: two bisections find them. From where the query itself would lie, they are looked at to
both sides, those of longer matches first. Of two matches of which one ends later, the other one
counts only if it begins earlier; so an entry counts if more bases before its k-mer match than of
all before it, or as many and it ends where the last one did, which then occurs twice. As soon as
the second order has few entries with that many bases before them, or none, these are the last ones.

So a list in which nothing is unique is not walked: of 50,000 copies of `AC`, two suffice.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import EntryArray
from mummergpu.index.minimizer_order import ORDERED_BASES, position_of
from mummergpu.matching.kmer.minimizer_entries import (
    MatchEnds,
    MinimizerLookup,
    QueryKmer,
    StartsOfMinimizer,
    TargetRange,
    UniqueMatchFrontier,
    add_to_frontier,
    bases_left,
    bases_right,
    reaches,
    target_at,
)
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.sequence.contexts import BROKEN, CONTEXT_BASES, equal_sides
from mummergpu.sequence.extension import extend_right, extend_right_reversed

MET_BEFORE_ASKING: Final = 8
"""The entries that are looked at before asking whether others are fewer."""


class StrandEntries(NamedTuple):
    """The entries of a long list on one strand of the reference, in both orders."""

    # Arrays with the entries by what follows the k-mer in the query, and by what precedes it.
    to_right: EntryArray
    to_left: EntryArray
    # Where they are in `to_right`.
    begin: int
    end: int
    left_shift: int  # How much later they are in `to_left`.
    is_reverse: bool  # Whether they match the reverse complement of the query.


class OrderedMinimizer(NamedTuple):
    """A minimizer of a query, the bounds of wanted matches, and its entries on one strand."""

    lookup: MinimizerLookup
    codes: CodeArray
    query_kmer: QueryKmer
    target: TargetRange
    listed: StrandEntries


@jit
def meet_ordered_matches(
    lookup: MinimizerLookup,
    codes: CodeArray,
    query_kmer: QueryKmer,
    starts: StartsOfMinimizer,
    ends: MatchEnds,
    frontier: UniqueMatchFrontier,
) -> None:
    """Do the work of `minimizer_entries.extend_at_minimizer` for a long list."""
    target = target_at(lookup, query_kmer, starts, ends)
    number = ordered_number(lookup, query_kmer)
    for reverse in range(2):
        if (target.right_reverse if reverse else target.right) <= target.max_right:
            listed = strand_entries(lookup, query_kmer, number, reverse == 1)
            if listed.begin < listed.end:
                meet_on_strand(
                    OrderedMinimizer(lookup, codes, query_kmer, target, listed), frontier
                )


@jit
def first_start_beyond(
    lookup: MinimizerLookup, codes: CodeArray, query_kmer: QueryKmer, end: int, is_reverse: bool
) -> int:
    """Return where the first match begins that has a minimizer of a long list and passes an end.

    The k-mer lies before the end. If no match does, it is the base after where the minimizer
    begins; and if too many matches pass to decide, the beginning of the query.
    """
    at = query_kmer.place >> 1
    listed = strand_entries(lookup, query_kmer, ordered_number(lookup, query_kmer), is_reverse)
    right = end + 1 - at
    target = TargetRange(
        as_int64(0), at - query_kmer.query_begin, right, right, right, True, np.uint64(0)
    )
    minimizer = OrderedMinimizer(lookup, codes, query_kmer, target, listed)
    needed = right - lookup.kmer_length
    if needed > ORDERED_BASES:
        return query_kmer.query_begin
    first = place_beside(minimizer, listed.begin, listed.end, True, needed, False)
    furthest = as_int64(-1)
    # All entries that pass the end lie side by side. Many of them are not worth a look: the answer
    # saves only a look at a few.
    for place in range(first, min(first + MET_BEFORE_ASKING, listed.end)):
        if equal_beside(minimizer, place, True, needed) < needed:
            return at - furthest
        entry = listed.to_right[as_index(place)]
        found = MARGIN + position_of(entry)
        left = bases_left(lookup, codes, at, found, is_reverse, target.max_left)
        furthest = max(furthest, left)
    return at - furthest if first + MET_BEFORE_ASKING > listed.end else query_kmer.query_begin


@inline
def ordered_number(lookup: MinimizerLookup, query_kmer: QueryKmer) -> int:
    """Return the number of the long list that a minimizer has."""
    low, high = as_int64(0), as_int64(lookup.ordered_begins.size)
    while low < high:
        middle = (low + high) // 2
        if as_int64(lookup.ordered_begins[as_index(middle)]) < query_kmer.listed_begin:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def strand_entries(
    lookup: MinimizerLookup, query_kmer: QueryKmer, number: int, is_reverse: bool
) -> StrandEntries:
    """Return the entries of a long list that match a strand of the query."""
    begin, end = as_int64(lookup.reverse_begins[as_index(number)]), query_kmer.listed_end
    shift = lookup.left_begins[as_index(number)] - query_kmer.listed_begin
    if is_reverse == (query_kmer.place & 1 == 1):
        begin, end = query_kmer.listed_begin, begin
    if is_reverse:
        # What follows in the query precedes in the reference.
        return StrandEntries(
            lookup.by_preceding_bases, lookup.entries, begin + shift, end + shift, -shift, True
        )
    return StrandEntries(lookup.entries, lookup.by_preceding_bases, begin, end, shift, False)


@jit
def meet_on_strand(minimizer: OrderedMinimizer, frontier: UniqueMatchFrontier) -> None:
    """Add the matches of a minimizer's entries on one strand to a frontier."""
    target, listed = minimizer.target, minimizer.listed
    kmer_length = minimizer.lookup.kmer_length
    least = target.right_reverse if listed.is_reverse else target.right
    needed = min(least - kmer_length, ORDERED_BASES)
    first = place_beside(minimizer, listed.begin, listed.end, True, needed, False)
    if first == listed.end or equal_beside(minimizer, first, True, needed) < needed:
        return
    behind = place_beside(minimizer, first, listed.end, True, needed, True)
    most = target.max_right - kmer_length
    own = place_beside(minimizer, first, behind, True, min(most, ORDERED_BASES), False)
    if most > ORDERED_BASES and own < behind:
        if equal_beside(minimizer, own, True, ORDERED_BASES) == ORDERED_BASES:
            # The order does not show which of these reach farthest.
            meet_all(minimizer, first, behind, frontier)
            return
    meet_outwards(minimizer, first, own, behind, frontier)


@inline
def meet_all(
    minimizer: OrderedMinimizer, first: int, behind: int, frontier: UniqueMatchFrontier
) -> None:
    """Add the matches of some entries to a frontier, of which many may reach far.

    In a reference of one repeat, entries with more of it ahead in the query's direction come first:
    they end later than the others, which are then not followed to their ends.
    """
    lookup, codes, target = minimizer.lookup, minimizer.codes, minimizer.target
    listed, at = minimizer.listed, minimizer.query_kmer.place >> 1
    least = target.right_reverse if listed.is_reverse else target.right
    # A match that begins no earlier than the furthest one has to end after it, or where it does if
    # that one occurs once so far.
    furthest_left, furthest = as_int64(-1), as_int64(0)
    for number in range(behind - first):
        place = behind - 1 - number if listed.is_reverse else first + number
        entry = listed.to_right[as_index(place)]
        found = MARGIN + position_of(entry)
        if furthest_left >= 0:
            left = bases_left(lookup, codes, at, found, listed.is_reverse, furthest_left + 1)
            right = furthest if left <= furthest_left else least
            if right > target.max_right:
                continue
            if not reaches(lookup, codes, at, found, listed.is_reverse, right):
                continue
        left, is_twice = meet_entry(minimizer, entry, target.min_left, frontier)
        if left >= 0:
            right = bases_right(lookup, codes, at, found, listed.is_reverse, target.max_right)
            if is_twice:
                right += 1
            if right >= furthest:
                furthest_left, furthest = left, right


@inline
def meet_outwards(
    minimizer: OrderedMinimizer, first: int, own: int, behind: int, frontier: UniqueMatchFrontier
) -> None:
    """Add the matches of some entries to a frontier, beginning next to the query's place.

    None of them shares more than `ORDERED_BASES` with the query.
    """
    target, listed = minimizer.target, minimizer.listed
    most = target.max_right - minimizer.lookup.kmer_length
    lower, upper = own - 1, own
    right_of_lower = right_at(minimizer, lower, first, behind, most)
    right_of_upper = right_at(minimizer, upper, first, behind, most)
    # An entry counts with `needed` bases before the k-mer. The last one that counted has one fewer,
    # or as many and `last_right` bases after it, which are fewer than 0 if it occurs twice.
    needed, last, last_right = target.min_left, np.uint64(0), as_int64(-1)
    met, next_question = as_int64(0), as_int64(MET_BEFORE_ASKING)
    shortest = minimizer.lookup.min_length - minimizer.lookup.kmer_length
    while max(right_of_lower, right_of_upper) >= 0:
        right = max(right_of_lower, right_of_upper)
        if right < last_right:
            # A match that ends earlier and begins there, too, lies in the last one.
            needed += 1
            last_right = as_int64(-1)
        needed = max(needed, shortest - right)
        if needed > target.max_left:
            return
        if met == next_question:
            if meet_few_others(minimizer, needed, last, last_right, met, frontier):
                return
            next_question *= 2
        met += 1
        if right_of_upper == right:
            entry = listed.to_right[as_index(upper)]
            upper += 1
            right_of_upper = right_at(minimizer, upper, first, behind, most)
        else:
            entry = listed.to_right[as_index(lower)]
            lower -= 1
            right_of_lower = right_at(minimizer, lower, first, behind, most)
        left, is_twice = meet_entry(minimizer, entry, needed, frontier)
        if left >= 0:
            needed, last, last_right = left, entry, right
            if is_twice:
                needed += 1
                last_right = as_int64(-1)


@inline
def right_at(minimizer: OrderedMinimizer, place: int, first: int, behind: int, most: int) -> int:
    """Return how many bases after the k-mer of an entry match; -1 outside of a range of places."""
    if place < first or place >= behind:
        return as_int64(-1)
    return equal_beside(minimizer, place, True, most)


@inline
def meet_few_others(
    minimizer: OrderedMinimizer,
    needed: int,
    last: np.uint64,
    last_right: int,
    most: int,
    frontier: UniqueMatchFrontier,
) -> bool:
    """Return whether few entries have this many bases before the k-mer; if so, add their matches.

    The last one that counted is in the frontier if it occurs once so far.
    """
    listed = minimizer.listed
    begin, end = listed.begin + listed.left_shift, listed.end + listed.left_shift
    bases = min(needed, ORDERED_BASES)
    # Those with this many equal bases before the k-mer lie side by side in the second order.
    begin = place_beside(minimizer, begin, end, False, bases, False)
    end = place_beside(minimizer, begin, end, False, bases, True)
    if end - begin > most:
        return False
    for place in range(begin, end):
        entry = listed.to_left[as_index(place)]
        if last_right < 0 or entry != last:
            meet_entry(minimizer, entry, needed, frontier)
    return True


@jit
def meet_entry(
    minimizer: OrderedMinimizer, entry: np.uint64, min_left: int, frontier: UniqueMatchFrontier
) -> tuple[int, bool]:
    """Add the match of an entry to a frontier.

    Return how many bases before the k-mer match, and whether the match occurs a second time. They
    are -1 if they are fewer than those asked for, or it is no match that is looked for.
    """
    lookup, codes, target = minimizer.lookup, minimizer.codes, minimizer.target
    is_reverse = minimizer.listed.is_reverse
    at = minimizer.query_kmer.place >> 1
    found = MARGIN + position_of(entry)
    most = min(target.max_left + 1, at - minimizer.query_kmer.query_begin)
    left = bases_left(lookup, codes, at, found, is_reverse, most)
    if left < min_left or left > target.max_left:
        return as_int64(-1), False
    right = bases_right(lookup, codes, at, found, is_reverse, target.max_right)
    least = target.right_reverse if is_reverse else target.right
    # Other k-mers may be in the list; they do not reach so far.
    if right < least or left + right < lookup.min_length:
        return as_int64(-1), False
    reference_start = found - left - MARGIN
    if is_reverse:
        reference_start = found + lookup.kmer_length - right - MARGIN
    is_twice = add_to_frontier(
        frontier, as_int64(is_reverse), at - left, at + right, reference_start
    )
    return left, is_twice


@inline
def place_beside(
    minimizer: OrderedMinimizer,
    begin: int,
    end: int,
    to_right: bool,
    bases: int,
    behind_equal: bool,
) -> int:
    """Return the first place, of some in one order, whose bases do not come before the query's.

    Only `bases` bases are compared. With `behind_equal` it comes after places with the same bases.
    """
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if is_before_query(minimizer, middle, to_right, bases, behind_equal):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def is_before_query(
    minimizer: OrderedMinimizer, place: int, to_right: bool, bases: int, if_equal: bool
) -> bool:
    """Return whether the bases next to an entry come before those of the query."""
    lookup, listed = minimizer.lookup, minimizer.listed
    equal = equal_beside(minimizer, place, to_right, bases)
    if equal == bases:
        return if_equal
    at = minimizer.query_kmer.place >> 1
    entry = listed.to_right[as_index(place)] if to_right else listed.to_left[as_index(place)]
    found = MARGIN + position_of(entry)
    mine = at + lookup.kmer_length + equal if to_right else at - 1 - equal
    base = minimizer.codes[as_index(mine)]
    if listed.is_reverse and base < BREAK:
        base = np.uint8(3) - base
    if to_right != listed.is_reverse:
        return bool(lookup.reference[as_index(found + lookup.kmer_length + equal)] < base)
    return bool(lookup.reference[as_index(found - 1 - equal)] < base)


@inline
def equal_beside(minimizer: OrderedMinimizer, place: int, to_right: bool, most: int) -> int:
    """Return how many bases next to the k-mer of an entry match the query, `most` at most."""
    lookup, codes, listed = minimizer.lookup, minimizer.codes, minimizer.listed
    query_kmer = minimizer.query_kmer
    entry = listed.to_right[as_index(place)] if to_right else listed.to_left[as_index(place)]
    if (entry | query_kmer.context) & BROKEN == 0:
        before, after = equal_sides(entry ^ query_kmer.context)
        known = after if to_right == (query_kmer.place & 1 == 0) else before
        if known < CONTEXT_BASES or most <= CONTEXT_BASES:
            return min(known, most)
    at = query_kmer.place >> 1
    found = MARGIN + position_of(entry)
    if not to_right:
        return bases_left(lookup, codes, at, found, listed.is_reverse, most)
    behind = at + lookup.kmer_length
    if listed.is_reverse:
        return extend_right_reversed(codes, behind, lookup.reference, found, most)
    return extend_right(codes, behind, lookup.reference, found + lookup.kmer_length, most)
