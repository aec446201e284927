"""The FASTA and FASTQ parsers, and the steps that they are made of.

A parser receives its text in pieces of any size (see `parser_state`). It encodes the bases
directly into the arrays of the block.

Each function but `parse_fasta` and `parse_fastq` is one step: it reads from byte `at` of a piece
of `text`, which ends before `end` and is followed by a line feed and `byte_runs.STEP` bytes. It
returns the index of the first byte that it has not read. If it cannot go on, it writes the reason
to ``state[STATUS]``. `mode` is the mode at the start of the next line, and `begin` in steps of
FASTQ is where the record begins in the codes.
"""

from __future__ import annotations

from typing import Final

from mummergpu.input.records import parser_state as parser
from mummergpu.input.records.byte_runs import (
    RESIDUE_CODE_OF_BYTE,
    copy_name,
    copy_quality,
    encode_letters,
    encode_residues,
    skip_quality,
    skip_text,
)
from mummergpu.input.records.parser_state import Columns, is_foreign
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, inline, jit
from mummergpu.sequence.codes import BREAK, CodeArray

_LINE_FEED: Final = 10
_CARRIAGE_RETURN: Final = 13
_BLANK: Final = 32
_TAB: Final = 9
_STAR: Final = ord("*")
_MINUS: Final = ord("-")
_DOT: Final = ord(".")
_UNDERLINE: Final = ord("_")
_TILDE: Final = ord("~")

_has_foreign_share = inline(is_foreign)


@inline
def is_space(byte: int) -> bool:
    """Return whether a byte is white space, as ``isspace`` of C does."""
    return byte == _BLANK or 9 <= byte <= 13


@inline
def end_line(text: ByteArray, at: int, end: int, state: Int64Array, mode: int) -> int:
    """Skip the end of a line, if there is one, and enter a mode; return `at` if no line ends here.

    The status becomes `WAITING` if the end of the line depends on the next piece, and `BARE_RETURN`
    at a carriage return without a line feed.
    """
    if text[at] == _CARRIAGE_RETURN:
        if at + 1 == end:
            state[parser.STATUS] = parser.WAITING
            return at
        if text[at + 1] != _LINE_FEED:
            state[parser.STATUS] = parser.BARE_RETURN
            return at
        at += 1
    elif text[at] != _LINE_FEED:
        return at
    state[parser.LINE] += 1
    state[parser.MODE] = mode
    return at + 1


@inline
def begin_record(at: int, state: Int64Array, columns: Columns) -> int:
    """End the previous record, and begin the next one unless the block is full.

    The status becomes `NOT_DNA` if too many letters of the previous record are foreign, and `FULL`
    if the block has reached one of its limits; then `at` is returned, else the index after the mark
    that begins the record.
    """
    records = state[parser.RECORDS]
    if records > 0:
        # Only a whole record shows whether its letters are those of DNA.
        if state[parser.FOREIGN] > 0 and state[parser.ANY_LETTERS] == 0:
            letters = state[parser.BASES] - columns.offsets[records - 1] - state[parser.GAP_SYMBOLS]
            if _has_foreign_share(state[parser.FOREIGN], letters):
                state[parser.STATUS] = parser.NOT_DNA
                return at
        if (
            records >= state[parser.RECORD_LIMIT]
            or state[parser.BASES] >= state[parser.BASE_LIMIT]
            or state[parser.NAME_BYTES] >= state[parser.NAME_BYTE_LIMIT]
        ):
            state[parser.STATUS] = parser.FULL
            return at
        # No match may run from one record into the next.
        if state[parser.GAP] == 1:
            columns.codes[state[parser.BASES]] = BREAK
            state[parser.BASES] += 1
    columns.offsets[records] = state[parser.BASES]
    columns.name_offsets[records] = state[parser.NAME_BYTES]
    state[parser.RECORDS] = records + 1
    state[parser.STARTED] = 1
    state[parser.BLANK] = 0
    state[parser.FOREIGN] = 0
    state[parser.GAP_SYMBOLS] = 0
    state[parser.COMMENT_BYTES] = 0
    state[parser.MODE] = parser.NAME
    return at + 1


@inline
def begin_line(text: ByteArray, at: int, end: int, state: Int64Array, columns: Columns) -> int:
    """Begin a record without a name, whose sequence is this line, or pass over a blank."""
    if not is_space(text[at]):
        if begin_record(at, state, columns) > at:
            state[parser.MODE] = parser.SEQUENCE
        return at
    after = end_line(text, at, end, state, parser.LINE_START)
    return after if after > at or state[parser.STATUS] != parser.GOING else at + 1


@inline
def read_name(text: ByteArray, at: int, end: int, state: Int64Array, names: ByteArray) -> int:
    """Append a name, or a part of one, to the names; the mode changes at white space."""
    begin = at
    to = state[parser.NAME_BYTES]
    at = copy_name(text, at, names, to)
    if at < end:
        if is_space(text[at]):
            state[parser.MODE] = parser.DESCRIPTION
        else:  # Other control bytes are copied too.
            at += 1
    state[parser.NAME_BYTES] = to + at - begin
    return at


@inline
def read_description(
    text: ByteArray, at: int, end: int, state: Int64Array, names: ByteArray, mode: int
) -> int:
    """Append the text that follows a name on its line to the name, or skip it."""
    if state[parser.KEEPS_COMMENTS] == 0:
        return skip_description(text, at, end, state, mode)
    begin, to = at, state[parser.NAME_BYTES]
    while at < end and text[at] != _LINE_FEED and text[at] != _CARRIAGE_RETURN:
        names[to + at - begin] = text[at]
        at += 1
    state[parser.NAME_BYTES] += at - begin
    state[parser.COMMENT_BYTES] += at - begin
    return end_line(text, at, end, state, mode) if at < end else at


@inline
def skip_description(text: ByteArray, at: int, end: int, state: Int64Array, mode: int) -> int:
    """Skip the text that follows a name on its line."""
    at = skip_text(text, at)
    if at == end:
        return at
    after = end_line(text, at, end, state, mode)
    if after == at and state[parser.STATUS] == parser.GOING:
        return at + 1  # A tab or another control byte.
    return after


@inline
def read_bases(
    text: ByteArray,
    at: int,
    end: int,
    state: Int64Array,
    codes: CodeArray,
    mode: int,
    with_spaces: bool,
) -> int:
    """Encode bases up to the first byte that is no letter, and handle that byte.

    The status becomes `BAD_BASE` at a byte that is no sequence character. White space between bases
    is skipped if it may lie there.
    """
    begin = at
    to = state[parser.BASES]
    at, foreign = encode_letters(text, at, codes, to, state[parser.KEEPS_LETTERS] == 1)
    if foreign > 0:
        if state[parser.FOREIGN] == 0:
            state[parser.FOREIGN_LINE] = state[parser.LINE]
        state[parser.FOREIGN] += foreign
    to += at - begin
    state[parser.BASES] = to
    if at == end:
        return at
    after = end_line(text, at, end, state, mode)
    if after > at or state[parser.STATUS] != parser.GOING:
        return after
    # No letter, and no line end: the run was ended by a gap symbol, by white space or by a fault.
    byte = text[at]
    if byte == _STAR or byte == _MINUS or byte == _DOT:
        codes[to] = BREAK
        state[parser.BASES] = to + 1
        state[parser.GAP_SYMBOLS] += 1
    elif not (with_spaces and is_space(byte)):
        state[parser.STATUS] = parser.BAD_BASE
        return at
    return at + 1


@inline
def read_residues(
    text: ByteArray, at: int, end: int, state: Int64Array, codes: CodeArray, mode: int
) -> int:
    """Encode residues of a protein up to the first byte that is no letter, and handle that byte.

    A gap, a stop and a missing residue have codes as letters do. The status becomes `BAD_BASE` at
    what HMMER does not take for a residue either.
    """
    begin = at
    to = state[parser.BASES]
    at = encode_residues(text, at, codes, to)
    to += at - begin
    state[parser.BASES] = to
    if at == end:
        return at
    after = end_line(text, at, end, state, mode)
    if after > at or state[parser.STATUS] != parser.GOING:
        return after
    byte = text[at]
    if byte == _STAR or byte == _TILDE or byte == _DOT or byte == _UNDERLINE:
        codes[to] = RESIDUE_CODE_OF_BYTE[byte]
        state[parser.BASES] = to + 1
    elif byte != _BLANK and byte != _TAB:
        state[parser.STATUS] = parser.BAD_BASE
        return at
    return at + 1


@inline
def read_symbols(
    text: ByteArray, at: int, end: int, state: Int64Array, columns: Columns, mode: int
) -> int:
    """Encode symbols of a model up to the end of their line, blanks between them passed over.

    The status becomes `BAD_SYMBOL` at another byte.
    """
    codes, code_of_byte, to = columns.codes, columns.code_of_byte, state[parser.BASES]
    code = code_of_byte[text[at]]
    while at < end and code != parser.NO_SYMBOL:
        if code != parser.PASSED_OVER:
            codes[as_index(to)] = code
            to += 1
        at += 1
        code = code_of_byte[text[as_index(at)]]
    state[parser.BASES] = to
    if at == end:
        return at
    after = end_line(text, at, end, state, mode)
    if after == at and state[parser.STATUS] == parser.GOING:
        state[parser.STATUS] = parser.BAD_SYMBOL
    return after


_GREATER: Final = ord(">")
_AT: Final = ord("@")


@jit
def parse_fasta(text: ByteArray, at: int, end: int, state: Int64Array, columns: Columns) -> int:
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


_PLUS: Final = ord("+")


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
    # There is room for the excess of one piece of text.
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
    text: ByteArray, at: int, end: int, state: Int64Array, columns: Columns
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
    text: ByteArray, at: int, end: int, state: Int64Array, columns: Columns
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
def parse_fastq(text: ByteArray, at: int, end: int, state: Int64Array, columns: Columns) -> int:
    """Parse FASTQ from ``text[at:end]``, as `parse_fasta` does FASTA."""
    # Modes of the bases come before those of the line with '+' and of the qualities.
    while at < end and state[parser.STATUS] == parser.GOING:
        mode = state[parser.MODE]
        if mode < parser.PLUS_LINE:
            at = _read_bases_part(text, at, end, state, columns)
        elif mode == parser.PLUS_LINE:
            # Some programs write another name here than after '@'; only that one counts.
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
