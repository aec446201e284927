"""FASTA and FASTQ as two small machines that take their text in pieces of any size.

A machine stands in one of a few modes (in a name, at the start of a line of bases, ...) and
keeps everything it must remember in an array of numbers, its state. So a record, a line or
a name may be cut anywhere between two pieces, and none has to fit into a buffer. Bases are
encoded on the way, straight into the arrays that are handed on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.input.byte_runs import Text, copy_name, encode_letters, skip_quality, skip_text
from mummergpu.runtime.jit import compiled_borrower, inlined_borrower
from mummergpu.sequence.codes import BREAK, CodeArray

State = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int64]

# What a state holds, by index.
MODE: Final = 0
STATUS: Final = 1
LINE: Final = 2  # the line that `at` lies on, counted from 1
STARTED: Final = 3  # 1 as soon as a record has begun
RECORDS: Final = 4  # of this block, as are the next two
BASES: Final = 5
NAME_BYTES: Final = 6
GAP: Final = 7  # 1 if a break is put between two records
RECORD_LIMIT: Final = 8  # a block is full as soon as it reaches one of the limits
BASE_LIMIT: Final = 9
NAME_BYTE_LIMIT: Final = 10
REPEATED: Final = 11  # how much of the name the line with '+' has repeated
BLANK: Final = 12  # 1 behind a blank line where the bases should be
QUALITY: Final = 13  # quality characters of the record
SUSPECT_LINE: Final = 14  # a later quality line with '@' in front, 0 if there is none
SUSPECT_QUALITY: Final = 15  # the quality characters before it
STATE_SIZE: Final = 16

# The modes of FASTA and FASTQ, then those of FASTQ alone.
LINE_START: Final = 0
NAME: Final = 1
DESCRIPTION: Final = 2
SEQUENCE: Final = 3
SEQUENCE_START: Final = 4
REPEATED_NAME: Final = 5
REPEATED_DESCRIPTION: Final = 6
QUALITY_START: Final = 7
QUALITY_LINE: Final = 8

LINE_STARTS: Final = (LINE_START, SEQUENCE_START, QUALITY_START)
"""The modes in which the last line has ended."""

# Why a machine has stopped: for more text, at a record that opens the next block, ...
GOING: Final = 0
WAITING: Final = 1
FULL: Final = 2
# ... or because of a fault in the text, at the byte that it returns.
BARE_RETURN: Final = 3
BAD_BASE: Final = 4
BAD_START: Final = 5
BLANK_LINE: Final = 6
OTHER_NAME: Final = 7
BAD_QUALITY: Final = 8
QUALITY_LENGTH: Final = 9

_LINE_FEED: Final = 10
_CARRIAGE_RETURN: Final = 13
_BLANK: Final = 32
_STAR: Final = ord("*")
_PLUS: Final = ord("+")
_MINUS: Final = ord("-")
_DOT: Final = ord(".")
_GREATER: Final = ord(">")
_AT: Final = ord("@")


@inlined_borrower
def _is_space(byte: int) -> bool:
    """As ``isspace`` of C: blank, tab, line feed, vertical tab, form feed, return."""
    return byte == _BLANK or 9 <= byte <= 13


@inlined_borrower
def _end_line(text: Text, at: int, end: int, state: State, mode: int) -> int:
    """Step over the end of a line, if there is one at `at`, into `mode`."""
    if text[at] == _CARRIAGE_RETURN:
        if at + 1 == end:
            state[STATUS] = WAITING
            return at
        if text[at + 1] != _LINE_FEED:
            state[STATUS] = BARE_RETURN
            return at
        at += 1
    elif text[at] != _LINE_FEED:
        return at
    state[LINE] += 1
    state[MODE] = mode
    return at + 1


@inlined_borrower
def _begin_record(
    at: int, state: State, codes: CodeArray, offsets: Offsets, name_offsets: Offsets
) -> int:
    """Open a record behind the mark at `at`, unless the block is full."""
    records = state[RECORDS]
    if records > 0:
        if (
            records >= state[RECORD_LIMIT]
            or state[BASES] >= state[BASE_LIMIT]
            or state[NAME_BYTES] >= state[NAME_BYTE_LIMIT]
        ):
            state[STATUS] = FULL
            return at
        if state[GAP] == 1:
            codes[state[BASES]] = BREAK
            state[BASES] += 1
    offsets[records] = state[BASES]
    name_offsets[records] = state[NAME_BYTES]
    state[RECORDS] = records + 1
    state[STARTED] = 1
    state[BLANK] = 0
    state[MODE] = NAME
    return at + 1


@inlined_borrower
def _read_name(text: Text, at: int, end: int, state: State, names: Text) -> int:
    begin = at
    to = state[NAME_BYTES]
    at = copy_name(text, at, names, to)
    if at < end:
        if _is_space(text[at]):
            state[MODE] = DESCRIPTION
        else:  # Other control bytes are copied too.
            at += 1
    state[NAME_BYTES] = to + at - begin
    return at


@inlined_borrower
def _skip_description(text: Text, at: int, end: int, state: State, mode: int) -> int:
    at = skip_text(text, at)
    if at == end:
        return at
    after = _end_line(text, at, end, state, mode)
    if after == at and state[STATUS] == GOING:
        return at + 1  # A tab or another control byte.
    return after


@inlined_borrower
def _read_bases(
    text: Text, at: int, end: int, state: State, codes: CodeArray, mode: int, with_spaces: bool
) -> int:
    """Encode up to the first byte that is no letter, and deal with that."""
    begin = at
    to = state[BASES]
    at = encode_letters(text, at, codes, to)
    to += at - begin
    state[BASES] = to
    if at == end:
        return at
    after = _end_line(text, at, end, state, mode)
    if after > at or state[STATUS] != GOING:
        return after
    byte = text[at]
    if byte == _STAR or byte == _MINUS or byte == _DOT:
        codes[to] = BREAK
        state[BASES] = to + 1
    elif not (with_spaces and _is_space(byte)):
        state[STATUS] = BAD_BASE
        return at
    return at + 1


@compiled_borrower
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
    """Take FASTA from ``text[at:end]``; see `parse_fastq`."""
    while at < end and state[STATUS] == GOING:
        mode = state[MODE]
        if mode == SEQUENCE:
            at = _read_bases(text, at, end, state, codes, LINE_START, True)
        elif mode == NAME:
            at = _read_name(text, at, end, state, names)
        elif mode == DESCRIPTION:
            at = _skip_description(text, at, end, state, LINE_START)
        elif text[at] == _GREATER:
            at = _begin_record(at, state, codes, offsets, name_offsets)
        elif state[STARTED] == 1 and text[at] != _AT:
            state[MODE] = SEQUENCE
        elif _is_space(text[at]):  # Blank lines before the first record.
            after = _end_line(text, at, end, state, LINE_START)
            at = after if after > at or state[STATUS] != GOING else at + 1
        else:
            state[STATUS] = BAD_START
    return at


@inlined_borrower
def _begin_sequence_line(text: Text, at: int, end: int, state: State, begin: int) -> int:
    """Tell a line of bases, a blank line and the line with '+' from each other.

    A record without bases may have a blank line in their place.
    """
    if text[at] == _PLUS:
        state[REPEATED] = 0
        state[MODE] = REPEATED_NAME
        return at + 1
    after = _end_line(text, at, end, state, SEQUENCE_START)
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


@inlined_borrower
def _compare_name(text: Text, at: int, end: int, state: State, names: Text, name_begin: int) -> int:
    """Hold what stands behind '+' against the name of the record."""
    length = state[NAME_BYTES] - name_begin
    repeated = state[REPEATED]
    while at < end and not _is_space(text[at]):
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


@inlined_borrower
def _begin_quality_line(text: Text, at: int, end: int, state: State, begin: int) -> int:
    """Note a line that could be the next record's; a blank line is none of quality."""
    if state[BASES] == begin:
        state[MODE] = LINE_START  # Nothing to wait for.
        return at
    after = _end_line(text, at, end, state, QUALITY_START)
    if after > at:
        state[STATUS] = QUALITY_LENGTH
        state[LINE] -= 1
    elif state[STATUS] == GOING:
        if text[at] == _AT and state[QUALITY] > 0 and state[SUSPECT_LINE] == 0:
            state[SUSPECT_LINE] = state[LINE]
            state[SUSPECT_QUALITY] = state[QUALITY]
        state[MODE] = QUALITY_LINE
    return after


@inlined_borrower
def _read_quality(text: Text, at: int, end: int, state: State, begin: int) -> int:
    """Count quality characters; the record ends with the line that completes them."""
    after = skip_quality(text, at)
    state[QUALITY] += after - at
    at = after
    if at == end:
        return at
    after = _end_line(text, at, end, state, QUALITY_START)
    if after == at:
        if state[STATUS] == GOING:
            state[STATUS] = BAD_QUALITY
        return at
    length = state[BASES] - begin
    if state[QUALITY] == length:
        state[MODE] = LINE_START
    elif state[QUALITY] > length:
        state[STATUS] = QUALITY_LENGTH
        state[LINE] -= 1
    return after


@inlined_borrower
def _begin_fastq_record(
    text: Text,
    at: int,
    end: int,
    state: State,
    codes: CodeArray,
    offsets: Offsets,
    name_offsets: Offsets,
) -> int:
    """Open a record, or step over a blank line."""
    if text[at] == _AT:
        state[QUALITY] = 0
        state[SUSPECT_LINE] = 0
        return _begin_record(at, state, codes, offsets, name_offsets)
    after = _end_line(text, at, end, state, LINE_START)
    if after == at and state[STATUS] == GOING:
        state[STATUS] = BAD_START
    return after


@inlined_borrower
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
    """Take a piece of the first half of a FASTQ record: mark, name and bases."""
    mode = state[MODE]
    if mode == SEQUENCE:
        return _read_bases(text, at, end, state, codes, SEQUENCE_START, False)
    if mode == SEQUENCE_START:
        return _begin_sequence_line(text, at, end, state, offsets[state[RECORDS] - 1])
    if mode == NAME:
        return _read_name(text, at, end, state, names)
    if mode == DESCRIPTION:
        return _skip_description(text, at, end, state, SEQUENCE_START)
    return _begin_fastq_record(text, at, end, state, codes, offsets, name_offsets)


@compiled_borrower
def parse_fastq(
    text: Text,
    at: int,
    end: int,
    state: State,
    codes: CodeArray,
    offsets: Offsets,
    names: Text,
    name_offsets: Offsets,
) -> int:
    """Take FASTQ from ``text[at:end]``; return where the machine has stopped.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Any piece of the text, with a line feed at `end` and `STEP` bytes behind that.
    at, end : int
        The range to take.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        What the machine remembers; its status must be `GOING`.
    codes : ndarray, dtype=uint8
        Takes the base codes; needs room for ``end - at + STEP`` more.
    offsets : ndarray, dtype=int64
        Takes where in `codes` each record begins; needs room for as many records as may
        begin in the range (at most every other byte), up to the limit of the block.
    names : ndarray, dtype=uint8
        Takes the names; needs room for ``end - at + STEP`` more bytes.
    name_offsets : ndarray, dtype=int64
        Takes where in `names` each name begins; as long as `offsets`.

    Returns
    -------
    int
        `end`, or less if ``state[STATUS]`` is not `GOING` any more.
    """
    while at < end and state[STATUS] == GOING:
        mode = state[MODE]
        if mode < REPEATED_NAME:
            at = _read_bases_part(text, at, end, state, codes, offsets, names, name_offsets)
        elif mode == REPEATED_NAME:
            begin = name_offsets[state[RECORDS] - 1]
            at = _compare_name(text, at, end, state, names, begin)
        elif mode == REPEATED_DESCRIPTION:
            at = _skip_description(text, at, end, state, QUALITY_START)
        elif mode == QUALITY_START:
            at = _begin_quality_line(text, at, end, state, offsets[state[RECORDS] - 1])
        else:
            at = _read_quality(text, at, end, state, offsets[state[RECORDS] - 1])
    return at
