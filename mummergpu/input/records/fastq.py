"""The FASTQ parser: each record has a name, lines of bases and as many quality characters."""

from __future__ import annotations

from typing import Final

from mummergpu.input.records.byte_runs import Text, copy_quality, skip_quality
from mummergpu.input.records.fastx import (
    begin_record,
    end_line,
    is_space,
    read_bases,
    read_description,
    read_name,
    skip_description,
)
from mummergpu.input.records.parser_state import (
    BAD_QUALITY,
    BAD_START,
    BASES,
    BLANK,
    BLANK_LINE,
    COMMENT_BYTES,
    DESCRIPTION,
    GOING,
    LINE,
    LINE_START,
    MODE,
    NAME,
    NAME_BYTES,
    OTHER_NAME,
    QUALITY,
    QUALITY_LENGTH,
    QUALITY_LINE,
    QUALITY_MODE,
    QUALITY_START,
    RECORDS,
    REPEATED,
    REPEATED_DESCRIPTION,
    REPEATED_NAME,
    SEQUENCE,
    SEQUENCE_START,
    STATUS,
    SUSPECT_LINE,
    SUSPECT_QUALITY,
    Offsets,
    State,
)
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import CodeArray

_PLUS: Final = ord("+")
_AT: Final = ord("@")


@inline_without_refcounts
def _begin_sequence_line(text: Text, at: int, end: int, state: State, begin: int) -> int:
    """Decide whether a line holds bases, is blank, or is the line with '+'.

    A record without bases may have a blank line in their place.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The piece of text.
    at : int
        The index in `text` of the first byte that has not been read; less than `end`.
    end : int
        Where the piece of text ends.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser. Its status becomes `BLANK_LINE` at a blank line among bases.
    begin : int
        The index in the array of codes of the first base of the record.

    Returns
    -------
    int
        The index in `text` of the first byte that has not been read.
    """
    if text[at] == _PLUS:
        state[REPEATED] = 0
        state[MODE] = REPEATED_NAME
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
def _compare_name(text: Text, at: int, end: int, state: State, names: Text, name_begin: int) -> int:
    """Compare what follows '+' with the name of the record.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The piece of text.
    at : int
        The index in `text` of the first byte that has not been read; less than `end`.
    end : int
        Where the piece of text ends.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser. Its status becomes `OTHER_NAME` where the names differ.
    names : ndarray, dtype=uint8
        The names of the block.
    name_begin : int
        The index in `names` of the first byte of the name of the record.

    Returns
    -------
    int
        The index in `text` of the first byte that has not been read.
    """
    length = state[NAME_BYTES] - state[COMMENT_BYTES] - name_begin
    repeated = state[REPEATED]
    while at < end and not is_space(text[at]):
        if repeated == length or names[name_begin + repeated] != text[at]:
            state[STATUS] = OTHER_NAME
            return at
        repeated += 1
        at += 1
    state[REPEATED] = repeated
    if at < end:
        if repeated != 0 and repeated != length:
            state[STATUS] = OTHER_NAME
        state[MODE] = REPEATED_DESCRIPTION
    return at


@inline_without_refcounts
def _begin_quality_line(text: Text, at: int, end: int, state: State, begin: int) -> int:
    """Begin a line of quality, unless the record has no bases.

    A line that starts with '@' is noted, because it could begin the next record.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The piece of text.
    at : int
        The index in `text` of the first byte that has not been read; less than `end`.
    end : int
        Where the piece of text ends.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser. Its status becomes `QUALITY_LENGTH` at a blank line.
    begin : int
        The index in the array of codes of the first base of the record.

    Returns
    -------
    int
        The index in `text` of the first byte that has not been read.
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
    text: Text, at: int, end: int, state: State, begin: int, qualities: Text, keeps: bool
) -> int:
    """Count quality characters; the line that completes them ends the record.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The piece of text, with `byte_runs.STEP` bytes after its end.
    at : int
        The index in `text` of the first byte that has not been read; less than `end`.
    end : int
        Where the piece of text ends.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser. Its status becomes `BAD_QUALITY` at another character, and
        `QUALITY_LENGTH` at the end of a line that has too many of them.
    begin : int
        The index in the array of codes of the first base of the record.
    qualities : ndarray, dtype=uint8
        Receives the qualities at the indices of the bases, if they are kept.
    keeps : bool
        Whether they are kept.

    Returns
    -------
    int
        The index in `text` of the first byte that has not been read.
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
    text: Text,
    at: int,
    end: int,
    state: State,
    codes: CodeArray,
    offsets: Offsets,
    name_offsets: Offsets,
) -> int:
    """Begin a record, or skip a blank line.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The piece of text.
    at : int
        The index in `text` of the first byte that has not been read; less than `end`.
    end : int
        Where the piece of text ends.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser. Its status becomes `BAD_START` at a character other than '@'.
    codes : ndarray, dtype=uint8
        Receives the base codes.
    offsets : ndarray, dtype=int64
        Receives the index in `codes` at which each record begins.
    name_offsets : ndarray, dtype=int64
        Receives the index in the array of names at which each name begins.

    Returns
    -------
    int
        The index in `text` of the first byte that has not been read.
    """
    if text[at] == _AT:
        state[QUALITY] = 0
        state[SUSPECT_LINE] = 0
        return begin_record(at, state, codes, offsets, name_offsets)
    after = end_line(text, at, end, state, LINE_START)
    if after == at and state[STATUS] == GOING:
        state[STATUS] = BAD_START
    return after


@inline_without_refcounts
def _read_bases_part(
    text: Text,
    at: int,
    end: int,
    state: State,
    codes: CodeArray,
    offsets: Offsets,
    names: Text,
    name_offsets: Offsets,
) -> int:
    """Parse a piece of the first half of a FASTQ record: the '@', the name and the bases.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The piece of text, with `byte_runs.STEP` bytes after its end.
    at : int
        The index in `text` of the first byte that has not been read; less than `end`.
    end : int
        Where the piece of text ends.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The state of the parser.
    codes : ndarray, dtype=uint8
        Receives the base codes.
    offsets : ndarray, dtype=int64
        Receives the index in `codes` at which each record begins.
    names : ndarray, dtype=uint8
        Receives the names.
    name_offsets : ndarray, dtype=int64
        Receives the index in `names` at which each name begins.

    Returns
    -------
    int
        The index in `text` of the first byte that has not been read.
    """
    mode = state[MODE]
    if mode == SEQUENCE:
        return read_bases(text, at, end, state, codes, SEQUENCE_START, False)
    if mode == SEQUENCE_START:
        return _begin_sequence_line(text, at, end, state, offsets[state[RECORDS] - 1])
    if mode == NAME:
        return read_name(text, at, end, state, names)
    if mode == DESCRIPTION:
        return read_description(text, at, end, state, names, SEQUENCE_START)
    return _begin_fastq_record(text, at, end, state, codes, offsets, name_offsets)


@jit_without_refcounts
def parse_fastq(
    text: Text,
    at: int,
    end: int,
    state: State,
    codes: CodeArray,
    offsets: Offsets,
    names: Text,
    name_offsets: Offsets,
    qualities: Text,
) -> int:
    """Parse FASTQ from ``text[at:end]``; return the index at which the parser stopped.

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
    qualities : ndarray, dtype=uint8
        Receives the qualities, 0 to 93, at the indices of their bases, if ``state[QUALITY_MODE]``
        is `KEPT_QUALITY_LINE`; must have as much space as `codes` then.

    Returns
    -------
    int
        `end`, or less if ``state[STATUS]`` is no longer `GOING`.
    """
    while at < end and state[STATUS] == GOING:
        mode = state[MODE]
        if mode < REPEATED_NAME:
            at = _read_bases_part(text, at, end, state, codes, offsets, names, name_offsets)
        elif mode == REPEATED_NAME:
            begin = name_offsets[state[RECORDS] - 1]
            at = _compare_name(text, at, end, state, names, begin)
        elif mode == REPEATED_DESCRIPTION:
            at = skip_description(text, at, end, state, QUALITY_START)
        elif mode == QUALITY_START:
            at = _begin_quality_line(text, at, end, state, offsets[state[RECORDS] - 1])
        elif mode == QUALITY_LINE:
            begin = offsets[state[RECORDS] - 1]
            at = _read_quality(text, at, end, state, begin, qualities, False)
        else:
            begin = offsets[state[RECORDS] - 1]
            at = _read_quality(text, at, end, state, begin, qualities, True)
    return at
