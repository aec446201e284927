"""The FASTA parser: each record has a name and lines of bases."""

from __future__ import annotations

from typing import Final

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
from mummergpu.input.records.parser_state import (
    AMINO_ACIDS,
    BAD_START,
    DESCRIPTION,
    GOING,
    HAS_LINES,
    LETTERS,
    LINE_START,
    MODE,
    NAME,
    NUCLEOTIDES,
    SEQUENCE,
    STARTED,
    STATUS,
    SYMBOLS,
    Columns,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import jit_without_refcounts

_GREATER: Final = ord(">")
_AT: Final = ord("@")


@jit_without_refcounts
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
    while at < end and state[STATUS] == GOING:
        mode = state[MODE]
        if mode == SEQUENCE:
            if state[LETTERS] == NUCLEOTIDES:
                at = read_bases(text, at, end, state, columns.codes, LINE_START, True)
            elif state[LETTERS] == AMINO_ACIDS:
                at = read_residues(text, at, end, state, columns.codes, LINE_START)
            else:
                at = read_symbols(text, at, end, state, columns, LINE_START)
        elif mode == NAME:
            at = read_name(text, at, end, state, columns.names)
        elif mode == DESCRIPTION:
            at = read_description(text, at, end, state, columns.names, LINE_START)
        elif state[HAS_LINES] == 1:
            at = begin_line(text, at, end, state, columns)
        elif text[at] == _GREATER:
            at = begin_record(at, state, columns)
        elif state[STARTED] == 1 and (text[at] != _AT or state[LETTERS] == SYMBOLS):
            state[MODE] = SEQUENCE
        elif is_space(text[at]):  # Blank lines before the first record.
            after = end_line(text, at, end, state, LINE_START)
            at = after if after > at or state[STATUS] != GOING else at + 1
        else:
            state[STATUS] = BAD_START
    return at
