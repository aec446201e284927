"""Reads a large FASTA or FASTQ file in pieces, which several threads parse at the same time.

A piece begins and ends where a record seems to begin. Its parser shows whether this is true: a
record begins at the end of a piece if the piece is valid on its own. From the first piece that is
not, one parser reads the rest of the file, so that errors do not depend on how a file is cut.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, wait
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.file_part import FilePart, plain_part
from mummergpu.input.bytes.files import STANDARD_INPUT, Input, reading
from mummergpu.input.bytes.formats import BYTE_ORDER_MARK, Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.block_arrays import NoRoomError, RecycledMemory
from mummergpu.input.records.record_arrays import UNLIMITED, Limits, RecordOptions, Records
from mummergpu.input.records.record_reader import RecordReader

PIECE_BYTES: Final = 1 << 22
"""The approximate bytes of a piece, unless a block has more: compared with their parsing, passing a
piece on takes no time."""

PIECE_CHUNK: Final = 1 << 21
"""The bytes of a piece that are parsed at once: before each, a thread needs the interpreter's lock.
"""

LEAST_BYTES: Final = 4 * PIECE_BYTES
"""Smaller files are not worth the threads."""

MOST_BLOCK_BASES: Final = 1 << 25
"""With larger blocks, the pieces in work would take too much memory."""

MOST_UNDER_WAY: Final = 5
"""The most pieces that are parsed, or wait. The search needs the other processors."""

SAMPLE_BYTES: Final = 1 << 16
"""The number of bytes from which the bytes per base are estimated."""

WINDOWS: Final = (1 << 14, 1 << 20)
"""The bytes in which the start of a record is searched, first in fewer and then in more."""

_MOST_TIMES_BYTES: Final = 2
"""The maximum multiple of the least bytes per base. Shorter reads get smaller blocks, in case that
longer ones follow."""

_SLACK: Final = 4
"""There is room for this multiple of the expected records and name bytes; more begin another block.
The numbers in names become longer, and room that stays empty takes no memory."""


def is_worth_pieces(file: Input, limits: Limits) -> bool:
    """Return whether a file should be read by a `ParallelRecordReader`.

    It should if it is a large, plain FASTA or FASTQ file, and the blocks are not too large.
    """
    return (
        file.format in (Format.FASTA, Format.FASTQ)
        and file.compression is None
        # Part of standard input may have been read before.
        and file.path != STANDARD_INPUT
        and (file.size or 0) >= LEAST_BYTES
        and limits.bases <= MOST_BLOCK_BASES
    )


class ParallelRecordReader:
    """Reads the records of a FASTA or FASTQ file in blocks, as `RecordReader` does.

    The blocks have about as many bases as the limit says. They depend on the file and on the
    limits, but not on the threads. The file is a regular one, not compressed and at its beginning;
    the caller closes it after the reader. Without threads, the caller parses the pieces.

    The reader needs memory for `MOST_UNDER_WAY` pieces, of which each has the bases of one or more
    blocks.
    """

    def __init__(self, file: Input, options: RecordOptions, threads: ReadingThreads | None) -> None:
        self._file_number = file.file.fileno()
        self._path = file.path
        self._is_fastq = file.format is Format.FASTQ
        self._options = self._piece_options = options
        self._threads = threads
        self._ready: deque[Records] = deque()
        self._under_way: deque[Future[_ParsedPiece | None]] = deque()
        self._spare_readers: deque[RecordReader] = deque()
        self._memory: RecycledMemory | None = None
        self._rest: RecordReader | None = None
        self._line = 1
        with reading(self._path):
            mark = os.pread(self._file_number, len(BYTE_ORDER_MARK), 0)
            self._at = len(mark) if mark == BYTE_ORDER_MARK else 0
            self._pieces = self._cut(file.size or 0)

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from the file, up to the end of the last piece."""
        return self._at + (self._rest.bytes_read if self._rest is not None else 0)

    def close(self) -> None:
        """Drop the pieces, and wait until none is read any more."""
        wait([piece for piece in self._under_way if not piece.cancel()])
        self._under_way.clear()
        self._ready.clear()
        self._spare_readers.clear()
        if self._rest is not None:
            self._rest.close()

    def next_block(self) -> Records | None:
        """Return the records of the next block, None after the last; see `RecordReader.next_block`.

        There may be other codes than breaks before and after those of the block.
        """
        while not self._ready:
            if self._rest is not None:
                return self._rest.next_block()
            self._take_piece()
        return self._ready.popleft()

    def _cut(self, size: int) -> Iterator[tuple[int, int]]:
        """Return an iterator over the pieces of a file, which can be empty.

        The first records show how many bases and records the text has for its bytes.
        """
        begin = self._at
        end = self._find_record(begin + SAMPLE_BYTES, size)
        sample = None if end is None else self._parse(begin, end)
        if end is None or sample is None or not any(block.codes.size for block in sample.blocks):
            return iter(())
        text_bytes = end - begin
        bases = sum(block.codes.size for block in sample.blocks)
        # There are at least as many quality characters as bases.
        least = 2 if self._is_fastq else 1
        share = min(max(text_bytes / bases, least), _MOST_TIMES_BYTES * least)
        block_bytes = share * self._options.limits.bases
        blocks = max(1, round(PIECE_BYTES / block_bytes))
        piece_bytes = int(blocks * block_bytes)
        factor = _SLACK * piece_bytes / text_bytes
        records = sum(block.offsets.size - 1 for block in sample.blocks)
        name_bytes = sum(block.names.size for block in sample.blocks)
        limits = Limits(
            UNLIMITED,
            min(blocks * self._options.limits.records, int(factor * records) + 1),
            min(blocks * self._options.limits.name_bytes, int(factor * name_bytes) + 1),
        )
        chunk_size = max(self._options.chunk_size, min(piece_bytes, PIECE_CHUNK))
        self._piece_options = self._options._replace(limits=limits, chunk_size=chunk_size)
        self._memory = RecycledMemory(
            (piece_bytes + WINDOWS[-1]) // least + 2 * chunk_size,
            limits.records,
            limits.name_bytes + 2 * chunk_size,
            self._options.keeps_qualities,
        )
        return self._borders(begin, size, piece_bytes)

    def _borders(self, begin: int, size: int, piece_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield where a piece begins, and where it ends, as far as that can be guessed."""
        first, rest = begin, size - begin
        count = -(-rest // piece_bytes)
        for number in range(1, count + 1):
            end = self._find_record(first + rest * number // count, size)
            if end is None:
                return
            if end > begin:
                yield begin, end
                begin = end

    def _find_record(self, at: int, size: int) -> int | None:
        return find_record(self._file_number, at, size, self._is_fastq)

    def _take_piece(self) -> None:
        """Wait for the next piece; after the last one, or if it is unusual, prepare the rest."""
        self._begin_pieces()
        # An exception holds this frame, so the frame must not hold the future.
        parsed = self._under_way[0].result() if self._under_way else None
        if parsed is not None:
            self._under_way.popleft()
            self._at = parsed.end
            self._line += parsed.lines
            self._ready.extend(parsed.blocks)
            return
        for piece in self._under_way:
            piece.cancel()
        # The rest is empty after the last piece, unless the file has grown.
        part = plain_part(self._file_number, self._path, self._at, None)
        self._rest = self._new_reader(part, self._options)
        self._rest.begin_file(part, self._line)

    def _begin_pieces(self) -> None:
        """Let the threads parse the next pieces."""
        most = 1 if self._threads is None else min(MOST_UNDER_WAY, self._threads.window)
        while len(self._under_way) < most:
            try:
                piece = next(self._pieces, None)
            except OSError:  # Reading the rest will raise it again.
                return
            if piece is None:
                return
            self._under_way.append(self._begin(*piece))

    def _begin(self, begin: int, end: int) -> Future[_ParsedPiece | None]:
        if self._threads is not None:
            return self._threads.executor.submit(self._parse, begin, end)
        parsed: Future[_ParsedPiece | None] = Future()
        parsed.set_result(self._parse(begin, end))
        return parsed

    def _parse(self, begin: int, end: int) -> _ParsedPiece | None:
        """Parse a range of the file; return None if it is not valid on its own."""
        part = plain_part(self._file_number, self._path, begin, end)
        try:
            reader = self._spare_readers.pop()
        except IndexError:
            reader = self._new_reader(part, self._piece_options, self._memory)
        reader.begin_file(part)
        blocks: list[Records] = []
        try:
            while not reader.is_at_end:
                block = reader.next_block()
                if block is not None:
                    blocks += split(block, self._options.limits.bases)
        except (InputError, NoRoomError):
            return None
        if reader.bytes_read < end - begin:  # The file has become shorter.
            return None
        lines = reader.line - 1
        reader.close()
        if self._memory is not None:
            self._spare_readers.append(reader)
        return _ParsedPiece(end, lines, blocks)

    def _new_reader(
        self, part: FilePart, options: RecordOptions, memory: RecycledMemory | None = None
    ) -> RecordReader:
        new_arrays = None if memory is None else memory.new_arrays
        return RecordReader(part, self._is_fastq, options, new_arrays=new_arrays)


class _ParsedPiece(NamedTuple):
    """A piece that is valid on its own: where it ends in the file, its lines and its records."""

    end: int
    lines: int
    blocks: list[Records]


def split(records: Records, max_bases: int) -> list[Records]:
    """Split records into blocks of about the same number of bases, about `max_bases` each.

    They are views of the arrays of `records`, which have no gaps; each has at least one record.
    """
    bases, count = records.codes.size, records.offsets.size - 1
    parts = max(1, round(bases / max_bases))
    if parts == 1:
        return [records]
    cuts = np.searchsorted(records.offsets, np.arange(1, parts) * bases // parts)
    bounds = sorted({0, *cuts.tolist(), count})
    return [records.part(begin, end) for begin, end in pairwise(bounds)]


def find_record(file_number: int, at: int, size: int, is_fastq: bool) -> int | None:
    """Return where the first record seems to begin in a file from byte `at`, 1 or more, on.

    It is `size` if no line looks so in the rest of the file, and None if none does within
    `WINDOWS`.
    """
    if at >= size:
        return size
    for window in WINDOWS:
        text = os.pread(file_number, window, at - 1)
        before = next_record(text, is_fastq)
        if before >= 0:
            return at + before
        if at - 1 + len(text) >= size:
            return size
    return None


def next_record(text: bytes, is_fastq: bool, at: int = 0) -> int:
    """Return the index, from `at` on, of the line feed before a record; -1 if there is none.

    A line of qualities may begin with '@' too, so the line after the bases has to begin with '+'.
    """
    before = text.find(b"\n@" if is_fastq else b"\n>", at)
    while before >= 0:
        second = text.find(b"\n", before + 1)
        third = text.find(b"\n", second + 1) if is_fastq and second >= 0 else second
        if third < 0:
            return -1
        if not is_fastq or text.startswith(b"+", third + 1):
            return before
        before = text.find(b"\n@", before + 1)
    return -1
