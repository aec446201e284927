"""The FASTA parser: each record has a name and lines of bases."""

from __future__ import annotations

from typing import Final

from mummergpu.input.records.byte_runs import Text
from mummergpu.input.records.fastx import (
    begin_record,
    end_line,
    is_space,
    read_bases,
    read_description,
    read_name,
)
from mummergpu.input.records.parser_state import (
    BAD_START,
    DESCRIPTION,
    GOING,
    LINE_START,
    MODE,
    NAME,
    SEQUENCE,
    STARTED,
    STATUS,
    Offsets,
    State,
)
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.sequence.codes import CodeArray

_GREATER: Final = ord(">")
_AT: Final = ord("@")


@jit_without_refcounts
def parse_fasta(
    text: Text,
    at: int,
    end: int,
    state: State,
    codes: CodeArray,
    offsets: Offsets,
    names: Text,
    name_offsets: Offsets,
) -> int:
    """Parse FASTA from ``text[at:end]``; return the index at which the parser stopped.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Any piece of the text, with a line feed at `end` and `STEP` bytes after that.
    at, end : int
        The range of indices in `text` to parse.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser; its status must be `GOING`.
    codes : ndarray, dtype=uint8
        Receives the base codes; must have space for ``end - at + STEP`` more.
    offsets : ndarray, dtype=int64
        Receives the index in `codes` at which each record begins; must have space for as many
        records as may begin in the range (at most every other byte), up to the limit of the block.
    names : ndarray, dtype=uint8
        Receives the names; must have space for ``end - at + STEP`` more bytes.
    name_offsets : ndarray, dtype=int64
        Receives the index in `names` at which each name begins; as long as `offsets`.

    Returns
    -------
    int
        `end`, or less if ``state[STATUS]`` is no longer `GOING`.
    """
    while at < end and state[STATUS] == GOING:
        mode = state[MODE]
        if mode == SEQUENCE:
            at = read_bases(text, at, end, state, codes, LINE_START, True)
        elif mode == NAME:
            at = read_name(text, at, end, state, names)
        elif mode == DESCRIPTION:
            at = read_description(text, at, end, state, names, LINE_START)
        elif text[at] == _GREATER:
            at = begin_record(at, state, codes, offsets, name_offsets)
        elif state[STARTED] == 1 and text[at] != _AT:
            state[MODE] = SEQUENCE
        elif is_space(text[at]):  # Blank lines before the first record.
            after = end_line(text, at, end, state, LINE_START)
            at = after if after > at or state[STATUS] != GOING else at + 1
        else:
            state[STATUS] = BAD_START
    return at
