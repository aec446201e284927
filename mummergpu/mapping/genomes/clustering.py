"""Joins matches that lie close together: the sets from which clusters are chained.

Matches inside a repeat of which one sequence has more copies than the other are dropped first. The
matches of a group ascend by their start in the query, and are read once. Partners of a match are
found by diagonal: matches of the last bases are kept in lists by ranges of diagonals, and only the
ranges that are near enough are searched.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.mapping.genomes.columns import NONE, Anchors
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit


class ClusterRule(NamedTuple):
    """Which matches form a cluster, as compiled functions take it."""

    max_gap: int  # The most bases of the query between two matches.
    # How far apart their diagonals may be, in bases and in millionths of the gap between them.
    difference: int
    millionths: int
    # How many diagonals a range has, and how many ranges away the diagonal of a match may be.
    width: int
    ranges: int
    min_bases: int  # The fewest bases of all matches of a cluster together.


class JoinRoom(NamedTuple):
    """Memory to join matches in."""

    # Output: the number of the set of each match, which is the index of the set's first match.
    sets: Int64Array
    following: Int64Array  # The next match of the list of each.
    lists: Int64Array  # The first match of each list (`list_count`).


_MILLION: Final = 1_000_000
"""Shares are counted in millionths: code without numba takes only whole numbers."""

_MAX_RANGES: Final = 4
"""The most ranges on each side of a match's own that are looked at."""

_MAX_DIFFERENCE: Final = 1 << 40
"""More than the diagonals of any two matches differ by."""


DROPPED: Final = 0
_KEPT: Final = 1
_DOUBTED: Final = 2
"""The states of a match: a doubted one lies in a repeat with another one of the same length."""

_MIN_LISTS: Final = 8
_LISTS_IN_CACHE: Final = 1 << 16
_MATCHES_OF_LIST: Final = 32


def cluster_rule(
    max_gap: int, diagonal_difference: int, diagonal_factor: float, min_bases: int
) -> ClusterRule:
    """Return the rule by which matches are joined (`options.ClusterOptions`)."""
    millionths = round(diagonal_factor * _MILLION)
    widest = min(max(diagonal_difference, millionths * max_gap // _MILLION), _MAX_DIFFERENCE)
    # Matches of a range this narrow are all joined with each other while they are near.
    width = min(diagonal_difference, _MAX_DIFFERENCE) + 1
    ranges = -(-widest // width)
    if ranges > _MAX_RANGES:
        width, ranges = widest + 1, 1
    return ClusterRule(max_gap, diagonal_difference, millionths, width, ranges, min_bases)


@inline
def lists_for(count: int) -> int:
    """Return how many lists `count` matches are kept in: a power of two.

    The lists stay in a processor's cache, unless the matches of a list became too many.
    """
    lists = _MIN_LISTS
    while lists < count and (lists < _LISTS_IN_CACHE or lists * _MATCHES_OF_LIST < count):
        lists *= 2
    return lists


@jit
def list_count(count: int) -> int:
    """Return how many lists joining needs for `count` matches: those of the largest group."""
    return lists_for(count)


@jit
def join_groups(
    group_offsets: Int64Array,
    first: int,
    end: int,
    matches: Anchors,
    rule: ClusterRule,
    known: ByteArray,
    room: JoinRoom,
    rows: Int64Array,
) -> int:
    """Join the matches of some groups except those inside a repeat; return how many are left.

    Those left are written to `rows`, to whose indices the sets of the room refer; `known` is memory
    for each match of a group.
    """
    count = 0
    for group in range(first, end):
        begin, size = group_offsets[group], group_offsets[group + 1] - group_offsets[group]
        drop_inner_matches(matches, begin, size, known, room)
        group_first = count
        for number in range(size):
            if known[number] != DROPPED:
                rows[count] = begin + number
                count += 1
        _join(matches, rows, group_first, count, rule, room)
    return count


@jit
def join_close_matches(
    matches: Anchors, rows: Int64Array, begin: int, end: int, rule: ClusterRule, room: JoinRoom
) -> None:
    """Join the matches of a range of `rows`, which are of one group and ascend."""
    _join(matches, rows, begin, end, rule, room)


@jit
def measure_sets(
    lengths: Int64Array,
    rows: Int64Array,
    begin: int,
    end: int,
    sets: Int64Array,
    min_bases: int,
    bases: Int64Array,
    sizes: Int64Array,
) -> int:
    """Count the matches of each set with enough bases, and return how many they are together.

    The size of a set is written for its first match, 0 if it has too few bases; `bases` is memory.
    """
    for number in range(begin, end):
        bases[number], sizes[number] = 0, 0
        bases[sets[number]] += lengths[rows[number]]
    count = 0
    for number in range(begin, end):
        if bases[sets[number]] >= min_bases:
            sizes[sets[number]] += 1
            count += 1
    return count


@jit
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
    """List the sets with enough bases, and return how many there are, with `first` before them.

    Matches are written to `members` from `begin`, where each set begins to `starts` from `first`;
    the sizes of `measure_sets` are overwritten.
    """
    filled, count = begin, first
    for number in range(begin, end):
        root = sets[number]
        if sizes[root] == 0:
            continue
        if number == root:
            starts[count] = filled
            count += 1
            filled += sizes[root]
            # From here on this is the index of the next match to write, plus one.
            sizes[root] = starts[count - 1] + 1
        members[sizes[root] - 1] = rows[number]
        sizes[root] += 1
    return count


@inline
def _join(
    matches: Anchors, rows: Int64Array, begin: int, end: int, rule: ClusterRule, room: JoinRoom
) -> None:
    """Give each match the number of its set, which is the index of the set's first match."""
    sets, lists = room.sets, room.lists
    mask = lists_for(end - begin) - 1
    for place in range(mask + 1):
        lists[place] = NONE
    for number in range(begin, end):
        sets[number] = number
        row = rows[number]
        own = (matches.query_starts[row] - matches.reference_starts[row]) // rule.width
        for near in range(own - rule.ranges, own + rule.ranges + 1):
            _join_with_range(matches, rows, number, near, rule, room, mask)
        place = own & mask
        room.following[number] = lists[place]
        lists[place] = number
    for number in range(begin, end):
        # The set's first match comes before, and has its number already.
        sets[number] = sets[sets[number]]


@inline
def _join_with_range(
    matches: Anchors,
    rows: Int64Array,
    number: int,
    near: int,
    rule: ClusterRule,
    room: JoinRoom,
    mask: int,
) -> None:
    """Join a match with those before it in a range of diagonals; unlist those that are too far.

    The query is read forwards: matches too far from this one are too far from all later ones.
    """
    query_starts, reference_starts = matches.query_starts, matches.reference_starts
    sets, following, lists = room.sets, room.following, room.lists
    row = rows[number]
    diagonal = query_starts[row] - reference_starts[row]
    place = near & mask
    before, other = NONE, lists[place]
    while other != NONE:
        earlier = rows[other]
        gap = query_starts[row] - query_starts[earlier] - matches.lengths[earlier]
        after = following[other]
        if gap > rule.max_gap:
            if before == NONE:
                lists[place] = after
            else:
                following[before] = after
        else:
            before = other
            other_diagonal = query_starts[earlier] - reference_starts[earlier]
            # A list has the matches of several ranges.
            if other_diagonal // rule.width == near and abs(other_diagonal - diagonal) <= max(
                rule.difference, rule.millionths * gap // _MILLION
            ):
                one, two = _set_of(sets, number), _set_of(sets, other)
                sets[max(one, two)] = min(one, two)
                if rule.width <= rule.difference + 1:
                    # All matches of the range that are near have been joined with each other.
                    break
        other = after


@inline
def _set_of(sets: Int64Array, number: int) -> int:
    """Return the first match of the set of a match, and shorten the path to it."""
    while sets[number] != number:
        sets[number] = sets[sets[number]]
        number = sets[number]
    return number


@inline
def drop_inner_matches(
    matches: Anchors, begin: int, size: int, known: ByteArray, room: JoinRoom
) -> None:
    """Drop the matches that lie inside a repeat and begin where another one does.

    If one sequence has more copies of a unit than the other, only the first and the last of their
    matches are informative. Copies of a unit follow each other: a match that is shifted
    from another one by at most its length repeats what it is shifted by, up to its end. One that is
    shifted further is that of a repeat at both ends of the longer one, and stays, unless it lies
    among such copies. (MUMmer's mgaps drops it.)
    """
    query_starts, reference_starts, lengths = (
        matches.query_starts,
        matches.reference_starts,
        matches.lengths,
    )
    following, lists = room.following, room.lists
    mask = lists_for(size) - 1
    for place in range(mask + 1):
        lists[place] = NONE
    # A list has the matches whose starts in the reference end with the same bits, in their order.
    for row in range(size - 1, -1, -1):
        known[row] = _KEPT
        place = reference_starts[begin + row] & mask
        following[row] = lists[place]
        lists[place] = row
    for row in range(size - 1):
        if known[row] == DROPPED:
            continue
        one = begin + row
        query_end = query_starts[one] + lengths[one]
        reference_end = reference_starts[one] + lengths[one]
        reach = as_int64(0)
        other = row + 1
        while (
            other < size
            and query_starts[begin + other] == query_starts[one]
            and reference_starts[begin + other] <= reference_end
            and known[row] != DROPPED
        ):
            start, least = (
                reference_starts[begin + other],
                min(lengths[one], lengths[begin + other]),
            )
            if start - reference_starts[one] <= least:
                reach = max(reach, start + least)
            if start + least <= reach:
                _drop_one(lengths, begin, row, other, reference_end - start, known)
            other += 1
        reach, other = as_int64(0), following[row]
        while other != NONE and query_starts[begin + other] <= query_end and known[row] != DROPPED:
            same = reference_starts[begin + other] == reference_starts[one]
            if same and query_starts[begin + other] > query_starts[one]:
                start, least = (
                    query_starts[begin + other],
                    min(lengths[one], lengths[begin + other]),
                )
                if start - query_starts[one] <= least:
                    reach = max(reach, start + least)
                if start + least <= reach:
                    _drop_one(lengths, begin, row, other, query_end - start, known)
            other = following[other]


@inline
def _drop_one(
    lengths: Int64Array, begin: int, row: int, other: int, overlap: int, known: ByteArray
) -> None:
    """Drop the shorter one of two matches that overlap in a repeat.

    If they are equally long, the earlier one goes if it is the second of three.
    """
    length, other_length = lengths[begin + row], lengths[begin + other]
    if known[other] == DROPPED or overlap < min(length, other_length) // 2:
        return
    if other_length < length:
        known[other] = DROPPED
    elif length < other_length or known[row] == _DOUBTED:
        known[row] = DROPPED
    else:
        known[other] = _DOUBTED
