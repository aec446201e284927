"""Reads the two reads of a pair one after the other, from one file or from two."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack

import numpy as np

from mummergpu.input.blocks.mate_names import name_of, names_of_pairs, not_mates, without_mate
from mummergpu.input.blocks.mates import interleave
from mummergpu.input.blocks.queries import QueryBlock, QueryReader, QueryRules, bytes_of
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.runtime.closing import ClosedAtEnd
from mummergpu.sequence.codes import BREAK, MARGIN


class PairedQueryReader(ClosedAtEnd):
    """Reads pairs of reads in blocks, in the order first mate, second mate, next pair.

    It has the interface of `QueryReader`. The names of mates end in ``/1`` and ``/2``: what a file
    lacks of that is added.

    Parameters
    ----------
    paths : sequence of str
        One file in which mates alternate; or first mates and second mates in turn, two files for
        each set of pairs.
    block_size : int
        About how many bases a block has, at least 1.
    rules : QueryRules, optional
        Which files are accepted.
    threads : ReadingThreads, optional
        They help with large files.

    Attributes
    ----------
    bytes_read : int
        The number of bytes read from the files, counted before decompression.
    bytes_total : int or None
        The size of all files, None if one of them is not a regular file.

    Raises
    ------
    LibraryError
        If the library for the compression of a file is missing.
    InputError
        If a file is invalid, the names of two mates differ, or a read has no mate.

    Notes
    -----
    It keeps a block of each of two files, and the block that it makes of them.
    """

    def __init__(
        self,
        paths: Sequence[str],
        block_size: int,
        rules: QueryRules | None = None,
        threads: ReadingThreads | None = None,
    ) -> None:
        self._paths = tuple(paths)
        self._block_size = block_size
        self._rules = rules or QueryRules()
        self._threads = threads
        self.bytes_total = bytes_of(paths)
        self._bytes_before = 0
        self._readers: list[QueryReader] = []
        self._blocks = self._read()

    def __iter__(self) -> PairedQueryReader:
        return self

    def __next__(self) -> QueryBlock:
        return next(self._blocks)

    @property
    def bytes_read(self) -> int:
        """The number of bytes read so far."""
        return self._bytes_before + sum(reader.bytes_read for reader in self._readers)

    def close(self) -> None:
        """Close the open files; no more queries can be read."""
        self._blocks.close()

    def _read(self) -> Generator[QueryBlock]:
        index = 0
        width = min(2, len(self._paths))
        for first in range(0, len(self._paths), width):
            paths = self._paths[first : first + width]
            with ExitStack() as stack:
                self._readers = [
                    stack.enter_context(self._reader_of(path, width)) for path in paths
                ]
                made = _in_turn(paths[0], self._readers[0])
                if width == 2:
                    made = _from_two(paths, self._readers)
                for block in made:
                    yield QueryBlock(
                        index, block.padded_codes, block.offsets, block.names, block.name_offsets
                    )
                    index += 1
            self._bytes_before = self.bytes_read
            self._readers = []

    def _reader_of(self, path: str, files: int) -> QueryReader:
        size = max(self._block_size // files, 1)
        return QueryReader([path], size, rules=self._rules, threads=self._threads)


def pairs_in_memory(block: QueryBlock, place: str) -> QueryBlock:
    """Return queries in which mates alternate, with the names of mates.

    Parameters
    ----------
    block : QueryBlock
        The queries.
    place : str
        What errors name in place of a file.

    Returns
    -------
    QueryBlock
        The same queries, whose names end in ``/1`` and ``/2``.

    Raises
    ------
    InputError
        If the names of two mates differ, or a read has no mate.
    """
    count = block.query_count
    if count % 2:
        raise without_mate(place, count - 1, name_of(block, count - 1))
    named = names_of_pairs(block, block.part(1, count), 2, count // 2, True)
    if named.equal < count // 2:
        number = 2 * named.equal + 1
        raise not_mates(place, number, name_of(block, number), name_of(block, number - 1))
    return QueryBlock(block.index, block.padded_codes, block.offsets, named.names, named.offsets)


def _in_turn(path: str, reader: QueryReader) -> Generator[QueryBlock]:
    """Yield the pairs of a file in which mates alternate."""
    pairs = 0
    rest: QueryBlock | None = None
    for read in reader:
        block = read if rest is None else _joined(rest, read)
        count = block.query_count - block.query_count % 2
        rest = block.part(count, block.query_count) if count < block.query_count else None
        if count == 0:
            continue
        block = block.part(0, count)
        names, name_offsets, named = names_of_pairs(
            block, block.part(1, count), 2, count // 2, True
        )
        if named < count // 2:
            number = 2 * named + 1
            mate, name = name_of(block, number - 1), name_of(block, number)
            raise not_mates(path, 2 * pairs + number, name, mate)
        yield QueryBlock(0, block.padded_codes, block.offsets, names, name_offsets)
        pairs += count // 2
    if rest is not None:
        raise without_mate(path, 2 * pairs, name_of(rest, 0))


def _from_two(paths: Sequence[str], readers: Sequence[QueryReader]) -> Generator[QueryBlock]:
    """Yield the pairs of two files."""
    pairs = 0
    waiting: list[QueryBlock | None] = [None, None]
    while True:
        for number, reader in enumerate(readers):
            if waiting[number] is None:
                waiting[number] = next(reader, None)
        first, second = waiting
        if first is None or second is None:
            break
        count = min(first.query_count, second.query_count)
        one, other = first.part(0, count), second.part(0, count)
        names, name_offsets, named = names_of_pairs(one, other, 1, count, True)
        if named < count:
            raise not_mates(paths[1], pairs + named, name_of(other, named), name_of(one, named))
        codes = np.empty(one.base_count + other.base_count + 2 * MARGIN, dtype=np.uint8)
        codes[:MARGIN] = codes[codes.size - MARGIN :] = BREAK
        offsets = np.empty(2 * count + 1, dtype=np.int64)
        interleave(one.codes, one.offsets, other.codes, other.offsets, codes, MARGIN, offsets)
        yield QueryBlock(0, codes, offsets, names, name_offsets)
        pairs += count
        waiting = [
            block.part(count, block.query_count) if count < block.query_count else None
            for block in (first, second)
        ]
    for number, rest in enumerate(waiting):
        if rest is not None:
            raise without_mate(paths[number], pairs, name_of(rest, 0), paths[1 - number])


def _joined(first: QueryBlock, second: QueryBlock) -> QueryBlock:
    margins = np.full(MARGIN, BREAK, dtype=np.uint8)
    return QueryBlock(
        0,
        np.concatenate((margins, first.codes, second.codes, margins)),
        np.concatenate((first.offsets, second.offsets[1:] + first.base_count)),
        np.concatenate((first.names, second.names)),
        np.concatenate((first.name_offsets, second.name_offsets[1:] + first.names.size)),
    )
