"""Which reads are mates: their names, which are equal but for ends such as /1, and their flags."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.input.records.record_arrays import Records, Spans
from mummergpu.input.records.record_lines import line_of_record
from mummergpu.input.records.record_reader import printable
from mummergpu.input.records.tags import Tags
from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline,
    jit,
    writable,
)
from mummergpu.runtime.words import pluralize
from mummergpu.sequence.codes import MARGIN, empty_with_margins

PAIRED: Final = 0x1
FIRST: Final = 0x40
LAST: Final = 0x80
_BOTH: Final = FIRST | LAST

SUFFIX_BYTES: Final = 2
"""The bytes of ``/1`` and ``/2``."""

_SLASH, _ONE, _TWO = b"/12"
_THREE, _LARGE_R, _SMALL_R = b"3Rr"
_MARKS: Final = tuple(b"/._:-")


class PairNames(NamedTuple):
    """The names of first and second mates in turn, and the first pair whose names differ.

    `equal` is the number of pairs if there is none; otherwise `names` means nothing.
    """

    names: Spans
    equal: int


def names_of_pairs(
    first: Spans, second: Spans, step: int, pairs: int, with_suffixes: bool
) -> PairNames:
    """Return the names of mates, after a comparison.

    Parameters
    ----------
    step : int
        How many reads there are from one pair to the next: 2 if the mates alternate. Otherwise
        their place tells mates too, and other ends of names count (`stem_before_end`).
    with_suffixes : bool
        Whether the names end in ``/1`` and ``/2``.
    """
    # Names may be equal although one of them lacks its suffix.
    room = pairs * 2 * SUFFIX_BYTES + first.content.size + second.content.size
    names = Spans(np.empty(room, dtype=np.uint8), np.empty(2 * pairs + 1, dtype=np.int64))
    equal = name_mates(first, second, step, with_suffixes, names)
    size = names.offsets[-1] if equal == pairs else 0
    return PairNames(Spans(names.content[:size], names.offsets), equal)


@inline
def common_stem(first: Spans, second: Spans, read: int) -> int:
    """Return the bytes of the name of two mates without ``/1`` and ``/2``; -1 if they differ."""
    one, other = first.offsets[read], second.offsets[read]
    size, other_size = first.offsets[read + 1] - one, second.offsets[read + 1] - other
    if size >= 2 and first.content[one + size - 2] == _SLASH:
        size -= 2 if first.content[one + size - 1] == _ONE else 0
    if other_size >= 2 and second.content[other + other_size - 2] == _SLASH:
        other_size -= 2 if second.content[other + other_size - 1] == _TWO else 0
    is_same = size == other_size and are_equal(first, one, second, other, size)
    return as_int64(size if is_same else -1)


@inline
def are_equal(first: Spans, one: int, second: Spans, other: int, size: int) -> bool:
    """Return whether two texts are equal."""
    for place in range(size):
        if first.content[as_index(one + place)] != second.content[as_index(other + place)]:
            return False
    return True


@inline
def stem_before_end(first: Spans, second: Spans, read: int) -> int:
    """Return the bytes of two names before ends such as .1 and .2, or _R1 and _R3.

    They are -1 if the names differ otherwise, or are nothing but such an end.
    """
    one, other = first.offsets[read], second.offsets[read]
    last = first.offsets[read + 1] - one - 1
    if last < 2 or second.offsets[read + 1] - other - 1 != last:
        return as_int64(-1)
    number = second.content[other + last]
    if first.content[one + last] != _ONE or (number != _TWO and number != _THREE):
        return as_int64(-1)
    letter = first.content[one + last - 1]
    stem = last - 2 if letter == _LARGE_R or letter == _SMALL_R else last - 1
    is_end = False
    for mark in _MARKS:
        is_end |= first.content[one + stem] == mark
    is_end = is_end and stem > 0 and are_equal(first, one, second, other, last)
    return as_int64(stem if is_end else -1)


@jit
def name_mates(first: Spans, second: Spans, step: int, with_suffixes: bool, names: Spans) -> int:
    """Write the names of first and second mates in turn; return the first pair that differs.

    The result is the number of pairs if no names differ. See `names_of_pairs`; `names` has room for
    the names before, and with suffixes for `SUFFIX_BYTES` more of each.
    """
    end = 0
    names.offsets[0] = 0
    suffix = SUFFIX_BYTES if with_suffixes else 0
    pairs = (names.offsets.size - 1) // 2
    for pair in range(pairs):
        stem = common_stem(first, second, pair * step)
        if stem < 0 and step == 1:
            stem = stem_before_end(first, second, pair)
        if stem < 0:
            return pair
        one = first.offsets[pair * step]
        copy_bytes(first.content, one, names.content, end, stem)
        copy_bytes(first.content, one, names.content, end + stem + suffix, stem)
        for mate in range(2):
            end += stem
            if with_suffixes:
                names.content[end] = _SLASH
                names.content[end + 1] = _ONE + mate
                end += 2
            names.offsets[2 * pair + mate + 1] = end
    return pairs


@jit
def mark_second_mates(names: Spans, may_be: BoolArray, marks: BoolArray) -> int:
    """Mark each read that has the name of the one before, which is no second mate; count them.

    `may_be` is true for those whose flags allow it.
    """
    count = 0
    for read in range(1, marks.size):
        begin, end = names.offsets[read], names.offsets[read + 1]
        before = names.offsets[read - 1]
        is_mate = may_be[read] and not marks[read - 1] and end - begin == begin - before
        is_mate = is_mate and are_equal(names, before, names, begin, end - begin)
        marks[read] = is_mate
        count += is_mate
    return count


@jit
def cut_suffixes(names: Spans) -> int:
    """Remove the ``/1`` or ``/2`` at the ends of names, in place; return the bytes of all names."""
    end = 0
    begin = names.offsets[0]
    for number in range(names.offsets.size - 1):
        behind = names.offsets[number + 1]
        length = behind - begin
        if length >= 2 and names.content[behind - 2] == _SLASH:
            if names.content[behind - 1] == _ONE or names.content[behind - 1] == _TWO:
                length -= 2
        # Until the first name is cut, all of them are where they belong.
        if end != begin:
            for place in range(length):
                names.content[end + place] = names.content[begin + place]
        begin = behind
        end += length
        names.offsets[number + 1] = end
    return end


@jit
def interleave(first: Spans, second: Spans, mixed: Spans, begin: int) -> None:
    """Write what belongs to first and second mates in turn.

    Parameters
    ----------
    mixed : Spans
        Output: the content from `begin` on, and its offsets, counted from there.
    """
    end = 0
    mixed.offsets[0] = 0
    for pair in range(first.offsets.size - 1):
        source = first.offsets[pair]
        size = first.offsets[pair + 1] - source
        copy_bytes(first.content, source, mixed.content, begin + end, size)
        end += size
        mixed.offsets[2 * pair + 1] = end
        source = second.offsets[pair]
        size = second.offsets[pair + 1] - source
        copy_bytes(second.content, source, mixed.content, begin + end, size)
        end += size
        mixed.offsets[2 * pair + 2] = end


def name_of(records: Records, number: int) -> str:
    """Return the name of a read as one line of printable characters, for a message."""
    name = records.names[records.name_offsets[number] : records.name_offsets[number + 1]]
    return printable(name.tobytes())


def not_mates(path: str, number: int, name: str, mate: str) -> InputError:
    """Return the error for a read whose name differs from that of its mate.

    `path` and `number`, counted from 0, are those of the second mate.
    """
    message = (
        f"not the mate of '{mate}': the names of mates are equal, but for ends such as /1 and /2"
    )
    return InputError(message, path, line_of_record(path, number), name)


def without_mate(path: str, number: int, name: str, other: str | None = None) -> InputError:
    """Return the error for read `number`, counted from 0, which comes after the last pair.

    `other` is the file of its mate, if mates do not alternate; it has as many reads as came before.
    """
    if other is None:
        message = "the last read has no mate"
    else:
        message = f"the read has no mate: '{other}' has {pluralize(number, 'read')}"
    return InputError(message, path, line_of_record(path, number), name)


def are_pairs(records: Records) -> bool:
    """Return whether a file has pairs, as the flag of its first record says, if it has flags."""
    return records.flags.size > 0 and bool(records.flags[0] & PAIRED)


def check_single(records: Records, path: str) -> None:
    """Raise an error if a read of a file whose first one is single has a mate."""
    paired = np.flatnonzero(records.flags & PAIRED)
    if paired.size:
        raise _mixed("a read of a pair among single reads", path, records, int(paired[0]))


def count_flagged_pairs(records: Records) -> int:
    """Return how many of the first pairs have the flags of one first and one last read."""
    one, other = records.flags[0::2], records.flags[1::2]
    kinds = (one & _BOTH, other & _BOTH)
    is_pair = (one & other & PAIRED > 0) & (kinds[0] ^ kinds[1] == _BOTH)
    # One of the two may have both flags, and the other none.
    is_pair &= (kinds[0] == FIRST) | (kinds[0] == LAST)
    wrong = np.flatnonzero(~is_pair)
    return int(wrong[0]) if wrong.size else one.size


def first_mates_first(records: Records) -> Records:
    """Return pairs in the order first mate, second mate, next pair, as their flags tell."""
    swapped = records.flags[0::2] & LAST > 0
    if not swapped.any():
        return records
    order = np.arange(records.flags.size)
    order[0::2] += swapped
    order[1::2] -= swapped
    return in_order(records, order)


def in_order(records: Records, order: Int64Array) -> Records:
    """Return some records in another order, without flags.

    The number behind that of the last record is a record without anything.
    """
    bases, offsets = _gather(records.offsets, order)
    letters, name_offsets = _gather(records.name_offsets, order)
    tags = records.tags
    if tags.are_kept:
        content, tag_offsets = _gather(tags.offsets, order)
        tags = Tags(tags.content[content], tag_offsets)
    padded = empty_with_margins(bases.size)
    padded[MARGIN:-MARGIN] = records.codes[bases]
    qualities = records.qualities[bases] if records.qualities.size else records.qualities
    names = records.names[letters]
    return Records(padded, offsets, names, name_offsets, qualities, tags=tags)


def mates_by_name(records: Records) -> tuple[Records, int, int]:
    """Return pairs, which are two reads of one name after the other, and single reads.

    A single read has a mate without bases and without a name, unless all reads are single. Flags,
    if there are any, tell which mate is the first.

    Returns
    -------
    Records, int, int
        The reads in the order of their templates; the number of pairs; and how many of the records
        these are: all, or all but the last one, whose mate may follow.
    """
    count = records.offsets.size - 1
    may_be, is_swapped = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    if records.flags.size:
        here, before = records.flags[1:], records.flags[:-1]
        is_paired = here & before & PAIRED > 0
        may_be[1:] = is_paired & ((here ^ before) & _BOTH == _BOTH)
        may_be[1:] |= (here | before) & PAIRED == 0
        is_swapped[1:] = is_paired & (here & FIRST > 0)
    marks = np.zeros(count, dtype=np.bool_)
    names = Spans(writable(records.names), writable(records.name_offsets))
    pairs = mark_second_mates(names, may_be, marks)
    used = count if marks[-1] else count - 1
    if pairs == 0:
        return records.part(0, used), 0, used
    first = np.flatnonzero(~marks[:used])
    order = np.full((first.size, 2), count, dtype=np.int64)
    order[:, 0] = first
    has_mate = np.append(marks[1:], False)[first]
    order[has_mate, 1] = first[has_mate] + 1
    swapped = has_mate.copy()
    swapped[has_mate] = is_swapped[first[has_mate] + 1]
    order[swapped] = order[swapped, ::-1]
    if 2 * pairs == used and not swapped.any():
        return records.part(0, used), pairs, used
    return in_order(records, order.reshape(-1)), pairs, used


def _gather(offsets: Int64Array, order: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the indices of the items of spans in another order, and the offsets of these.

    The span behind the last is an empty one.
    """
    offsets = np.append(offsets, offsets[-1])
    sizes = np.diff(offsets)[order]
    after = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
    return np.arange(after[-1]) + np.repeat(offsets[order] - after[:-1], sizes), after


def no_pair(records: Records, pair: int, path: str) -> InputError:
    """Return the error for two reads whose flags are not those of a pair."""
    flags = records.flags[2 * pair : 2 * pair + 2]
    for mate, flag in enumerate(flags.tolist()):
        if not flag & PAIRED:
            return _mixed("a single read among pairs", path, records, 2 * pair + mate)
    stems = {
        name_of(records, number).removesuffix("/1").removesuffix("/2")
        for number in (2 * pair, 2 * pair + 1)
    }
    if len(stems) > 1:
        return mates_are_apart(records, 2 * pair, path)
    message = "the flags of mates must tell which one is the first and which the second"
    return InputError(message, path, record=name_of(records, 2 * pair))


def mates_are_apart(records: Records, number: int, path: str) -> InputError:
    """Return the error for a read that does not follow its mate."""
    message = "mates must follow each other (see samtools collate)"
    return InputError(message, path, record=name_of(records, number))


def _mixed(message: str, path: str, records: Records, number: int) -> InputError:
    advice = "-p maps both"
    return InputError(f"{message} ({advice})", path, record=name_of(records, number))
