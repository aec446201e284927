"""The FASTQ parser: each record has a name, lines of bases and as many quality characters.

The steps take and return what those of `fastx` do; `begin` is where the record begins in the array
that a step looks at.
"""

from __future__ import annotations

from typing import Final

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
from mummergpu.input.records.parser_state import (
    BAD_QUALITY,
    BAD_START,
    BASES,
    BLANK,
    BLANK_LINE,
    DESCRIPTION,
    GOING,
    LETTERS,
    LINE,
    LINE_START,
    MODE,
    NAME,
    PLUS_LINE,
    QUALITY,
    QUALITY_LENGTH,
    QUALITY_LINE,
    QUALITY_MODE,
    QUALITY_START,
    RECORDS,
    SEQUENCE,
    SEQUENCE_START,
    STATUS,
    SUSPECT_LINE,
    SUSPECT_QUALITY,
    SYMBOLS,
    Columns,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts

_PLUS: Final = ord("+")
_AT: Final = ord("@")


@inline_without_refcounts
def _begin_sequence_line(text: ByteArray, at: int, end: int, state: Int64Array, begin: int) -> int:
    """Decide whether a line holds bases, is blank, or is the line with '+'.

    A record without bases may have a blank line in their place; any other is `BLANK_LINE`.
    """
    if text[at] == _PLUS:
        state[MODE] = PLUS_LINE
        return at + 1
    after = end_line(text, at, end, state, SEQUENCE_START)
    if state[STATUS] != GOING:
        return after
    if state[BLANK] == 1:
        state[STATUS] = BLANK_LINE
    elif after == at:
        state[MODE] = SEQUENCE
    elif state[BASES] > begin:
        state[STATUS] = BLANK_LINE
        state[LINE] -= 1
    else:
        state[BLANK] = 1
    return after


@inline_without_refcounts
def _begin_quality_line(text: ByteArray, at: int, end: int, state: Int64Array, begin: int) -> int:
    """Begin a line of quality, unless the record has no bases; a blank line is `QUALITY_LENGTH`.

    A line that starts with '@' is noted, because it could begin the next record.
    """
    if state[BASES] == begin:
        state[MODE] = LINE_START  # Nothing to wait for.
        return at
    after = end_line(text, at, end, state, QUALITY_START)
    if after > at:
        state[STATUS] = QUALITY_LENGTH
        state[LINE] -= 1
    elif state[STATUS] == GOING:
        if text[at] == _AT and state[QUALITY] > 0 and state[SUSPECT_LINE] == 0:
            state[SUSPECT_LINE] = state[LINE]
            state[SUSPECT_QUALITY] = state[QUALITY]
        state[MODE] = state[QUALITY_MODE]
    return after


@inline_without_refcounts
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
    length = state[BASES] - begin
    # What one piece of text has too much, there is room for.
    if keeps and state[QUALITY] < length:
        after = copy_quality(text, at, qualities, begin + state[QUALITY])
    else:
        after = skip_quality(text, at)
    state[QUALITY] += after - at
    at = after
    if at == end:
        return at
    after = end_line(text, at, end, state, QUALITY_START)
    if after == at:
        if state[STATUS] == GOING:
            state[STATUS] = BAD_QUALITY
        return at
    if state[QUALITY] == length:
        state[MODE] = LINE_START
    elif state[QUALITY] > length:
        state[STATUS] = QUALITY_LENGTH
        state[LINE] -= 1
    return after


@inline_without_refcounts
def _begin_fastq_record(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    columns: Columns,
) -> int:
    """Begin a record, or skip a blank line; anything but '@' is `BAD_START`."""
    if text[at] == _AT:
        state[QUALITY] = 0
        state[SUSPECT_LINE] = 0
        return begin_record(at, state, columns)
    after = end_line(text, at, end, state, LINE_START)
    if after == at and state[STATUS] == GOING:
        state[STATUS] = BAD_START
    return after


@inline_without_refcounts
def _read_bases_part(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    columns: Columns,
) -> int:
    """Parse a piece of the first half of a FASTQ record: the '@', the name and the bases."""
    mode = state[MODE]
    if mode == SEQUENCE:
        if state[LETTERS] == SYMBOLS:
            return read_symbols(text, at, end, state, columns, SEQUENCE_START)
        return read_bases(text, at, end, state, columns.codes, SEQUENCE_START, False)
    if mode == SEQUENCE_START:
        return _begin_sequence_line(text, at, end, state, columns.offsets[state[RECORDS] - 1])
    if mode == NAME:
        return read_name(text, at, end, state, columns.names)
    if mode == DESCRIPTION:
        return read_description(text, at, end, state, columns.names, SEQUENCE_START)
    return _begin_fastq_record(text, at, end, state, columns)


@jit_without_refcounts
def parse_fastq(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    columns: Columns,
) -> int:
    """Parse FASTQ from ``text[at:end]``, as `parse_fasta` does FASTA."""
    # Modes of the bases come before those of the line with '+' and of the qualities.
    while at < end and state[STATUS] == GOING:
        mode = state[MODE]
        if mode < PLUS_LINE:
            at = _read_bases_part(text, at, end, state, columns)
        elif mode == PLUS_LINE:
            # Programs write another name here than behind '@', which is the one that counts.
            at = skip_description(text, at, end, state, QUALITY_START)
        elif mode == QUALITY_START:
            at = _begin_quality_line(text, at, end, state, columns.offsets[state[RECORDS] - 1])
        elif mode == QUALITY_LINE:
            begin = columns.offsets[state[RECORDS] - 1]
            at = _read_quality(text, at, end, state, begin, columns.qualities, False)
        else:
            begin = columns.offsets[state[RECORDS] - 1]
            at = _read_quality(text, at, end, state, begin, columns.qualities, True)
    return at
