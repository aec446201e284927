"""Makes blocks of single reads and of pairs out of the records of one file or of two."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.mate_flags import (
    are_pairs,
    check_single,
    count_flagged_pairs,
    first_mates_first,
    mates_are_apart,
    no_pair,
)
from mummergpu.input.blocks.mate_names import name_of, names_of_pairs, not_mates, without_mate
from mummergpu.input.blocks.mates import cut_suffixes, interleave
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.records.record_arrays import Limits, Records
from mummergpu.input.records.tags import NO_TAGS, Tags, join_tags
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import BREAK, MARGIN

_MARGIN: Final = np.full(MARGIN, BREAK, dtype=np.uint8)


def reads_of_file(
    path: str, blocks: Iterator[Records], interleaved: bool, ignores_flags: bool
) -> Generator[ReadBlock]:
    """Yield the reads of one file: single ones, or pairs.

    Parameters
    ----------
    path : str
        The file, for errors.
    blocks : iterator over Records
        Its records, with qualities.
    interleaved : bool
        Whether mates alternate. Flags, which SAM, BAM and CRAM have, can tell it too.
    ignores_flags : bool
        Whether flags tell nothing.

    Yields
    ------
    ReadBlock
        A block for each block of records, in its arrays.

    Raises
    ------
    InputError
        If the file has pairs and single reads, the names of two mates differ, or the last read has
        no mate.
    """
    first = next(blocks, None)
    if first is None:
        return
    has_flags = not ignores_flags and are_pairs(first)
    if has_flags or interleaved:
        yield from _alternating_mates(path, chain((first,), blocks), has_flags)
        return
    for records in chain((first,), blocks):
        if not ignores_flags:
            check_single(records, path)
        end = cut_suffixes(records.names, records.name_offsets)
        yield ReadBlock.of_records(records._replace(names=records.names[:end]), paired=False)


def _alternating_mates(
    path: str, blocks: Iterable[Records], has_flags: bool
) -> Generator[ReadBlock]:
    """Yield the pairs of a file in which mates follow each other.

    Parameters
    ----------
    path : str
        The file, for errors.
    blocks : iterable of Records
        Its records, with qualities.
    has_flags : bool
        Whether flags, rather than the order, tell which mate is the first.

    Yields
    ------
    ReadBlock
        A block of pairs for each block of records; the mate of the last read may be in the next.

    Raises
    ------
    InputError
        If the names of two mates differ, or the last read has no mate.
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
        yield _pairs_of(records, path, pairs, has_flags)
        pairs += count // 2
    if rest is not None:
        raise without_mate(path, 2 * pairs, name_of(rest, 0))


def _pairs_of(records: Records, path: str, pairs_before: int, has_flags: bool) -> ReadBlock:
    """Return records as pairs, after a look at their names and flags."""
    pairs = flagged = (records.offsets.size - 1) // 2
    if has_flags:
        flagged = count_flagged_pairs(records)
        if flagged == 0:
            raise no_pair(records, 0, path)
        ordered = first_mates_first(records.part(0, 2 * flagged))
    else:
        ordered = records
    named = names_of_pairs(ordered, ordered.part(1, 2 * flagged), 2, flagged, False)
    if named.equal < flagged:
        number = 2 * named.equal + 1
        if has_flags:
            raise mates_are_apart(records, number - 1, path)
        mate, name = name_of(records, number - 1), name_of(records, number)
        raise not_mates(path, 2 * pairs_before + number, name, mate)
    if flagged < pairs:
        raise no_pair(records, flagged, path)
    ordered = ordered._replace(names=named.names, name_offsets=named.offsets)
    return ReadBlock.of_records(ordered, paired=True)


def _joined(first: Records, second: Records) -> Records:
    padded = np.concatenate((_MARGIN, first.codes, second.codes, _MARGIN))
    return Records(
        padded[MARGIN:-MARGIN],
        np.concatenate((first.offsets, second.offsets[1:] + first.offsets[-1])),
        np.concatenate((first.names, second.names)),
        np.concatenate((first.name_offsets, second.name_offsets[1:] + first.names.size)),
        padded,
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


def mates_of_two(
    paths: Sequence[str], files: Sequence[Iterator[Records]], limits: Limits
) -> Generator[ReadBlock]:
    """Yield the pairs of two files.

    Parameters
    ----------
    paths : sequence of str
        The file of the first mates and that of the second ones, for errors.
    files : sequence of iterator over Records
        Their records, with qualities, in blocks of any size.
    limits : Limits
        The pair that reaches one of the limits ends its block, so blocks depend on nothing but the
        reads.

    Yields
    ------
    ReadBlock
        A block of pairs, in arrays of its own.

    Raises
    ------
    InputError
        If the names of two mates differ, or a read has no mate.
    """
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
            yield _block_of(runs, paths, pairs)
            pairs += sum(run.pairs for run in runs)
            runs.clear()
            space = np.array(limits, dtype=np.int64)
        for number, records in enumerate((first, second)):
            reads = records.offsets.size - 1
            waiting[number] = records.part(count, reads) if count < reads else None
    if runs:
        yield _block_of(runs, paths, pairs)
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


def _block_of(runs: Sequence[_Run], paths: Sequence[str], pairs_before: int) -> ReadBlock:
    """Return runs of pairs as one block, after a look at their names."""
    pairs = sum(run.pairs for run in runs)
    bases = sum(run.first.codes.size + run.second.codes.size for run in runs)
    padded = np.empty(bases + 2 * MARGIN, dtype=np.uint8)
    padded[:MARGIN] = padded[MARGIN + bases :] = BREAK
    qualities = np.empty(bases, dtype=np.uint8)
    offsets = np.empty(2 * pairs + 1, dtype=np.int64)
    name_offsets = np.zeros(2 * pairs + 1, dtype=np.int64)
    names: list[ByteArray] = []
    tags: list[tuple[Tags, int]] = []
    done = end = name_end = 0
    for run in runs:
        named = names_of_pairs(run.first, run.second, 1, run.pairs, False)
        if named.equal < run.pairs:
            name, mate = name_of(run.second, named.equal), name_of(run.first, named.equal)
            raise not_mates(paths[1], pairs_before + done // 2 + named.equal, name, mate)
        names.append(named.names)
        reads = slice(done, done + 2 * run.pairs + 1)
        name_offsets[reads] = named.offsets + name_end
        one, other = run
        for first, second, to, begin in (
            (one.codes, other.codes, padded, MARGIN + end),
            (one.qualities, other.qualities, qualities, end),
        ):
            interleave(first, one.offsets, second, other.offsets, to, begin, offsets[reads])
        tags.append((_tags_of_pairs(run), 2 * run.pairs))
        offsets[reads] += end
        done += 2 * run.pairs
        end, name_end = int(offsets[done]), int(name_offsets[done])
    return ReadBlock(
        0,
        padded,
        offsets,
        np.concatenate(names),
        name_offsets,
        base_qualities=qualities,
        paired=True,
        tags=join_tags(tags),
    )


def _tags_of_pairs(run: _Run) -> Tags:
    """Return the tags of first and second mates in turn."""
    if not (run.first.tags.are_kept or run.second.tags.are_kept):
        return NO_TAGS
    first, second = run.first.tags.of_reads(run.pairs), run.second.tags.of_reads(run.pairs)
    content = np.empty(first.content.size + second.content.size, dtype=np.uint8)
    offsets = np.empty(2 * run.pairs + 1, dtype=np.int64)
    interleave(
        writable(first.content),
        writable(first.offsets),
        writable(second.content),
        writable(second.offsets),
        content,
        0,
        offsets,
    )
    return Tags(content, offsets)
