"""Which reads are mates: their names, which are equal but for /1 and /2, and their flags."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.input.records.record_arrays import Records, Spans
from mummergpu.input.records.record_lines import line_of_record
from mummergpu.input.records.record_reader import printable
from mummergpu.input.records.tags import Tags
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, jit_without_refcounts
from mummergpu.runtime.words import counted
from mummergpu.sequence.codes import MARGIN, empty_with_margins

PAIRED: Final = 0x1
FIRST: Final = 0x40
LAST: Final = 0x80
_BOTH: Final = FIRST | LAST

SUFFIX_BYTES: Final = 2
"""The bytes of ``/1`` and ``/2``."""

_SLASH, _ONE, _TWO = b"/12"


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
        How many reads there are from one pair to the next: 2 if the mates alternate.
    with_suffixes : bool
        Whether the names end in ``/1`` and ``/2``.
    """
    # Names may be equal although one of them lacks its suffix.
    room = pairs * 2 * SUFFIX_BYTES + first.content.size + second.content.size
    names = Spans(np.empty(room, dtype=np.uint8), np.empty(2 * pairs + 1, dtype=np.int64))
    equal = name_mates(first, second, step, with_suffixes, names)
    size = names.offsets[-1] if equal == pairs else 0
    return PairNames(Spans(names.content[:size], names.offsets), equal)


@jit_without_refcounts
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
        one = first.offsets[pair * step]
        one_length = first.offsets[pair * step + 1] - one
        other = second.offsets[pair * step]
        other_length = second.offsets[pair * step + 1] - other
        if one_length >= 2 and first.content[one + one_length - 2] == _SLASH:
            if first.content[one + one_length - 1] == _ONE:
                one_length -= 2
        if other_length >= 2 and second.content[other + other_length - 2] == _SLASH:
            if second.content[other + other_length - 1] == _TWO:
                other_length -= 2
        if one_length != other_length:
            return pair
        # Both names are written while they are compared; a difference leaves rubbish behind.
        for place in range(one_length):
            letter = first.content[as_index(one + place)]
            if letter != second.content[as_index(other + place)]:
                return pair
            names.content[as_index(end + place)] = letter
            names.content[as_index(end + one_length + suffix + place)] = letter
        for mate in range(2):
            end += one_length
            if with_suffixes:
                names.content[end] = _SLASH
                names.content[end + 1] = _ONE + mate
                end += 2
            names.offsets[2 * pair + mate + 1] = end
    return pairs


@jit_without_refcounts
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


@jit_without_refcounts
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
    message = f"not the mate of '{mate}': the names of mates are equal, but for /1 and /2"
    return InputError(message, path, line_of_record(path, number), name)


def without_mate(path: str, number: int, name: str, other: str | None = None) -> InputError:
    """Return the error for read `number`, counted from 0, which comes after the last pair.

    `other` is the file of its mate, if mates do not alternate; it has as many reads as came before.
    """
    if other is None:
        message = "the last read has no mate"
    else:
        message = f"the read has no mate: '{other}' has {counted(number, 'read')}"
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
    bases, offsets = _gather(records.offsets, order)
    letters, name_offsets = _gather(records.name_offsets, order)
    tags = records.tags
    if tags.are_kept:
        content, tag_offsets = _gather(tags.offsets, order)
        tags = Tags(tags.content[content], tag_offsets)
    padded = empty_with_margins(bases.size)
    padded[MARGIN:-MARGIN] = records.codes[bases]
    return Records(
        padded,
        offsets,
        records.names[letters],
        name_offsets,
        records.qualities[bases],
        records.flags[order],
        tags,
    )


def _gather(offsets: Int64Array, order: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the indices of the items of spans in another order, and the offsets of these."""
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
    advice = "to part them: samtools view -f 1, and -F 1"
    return InputError(f"{message} ({advice})", path, record=name_of(records, number))
