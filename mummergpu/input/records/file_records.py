"""Reads the records of one file of reads in blocks, whatever its format and compression."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from io import BufferedReader
from itertools import takewhile
from typing import TYPE_CHECKING, Self

from mummergpu.errors import InputError, MummergpuError
from mummergpu.input.bytes.file_part import FileRange, open_range
from mummergpu.input.bytes.files import EmptyInputError, Input, bytes_of_files, open_binary, reading
from mummergpu.input.bytes.formats import SYMBOLS, Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_arrays import Limits, RecordOptions, Records
from mummergpu.input.records.record_reader import RecordReader
from mummergpu.input.records.tags import group_lines
from mummergpu.runtime.closing import Closing

if TYPE_CHECKING:
    from mummergpu.input.records.alignments import AlignmentReader
    from mummergpu.input.records.bam import BamReader
    from mummergpu.input.records.easel_records import EaselReader
    from mummergpu.input.records.parallel_records import ParallelRecordReader

    _Reader = RecordReader | ParallelRecordReader | AlignmentReader | BamReader | EaselReader

# Modules of formats are imported only by runs that read them.


class FileRecords(Closing):
    """Reads the records of a file of reads: FASTA, FASTQ, SAM, BAM or CRAM.

    It is a context manager and an iterator over the blocks. The first block opens the file. Of a
    file with a `part`, only the part is read.

    Attributes
    ----------
    bytes_read : int
        The number of bytes read up to the last block, counted before decompression.
    format : Format or None
        The format of the file as soon as it is open.
    easel_format : str or None
        The word for it, if Easel reads the file (`files.Input`).
    read_groups : tuple of bytes
        The read group lines of its header, as soon as its first block is read.
    """

    def __init__(
        self,
        path: str,
        options: RecordOptions,
        threads: ReadingThreads | None,
        part: FileRange | None = None,
    ) -> None:
        self.path = path
        self._options = options
        self._threads = threads
        self._blocks = self._read() if part is None else self._read_part(part)
        self.bytes_read = 0
        self.format: Format | None = None
        self.easel_format: str | None = None
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
            word = SYMBOLS if self._options.symbols is not None else None
            word = self._options.protein_format if self._options.is_protein else word
            file = Input(self.path, self._threads, word)
        except EmptyInputError as error:
            if self._options.no_empty:
                raise
            self.bytes_read = error.bytes_read
            return
        self.format, self.easel_format = file.format, file.easel_format
        with file:
            yield from self._blocks_of(self._reader_of(file), not file.format.is_alignment)
            file.tell_of_ignored(self._options.warn)

    def _read_part(self, part: FileRange) -> Generator[Records]:
        """Yield the blocks of a part of a file."""
        self.format = Format.FASTQ if part.is_fastq else Format.FASTA
        with reading(self.path), open_binary(self.path) as file:
            text = open_range(file.fileno(), self.path, part)
            yield from self._blocks_of(RecordReader(text, part.is_fastq, self._options), True)

    def _blocks_of(self, reader: _Reader, may_have_comments: bool) -> Generator[Records]:
        try:
            while (records := reader.next_block()) is not None:
                self.bytes_read = reader.bytes_read
                if self._options.keeps_comments and may_have_comments:
                    from mummergpu.input.records.comments import tags_of_comments

                    records = tags_of_comments(records, self.path)
                yield records
            self.bytes_read = reader.bytes_read
        finally:
            reader.close()

    def _reader_of(self, file: Input) -> _Reader:
        options = self._options
        if file.format is Format.EASEL:
            from mummergpu.input.records.easel_records import EaselReader

            return EaselReader(file, options)
        if options.is_protein and file.format is not Format.FASTA:
            message = (
                f"{file.format.value}, which holds nucleotides; proteins are read as FASTA "
                "(--translate searches in the six frames of nucleotides)"
            )
            raise InputError(message, self.path)
        if options.symbols is not None and file.format.is_alignment:
            raise InputError("no FASTA, FASTQ or lines of symbols", self.path)
        if file.format.is_alignment:
            reader = _alignment_reader(file, options)
            self.read_groups = reader.read_groups
            return reader
        has_many = self._threads is not None and self._threads.has_many
        if has_many or options.keeps_qualities:
            from mummergpu.input.records import parallel_records

            if parallel_records.is_worth_pieces(file, options.limits):
                threads = self._threads if has_many else None
                return parallel_records.ParallelRecordReader(file, options, threads)
        has_lines = file.format is Format.LINES
        return RecordReader(file, file.format is Format.FASTQ, options, has_lines=has_lines)


class RecordFiles:
    """Files that are read one after the other, repeatedly if they allow it.

    Parameters
    ----------
    paths : iterable of str
        The files; "-" is standard input.
    block_size : int
        The approximate residues or symbols of a block.
    """

    def __init__(self, paths: Iterable[str], block_size: int) -> None:
        self._paths = tuple(paths)
        self._block_size = block_size
        self.bytes_total = bytes_of_files(self._paths)
        self._bytes_before = 0
        self._file: FileRecords | None = None

    @property
    def bytes_read(self) -> int:
        """The bytes read so far in this pass over the files, counted before decompression."""
        return self._bytes_before + (0 if self._file is None else self._file.bytes_read)

    @property
    def can_repeat(self) -> bool:
        """Whether the files can be read more than once."""
        return self.bytes_total is not None

    def _opened(
        self, options: RecordOptions, threads: ReadingThreads | None
    ) -> Generator[FileRecords]:
        """Yield the files in turn, each open while its records are read."""
        self._bytes_before = 0
        for path in self._paths:
            with FileRecords(path, options, threads) as file:
                self._file = file
                yield file
                self._bytes_before += file.bytes_read
                self._file = None


def read_groups_of(path: str) -> tuple[bytes, ...]:
    """Return the read group lines in the header of a regular file.

    There are none if the file has no header, or cannot be read: reading its records raises the
    error.
    """
    with suppress(MummergpuError), Input(path) as file:
        if file.format is Format.SAM:
            lines = takewhile(lambda line: line.startswith(b"@"), BufferedReader(file.text))
            return group_lines(b"".join(lines))
        if file.format.is_alignment:
            with closing(_alignment_reader(file, RecordOptions(Limits(1, 1, 1)))) as reader:
                return reader.read_groups
    return ()


def _alignment_reader(file: Input, options: RecordOptions) -> AlignmentReader | BamReader:
    if file.format is Format.BAM:
        from mummergpu.input.records.bam import BamReader

        return BamReader(file, options)
    from mummergpu.input.records.alignments import AlignmentReader

    return AlignmentReader(file, options)
