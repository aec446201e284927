"""Reads files of queries, or of reads with qualities, in blocks.

Blocks of reads depend on the files and on the block size, but not on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from types import TracebackType
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.blocks.read_files import MateFiles, ReadFile, ReadSource
from mummergpu.input.bytes.files import bytes_of_files
from mummergpu.input.bytes.formats import Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.file_records import FileRecords, read_groups_of
from mummergpu.input.records.qualities import looks_like_old_illumina
from mummergpu.input.records.record_arrays import CHUNK_SIZE, Limits, RecordOptions, Records
from mummergpu.input.records.record_reader import name_of
from mummergpu.input.records.tags import ReadGroups
from mummergpu.runtime.closing import Closing
from mummergpu.runtime.ordered_map import Prefetcher
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import pluralize

Block = TypeVar("Block", QueryBlock, ReadBlock)

_BLOCKS_AHEAD: Final = 2
"""The most blocks of each of two files that wait for the other file."""


class LongReads(NamedTuple):
    """The number of reads that are too long to be mapped, and the length of the longest."""

    reads: int = 0
    longest: int = 0

    def with_others(self, other: LongReads) -> LongReads:
        """Return the sum of two parts of the input."""
        return LongReads(self.reads + other.reads, max(self.longest, other.longest))

    def warning(self, max_bases: int) -> str:
        """Return a line for the user."""
        reads = "a read" if self.reads == 1 else f"{self.reads:,} reads"
        return (
            f"{reads} of more than {max_bases:,} bases stayed unmapped, the longest of "
            f"{self.longest:,} bases: 'mummergpu align' aligns long reads"
        )


class ReadReader(Closing, Generic[Block]):
    """Reads single reads and pairs, in blocks; `query_reader` and `read_reader` make one.

    A block ends with the read or the pair that brings it to `block_size` bases, or at the end of a
    file; no pair is split. Millions of empty reads, or very long names, also end a block. Blocks of
    a large plain FASTA or FASTQ file that is not one of two mate files have only about `block_size`
    bases. Each block has its own memory, so it can be kept as long as it is needed.

    The reader keeps some blocks: two of each of two mate files and the one made from them, or those
    of `ParallelRecordReader`; and the part of the longest query that exceeds a block.

    Attributes
    ----------
    bytes_total : int or None
        The size of all files; None if one of them is not a regular file.
    needs_own_group : bool
        Whether there may be reads whose file has no read groups.
    long_reads : LongReads
        The reads so far that are too long to be mapped.

    Raises
    ------
    LibraryError
        If the library for the compression of a file is missing.
    InputError
        If a file is invalid, the names of two mates differ, a read has no mate, a read is too long
        for the rules, or two headers disagree about a read group. Files that cannot be opened or
        decompressed are reported before the first one is read.
    """

    def __init__(
        self,
        sources: Sequence[ReadSource],
        block_size: int,
        chunk_size: int,
        rules: QueryRules,
        threads: ReadingThreads | None,
        keeps_qualities: bool,
    ) -> None:
        self._sources = tuple(sources)
        self.block_size = block_size
        self._chunk_size = chunk_size
        self._rules = rules
        self._threads = threads
        self._keeps_qualities = keeps_qualities
        self.bytes_total = bytes_of_files([path for source in sources for path in source.paths])
        self._bytes_before = 0
        self._files: list[FileRecords] = []
        self.long_reads = LongReads()
        self._single_count = 0
        self._groups = ReadGroups()
        self.needs_own_group = False
        self._blocks: Generator[Block] = self._read()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Block:
        return next(self._blocks)

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from the files so far, counted before decompression."""
        return self._bytes_before + sum(file.bytes_read for file in self._files)

    def close(self) -> None:
        """Close the open files; no more reads can be read."""
        self._blocks.close()

    @property
    def read_groups(self) -> tuple[bytes, ...]:
        """The read group lines in the headers of the regular files and the first source.

        They are known as soon as a block is read; the other headers may not add any.
        """
        return self._groups.lines

    def _look_at_headers(self) -> None:
        """Collect the read groups of the files that can be read twice."""
        if not self._rules.keeps_groups or len(self._sources) == 1:
            return
        for number, source in enumerate(self._sources):
            lines = [
                () if bytes_of_files([path]) is None else read_groups_of(path)
                for path in source.paths
            ]
            for path, own in zip(source.paths, lines, strict=True):
                self._groups.add(own, path)
            self.needs_own_group |= number > 0 and not any(lines)

    def _read(self) -> Generator[Block]:
        index = 0
        self._look_at_headers()
        for number, source in enumerate(self._sources):
            first = index
            has_groups = False
            with ExitStack() as stack:
                parts = source.parts if isinstance(source, ReadFile | MateFiles) else ()
                options = self._options(len(parts))
                self._files = [
                    stack.enter_context(FileRecords(path, options, self._threads, part))
                    for path, part in zip(source.paths, parts, strict=False)
                ]
                for records, paired in self._records_of(source, stack):
                    if index == first:
                        self._look_at_qualities(source, records)
                        has_groups = self._take_groups(number)
                    block: Any
                    if self._keeps_qualities:
                        reads = ReadBlock.of_reads(records, paired)
                        self._look_at_lengths(source, reads)
                        reads = reads.searchable(self._rules.max_bases)
                        if isinstance(source, ReadFile) and source.interleaved:
                            self._single_count += (
                                reads.single_count if paired else reads.query_count
                            )
                        block = reads.numbered(index, number, has_groups)
                    else:
                        block = QueryBlock.of_records(records, index, 0 if paired else number)
                    yield block
                    index += 1
                if index == first and number == 0:
                    self._take_groups(number)
            self._bytes_before = self.bytes_read
            self._files = []
            if index == first:
                self._tell_of_no_reads(source)
        if self.long_reads.reads:
            self._rules.warn(self.long_reads.warning(self._rules.max_bases or 0))
        if self._single_count:
            self._rules.warn(
                f"{pluralize(self._single_count, 'read')} of interleaved files had no mate of the "
                "same name next to it, and counted as single"
            )

    def _take_groups(self, number: int) -> bool:
        """Take the read groups of the open files; return whether there are any."""
        if not self._rules.keeps_groups:
            return False
        for file in self._files:
            self._groups.add(file.read_groups, file.path, is_late=number > 0)
        has_groups = any(file.read_groups for file in self._files)
        self.needs_own_group |= number == 0 and not has_groups
        return has_groups

    def _options(self, files: int) -> RecordOptions:
        return RecordOptions(
            Limits.of_block(max(self.block_size // max(files, 1), 1)),
            self._chunk_size,
            any_letters=self._rules.any_letters,
            no_empty=self._rules.no_empty,
            keeps_qualities=self._keeps_qualities,
            keeps_groups=self._rules.keeps_groups,
            keeps_comments=self._rules.keeps_comments,
            warn=self._rules.warn,
        )

    def _records_of(self, source: ReadSource, stack: ExitStack) -> Iterable[tuple[Records, bool]]:
        """Yield the records of a source, and whether they are pairs of mates."""
        is_plain = isinstance(source, ReadFile) and source.ignores_flags and not source.interleaved
        if is_plain and not self._keeps_qualities:
            return ((records, False) for records in self._files[0])
        # Imported here: a run without pairs need not wait for it.
        from mummergpu.input.blocks.pairs import mates_of_two, reads_of_file

        limits = Limits.of_block(self.block_size)
        with_suffixes = not self._keeps_qualities
        if not isinstance(source, ReadFile | MateFiles):
            found = source.records(limits, self._rules.any_letters)
            if len(found) == 2:
                return mates_of_two(2 * source.paths, found, limits, with_suffixes)
            (records,) = found
            return reads_of_file(source.paths[0], records, source.interleaved, True, with_suffixes)
        if isinstance(source, MateFiles):
            threads = self._helping_threads()
            files = self._files if threads is None else self._side_by_side(stack)
            mates = [iter(file) for file in files]
            return mates_of_two(source.paths, mates, limits, with_suffixes, threads)
        flags = source.interleaved, source.ignores_flags
        by_name = source.interleaved and not with_suffixes
        return reads_of_file(source.path, self._files[0], *flags, with_suffixes, by_name)

    def _helping_threads(self) -> ReadingThreads | None:
        """Return the threads that help to read the two open files; None if none can.

        A thread that waits for a pipe could not be stopped.
        """
        if self._threads is None or not self._threads.can_share:
            return None
        is_known = bytes_of_files([file.path for file in self._files]) is not None
        return self._threads if is_known else None

    def _side_by_side(self, stack: ExitStack) -> list[Prefetcher[Records]]:
        """Return the records of two files, read at the same time."""
        ahead = [Prefetcher(file, _BLOCKS_AHEAD) for file in self._files]
        for prefetcher in ahead:
            # In this order, an interrupt while the thread starts ends it.
            stack.push(prefetcher)
            prefetcher.__enter__()
        return ahead

    def _look_at_qualities(self, source: ReadSource, records: Records) -> None:
        # BAM stores numbers, not characters.
        has_characters = all(file.format is Format.FASTQ for file in self._files)
        if has_characters and looks_like_old_illumina(records.qualities):
            self._rules.warn(
                f"{source.paths[0]}: the base qualities look like those of Illumina before 2011 "
                "(Phred+64); they are read as Phred+33 (to convert: seqtk seq -VQ64)"
            )

    def _look_at_lengths(self, source: ReadSource, block: ReadBlock) -> None:
        most = self._rules.max_bases
        if most is None or block.longest <= most:
            return
        lengths = np.diff(block.offsets)
        long_reads = LongReads(int(np.count_nonzero(lengths > most)), block.longest)
        self.long_reads = self.long_reads.with_others(long_reads)
        if not self._rules.refuses_long:
            return
        read = int(np.argmax(lengths > most))
        raise InputError(
            f"a read of {lengths[read]:,} bases, and those that are mapped have at most {most:,}: "
            "align longer ones with 'mummergpu align'",
            source.paths[read % len(source.paths)],
            record=name_of(block.records, read),
        )

    def _tell_of_no_reads(self, source: ReadSource) -> None:
        for path in source.paths:
            if self._rules.no_empty:
                raise InputError("no reads", path)
            self._rules.warn(f"{path}: no reads")


def query_reader(
    paths: Sequence[str],
    block_size: int,
    chunk_size: int = CHUNK_SIZE,
    rules: QueryRules | None = None,
    threads: ReadingThreads | None = None,
) -> ReadReader[QueryBlock]:
    """Return a reader of queries, without qualities and tags.

    Parameters
    ----------
    paths : sequence of str
        The files in order, "-" being standard input: FASTA, FASTQ, SAM, BAM or CRAM. If the rules
        say that they are paired, one file in which mates alternate; or first mates and second mates
        in turn, two files for each set of pairs. The names of mates then end in ``/1`` and ``/2``,
        which are added if missing.
    block_size : int
        The approximate bases of a block, at least 1.
    chunk_size : int, default CHUNK_SIZE
        The number of bytes of text parsed at once.
    rules : QueryRules, optional
        Which files are accepted.
    threads : ReadingThreads, optional
        They help with large files.
    """
    rules = rules or QueryRules()
    sources: list[ReadSource]
    if rules.paired and len(paths) > 1:
        sources = [MateFiles(paths[at], paths[at + 1]) for at in range(0, len(paths), 2)]
    else:
        sources = [ReadFile(path, rules.paired, ignores_flags=True) for path in paths]
    return ReadReader(sources, block_size, chunk_size, rules, threads, keeps_qualities=False)


def read_reader(
    sources: Sequence[ReadSource],
    block_size: int,
    chunk_size: int = CHUNK_SIZE,
    rules: QueryRules | None = None,
    threads: ReadingThreads | None = None,
) -> ReadReader[ReadBlock]:
    """Return a reader of reads with qualities and tags, for a mapper.

    Parameters
    ----------
    sources : sequence of ReadFile, MateFiles or ReadsInMemory
        The files in order, of any formats, or reads in memory.
    block_size, chunk_size : int
        As for `query_reader`.
    rules : QueryRules, optional
        Which files are accepted; `paired` is ignored. `warn` also receives a line for a source
        whose qualities look like those of old Illumina programs (see `qualities`). Reads of more
        than `max_bases` are searched as reads without bases (`ReadBlock.searchable`).
    threads : ReadingThreads, optional
        They help with large files. With two or more, two mate files are read at the same time.
    """
    rules = rules or QueryRules()
    return ReadReader(sources, block_size, chunk_size, rules, threads, keeps_qualities=True)


BLOCKS_AHEAD: Final = 2
"""The most blocks that are read ahead, once blocks are requested."""


class ReadStream(Generic[Block]):
    """Reads blocks while the index is prepared, and shows the first reads in advance.

    The stream begins to read files when the ``with`` block begins, and closes the reader at its
    end. No thread reads a pipe until the blocks are requested: a pipe can stay without data for a
    long time, and a thread that waits for it could not be stopped if anything else failed. A caller
    that requests the first templates of a pipe reads them itself.

    `tell` receives the number of bases read, and the share of the files if it is known. Until
    blocks are requested, `ahead` of them are read.
    """

    def __init__(
        self,
        reader: ReadReader[Block],
        stats: Stats,
        tell: Callable[[int, float | None], None],
        ahead: int = BLOCKS_AHEAD,
    ) -> None:
        self.reader: ReadReader[Block] = reader
        self._stats = stats
        self._tell = tell
        source = self._read()
        self._ahead: Prefetcher[Block] = Prefetcher(source, ahead)
        self._stack = ExitStack()
        self._has_started = False
        # Until the thread starts, the caller reads its blocks itself.
        self._waiting: Iterator[Block] = source
        self._first: list[Block] = []

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self.reader)
            if self.reader.bytes_total is not None:
                self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def first_templates(self, count: int, skipped: int = 0) -> list[Block]:
        """Return blocks with the first templates, pairs or single reads, after some are skipped.

        There may be fewer than `count`. `blocks` yields them again.
        """
        found: list[Block] = []
        at, end = 0, skipped + count
        for block in chain(tuple(self._first), self._drawn()):
            reads = block.reads_of_template
            templates = block.query_count // reads
            begin, behind = max(skipped - at, 0), min(templates, end - at)
            if begin < behind:
                found.append(block.part(reads * begin, reads * behind))
            at += templates
            if at >= end:
                break
        return found

    def _drawn(self) -> Iterator[Block]:
        """Yield further blocks, which `blocks` yields again."""
        for block in self._waiting:
            self._first.append(block)
            yield block

    def blocks(self, max_bases: int | None = None) -> Iterator[Block]:
        """Return an iterator over all blocks, in the order of the files; call this once.

        Blocks with more than twice `max_bases` are split.
        """
        self._start()
        self._ahead.limit(BLOCKS_AHEAD)
        first, self._first = self._first, []
        blocks = chain(first, self._waiting)
        if max_bases is None or self.reader.block_size <= max_bases:
            return blocks
        return (part for block in blocks for part in _parts(block, max_bases))

    def _start(self) -> None:
        """Start the thread, unless it runs already."""
        if not self._has_started:
            self._has_started = True
            self._waiting = iter(self._ahead)
            # In this order, an interrupt while the thread starts ends it.
            self._stack.push(self._ahead)
            self._ahead.__enter__()

    def _read(self) -> Iterator[Block]:
        """Yield block after block, and report the progress of reading."""
        reader = self.reader
        bases = 0
        while True:
            with self._stats.stage("queries_from_disk"):
                block = next(reader, None)
            if block is None:
                self._stats.add_bytes(queries=reader.bytes_read)
                return
            self._stats.add(queries=block.read_count, query_bases=block.base_count, blocks=1)
            bases += block.base_count
            total = reader.bytes_total
            self._tell(bases, reader.bytes_read / total if total else None)
            yield block


def _parts(block: Block, max_bases: int) -> Iterator[Block]:
    if block.base_count <= 2 * max_bases or block.query_count == 1:
        yield block
        return
    for half in block.halves():
        yield from _parts(half, max_bases)
