"""Reads a large FASTA file in pieces, which several threads parse at the same time.

A piece may begin in the middle of a record: its parser starts as if a record had begun before. A
piece that ends inside a header goes on to the end of that line, where the next one begins. Whatever
is unusual, and every fault, is left to the parser that reads the file from beginning to end, so
that errors do not depend on how a file is cut.
"""

from __future__ import annotations

from concurrent.futures import Executor
from queue import SimpleQueue
from typing import Final

import numpy as np

from mummergpu.input.bytes.file_part import read_into
from mummergpu.input.records import parser_state
from mummergpu.input.records.block_arrays import BlockArrays, lengthen
from mummergpu.input.records.byte_runs import STEP
from mummergpu.input.records.fasta import parse_fasta
from mummergpu.input.records.record_arrays import UNLIMITED_BLOCK, RecordOptions, Records
from mummergpu.input.records.record_reader import state_of
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.ordered_map import ordered_map
from mummergpu.sequence.codes import MARGIN, CodeArray, fill_margins

PIECE_BYTES: Final = 1 << 21
LONGEST_HEADER: Final = 1 << 16
"""The bytes of a header line after which a file counts as unusual."""

LEAST_BYTES: Final = 8 * PIECE_BYTES
"""Smaller files are not worth the threads."""

_LINE_FEED: Final = ord("\n")
_CARRIAGE_RETURN: Final = ord("\r")
_GREATER: Final = ord(">")


class UnusualTextError(Exception):
    """The file must be parsed from beginning to end."""


@frozen
class ParsedPiece:
    """A parsed piece of a file: a range of its bytes, and its records.

    The parser was in `begin_mode` at its beginning, as was assumed. Before each record that begins
    in the piece there is a break in `codes`, but not before the first record of a file.
    """

    begin: int
    end: int
    begin_mode: int
    end_mode: int
    codes: CodeArray
    offsets: Int64Array
    names: ByteArray
    name_offsets: Int64Array


def read_fasta_in_parallel(
    file_number: int, size: int, any_letters: bool, executor: Executor, window: int
) -> Records | None:
    """Read all records of a FASTA file of `size` bytes, with `window` pieces under way.

    They are as `record_reader.RecordReader` returns them with a break between two records, and
    letters kept; None if the file is unusual or has a fault, so that the reader must read it.
    """
    joined = _JoinedPieces(size)
    buffers: SimpleQueue[PieceBuffers] = SimpleQueue()
    for _ in range(window + 1):
        buffers.put(PieceBuffers())

    def parse(begin: int) -> tuple[ParsedPiece, PieceBuffers]:
        own = buffers.get()
        return parse_piece(file_number, begin, size, any_letters, own), own

    def append(parsed: tuple[ParsedPiece, PieceBuffers]) -> None:
        joined.append(parsed[0])
        buffers.put(parsed[1])

    try:
        ordered_map(executor, window, range(0, size, PIECE_BYTES), parse, append)
        return joined.finish()
    except UnusualTextError:
        return None


class PieceBuffers:
    """The arrays of a piece, used for one piece after the other: new memory is slow to come by."""

    def __init__(self) -> None:
        room = PIECE_BYTES + 3 * LONGEST_HEADER + 4 * STEP
        self.text: ByteArray = np.empty(room, dtype=np.uint8)
        self.columns = BlockArrays(room, room // 2 + 1, room).columns


def parse_piece(
    file_number: int, begin: int, size: int, any_letters: bool, buffers: PieceBuffers
) -> ParsedPiece:
    """Parse a piece of a FASTA file that begins at byte `begin`; its arrays are those of `buffers`.

    It comes without the end of a header in which it begins, and with the end of a header in which
    it ends.

    Raises
    ------
    UnusualTextError
        If the piece has a fault or a very long header line.
    """
    first = max(0, begin - LONGEST_HEADER)
    last = min(size, begin + PIECE_BYTES + LONGEST_HEADER)
    text = buffers.text
    text[last - first : last - first + 2 + STEP] = _LINE_FEED
    if read_into(file_number, text[: last - first].data, first) < last - first:
        raise UnusualTextError
    at, mode = _begin_of_piece(text, begin - first)
    end = min(size, begin + PIECE_BYTES) - first
    if end == size - first and text[end - 1] != _LINE_FEED:
        end += 1
    end = max(end, at)
    state = _state_of_piece(mode, begin > 0, any_letters)
    end = _parse_to_line_end(buffers, at, end, last - first, end >= size - first, state)
    columns = buffers.columns
    _refuse_foreign_letters(state, columns.offsets, any_letters)
    own = 0 if begin == 0 else 1
    records, name_bytes = int(state[parser_state.RECORDS]), int(state[parser_state.NAME_BYTES])
    return ParsedPiece(
        at + first,
        min(size, end + first),
        mode,
        int(state[parser_state.MODE]),
        columns.codes[: int(state[parser_state.BASES])],
        columns.offsets[own:records],
        columns.names[:name_bytes],
        columns.name_offsets[own:records],
    )


def _state_of_piece(mode: int, goes_on: bool, any_letters: bool) -> Int64Array:
    """Return the state in which the parser begins; `goes_on` if it is inside a record."""
    state = state_of(
        RecordOptions(UNLIMITED_BLOCK, any_letters=any_letters, keeps_letters=True, has_gaps=True)
    )
    state[parser_state.MODE] = mode
    if goes_on:
        state[parser_state.STARTED] = state[parser_state.RECORDS] = 1
    return state


def _parse_to_line_end(
    buffers: PieceBuffers, at: int, end: int, text_end: int, is_at_end: bool, state: Int64Array
) -> int:
    """Parse a piece, and the rest of a header in which it ends; return where the text ends.

    The piece is ``text[at:end]``; what was read of the file ends at `text_end`.
    Raise `UnusualTextError` if the piece has a fault or a very long header line.
    """
    text = buffers.text
    buffers.columns.offsets[0] = buffers.columns.name_offsets[0] = 0
    while True:
        # Behind the text that is parsed lies a line feed, which is put back afterwards.
        kept, text[end] = text[end], _LINE_FEED
        if at < end:
            at = parse_fasta(text, at, end, state, buffers.columns)
        text[end] = kept
        if state[parser_state.STATUS] == parser_state.WAITING and not is_at_end:
            # A carriage return, whose line feed belongs to this piece, too.
            state[parser_state.STATUS] = parser_state.GOING
            end += 1
            continue
        if state[parser_state.STATUS] != parser_state.GOING or state[parser_state.BLANK]:
            raise UnusualTextError
        modes_of_line_end = (parser_state.LINE_START, parser_state.SEQUENCE)
        if is_at_end or state[parser_state.MODE] in modes_of_line_end:
            return end
        header = np.flatnonzero(text[end:text_end] == _LINE_FEED)
        if header.size == 0:
            raise UnusualTextError
        end += int(header[0]) + 1


def _begin_of_piece(text: ByteArray, begin: int) -> tuple[int, int]:
    """Return where the parser of a piece begins, and in which mode.

    A position in the middle of a line is one of bases, unless the line begins with '>'. If the line
    is longer than a header may be, it counts as one of bases; the piece before shows whether it is.
    """
    if begin == 0 or text[begin - 1] == _LINE_FEED:
        return begin, parser_state.LINE_START
    if text[begin - 1] == _CARRIAGE_RETURN and text[begin] == _LINE_FEED:
        return begin + 1, parser_state.LINE_START
    feeds = np.flatnonzero(text[:begin] == _LINE_FEED)
    line = int(feeds[-1]) + 1 if feeds.size else (0 if begin < LONGEST_HEADER else -1)
    if line < 0 or text[line] != _GREATER:
        return begin, parser_state.SEQUENCE
    following = np.flatnonzero(text[begin : begin + LONGEST_HEADER] == _LINE_FEED)
    if following.size == 0:
        raise UnusualTextError
    return begin + int(following[0]) + 1, parser_state.LINE_START


def _refuse_foreign_letters(state: Int64Array, offsets: Int64Array, any_letters: bool) -> None:
    """Raise an error if the last record, as far as it lies in the piece, may be no DNA.

    If more than a tenth of a record's letters are foreign, so are those of one of its pieces.
    """
    foreign = int(state[parser_state.FOREIGN])
    if foreign == 0 or any_letters:
        return
    begin = int(offsets[int(state[parser_state.RECORDS]) - 1])
    letters = int(state[parser_state.BASES]) - begin - int(state[parser_state.GAP_SYMBOLS])
    if parser_state.is_foreign(foreign, letters):
        raise UnusualTextError


class _JoinedPieces:
    """The records of all pieces so far of a file of `size` bytes: each is one base at most."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._padded: CodeArray = np.empty(size + 2 * MARGIN, dtype=np.uint8)
        self._bases = 0
        self._name_bytes = 0
        self._end = 0
        self._mode = parser_state.LINE_START
        self._offsets: list[Int64Array] = []
        self._names: list[ByteArray] = []
        self._name_offsets: list[Int64Array] = []

    def append(self, piece: ParsedPiece) -> None:
        """Append the next piece; raise `UnusualTextError` if it does not begin where it should."""
        if (piece.begin, piece.begin_mode) != (self._end, self._mode):
            raise UnusualTextError
        begin = MARGIN + self._bases
        lengthen(self._padded, begin + piece.codes.size + MARGIN)
        self._padded[begin : begin + piece.codes.size] = piece.codes
        self._offsets.append(piece.offsets + self._bases)
        self._name_offsets.append(piece.name_offsets + self._name_bytes)
        self._names.append(piece.names.copy())
        self._bases += piece.codes.size
        self._name_bytes += piece.names.size
        self._end, self._mode = piece.end, piece.end_mode

    def finish(self) -> Records:
        """Return all records."""
        bases = self._bases
        offsets = np.concatenate([*self._offsets, np.array([bases + 1])])
        if self._end < self._size or offsets.size == 1:
            raise UnusualTextError
        padded = self._padded
        padded.resize(bases + 2 * MARGIN, refcheck=False)
        fill_margins(padded)
        return Records(
            padded,
            offsets,
            np.concatenate(self._names),
            np.concatenate([*self._name_offsets, np.array([self._name_bytes])]),
        )
