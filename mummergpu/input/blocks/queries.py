"""Reads queries from files in blocks, for the backends to search.

Queries are read from the files in order, in blocks of about equally many bases. A block is a
few arrays, however many reads it has.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import (
    PLACE,
    STANDARD_INPUT,
    check_compression,
    file_size,
    open_binary,
    reading,
)
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.file_records import FileRecords, RecordOptions
from mummergpu.input.records.record_arrays import Limits
from mummergpu.input.records.record_reader import CHUNK_SIZE
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.closing import ClosedAtEnd
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.offsets import longest_of

OffsetArray = Int64Array


def _say_nothing(_line: str) -> None:
    """Ignore a warning."""


@dataclass(frozen=True)
class QueryRules:
    """Which query files are accepted, and who receives a warning about an empty one.

    Attributes
    ----------
    any_letters : bool
        Accept records whose letters are mostly not DNA or RNA.
    no_empty : bool
        Raise an error if a file has no query.
    warn : callable
        Receives one line for each file without a query, unless `no_empty` is set. The reading
        thread calls it.
    paired : bool
        The queries are pairs of reads: one file in which mates alternate, or first and second mates
        in two files each.
    most_bases : int or None
        The most bases of a read that is to be mapped; None for any number.
    refuses_long : bool
        Raise an error at a read of more bases; otherwise it stays unmapped, and `warn` receives a
        line about all of these.
    keeps_groups, keeps_comments : bool
        As for `file_records.RecordOptions`, of reads that are to be mapped.
    """

    any_letters: bool = False
    no_empty: bool = False
    warn: Callable[[str], None] = _say_nothing
    paired: bool = False
    most_bases: int | None = None
    refuses_long: bool = False
    keeps_groups: bool = False
    keeps_comments: bool = False


@dataclass(frozen=True)
class QueryBlock:
    """Queries that are read, matched and written together.

    Attributes
    ----------
    index : int
        The number of the block, counted from 0 in the order of the input.
    padded_codes : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The base codes of all queries, one after the other, on the forward strand. A margin of
        `codes.MARGIN` codes lies at each end: it may be read, but is not part of the block.
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        The index in `codes` at which each query begins, and the end of the last.
    names : ndarray, dtype=uint8, shape=(n_name_bytes,)
        The names, one after the other, cut at the first white space.
    name_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        The index in `names` at which each name begins, and the end of the last.
    file_number : int
        The number of the file that all queries are from, counted from 0 in the order of the input.
    """

    index: int
    padded_codes: CodeArray
    offsets: OffsetArray
    names: ByteArray
    name_offsets: OffsetArray
    file_number: int = 0

    @property
    def codes(self) -> CodeArray:
        """The base codes without the margins: ndarray, dtype=uint8, shape=(n_bases,), a view."""
        return self.padded_codes[MARGIN : self.padded_codes.size - MARGIN]

    @property
    def query_count(self) -> int:
        """The number of queries."""
        return self.offsets.size - 1

    @property
    def base_count(self) -> int:
        """The number of bases, breaks included."""
        return self.padded_codes.size - 2 * MARGIN

    @cached_property
    def longest(self) -> int:
        """The bases of the longest query, 0 if there is none."""
        return longest_of(writable(self.offsets))

    @property
    def can_be_cut(self) -> bool:
        """Whether the queries may be searched in two parts whose results are put together."""
        return self.query_count > 1

    def halves(self) -> tuple[QueryBlock, QueryBlock]:
        """Return the first and the second half of the queries, as views of their arrays."""
        middle = self.query_count // 2
        return self.part(0, middle), self.part(middle, self.query_count)

    def split_at(self, bases: int) -> tuple[QueryBlock, QueryBlock]:
        """Return the first queries, of about so many bases, and the others, as views.

        Parameters
        ----------
        bases : int
            The query that has the base of this number is the last of the first part.

        Returns
        -------
        tuple of QueryBlock
            Both have at least one query. The block must have two or more.
        """
        end = int(np.searchsorted(self.offsets, bases))
        end = min(max(end, 1), self.query_count - 1)
        return self.part(0, end), self.part(end, self.query_count)

    def part(self, first: int, end: int) -> QueryBlock:
        """Return some of the queries, as views of the arrays.

        Parameters
        ----------
        first, end : int
            The half-open range of the queries.

        Returns
        -------
        QueryBlock
            It has the same index.
        """
        offsets = self.offsets[first : end + 1]
        name_offsets = self.name_offsets[first : end + 1]
        return QueryBlock(
            self.index,
            # The neighbouring codes serve as the margins of a half.
            self.padded_codes[offsets[0] : offsets[-1] + 2 * MARGIN],
            offsets - offsets[0],
            self.names[name_offsets[0] : name_offsets[-1]],
            name_offsets - name_offsets[0],
            self.file_number,
        )


class QueryReader(ClosedAtEnd):
    """Reads queries from files, in blocks.

    The reader is a context manager and an iterator over `QueryBlock`. A block ends with the
    query that brings it to `block_size` bases, or at the end of a file; no query is split.
    Millions of empty queries, or very long names, also end a block. A large FASTA or FASTQ file
    that threads read has blocks of about `block_size` bases.

    Parameters
    ----------
    paths : sequence of str
        The files in order, "-" being standard input: FASTA, FASTQ, SAM, BAM or CRAM.
    block_size : int
        About how many bases a block has, at least 1.
    chunk_size : int, default CHUNK_SIZE
        The number of bytes of text parsed at once.
    rules : QueryRules, optional
        Which files are accepted.
    threads : ReadingThreads, optional
        They help with large files.

    Attributes
    ----------
    bytes_read : int
        The number of bytes read from the files up to the last block, counted before decompression.
    bytes_total : int or None
        The size of all files, None if one of them is not a regular file.

    Raises
    ------
    LibraryError
        If the library for the compression of a file is missing.
    InputError
        If a file is invalid, at its beginning or anywhere in it. Files that cannot be opened or
        decompressed are reported before the first one is read.

    Notes
    -----
    The reader needs memory for one block, and for the part of the longest query that exceeds a
    block; with threads, for some blocks more (see `ParallelRecordReader`).
    """

    def __init__(
        self,
        paths: Sequence[str],
        block_size: int,
        chunk_size: int = CHUNK_SIZE,
        rules: QueryRules | None = None,
        threads: ReadingThreads | None = None,
    ) -> None:
        self._threads = threads
        self._paths = tuple(paths)
        self._rules = rules or QueryRules()
        self._options = RecordOptions(
            Limits.of_block(block_size),
            chunk_size,
            any_letters=self._rules.any_letters,
            no_empty=self._rules.no_empty,
        )
        self.bytes_total = bytes_of(paths)
        self.bytes_read = 0
        self._blocks = self._read()

    def __iter__(self) -> QueryReader:
        return self

    def __next__(self) -> QueryBlock:
        return next(self._blocks)

    def close(self) -> None:
        """Close the open file; no more queries can be read."""
        self._blocks.close()

    def _read(self) -> Generator[QueryBlock]:
        index = 0
        for file_number, path in enumerate(self._paths):
            first = index
            before = self.bytes_read
            with FileRecords(path, self._options, self._threads) as file:
                for records in file:
                    self.bytes_read = before + file.bytes_read
                    yield QueryBlock(
                        index,
                        records.padded_codes,
                        records.offsets,
                        records.names,
                        records.name_offsets,
                        file_number,
                    )
                    index += 1
                self.bytes_read = before + file.bytes_read
            if index == first:
                if self._rules.no_empty:
                    raise InputError("no reads", path)
                self._rules.warn(f"{path}: no reads")


def bytes_of(paths: Sequence[str]) -> int | None:
    """Return the total size of the files, after a check that they can be read here.

    Parameters
    ----------
    paths : sequence of str
        The files, "-" being standard input.

    Returns
    -------
    int or None
        In bytes; None if one of them is not a regular file.

    Raises
    ------
    LibraryError
        If the library for the compression of a regular file is missing.
    InputError
        If one of them cannot be opened, or its compression not be decoded.
    """
    sizes = [_size_of(path) for path in paths]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _size_of(path: str) -> int | None:
    """Return the size of a file, after a check that it can be read; a pipe is not opened."""
    if path in (STANDARD_INPUT, PLACE):
        return None
    with reading(path):
        mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return None
    with reading(path), open_binary(path) as file:
        check_compression(file, path)
        return file_size(file)
