"""Makes single reads and pairs out of the records of one file or of two."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.mates import (
    are_pairs,
    check_single,
    count_flagged_pairs,
    cut_suffixes,
    first_mates_first,
    interleave,
    mates_are_apart,
    mates_by_name,
    name_of,
    names_of_pairs,
    no_pair,
    not_mates,
    without_mate,
)
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_arrays import Limits, Records, Spans
from mummergpu.input.records.tags import NO_TAGS, Tags, join_tags
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import writable
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.sequence.codes import MARGIN, empty_with_margins

BLOCKS_JOINED: Final = 3
"""The most blocks of pairs of two files that are put together at a time."""


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
        Whether mates alternate. Flags, which SAM, BAM and CRAM have, can tell it too.
    ignores_flags : bool
        Whether flags tell nothing.
    with_suffixes : bool
        Whether the names of mates end in ``/1`` and ``/2``, and those of single reads stay as they
        are; otherwise no name has such an end.
    by_name : bool
        Whether there may be single reads among those that alternate: only those of one name are
        mates (`mates.mates_by_name`).

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
    has_flags = not ignores_flags and are_pairs(first)
    if has_flags or interleaved:
        for pairs in _alternating_mates(path, blocks, has_flags, with_suffixes):
            yield pairs, True
        return
    for records in blocks:
        if not ignores_flags:
            check_single(records, path)
        if not with_suffixes:
            end = cut_suffixes(Spans(records.names, records.name_offsets))
            records = records._replace(names=records.names[:end])
        yield records, False


def pairs_in_memory(records: Records, place: str) -> Records:
    """Return queries in which mates alternate, with ``/1`` and ``/2`` at the ends of their names.

    Raises
    ------
    InputError
        If the names of two mates differ, or a read has no mate; it names `place` as the file.
    """
    count = records.offsets.size - 1
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
        records = read if rest is None else _joined(rest, read)
        reads = records.offsets.size - 1
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

    Flags, rather than the order, tell which mate is the first if there are any. The mate of the
    last read of a block may be in the next.
    """
    pairs = 0
    rest: Records | None = None
    for read in blocks:
        records = read if rest is None else _joined(rest, read)
        reads = records.offsets.size - 1
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
    """Return records as pairs, after a look at their names and flags."""
    pairs = flagged = (records.offsets.size - 1) // 2
    ordered = records
    if has_flags:
        flagged = count_flagged_pairs(records)
        if flagged == 0:
            raise no_pair(records, 0, path)
        ordered = first_mates_first(records.part(0, 2 * flagged))
    first, second = (_names_of(reads) for reads in (ordered, ordered.part(1, 2 * flagged)))
    named = names_of_pairs(first, second, 2, flagged, with_suffixes)
    if named.equal < flagged:
        number = 2 * named.equal + 1
        if has_flags:
            raise mates_are_apart(records, number - 1, path)
        mate, name = name_of(records, number - 1), name_of(records, number)
        raise not_mates(path, 2 * pairs_before + number, name, mate)
    if flagged < pairs:
        raise no_pair(records, flagged, path)
    return ordered._replace(names=named.names.content, name_offsets=named.names.offsets)


def _names_of(records: Records) -> Spans:
    return _spans(records.names, records.name_offsets)


def _joined(first: Records, second: Records) -> Records:
    padded = empty_with_margins(first.codes.size + second.codes.size)
    np.concatenate((first.codes, second.codes), out=padded[MARGIN:-MARGIN])
    return Records(
        padded,
        np.concatenate((first.offsets, second.offsets[1:] + first.offsets[-1])),
        np.concatenate((first.names, second.names)),
        np.concatenate((first.name_offsets, second.name_offsets[1:] + first.names.size)),
        np.concatenate((first.qualities, second.qualities)),
        np.concatenate((first.flags, second.flags)),
        join_tags([(one.tags, one.offsets.size - 1) for one in (first, second)]),
    )


class _Run(NamedTuple):
    """Consecutive pairs of a block: the records of both mates, equally many."""

    first: Records
    second: Records

    @property
    def pairs(self) -> int:
        return self.first.offsets.size - 1


class _RunsOfBlock(NamedTuple):
    """The pairs of a block in runs, and how many pairs come before them."""

    runs: list[_Run]
    pairs_before: int


def mates_of_two(
    paths: Sequence[str],
    files: Sequence[Iterator[Records]],
    limits: Limits,
    with_suffixes: bool,
    threads: ReadingThreads | None = None,
) -> Generator[tuple[Records, bool]]:
    """Yield the pairs of two files: first mates and second mates, in blocks of any size.

    The pair that reaches one of the limits ends its block, so blocks depend on nothing but the
    reads; each is in arrays of its own. Threads may put some blocks together at the same time.

    Raises
    ------
    InputError
        If the names of two mates differ, or a read has no mate.
    """

    def joined(block: _RunsOfBlock | InputError) -> tuple[Records, bool]:
        if isinstance(block, InputError):
            raise block
        return _joined_runs(*block, paths, with_suffixes), True

    blocks = _blocks_of_runs(paths, files, limits)
    if threads is None or not threads.has_many:
        yield from map(joined, blocks)
    else:
        # An error in the files comes after those of the pairs before it.
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
    """Yield the pairs of each block in the arrays in which they were read."""
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
        runs.append(_Run(first.part(0, count), second.part(0, count)))
        space -= sizes[:, count - 1]
        if is_full:
            yield _RunsOfBlock(runs, pairs)
            pairs += sum(run.pairs for run in runs)
            runs = []
            space = np.array(limits, dtype=np.int64)
        for number, records in enumerate((first, second)):
            reads = records.offsets.size - 1
            waiting[number] = records.part(count, reads) if count < reads else None
    if runs:
        yield _RunsOfBlock(runs, pairs)
        pairs += sum(run.pairs for run in runs)
    for number, rest in enumerate(waiting):
        if rest is not None:
            raise without_mate(paths[number], pairs, name_of(rest, 0), paths[1 - number])


def _sizes_of_pairs(first: Records, second: Records) -> Int64Array:
    """Return the bases, the reads and the bytes of names of the first pairs, for each number."""
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
    """Return runs of pairs as records, after a look at their names."""
    pairs = sum(run.pairs for run in runs)
    bases = sum(run.first.codes.size + run.second.codes.size for run in runs)
    keeps_qualities = any(run.first.qualities.size or run.second.qualities.size for run in runs)
    padded = empty_with_margins(bases)
    qualities = np.empty(bases if keeps_qualities else 0, dtype=np.uint8)
    offsets = np.empty(2 * pairs + 1, dtype=np.int64)
    name_offsets = np.zeros(2 * pairs + 1, dtype=np.int64)
    names: list[ByteArray] = []
    tags: list[tuple[Tags, int]] = []
    done = end = name_end = 0
    for run in runs:
        one, other = run
        named = names_of_pairs(_names_of(one), _names_of(other), 1, run.pairs, with_suffixes)
        if named.equal < run.pairs:
            name, mate = name_of(other, named.equal), name_of(one, named.equal)
            raise not_mates(paths[1], pairs_before + done // 2 + named.equal, name, mate)
        names.append(named.names.content)
        reads = slice(done, done + 2 * run.pairs + 1)
        name_offsets[reads] = named.names.offsets + name_end
        own = offsets[reads]
        for first, second, mixed, begin in (
            (one.codes, other.codes, padded, MARGIN + end),
            (one.qualities, other.qualities, qualities, end),
        ):
            if mixed is padded or keeps_qualities:
                spans = _spans(first, one.offsets), _spans(second, other.offsets)
                interleave(*spans, Spans(mixed, own), begin)
        tags.append((_tags_of_pairs(run), 2 * run.pairs))
        offsets[reads] += end
        done += 2 * run.pairs
        end, name_end = int(offsets[done]), int(name_offsets[done])
    return Records(
        padded,
        offsets,
        np.concatenate(names),
        name_offsets,
        qualities,
        tags=join_tags(tags),
    )


def _tags_of_pairs(run: _Run) -> Tags:
    """Return the tags of first and second mates in turn."""
    if not (run.first.tags.are_kept or run.second.tags.are_kept):
        return NO_TAGS
    first, second = run.first.tags.of_reads(run.pairs), run.second.tags.of_reads(run.pairs)
    content = np.empty(first.content.size + second.content.size, dtype=np.uint8)
    mixed = Spans(content, np.empty(2 * run.pairs + 1, dtype=np.int64))
    interleave(_spans(*first), _spans(*second), mixed, 0)
    return Tags(*mixed)


def _spans(content: ByteArray, offsets: Int64Array) -> Spans:
    return Spans(writable(content), writable(offsets))
