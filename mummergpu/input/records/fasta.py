"""The FASTA parser: each record has a name and lines of bases."""

from __future__ import annotations

from typing import Final

from mummergpu.input.records import parser_state as parser
from mummergpu.input.records.fastx import (
    begin_line,
    begin_record,
    end_line,
    is_space,
    read_bases,
    read_description,
    read_name,
    read_residues,
    read_symbols,
)
from mummergpu.input.records.parser_state import Columns
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import jit

_GREATER: Final = ord(">")
_AT: Final = ord("@")


@jit
def parse_fasta(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    columns: Columns,
) -> int:
    """Parse FASTA from ``text[at:end]``; return the index at which the parser stopped.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Any piece of the text, with a line feed at `end` and `STEP` bytes after that.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser; its status must be `GOING`.

    Returns
    -------
    int
        `end`, or less if ``state[STATUS]`` is no longer `GOING`.
    """
    while at < end and state[parser.STATUS] == parser.GOING:
        mode = state[parser.MODE]
        if mode == parser.SEQUENCE:
            if state[parser.LETTERS] == parser.NUCLEOTIDES:
                at = read_bases(text, at, end, state, columns.codes, parser.LINE_START, True)
            elif state[parser.LETTERS] == parser.AMINO_ACIDS:
                at = read_residues(text, at, end, state, columns.codes, parser.LINE_START)
            else:
                at = read_symbols(text, at, end, state, columns, parser.LINE_START)
        elif mode == parser.NAME:
            at = read_name(text, at, end, state, columns.names)
        elif mode == parser.DESCRIPTION:
            at = read_description(text, at, end, state, columns.names, parser.LINE_START)
        elif state[parser.HAS_LINES] == 1:
            at = begin_line(text, at, end, state, columns)
        elif text[at] == _GREATER:
            at = begin_record(at, state, columns)
        elif state[parser.STARTED] == 1 and (
            text[at] != _AT or state[parser.LETTERS] == parser.SYMBOLS
        ):
            state[parser.MODE] = parser.SEQUENCE
        elif is_space(text[at]):  # Blank lines before the first record.
            after = end_line(text, at, end, state, parser.LINE_START)
            at = after if after > at or state[parser.STATUS] != parser.GOING else at + 1
        else:
            state[parser.STATUS] = parser.BAD_START
    return at
