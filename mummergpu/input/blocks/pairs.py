"""Makes single reads and pairs from the records of one file or of two.

The names of mates are equal except for endings such as /1; flags distinguish the first mate from
the second.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.input.records.record_arrays import (
    NO_SPANS,
    Limits,
    Records,
    Spans,
    in_order,
    join_records,
    join_spans,
    join_tags,
)
from mummergpu.input.records.record_reader import line_of_record, name_of
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, writable
from mummergpu.runtime.ordered_map import ordered_results
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


def names_of_pairs(
    first: Spans, second: Spans, step: int, pairs: int, with_suffixes: bool
) -> tuple[Spans, int]:
    """Return the names of first and second mates in turn, and the first pair whose names differ.

    The names are undefined if the second value is less than `pairs`. The step from one pair to the
    next is `step` reads, 2 if mates alternate. Otherwise the position pairs mates, too, and names
    may have other endings (`stem_before_end`).
    """
    # The stems may be equal although only one name has a suffix.
    room = pairs * 2 * SUFFIX_BYTES + first.content.size + second.content.size
    names = Spans(np.empty(room, dtype=np.uint8), np.empty(2 * pairs + 1, dtype=np.int64))
    equal = name_mates(first, second, step, with_suffixes, names)
    size = names.offsets[-1] if equal == pairs else 0
    return Spans(names.content[:size], names.offsets), equal


@inline
def common_stem(first: Spans, second: Spans, read: int) -> int:
    """Return the length of the names of two mates without ``/1`` and ``/2``; -1 if they differ."""
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
    """Return the length of two names before endings such as .1 and .2, or _R1 and _R3.

    It is -1 if the names differ otherwise, or consist only of such an ending.
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
    the original names, and with suffixes for `SUFFIX_BYTES` more bytes each.
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
    """Mark each read with the name of the read before, unless that is a second mate; count them.

    `may_be` is true for reads whose flags allow it.
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
        # Until the first name is cut, all names stay in their places.
        if end != begin:
            for place in range(length):
                names.content[end + place] = names.content[begin + place]
        begin = behind
        end += length
        names.offsets[number + 1] = end
    return end


@jit
def interleave(first: Spans, second: Spans, mixed: Spans, begin: int) -> None:
    """Write the items of first and second mates in turn, from `begin` on.

    The offsets of the result count from there.
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

    `other` is the file of its mate, if mates do not alternate; it has `number` reads.
    """
    if other is None:
        message = "the last read has no mate"
    else:
        message = f"the read has no mate: '{other}' has {pluralize(number, 'read')}"
    return InputError(message, path, line_of_record(path, number), name)


def count_flagged_pairs(records: Records) -> int:
    """Return how many of the first pairs have the flags of one first and one last read."""
    one, other = records.flags[0::2], records.flags[1::2]
    kinds = (one & _BOTH, other & _BOTH)
    is_pair = (one & other & PAIRED > 0) & (kinds[0] ^ kinds[1] == _BOTH)
    # One of the two may have both flags, and the other one neither.
    is_pair &= (kinds[0] == FIRST) | (kinds[0] == LAST)
    wrong = np.flatnonzero(~is_pair)
    return int(wrong[0]) if wrong.size else one.size


def first_mates_first(records: Records) -> Records:
    """Return pairs in the order first mate, second mate, next pair, by their flags."""
    swapped = records.flags[0::2] & LAST > 0
    if not swapped.any():
        return records
    order = np.arange(records.flags.size)
    order[0::2] += swapped
    order[1::2] -= swapped
    return in_order(records, order)


def mates_by_name(records: Records) -> tuple[Records, int, int]:
    """Return pairs, which are two consecutive reads of one name, and single reads.

    A single read gets a mate without bases and without a name, unless all reads are single. Flags,
    if any, decide which mate is the first. The other values are the number of pairs, and the number
    of records used: all, or all but the last one, whose mate may follow.
    """
    count = records.count
    may_be, is_swapped = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    if records.flags.size:
        here, before = records.flags[1:], records.flags[:-1]
        is_paired = here & before & PAIRED > 0
        may_be[1:] = is_paired & ((here ^ before) & _BOTH == _BOTH)
        may_be[1:] |= (here | before) & PAIRED == 0
        is_swapped[1:] = is_paired & (here & FIRST > 0)
    marks = np.zeros(count, dtype=np.bool_)
    pairs = mark_second_mates(records.name_spans, may_be, marks)
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
    return InputError(f"{message} (-p maps both)", path, record=name_of(records, number))


BLOCKS_JOINED: Final = 3
"""The most blocks of pairs of two files that are assembled at a time."""


def reads_of_file(
    path: str,
    blocks: Iterator[Records],
    interleaved: bool,
    ignores_flags: bool,
    with_suffixes: bool,
    by_name: bool = False,
) -> Generator[tuple[Records, bool]]:
    """Yield the reads of one file, a block for each block of records, and whether they are pairs.

    Parameters
    ----------
    interleaved : bool
        Whether mates alternate. The flags of SAM, BAM and CRAM can say so, too, unless they are
        ignored.
    with_suffixes : bool
        Whether the names of mates get ``/1`` and ``/2``, and those of single reads stay unchanged;
        otherwise all names lose such endings.
    by_name : bool
        Whether there may be single reads among those that alternate: only those of one name are
        mates (`mates_by_name`).

    Raises
    ------
    InputError
        If the file has pairs and single reads, the names of two mates differ, or the last read has
        no mate.
    """
    first = next(blocks, None)
    if first is None:
        return
    blocks = chain((first,), blocks)
    if by_name:
        yield from _mates_by_name(blocks, ignores_flags)
        return
    # If records have flags, that of the first one decides.
    has_flags = not ignores_flags and first.flags.size > 0 and bool(first.flags[0] & PAIRED)
    if has_flags or interleaved:
        for pairs in _alternating_mates(path, blocks, has_flags, with_suffixes):
            yield pairs, True
        return
    for records in blocks:
        if not ignores_flags:
            paired = np.flatnonzero(records.flags & PAIRED)
            if paired.size:
                raise _mixed("a read of a pair among single reads", path, records, int(paired[0]))
        if not with_suffixes:
            end = cut_suffixes(Spans(records.names, records.name_offsets))
            records = records._replace(names=records.names[:end])
        yield records, False


def pairs_in_memory(records: Records, place: str) -> Records:
    """Return queries with alternating mates, whose names end in ``/1`` and ``/2``.

    Errors name `place` as the file.
    """
    count = records.count
    if count % 2:
        raise without_mate(place, count - 1, name_of(records, count - 1))
    return _pairs_of(records, place, 0, False, True)


def _mates_by_name(
    blocks: Iterable[Records], ignores_flags: bool
) -> Generator[tuple[Records, bool]]:
    """Yield the reads of a file, and whether some are pairs: the others have empty mates then."""
    rest: Records | None = None
    for read in blocks:
        end = cut_suffixes(Spans(read.names, read.name_offsets))
        flags = read.flags[:0] if ignores_flags else read.flags
        read = read._replace(names=read.names[:end], flags=flags)
        records = read if rest is None else join_records((rest, read))
        reads = records.count
        ordered, pairs, used = mates_by_name(records)
        rest = records.part(used, reads) if used < reads else None
        if used:
            yield ordered, pairs > 0
    if rest is not None:
        yield rest, False


def _alternating_mates(
    path: str, blocks: Iterable[Records], has_flags: bool, with_suffixes: bool
) -> Generator[Records]:
    """Yield the pairs of a file in which mates follow each other.

    Flags, if any, decide which mate is the first, and otherwise the order does. The mate of the
    last read of a block may be in the next one.
    """
    pairs = 0
    rest: Records | None = None
    for read in blocks:
        records = read if rest is None else join_records((rest, read))
        reads = records.count
        count = reads - reads % 2
        rest = records.part(count, reads) if count < reads else None
        if count == 0:
            continue
        records = records.part(0, count) if count < reads else records
        yield _pairs_of(records, path, pairs, has_flags, with_suffixes)
        pairs += count // 2
    if rest is not None:
        raise without_mate(path, 2 * pairs, name_of(rest, 0))


def _pairs_of(
    records: Records, path: str, pairs_before: int, has_flags: bool, with_suffixes: bool
) -> Records:
    """Return records as pairs, after a check of their names and flags."""
    pairs = flagged = records.count // 2
    ordered = records
    if has_flags:
        flagged = count_flagged_pairs(records)
        if flagged == 0:
            raise no_pair(records, 0, path)
        ordered = first_mates_first(records.part(0, 2 * flagged))
    second = ordered.part(1, 2 * flagged).name_spans
    names, equal = names_of_pairs(ordered.name_spans, second, 2, flagged, with_suffixes)
    if equal < flagged:
        number = 2 * equal + 1
        if has_flags:
            raise mates_are_apart(records, number - 1, path)
        mate, name = name_of(records, number - 1), name_of(records, number)
        raise not_mates(path, 2 * pairs_before + number, name, mate)
    if flagged < pairs:
        raise no_pair(records, flagged, path)
    return ordered._replace(names=names.content, name_offsets=names.offsets)


_Run = tuple[Records, Records]
"""Consecutive pairs of a block: the records of both mates, equally many."""

_RunsOfBlock = tuple[list[_Run], int]
"""The pairs of a block in runs, and how many pairs come before them."""


def mates_of_two(
    paths: Sequence[str],
    files: Sequence[Iterator[Records]],
    limits: Limits,
    with_suffixes: bool,
    threads: ReadingThreads | None = None,
) -> Generator[tuple[Records, bool]]:
    """Yield the pairs of two files: first mates and second mates, in blocks of any size.

    The pair that reaches one of the limits ends its block, so blocks depend only on the reads; each
    has its own arrays. Threads may assemble several blocks at the same time.
    Raise `InputError` if the names of two mates differ, or a read has no mate.
    """

    def joined(block: _RunsOfBlock | InputError) -> tuple[Records, bool]:
        if isinstance(block, InputError):
            raise block
        return _joined_runs(*block, paths, with_suffixes), True

    blocks = _blocks_of_runs(paths, files, limits)
    if threads is None or not threads.has_many:
        yield from map(joined, blocks)
    else:
        # An error in the files is reported after errors in earlier pairs.
        yield from ordered_results(threads.executor, BLOCKS_JOINED, _or_error(blocks), joined)


def _or_error(blocks: Iterator[_RunsOfBlock]) -> Generator[_RunsOfBlock | InputError]:
    """Yield blocks, and the error that ends them."""
    try:
        yield from blocks
    except InputError as error:
        yield error


def _blocks_of_runs(
    paths: Sequence[str], files: Sequence[Iterator[Records]], limits: Limits
) -> Generator[_RunsOfBlock]:
    """Yield the pairs of each block, still in the arrays into which they were read."""
    pairs = 0
    runs: list[_Run] = []
    waiting: list[Records | None] = [None, None]
    space = np.array(limits, dtype=np.int64)
    while True:
        for number, file in enumerate(files):
            if waiting[number] is None:
                waiting[number] = next(file, None)
        first, second = waiting
        if first is None or second is None:
            break
        sizes = _sizes_of_pairs(first, second)
        count, is_full = _fitting(sizes, space)
        runs.append((first.part(0, count), second.part(0, count)))
        space -= sizes[:, count - 1]
        if is_full:
            yield runs, pairs
            pairs += sum(run.count for run, _ in runs)
            runs = []
            space = np.array(limits, dtype=np.int64)
        for number, records in enumerate((first, second)):
            reads = records.count
            waiting[number] = records.part(count, reads) if count < reads else None
    if runs:
        yield runs, pairs
        pairs += sum(run.count for run, _ in runs)
    for number, rest in enumerate(waiting):
        if rest is not None:
            raise without_mate(paths[number], pairs, name_of(rest, 0), paths[1 - number])


def _sizes_of_pairs(first: Records, second: Records) -> Int64Array:
    """Return the bases, reads and name bytes of the first N pairs, for each N."""
    pairs = min(first.offsets.size, second.offsets.size) - 1
    bases = first.offsets[1 : pairs + 1] + second.offsets[1 : pairs + 1]
    name_bytes = first.name_offsets[1 : pairs + 1] + second.name_offsets[1 : pairs + 1]
    return np.stack((bases, 2 * np.arange(1, pairs + 1), name_bytes))


def _fitting(sizes: Int64Array, space: Int64Array) -> tuple[int, bool]:
    """Return how many pairs belong to the block, and whether they fill it."""
    most = sizes.shape[1]
    reaches = (np.searchsorted(size, left) for size, left in zip(sizes, space, strict=True))
    count = min(map(int, reaches)) + 1
    return min(count, most), count <= most


def _joined_runs(
    runs: Sequence[_Run], pairs_before: int, paths: Sequence[str], with_suffixes: bool
) -> Records:
    """Return runs of pairs as records, after a check of their names."""
    reads = 2 * sum(first.count for first, _ in runs)
    bases = sum(records.codes.size for run in runs for records in run)
    keeps_qualities = any(records.qualities.size for run in runs for records in run)
    padded = empty_with_margins(bases)
    qualities = np.empty(bases if keeps_qualities else 0, dtype=np.uint8)
    offsets = np.empty(reads + 1, dtype=np.int64)
    names: list[Spans] = []
    tags: list[tuple[Spans, int]] = []
    done = end = 0
    for first, second in runs:
        pairs = first.count
        spans = first.name_spans, second.name_spans
        named, equal = names_of_pairs(*spans, 1, pairs, with_suffixes)
        if equal < pairs:
            number = pairs_before + done // 2 + equal
            raise not_mates(paths[1], number, name_of(second, equal), name_of(first, equal))
        names.append(named)
        own = offsets[done : done + 2 * pairs + 1]
        spans = _spans(first.codes, first.offsets), _spans(second.codes, second.offsets)
        interleave(*spans, Spans(padded, own), MARGIN + end)
        if keeps_qualities:
            spans = _spans(first.qualities, first.offsets), _spans(second.qualities, second.offsets)
            interleave(*spans, Spans(qualities, own), end)
        tags.append((_tags_of_pairs(first.tags, second.tags, pairs), 2 * pairs))
        own += end
        done += 2 * pairs
        end = int(offsets[done])
    return Records(padded, offsets, *join_spans(names), qualities, tags=join_tags(tags))


def _tags_of_pairs(first: Spans, second: Spans, pairs: int) -> Spans:
    """Return the tags of first and second mates in turn."""
    if not (first.are_kept or second.are_kept):
        return NO_SPANS
    first, second = first.of_reads(pairs), second.of_reads(pairs)
    content = np.empty(first.content.size + second.content.size, dtype=np.uint8)
    mixed = Spans(content, np.empty(2 * pairs + 1, dtype=np.int64))
    interleave(_spans(*first), _spans(*second), mixed, 0)
    return mixed


def _spans(content: ByteArray, offsets: Int64Array) -> Spans:
    return Spans(writable(content), writable(offsets))
