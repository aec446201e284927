"""Reads a large FASTA file in pieces, which several threads parse at the same time.

A piece begins with a line, or inside one that is longer than a header may be; then the previous
piece shows whether that is a line of bases. Unusual texts and all faults are left to the parser
that reads the file from beginning to end, so that errors do not depend on how a file is cut.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Executor
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.file_part import plain_part
from mummergpu.input.records.block_arrays import NoRoomError, RecycledMemory, lengthen
from mummergpu.input.records.parser_state import SEQUENCE
from mummergpu.input.records.record_arrays import (
    UNLIMITED_BLOCK,
    RecordOptions,
    Records,
    Spans,
    join_spans,
)
from mummergpu.input.records.record_reader import RecordReader
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import ordered_map
from mummergpu.sequence.codes import MARGIN, CodeArray, fill_margins

PIECE_BYTES: Final = 1 << 21
LONGEST_HEADER: Final = 1 << 16
"""The bytes of a header line after which a file counts as unusual."""

_USUAL_LINE: Final = 1 << 10

LEAST_BYTES: Final = 8 * PIECE_BYTES
"""Smaller files are not worth the threads."""


class UnusualTextError(Exception):
    """The file must be parsed from beginning to end."""


def read_fasta_in_parallel(
    file_number: int, size: int, any_letters: bool, executor: Executor, window: int
) -> Records | None:
    """Read all records of a FASTA file of `size` bytes, with `window` pieces in work.

    They are as from `record_reader.RecordReader` with a break between records, and letters kept;
    None if the file is unusual or has a fault, so that this reader must read it.
    """
    options = RecordOptions(
        UNLIMITED_BLOCK, any_letters=any_letters, keeps_letters=True, has_gaps=True
    )
    room = PIECE_BYTES + LONGEST_HEADER + 2 * options.chunk_size
    memory = RecycledMemory(room, room // 2 + 1, room)
    readers: deque[RecordReader] = deque()
    joined = _JoinedPieces(size)

    def parse(first: int) -> Records | None:
        (begin, is_in_line), (end, ends_in_line) = (
            _line_from(file_number, at, size) for at in (first, first + PIECE_BYTES)
        )
        if begin == end:
            return None
        part = plain_part(file_number, "", begin, end)
        try:
            reader = readers.pop()
            reader.begin_file(part)
        except IndexError:
            reader = RecordReader(part, False, options, new_arrays=memory.new_arrays)
        if begin > 0:
            reader.go_on_in_record(is_in_line)
        try:
            records = reader.next_block()
        except (InputError, NoRoomError):
            raise UnusualTextError from None
        is_whole = reader.bytes_read == end - begin
        is_right = not ends_in_line or reader.mode_at_end == SEQUENCE
        if records is None or not is_whole or not is_right:
            raise UnusualTextError
        reader.close()
        readers.append(reader)
        return records

    try:
        ordered_map(executor, window, range(0, size, PIECE_BYTES), parse, joined.append)
    except UnusualTextError:
        return None
    return joined.finish()


def _line_from(file_number: int, at: int, size: int) -> tuple[int, bool]:
    """Return where the first line begins from a byte of a file on, or that byte of a long line.

    The second value is whether it lies inside a line.
    """
    if at == 0 or at >= size:
        return min(at, size), False
    for window in (min(_USUAL_LINE, LONGEST_HEADER), LONGEST_HEADER):
        text = os.pread(file_number, window, at - 1)
        if (before := text.find(b"\n")) >= 0:
            return at + before, False
    if at - 1 + len(text) >= size:
        return size, False
    # The byte after a carriage return decides whether the line ends there.
    return at + text.startswith(b"\r"), True


class _JoinedPieces:
    """The records of all pieces so far of a file of `size` bytes: each is one base at most."""

    def __init__(self, size: int) -> None:
        self._padded: CodeArray = np.empty(size + 2 * MARGIN, dtype=np.uint8)
        self._bases = 0
        self._offsets: list[Int64Array] = []
        self._names: list[Spans] = []

    def append(self, piece: Records | None) -> None:
        """Append the next piece; all but the first begin with the rest of a record before."""
        if piece is None:
            return
        begin, codes = MARGIN + self._bases, piece.codes
        lengthen(self._padded, begin + codes.size + MARGIN)
        self._padded[begin : begin + codes.size] = codes
        first = 1 if self._names else 0
        self._offsets.append(piece.offsets[first:-1] + self._bases)
        self._names.append(Spans(piece.names.copy(), piece.name_offsets[first:].copy()))
        self._bases += codes.size

    def finish(self) -> Records:
        """Return all records."""
        padded, end = self._padded, np.array([self._bases + 1])
        padded.resize(self._bases + 2 * MARGIN, refcheck=False)
        fill_margins(padded)
        return Records(padded, np.concatenate([*self._offsets, end]), *join_spans(self._names))
