"""Reads the records of FASTA or FASTQ into arrays, block by block, and reports faults."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.file_part import FilePart
from mummergpu.input.bytes.files import STANDARD_INPUT, Input
from mummergpu.input.bytes.formats import Format
from mummergpu.input.records import parser_state as parser
from mummergpu.input.records.block_arrays import BlockArrays
from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.fastx import parse_fasta, parse_fastq
from mummergpu.input.records.qualities import NO_QUALITY
from mummergpu.input.records.record_arrays import RecordOptions, Records
from mummergpu.runtime.arrays import ByteArray, Int64Array


def _state_of(options: RecordOptions) -> Int64Array:
    """Return the state of a parser (`parser_state`) that reads as the options say."""
    state = np.zeros(parser.STATE_SIZE, dtype=np.int64)
    state[parser.GAP] = options.has_gaps
    state[parser.ANY_LETTERS] = options.any_letters
    state[parser.KEEPS_LETTERS] = options.keeps_letters or options.keeps_qualities
    state[parser.KEEPS_COMMENTS] = options.keeps_comments or options.keeps_headers
    state[parser.LETTERS] = parser.AMINO_ACIDS if options.is_protein else parser.NUCLEOTIDES
    if options.symbols is not None:
        state[parser.LETTERS] = parser.SYMBOLS
    state[parser.QUALITY_MODE] = (
        parser.KEPT_QUALITY_LINE if options.keeps_qualities else parser.QUALITY_LINE
    )
    state[parser.BASE_LIMIT] = options.limits.bases
    state[parser.RECORD_LIMIT] = options.limits.records
    state[parser.NAME_BYTE_LIMIT] = options.limits.name_bytes
    return state


class RecordReader:
    """Reads FASTA or FASTQ, block by block.

    Parameters
    ----------
    file : Input or FilePart
        The open file; the caller closes it.
    is_fastq : bool
        Whether the file is FASTQ rather than FASTA.
    options : RecordOptions
        How it is read. A kept comment, the text after the name on its line, is part of the name.
    expected_bases : int, default 0
        The number of bases to allocate for the first block; the array grows when needed.
    new_arrays : callable, optional
        Returns the arrays of a block; otherwise they are allocated.
    has_lines : bool, default False
        Whether each line is a record.

    Attributes
    ----------
    mode_at_end : int
        The mode of the parser (`parser_state`) at the end of the file, as soon as it is read.
    """

    def __init__(
        self,
        file: Input | FilePart,
        is_fastq: bool,
        options: RecordOptions,
        expected_bases: int = 0,
        new_arrays: Callable[[], BlockArrays] | None = None,
        has_lines: bool = False,
    ) -> None:
        self._is_fastq = is_fastq
        self._options = options
        self._expected_bases = expected_bases
        self._text: ByteArray = np.empty(options.chunk_size + 1 + STEP, dtype=np.uint8)
        self._text[:] = ord("\n")
        self._new_arrays = new_arrays
        self._arrays = BlockArrays()
        self._state = _state_of(options)
        self._state[parser.HAS_LINES] = has_lines
        self._records_before = 0
        self.begin_file(file)

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from the file, counted before decompression."""
        return self._file.source.bytes_read

    @property
    def line(self) -> int:
        """The line on which the text goes on, counted from 1."""
        return int(self._state[parser.LINE])

    @property
    def is_at_end(self) -> bool:
        """Whether all text has been read and parsed; it is not known before a block is read."""
        return self._at_end_of_file and self._at == self._end

    def begin_file(self, file: Input | FilePart, line: int = 1) -> None:
        """Read another file next, which begins with a record; errors count lines from `line` on."""
        self._file = file
        self._path = file.path
        self._at = self._end = 0
        self._at_end_of_file = self._is_in_record = False
        self._state[parser.MODE] = parser.LINE_START
        self._state[parser.LINE] = line
        self._state[parser.STARTED] = self._state[parser.FOREIGN] = 0

    def go_on_in_record(self, is_in_line: bool) -> None:
        """Treat the file as one that continues a record, and perhaps a line of bases."""
        self._is_in_record = True
        self._state[parser.STARTED], self._state[parser.GAP_SYMBOLS] = 1, 0
        if is_in_line:
            self._state[parser.MODE] = parser.SEQUENCE

    def close(self) -> None:
        """Release the arrays of the last block."""
        self._arrays = BlockArrays()

    def next_block(self) -> Records | None:
        """Return the records of the next block in new arrays, at least one; None after the last."""
        state = self._state
        self._records_before += int(state[parser.RECORDS])
        state[parser.RECORDS] = state[parser.BASES] = state[parser.NAME_BYTES] = 0
        self._arrays = self._allocate() if self._new_arrays is None else self._new_arrays()
        if self._options.symbols is not None:
            self._arrays.code_of_byte = self._options.symbols
        if self._is_in_record:
            state[parser.RECORDS] = 1
            self._arrays.offsets[0] = self._arrays.name_offsets[0] = 0
            self._is_in_record = False
        while self._parse() != parser.FULL and not self._at_end_of_file:
            self._refill()
        if state[parser.RECORDS] == 0:
            return None
        return self._finish()

    def _allocate(self) -> BlockArrays:
        limits, chunk_size = self._options.limits, self._options.chunk_size
        room = min(limits.bases, 16 * chunk_size) + chunk_size + 2 * STEP
        bases = max(room, self._expected_bases)
        records = min(limits.records, chunk_size)
        return BlockArrays(bases, records, room, self._options.keeps_qualities)

    def _make_room(self, text_bytes: int) -> None:
        """Make the arrays long enough for any content of `text_bytes` bytes of text."""
        state = self._state
        records = int(state[parser.RECORDS]) + text_bytes // 2 + 1
        self._arrays.make_room(
            int(state[parser.BASES]) + text_bytes,
            min(records, self._options.limits.records),
            int(state[parser.NAME_BYTES]) + text_bytes,
        )

    def _parse(self) -> int:
        """Parse the text in the buffer; return the status of the parser."""
        state = self._state
        state[parser.STATUS] = parser.GOING
        if self._at < self._end:
            self._make_room(self._end - self._at)
            parse = parse_fastq if self._is_fastq else parse_fasta
            self._at = parse(self._text, self._at, self._end, state, self._arrays.columns)
        status = int(state[parser.STATUS])
        if status > parser.FULL:
            raise self._fault(status)
        if self._at_end_of_file and status != parser.FULL:
            self._check_end()
        return status

    def _refill(self) -> None:
        """Read more text; the unparsed rest, at most a carriage return, comes first."""
        text = self._text
        left = self._end - self._at
        text[:left] = text[self._at : self._end]
        count = self._file.text.readinto(text[left : left + self._options.chunk_size].data) or 0
        self._at = 0
        self._end = left + count
        text[self._end] = ord("\n")
        if count == 0:
            self._at_end_of_file = True
            self.mode_at_end = int(self._state[parser.MODE])
            if left > 0 or self._state[parser.MODE] not in parser.LINE_STARTS:
                # The last line had no line end in the file; the parser gets one.
                self._end += 1
                text[self._end] = ord("\n")

    def _finish(self) -> Records:
        state, arrays = self._state, self._arrays
        records, bases = int(state[parser.RECORDS]), int(state[parser.BASES])
        name_bytes = int(state[parser.NAME_BYTES])
        arrays.offsets[records] = bases + int(self._options.has_gaps)
        arrays.name_offsets[records] = name_bytes
        if bases > 16 * self._options.chunk_size:  # The array may be far too long.
            arrays.give_back(bases, records, name_bytes)
        found = arrays.records(records, bases, name_bytes)
        if not self._is_fastq:
            found.qualities[:] = NO_QUALITY
        return found

    def _check_end(self) -> None:
        """Raise an error if the text ends inside a FASTQ record, or its last record is no DNA."""
        if self._is_fastq:
            self._check_end_of_fastq()
        state = self._state
        if state[parser.FOREIGN] > 0 and not state[parser.ANY_LETTERS]:
            foreign = int(state[parser.FOREIGN])
            if parser.is_foreign(foreign, self._letters_of_record()):
                raise self._fault(parser.NOT_DNA)
        state[parser.FOREIGN] = 0  # A second call then finds no fault.

    def _check_end_of_fastq(self) -> None:
        state = self._state
        mode = int(state[parser.MODE])
        if mode == parser.LINE_START:
            return
        if mode == parser.QUALITY_START and self._bases_of_record() == 0:
            state[parser.MODE] = parser.LINE_START
            return
        state[parser.LINE] -= 1
        if mode == parser.QUALITY_START and state[parser.QUALITY] > 0:
            raise self._fault(parser.QUALITY_LENGTH)
        raise self._error("the file ends inside this record")

    def _bases_of_record(self) -> int:
        """Return how many bases the last record has so far, gap symbols included."""
        state = self._state
        records = int(state[parser.RECORDS])
        begin = int(self._arrays.offsets[records - 1]) if records > 0 else 0
        return int(state[parser.BASES]) - begin

    def _letters_of_record(self) -> int:
        """Return how many letters the last record has so far."""
        return self._bases_of_record() - int(self._state[parser.GAP_SYMBOLS])

    def _fault(self, status: int) -> InputError:
        """Return the error that explains why the parser stopped."""
        state = self._state
        character = _describe(int(self._text[self._at]))
        in_quality = status in (parser.BAD_QUALITY, parser.QUALITY_LENGTH)
        if in_quality and state[parser.SUSPECT_LINE] > 0:
            # An earlier quality line that is too short is more likely than one that starts with
            # '@'.
            state[parser.LINE] = state[parser.SUSPECT_LINE] - 1
            state[parser.QUALITY] = state[parser.SUSPECT_QUALITY]
            status = parser.QUALITY_LENGTH
        if status == parser.BAD_START:
            return InputError(self._bad_start(character), self._path, int(state[parser.LINE]))
        if status == parser.QUALITY_LENGTH:
            quality, bases = int(state[parser.QUALITY]), self._bases_of_record()
            return self._error(f"quality has {quality} characters, sequence has {bases}")
        if status == parser.NOT_DNA:
            state[parser.LINE] = state[parser.FOREIGN_LINE]
            foreign, letters = int(state[parser.FOREIGN]), self._letters_of_record()
            return self._error(_NOT_DNA.format(foreign=foreign, letters=letters))
        if status == parser.BAD_SYMBOL:
            place = f"at position {self._bases_of_record() + 1:,}"
            return self._error(f"the symbol {character} {place} is not in the model's alphabet")
        return self._error(_FAULTS[status].format(character=character))

    def _bad_start(self, character: str) -> str:
        if self._is_fastq:
            mixed = " (FASTA and FASTQ mixed?)" if character == "'>'" else ""
            return f"a record begins with {character}, not with '@'{mixed}"
        if self._state[parser.STARTED] == 0:
            return "text before the first line with '>'"
        return f"a line of bases begins with {character} (FASTA and FASTQ mixed?)"

    def _error(self, message: str) -> InputError:
        """Return an error at the current line and record."""
        records = int(self._state[parser.RECORDS])
        name = None
        if records > 0:
            begin = int(self._arrays.name_offsets[records - 1])
            end = int(self._state[parser.NAME_BYTES] - self._state[parser.COMMENT_BYTES])
            name = printable(self._arrays.names[begin:end].tobytes())
            if self._state[parser.HAS_LINES]:
                name = str(self._records_before + records)
        return InputError(message, self._path, int(self._state[parser.LINE]), name)


PROTEIN_HINT: Final = (
    "(protein? 'mummergpu hmmsearch' searches proteins, and 'mummergpu match --any-letters' "
    "compares any letters)"
)
"""The commands for records that are not DNA or RNA."""

_NOT_DNA: Final = (
    "{foreign:,} of {letters:,} letters are neither bases nor IUPAC codes " + PROTEIN_HINT
)

_FAULTS: Final = {
    parser.BARE_RETURN: "carriage return without line feed (old Mac text?)",
    parser.BAD_BASE: "{character} is not a sequence character",
    parser.BLANK_LINE: "blank line inside a record",
    parser.BAD_QUALITY: "{character} is not a quality character",
}


def _describe(byte: int) -> str:
    """Return a byte as it should appear in a message."""
    if 32 < byte < 127:
        return f"'{chr(byte)}'"
    return {9: "a tab", 13: "a carriage return", 32: "a blank"}.get(byte, f"byte 0x{byte:02X}")


def printable(name: bytes, longest: int = 80) -> str:
    """Return a name of any bytes as one line of at most `longest` printable characters."""
    text = name[: longest + 1].decode("utf-8", "replace")
    text = "".join(character if character.isprintable() else "?" for character in text)
    return text if len(name) <= longest else text[:longest] + "..."


def name_of(records: Records, number: int) -> str:
    """Return the name of a record as one line of printable characters, for a message."""
    begin, end = records.name_offsets[number : number + 2]
    return printable(records.names[begin:end].tobytes())


_MARKS: Final[dict[str | None, bytes]] = {
    None: b">",
    **dict.fromkeys(("uniprot", "embl"), b"ID   "),
    **dict.fromkeys(("genbank", "ddbj"), b"LOCUS   "),
}
"""The beginning of the first line of a record, by the format; None is FASTA."""


def line_of_record(path: str, number: int, easel_format: str | None = None) -> int | None:
    """Return the line, counted from 1, on which a record of a file begins; records count from 0.

    It reads the file again, for an error message. None if the file has no lines, as BAM, or cannot
    be read twice, as a pipe.
    """
    with suppress(OSError, ValueError, InputError):
        if path == STANDARD_INPUT or not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with Input(path, word=easel_format) as file:
            mark = _MARKS.get(easel_format)
            if file.format.is_alignment or mark is None:
                return None
            lines = enumerate(io.BufferedReader(file.text), start=1)
            of_fastq = file.format is Format.FASTQ
            headers = _headers_of_fastq(lines) if of_fastq else _headers_of(lines, mark)
            for before, line in enumerate(headers):
                if before == number:
                    return line
    return None


def _headers_of(lines: Iterator[tuple[int, bytes]], mark: bytes) -> Iterator[int]:
    for number, line in lines:
        if line.startswith(mark):
            yield number


def _headers_of_fastq(lines: Iterator[tuple[int, bytes]]) -> Iterator[int]:
    for number, line in lines:
        if not line.strip():
            continue
        yield number
        waiting = 0
        for _, text in lines:
            if text.startswith(b"+"):
                break
            waiting += len(text.strip())
        while waiting > 0 and (quality := next(lines, None)) is not None:
            waiting -= len(quality[1].strip())
