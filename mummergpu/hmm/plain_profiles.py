"""Parses profiles in the text that HMMER itself writes today, in a tenth of its own parser's time.

All else is left to HMMER's parser: older formats, what people have edited, and errors.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains.logarithms import exp32_of_c, logarithms
from mummergpu.hmm.proteins import RESIDUES
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int32Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.pyhmmer_library import pyhmmer_module

PLAIN_FORMAT: Final = b"HMMER3/f"
PLAIN_END: Final = b"\n//\n"

_WORD: Final = r"[!$-~][!-~]*"
_LINE: Final = rf"{_WORD}(?: +{_WORD})*"
_NUMBER: Final = r"(-?\d{1,6}\.\d{1,9})"
_FLAG: Final = r"(yes|no)"
_HEADER: Final = re.compile(
    (
        rf"HMMER3/f(?: {_LINE})?\nNAME  ({_WORD})\n(?:ACC   ({_WORD})\n)?(?:DESC  ({_LINE})\n)?"
        rf"LENG  ([1-9]\d{{0,6}})\n(?:MAXL  ([1-9]\d{{0,8}})\n)?ALPH  amino\n"
        rf"RF    {_FLAG}\nMM    {_FLAG}\nCONS  yes\nCS    {_FLAG}\nMAP   {_FLAG}\n"
        rf"(?:DATE  ({_LINE})\n)?((?:COM   {_WORD} {_LINE}\n)*)"
        rf"(?:NSEQ  ([1-9]\d{{0,8}})\n)?(?:EFFN  (\d*[1-9]\d*\.\d+|0\.\d*[1-9]\d*)\n)?"
        rf"(?:CKSUM ([0-3]?\d{{1,9}})\n)?"
        rf"(?:GA    {_NUMBER} {_NUMBER};?\n)?(?:TC    {_NUMBER} {_NUMBER};?\n)?"
        rf"(?:NC    {_NUMBER} {_NUMBER};?\n)?(?:[BS]M    {_LINE}\n)*"
        rf"STATS LOCAL MSV +{_NUMBER} +{_NUMBER}\n"
        rf"STATS LOCAL VITERBI +{_NUMBER} +{_NUMBER}\n"
        rf"STATS LOCAL FORWARD +{_NUMBER} +{_NUMBER}\n"
        r"HMM(?: +\w){20} *\n(?: +[mid]->[mid]){7}\n"
    ).encode()
)
_UNSET: Final = -99999.0
"""HMMER's number for a cutoff that a profile lacks."""
_LEAST_LINE: Final = 100
"""The bytes of a line are more: there are no more nodes than a text may hold."""
_NOT_PLAIN: Final = -1
_DIGITS: Final = 5
"""After the point of each number."""

_SPACE, _NEW_LINE, _DELETE, _STAR, _DASH, _DOT, _SLASH, _ZERO = b" \n\x7f*-./0"
_COMPO: Final = (*b"COMPO",)

# HMMER's flags of what a profile has.
_DESCRIPTION, _REFERENCE, _STRUCTURE, _STATISTICS = 1 << 1, 1 << 2, 1 << 3, 1 << 7
_MAP, _ACCESSION, _GATHERING, _TRUSTED, _NOISE = 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12
_COMPOSITION, _CHECKSUM, _CONSENSUS, _MASK = 1 << 14, 1 << 15, 1 << 16, 1 << 17


class _Table(NamedTuple):
    """The numbers of a profile, for compiled functions."""

    matches: Float32Array  # (nodes + 1, 20)
    insertions: Float32Array  # (nodes + 1, 20)
    transitions: Float32Array  # (nodes + 1, 7)
    composition: Float32Array  # (20,)
    columns: Int32Array  # (nodes + 1,): of the alignment
    marks: ByteArray  # (4, nodes + 1): the consensus, reference, mask and structure


class PlainProfile(NamedTuple):
    """A profile in a text."""

    hmm: Any  # A ``pyhmmer.plan7.HMM``
    size: int  # The bytes of its text
    lines: int  # The lines of the profile, and those above the numbers
    table: int


def parse_profile(text: bytearray, at: int) -> PlainProfile | None:
    """Parse the profile of proteins that begins at a place of a text; None if HMMER has to.

    After the place the text has the end of a profile.
    """
    header = _HEADER.match(text, at)
    if header is None:
        return None
    words = [None if one is None else one.decode() for one in header.groups()]
    nodes = int(words[3] or 0)
    if 3 * nodes * _LEAST_LINE > len(text) - header.end():
        return None
    table = _Table(
        np.zeros((nodes + 1, RESIDUES), dtype=np.float32),
        np.empty((nodes + 1, RESIDUES), dtype=np.float32),
        np.empty((nodes + 1, 7), dtype=np.float32),
        np.zeros(RESIDUES, dtype=np.float32),
        np.zeros(nodes + 1, dtype=np.int32),
        np.empty((4, nodes + 1), dtype=np.uint8),
    )
    codes = np.frombuffer(text, dtype=np.uint8)
    end = _fill_table(codes, header.end(), logarithms().short_exponential, words[8] == "yes", table)
    state = None if end == _NOT_PLAIN else _state_of(words, table)
    if state is None:
        return None
    hmm = pyhmmer_module("plan7").HMM(_alphabet(), nodes, words[0])
    try:
        hmm.__setstate__(state)
    except (KeyError, TypeError, ValueError):  # Another version of pyhmmer may want more.
        return None
    above = text.count(b"\n", at, header.end())
    lines = above + bool(state["flags"] & _COMPOSITION) + 3 * nodes + 3
    return PlainProfile(hmm, end - at, lines, above - 1)


@cache
def _alphabet() -> Any:
    return pyhmmer_module("easel").Alphabet.amino()


def _state_of(words: list[Any], table: _Table) -> dict[str, Any] | None:
    """Return the state of a ``pyhmmer.plan7.HMM``; None if HMMER has to read a word."""
    name, accession, description, _, longest, *marks, date, commands = words[:11]
    sequences, effective, checksum, *numbers = words[11:]
    try:
        time = None if date is None else datetime.strptime(date, "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return None
    # pyhmmer writes the date anew.
    is_same = time is None or time.strftime("%a %b %e %H:%M:%S %Y") == date
    if not is_same or int(checksum or 0) >> 32:
        return None
    has = [one == "yes" for one in marks]
    cutoffs = numbers[:6]
    flags = _STATISTICS | _CONSENSUS
    for flag, is_there in (
        *zip((_REFERENCE, _MASK, _STRUCTURE, _MAP), has, strict=True),
        *zip((_GATHERING, _TRUSTED, _NOISE), cutoffs[::2], strict=True),
        *((_DESCRIPTION, description), (_ACCESSION, accession), (_CHECKSUM, checksum)),
        (_COMPOSITION, table.composition[0] > 0),
    ):
        flags |= flag if is_there else 0
    rows = [row[1:].tobytes().decode() for row in table.marks]
    return {
        "M": len(table.matches) - 1,
        "t": table.transitions,
        "mat": table.matches,
        "ins": table.insertions,
        "name": name,
        "acc": accession,
        "desc": description,
        "ctime": time,
        "comlog": "\n".join(one[6:].split(" ", 1)[1] for one in commands.splitlines()) or None,
        "nseq": int(sequences or -1),
        "eff_nseq": float(effective or -1),
        "max_length": int(longest or -1),
        "checksum": int(checksum or 0),
        "evparam": np.array([*map(float, numbers[6:])], dtype=np.float32),
        "cutoff": np.array([float(one or _UNSET) for one in cutoffs], dtype=np.float32),
        "compo": table.composition,
        "offset": 0,
        "alphabet": _alphabet(),
        "flags": flags,
        "consensus": rows[0],
        "reference": rows[1] if has[0] else None,
        "model_mask": rows[2] if has[1] else None,
        "consensus_structure": rows[3] if has[2] else None,
        "consensus_accessibility": None,
        "map": table.columns,
    }


@inline
def _after_spaces(text: ByteArray, at: int) -> int:
    while text[at] == _SPACE:
        at += 1
    return at


@inline
def _digit(text: ByteArray, at: int) -> int:
    """Return the digit at a place, another number if there is none."""
    return np.int64(text[at]) - _ZERO  # type: ignore[return-value]


@jit
def _fill_row(
    text: ByteArray, at: int, exponential: int, ends_line: bool, row: Float32Array
) -> int:
    """Parse probabilities, of which the text has the logarithms; return the place after them."""
    if at < 0:
        return _NOT_PLAIN
    for column in range(row.size):
        at = _after_spaces(text, at)
        if text[at] == _STAR:
            row[column] = 0
            at += 1
        else:
            number, begin = 0, at
            while 0 <= _digit(text, at) <= 9:
                number = 10 * number + _digit(text, at)
                at += 1
            if not 0 < at - begin <= 3 or text[at] != _DOT:
                return _NOT_PLAIN
            for _ in range(_DIGITS):
                at += 1
                if not 0 <= _digit(text, at) <= 9:
                    return _NOT_PLAIN
                number = 10 * number + _digit(text, at)
            at += 1
            # The quotient has the bits of C's conversion: both numbers are exact.
            row[column] = exp32_of_c(exponential, np.float32(-(number / 10.0**_DIGITS)))
        if text[at] != _SPACE and text[at] != _NEW_LINE:
            return _NOT_PLAIN
    if ends_line:
        if text[at] != _NEW_LINE:
            return _NOT_PLAIN
        at += 1
    return at


@inline
def _whole_number(text: ByteArray, at: int) -> tuple[int, int]:
    """Return the place after a number, and the number; -1 if there is a dash, or none."""
    at = _after_spaces(text, at)
    if text[at] == _DASH:
        return at + 1, -1
    number, begin = 0, at
    while 0 <= _digit(text, at) <= 9 and at - begin < 9:
        number = 10 * number + _digit(text, at)
        at += 1
    return at, number if at > begin else -1


@inline
def _fill_composition(text: ByteArray, at: int, exponential: int, row: Float32Array) -> int:
    """Parse the line of the composition, if it is there."""
    at = _after_spaces(text, at)
    if text[at] != _COMPO[0]:
        return at
    for letter in _COMPO:
        if text[at] != letter:
            return _NOT_PLAIN
        at += 1
    at = _fill_row(text, at, exponential, True, row)
    return at if row[0] > 0 else _NOT_PLAIN


@inline
def _fill_marks(text: ByteArray, at: int, has_column: bool, node: int, table: _Table) -> int:
    """Parse the rest of a line of matches: the column of an alignment, and `_Table.marks`."""
    if at < 0:
        return _NOT_PLAIN
    at, number = _whole_number(text, at)
    if (number < 0) == has_column:
        return _NOT_PLAIN
    table.columns[node] = max(number, 0)
    for row in range(len(table.marks)):
        mark = text[at + 1]
        if text[at] != _SPACE or not _SPACE < mark < _DELETE:
            return _NOT_PLAIN
        table.marks[row, node] = mark
        at += 2
    return at + 1 if text[at] == _NEW_LINE else _NOT_PLAIN


@jit
def _fill_table(
    text: ByteArray, at: int, exponential: int, has_columns: bool, table: _Table
) -> int:
    """Parse the lines after the titles; return where the profile ends, or `_NOT_PLAIN`.

    The line "//" that ends a profile stops any of the loops.
    """
    at = _fill_composition(text, at, exponential, table.composition)
    table.matches[0, 0] = 1
    for node in range(len(table.matches)):
        # The begin state has no matches.
        if node > 0:
            at, number = _whole_number(text, at)
            if number != node:
                return _NOT_PLAIN
            at = _fill_row(text, at, exponential, False, table.matches[node])
            at = _fill_marks(text, at, has_columns, node, table)
        for rows in (table.insertions, table.transitions):
            at = _fill_row(text, at, exponential, True, rows[node])
        if at < 0:
            return _NOT_PLAIN
    if text[at] != _SLASH or text[at + 1] != _SLASH or text[at + 2] != _NEW_LINE:
        return _NOT_PLAIN
    return at + 3
