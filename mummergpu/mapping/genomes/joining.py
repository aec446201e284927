"""Joins matches that lie close together: the sets of which clusters are chained.

The matches of a group ascend by their start in the query, and are read once. What may be joined
with a match is looked for by diagonal: matches of the last bases are kept in lists by ranges of
diagonals, and only the ranges that are near enough are looked at.
"""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.genomes.anchors import NONE, Anchors, lists_for
from mummergpu.mapping.genomes.inner_matches import DROPPED, GroupRoom, drop_inner_matches
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts

JoinRule = tuple[int, int, int, int, int]
"""The most bases of the query between two matches; how far apart their diagonals may be, in bases
and in millionths of the gap between them; how many diagonals a range has; and how many ranges away
the diagonal of a match may be."""

_MILLION: Final = 1_000_000
"""Shares are counted in millionths: code without numba takes no other numbers than whole ones."""

_MOST_RANGES: Final = 4
"""The most ranges on each side of a match's own that are looked at."""

_MOST_DIFFERENCE: Final = 1 << 40
"""More than the diagonals of any two matches differ by."""


def join_rule(most_gap: int, diagonal_difference: int, diagonal_factor: float) -> JoinRule:
    """Return how matches are joined."""
    millionths = round(diagonal_factor * _MILLION)
    widest = min(max(diagonal_difference, millionths * most_gap // _MILLION), _MOST_DIFFERENCE)
    # Matches of a range so narrow are all joined with each other while they are near.
    width = min(diagonal_difference, _MOST_DIFFERENCE) + 1
    ranges = -(-widest // width)
    if ranges > _MOST_RANGES:
        width, ranges = widest + 1, 1
    return most_gap, diagonal_difference, millionths, width, ranges


@jit_without_refcounts
def join_groups(
    group_offsets: Int64Array,
    first: int,
    end: int,
    matches: Anchors,
    rule: JoinRule,
    room: GroupRoom,
    rows: Int64Array,
    sets: Int64Array,
) -> int:
    """Join the matches of some groups, without those that lie inside a repeat."""
    count = 0
    for group in range(first, end):
        begin, size = group_offsets[group], group_offsets[group + 1] - group_offsets[group]
        drop_inner_matches(matches, begin, size, room)
        group_first = count
        for number in range(size):
            if room[0][number] != DROPPED:
                rows[count] = begin + number
                count += 1
        _join(matches, rows, group_first, count, rule, sets, room[1], room[2])
    return count


@jit_without_refcounts
def join_close_matches(
    matches: Anchors,
    rows: Int64Array,
    begin: int,
    end: int,
    rule: JoinRule,
    sets: Int64Array,
    following: Int64Array,
    lists: Int64Array,
) -> None:
    """Join some matches of a group."""
    _join(matches, rows, begin, end, rule, sets, following, lists)


@jit_without_refcounts
def measure_sets(
    lengths: Int64Array,
    rows: Int64Array,
    begin: int,
    end: int,
    sets: Int64Array,
    least_bases: int,
    bases: Int64Array,
    sizes: Int64Array,
) -> int:
    """Count the matches of each set that has enough bases."""
    for number in range(begin, end):
        bases[number], sizes[number] = 0, 0
        bases[sets[number]] += lengths[rows[number]]
    count = 0
    for number in range(begin, end):
        if bases[sets[number]] >= least_bases:
            sizes[sets[number]] += 1
            count += 1
    return count


@jit_without_refcounts
def list_sets(
    rows: Int64Array,
    begin: int,
    end: int,
    sets: Int64Array,
    sizes: Int64Array,
    members: Int64Array,
    starts: Int64Array,
    first: int,
) -> int:
    """List the matches of each set that has enough bases."""
    filled, count = begin, first
    for number in range(begin, end):
        root = sets[number]
        if sizes[root] == 0:
            continue
        if number == root:
            starts[count] = filled
            count += 1
            filled += sizes[root]
            # From here on it is where the next match is written, and one more.
            sizes[root] = starts[count - 1] + 1
        members[sizes[root] - 1] = rows[number]
        sizes[root] += 1
    return count


@inline_without_refcounts
def _join(
    matches: Anchors,
    rows: Int64Array,
    begin: int,
    end: int,
    rule: JoinRule,
    sets: Int64Array,
    following: Int64Array,
    lists: Int64Array,
) -> None:
    """Give each match the number of its set, which is the index of the set's first match."""
    query_starts, reference_starts, _ = matches
    width, ranges = rule[3], rule[4]
    mask = lists_for(end - begin) - 1
    for place in range(mask + 1):
        lists[place] = NONE
    for number in range(begin, end):
        sets[number] = number
        row = rows[number]
        own = (query_starts[row] - reference_starts[row]) // width
        for near in range(own - ranges, own + ranges + 1):
            _join_with_range(matches, rows, number, near, rule, sets, following, lists, mask)
        place = own & mask
        following[number] = lists[place]
        lists[place] = number
    for number in range(begin, end):
        # The set's first match comes before, and has its number already.
        sets[number] = sets[sets[number]]


@inline_without_refcounts
def _join_with_range(
    matches: Anchors,
    rows: Int64Array,
    number: int,
    near: int,
    rule: JoinRule,
    sets: Int64Array,
    following: Int64Array,
    lists: Int64Array,
    mask: int,
) -> None:
    """Join a match with those before it in a range of diagonals; forget those that are too far.

    The query is read forwards: what is too far from this match is too far from all later ones.
    """
    query_starts, reference_starts, lengths = matches
    most_gap, difference, millionths, width, _ = rule
    row = rows[number]
    diagonal = query_starts[row] - reference_starts[row]
    place = near & mask
    before, other = NONE, lists[place]
    while other != NONE:
        earlier = rows[other]
        gap = query_starts[row] - query_starts[earlier] - lengths[earlier]
        after = following[other]
        if gap > most_gap:
            if before == NONE:
                lists[place] = after
            else:
                following[before] = after
        else:
            before = other
            other_diagonal = query_starts[earlier] - reference_starts[earlier]
            # A list has the matches of several ranges.
            if other_diagonal // width == near and abs(other_diagonal - diagonal) <= max(
                difference, millionths * gap // _MILLION
            ):
                one, two = _set_of(sets, number), _set_of(sets, other)
                sets[max(one, two)] = min(one, two)
                if width <= difference + 1:
                    # All matches of the range that are near have been joined with each other.
                    break
        other = after


@inline_without_refcounts
def _set_of(sets: Int64Array, number: int) -> int:
    """Return the first match of the set of a match, and shorten the way to it."""
    while sets[number] != number:
        sets[number] = sets[sets[number]]
        number = sets[number]
    return number
