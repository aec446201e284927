"""The FASTQ parser: each record has a name, lines of bases and as many quality characters.

The steps take and return what those of `fastx` do; `begin` is where the record begins in the array
that a step looks at.
"""

from __future__ import annotations

from typing import Final

from mummergpu.input.records import parser_state as parser
from mummergpu.input.records.byte_runs import copy_quality, skip_quality
from mummergpu.input.records.fastx import (
    begin_record,
    end_line,
    read_bases,
    read_description,
    read_name,
    read_symbols,
    skip_description,
)
from mummergpu.input.records.parser_state import Columns
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline, jit

_PLUS: Final = ord("+")
_AT: Final = ord("@")


@inline
def _begin_sequence_line(text: ByteArray, at: int, end: int, state: Int64Array, begin: int) -> int:
    """Decide whether a line holds bases, is blank, or is the line with '+'.

    A record without bases may have a blank line in their place; any other is `BLANK_LINE`.
    """
    if text[at] == _PLUS:
        state[parser.MODE] = parser.PLUS_LINE
        return at + 1
    after = end_line(text, at, end, state, parser.SEQUENCE_START)
    if state[parser.STATUS] != parser.GOING:
        return after
    if state[parser.BLANK] == 1:
        state[parser.STATUS] = parser.BLANK_LINE
    elif after == at:
        state[parser.MODE] = parser.SEQUENCE
    elif state[parser.BASES] > begin:
        state[parser.STATUS] = parser.BLANK_LINE
        state[parser.LINE] -= 1
    else:
        state[parser.BLANK] = 1
    return after


@inline
def _begin_quality_line(text: ByteArray, at: int, end: int, state: Int64Array, begin: int) -> int:
    """Begin a line of quality, unless the record has no bases; a blank line is `QUALITY_LENGTH`.

    A line that starts with '@' is noted, because it could begin the next record.
    """
    if state[parser.BASES] == begin:
        state[parser.MODE] = parser.LINE_START  # Nothing to wait for.
        return at
    after = end_line(text, at, end, state, parser.QUALITY_START)
    if after > at:
        state[parser.STATUS] = parser.QUALITY_LENGTH
        state[parser.LINE] -= 1
    elif state[parser.STATUS] == parser.GOING:
        if text[at] == _AT and state[parser.QUALITY] > 0 and state[parser.SUSPECT_LINE] == 0:
            state[parser.SUSPECT_LINE] = state[parser.LINE]
            state[parser.SUSPECT_QUALITY] = state[parser.QUALITY]
        state[parser.MODE] = state[parser.QUALITY_MODE]
    return after


@inline
def _read_quality(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    begin: int,
    qualities: ByteArray,
    keeps: bool,
) -> int:
    """Count quality characters; the line that completes them ends the record.

    The status becomes `BAD_QUALITY` at another character, and `QUALITY_LENGTH` at the end of a line
    that has too many of them.
    """
    length = state[parser.BASES] - begin
    # What one piece of text has too much, there is room for.
    if keeps and state[parser.QUALITY] < length:
        after = copy_quality(text, at, qualities, begin + state[parser.QUALITY])
    else:
        after = skip_quality(text, at)
    state[parser.QUALITY] += after - at
    at = after
    if at == end:
        return at
    after = end_line(text, at, end, state, parser.QUALITY_START)
    if after == at:
        if state[parser.STATUS] == parser.GOING:
            state[parser.STATUS] = parser.BAD_QUALITY
        return at
    if state[parser.QUALITY] == length:
        state[parser.MODE] = parser.LINE_START
    elif state[parser.QUALITY] > length:
        state[parser.STATUS] = parser.QUALITY_LENGTH
        state[parser.LINE] -= 1
    return after


@inline
def _begin_fastq_record(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    columns: Columns,
) -> int:
    """Begin a record, or skip a blank line; anything but '@' is `BAD_START`."""
    if text[at] == _AT:
        state[parser.QUALITY] = 0
        state[parser.SUSPECT_LINE] = 0
        return begin_record(at, state, columns)
    after = end_line(text, at, end, state, parser.LINE_START)
    if after == at and state[parser.STATUS] == parser.GOING:
        state[parser.STATUS] = parser.BAD_START
    return after


@inline
def _read_bases_part(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    columns: Columns,
) -> int:
    """Parse a piece of the first half of a FASTQ record: the '@', the name and the bases."""
    mode = state[parser.MODE]
    if mode == parser.SEQUENCE:
        if state[parser.LETTERS] == parser.SYMBOLS:
            return read_symbols(text, at, end, state, columns, parser.SEQUENCE_START)
        return read_bases(text, at, end, state, columns.codes, parser.SEQUENCE_START, False)
    if mode == parser.SEQUENCE_START:
        return _begin_sequence_line(
            text, at, end, state, columns.offsets[state[parser.RECORDS] - 1]
        )
    if mode == parser.NAME:
        return read_name(text, at, end, state, columns.names)
    if mode == parser.DESCRIPTION:
        return read_description(text, at, end, state, columns.names, parser.SEQUENCE_START)
    return _begin_fastq_record(text, at, end, state, columns)


@jit
def parse_fastq(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    columns: Columns,
) -> int:
    """Parse FASTQ from ``text[at:end]``, as `parse_fasta` does FASTA."""
    # Modes of the bases come before those of the line with '+' and of the qualities.
    while at < end and state[parser.STATUS] == parser.GOING:
        mode = state[parser.MODE]
        if mode < parser.PLUS_LINE:
            at = _read_bases_part(text, at, end, state, columns)
        elif mode == parser.PLUS_LINE:
            # Programs write another name here than behind '@', which is the one that counts.
            at = skip_description(text, at, end, state, parser.QUALITY_START)
        elif mode == parser.QUALITY_START:
            at = _begin_quality_line(
                text, at, end, state, columns.offsets[state[parser.RECORDS] - 1]
            )
        elif mode == parser.QUALITY_LINE:
            begin = columns.offsets[state[parser.RECORDS] - 1]
            at = _read_quality(text, at, end, state, begin, columns.qualities, False)
        else:
            begin = columns.offsets[state[parser.RECORDS] - 1]
            at = _read_quality(text, at, end, state, begin, columns.qualities, True)
    return at
