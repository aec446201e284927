"""Reads the records of one file of reads in blocks, whatever its format and compression."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import dataclass
from io import BufferedReader
from itertools import takewhile
from typing import Self

from mummergpu.errors import MummergpuError
from mummergpu.input.bytes.files import EmptyInputError, Input
from mummergpu.input.bytes.formats import Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.alignments import AlignmentReader
from mummergpu.input.records.bam import BamReader
from mummergpu.input.records.comments import tags_of_comments
from mummergpu.input.records.parallel_records import ParallelRecordReader, is_worth_pieces
from mummergpu.input.records.read_groups import group_lines
from mummergpu.input.records.record_arrays import Limits, Records
from mummergpu.input.records.record_reader import CHUNK_SIZE, RecordReader
from mummergpu.runtime.closing import ClosedAtEnd


@dataclass(frozen=True)
class RecordOptions:
    """How a file is read.

    Attributes
    ----------
    limits : Limits
        The limits at which a block is full.
    chunk_size : int
        The number of bytes of text parsed at once, at least 2.
    any_letters : bool
        Accept records whose letters are mostly not DNA or RNA.
    no_empty : bool
        Raise an error if a file holds no data.
    keeps_qualities : bool
        Keep the base qualities, the letters that stand for several bases, and the flags and tags of
        SAM, BAM and CRAM. Then the blocks of a file are the same for every number of threads.
    keeps_groups : bool
        Keep the read groups among these tags, if the header of the file tells of any.
    keeps_comments : bool
        Make tags of the comments of FASTA and FASTQ (`comments.tags_of_comments`).
    """

    limits: Limits
    chunk_size: int = CHUNK_SIZE
    any_letters: bool = False
    no_empty: bool = False
    keeps_qualities: bool = False
    keeps_groups: bool = False
    keeps_comments: bool = False


class FileRecords(ClosedAtEnd):
    """Reads the records of a file of reads.

    It is a context manager and an iterator over the blocks. The file is opened for the first.

    Parameters
    ----------
    path : str
        The file, "-" being standard input: FASTA, FASTQ, SAM, BAM or CRAM.
    options : RecordOptions
        How it is read.
    threads : ReadingThreads, optional
        They help with a large file.

    Attributes
    ----------
    path : str
        The file as the user named it.
    bytes_read : int
        The number of bytes read up to the last block, counted before decompression.
    format : Format or None
        The format of the file as soon as it is open.
    read_groups : tuple of bytes
        The lines of its header about read groups, as soon as its first block is read.

    Raises
    ------
    InputError
        If the file is invalid.
    """

    def __init__(self, path: str, options: RecordOptions, threads: ReadingThreads | None) -> None:
        self.path = path
        self._options = options
        self._threads = threads
        self._blocks = self._read()
        self.bytes_read = 0
        self.format: Format | None = None
        self.read_groups: tuple[bytes, ...] = ()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Records:
        return next(self._blocks)

    def close(self) -> None:
        """Close the file; no more blocks can be read."""
        self._blocks.close()

    def _read(self) -> Generator[Records]:
        """Yield block after block; an empty file yields none."""
        try:
            file = Input(self.path, self._threads)
        except EmptyInputError as error:
            if self._options.no_empty:
                raise
            self.bytes_read = error.bytes_read
            return
        self.format = file.format
        with file:
            reader = self._reader_of(file)
            if isinstance(reader, BamReader | AlignmentReader):
                self.read_groups = reader.read_groups
            has_comments = self._options.keeps_comments and not file.format.is_alignment
            try:
                while (records := reader.next_block()) is not None:
                    self.bytes_read = reader.bytes_read
                    yield tags_of_comments(records, self.path) if has_comments else records
                self.bytes_read = reader.bytes_read
            finally:
                reader.close()

    def _reader_of(
        self, file: Input
    ) -> RecordReader | ParallelRecordReader | AlignmentReader | BamReader:
        options = self._options
        if file.format is Format.BAM:
            return BamReader(
                file,
                options.limits,
                keeps_qualities=options.keeps_qualities,
                keeps_groups=options.keeps_groups,
            )
        if file.format.is_alignment:
            kept = options.keeps_qualities, options.keeps_groups
            return AlignmentReader(file, options.limits, *kept)
        are_many = self._threads is not None and self._threads.are_many
        if (are_many or options.keeps_qualities) and is_worth_pieces(file, options.limits):
            return ParallelRecordReader(
                file,
                options.limits,
                options.any_letters,
                options.chunk_size,
                self._threads if are_many else None,
                options.keeps_qualities,
                options.keeps_comments,
            )
        return RecordReader(
            file,
            file.format is Format.FASTQ,
            options.limits,
            any_letters=options.any_letters,
            chunk_size=options.chunk_size,
            keeps_qualities=options.keeps_qualities,
            keeps_letters=options.keeps_qualities,
            keeps_comments=options.keeps_comments,
        )


def read_groups_of(path: str) -> tuple[bytes, ...]:
    """Return the lines about read groups in the header of a regular file.

    There are none if the file has no header, or cannot be read: who reads its records will tell.
    """
    limits = Limits(1, 1, 1)
    with suppress(MummergpuError), Input(path) as file:
        if file.format is Format.SAM:
            lines = takewhile(lambda line: line.startswith(b"@"), BufferedReader(file.text))
            return group_lines(b"".join(lines))
        if file.format.is_alignment:
            kind = BamReader if file.format is Format.BAM else AlignmentReader
            with closing(kind(file, limits)) as reader:
                return reader.read_groups
    return ()
