"""Parses profiles in the text that HMMER itself writes, in a fraction of its own parser's time.

All else is left to HMMER's parser: its oldest formats, what people have edited, and errors.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.logarithms import exp32_of_c, logarithms
from mummergpu.hmm.proteins import RESIDUES, SYMBOLS
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int32Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.pyhmmer_library import pyhmmer_module

PLAIN_END: Final = b"\n//\n"

_WORD: Final = r"[!$-~][!-~]*"
_LINE: Final = rf"{_WORD}(?: +{_WORD})*"
_NUMBER: Final = r"-?\d{1,6}\.\d{1,9}"


def _title(title: str, name: str, kind: str) -> str:
    """Return the pattern of a line that a profile may lack."""
    return rf"(?:{title:<5} (?P<{name}>{kind})\n)?"


def _numbers(line: str, name: str) -> str:
    """Return the pattern of a line with two numbers."""
    return rf"{line} +(?P<{name}1>{_NUMBER}) +(?P<{name}2>{_NUMBER});?\n"


_CUTOFFS: Final = "GA", "TC", "NC"
_STATISTICS: Final = "MSV", "VITERBI", "FORWARD"
_HEADER: Final = re.compile(
    "".join(
        (
            rf"HMMER3/(?P<format>[b-f])(?: {_LINE})?\nNAME  (?P<name>{_WORD})\n",
            _title("ACC", "accession", _WORD),
            _title("DESC", "description", _LINE),
            r"LENG  (?P<nodes>[1-9]\d{0,6})\n",
            _title("MAXL", "longest", r"[1-9]\d{0,8}"),
            r"ALPH  amino\n",
            *(_title(title, title, "yes|no") for title in ("RF", "MM", "CONS", "CS", "MAP")),
            _title("DATE", "date", _LINE),
            rf"(?P<commands>(?:COM   {_WORD} {_LINE}\n)*)",
            _title("NSEQ", "sequences", r"[1-9]\d{0,8}"),
            _title("EFFN", "effective", r"\d*[1-9]\d*\.\d+|0\.\d*[1-9]\d*"),
            _title("CKSUM", "checksum", r"[0-3]?\d{1,9}"),
            *(f"(?:{_numbers(title, title)})?" for title in _CUTOFFS),
            rf"(?:[BS]M    {_LINE}\n)*",
            *(_numbers(f"STATS LOCAL {one}", one) for one in _STATISTICS),
            r"HMM(?: +\w){20} *\n(?: +[mid]->[mid]){7}\n",
        )
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
_HAS_STATISTICS, _HAS_COMPOSITION, _HAS_CONSENSUS = 1 << 7, 1 << 14, 1 << 16
_HAS_WORD: Final = {
    **{"description": 1 << 1, "accession": 1 << 9, "checksum": 1 << 15},
    **{"GA1": 1 << 10, "TC1": 1 << 11, "NC1": 1 << 12},
}
_HAS_MARK: Final = {"RF": 1 << 2, "CS": 1 << 3, "MAP": 1 << 8, "MM": 1 << 17}

_MARKS: Final = {
    **dict.fromkeys("bcd", ("RF", "CS")),
    **{"e": ("CONS", "RF", "CS"), "f": ("CONS", "RF", "MM", "CS")},
}
"""The letters that each node has in a format."""

_LIKELY: Final = 0.5
"""An amino acid of a consensus is a capital from this probability on."""


class _Table(NamedTuple):
    """The numbers of a profile, for compiled functions."""

    matches: Float32Array  # (nodes + 1, 20)
    insertions: Float32Array  # (nodes + 1, 20)
    transitions: Float32Array  # (nodes + 1, 7)
    composition: Float32Array  # (20,)
    columns: Int32Array  # (nodes + 1,): of the alignment
    marks: ByteArray  # (2 to 4, nodes + 1): in the order of `_MARKS`


class PlainProfile(NamedTuple):
    """A profile in a text."""

    hmm: Any  # A ``pyhmmer.plan7.HMM``
    format: bytes  # The first word of the text
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
    words = {key: word.decode() for key, word in header.groupdict().items() if word is not None}
    marks, nodes = _MARKS[words["format"]], int(words["nodes"])
    own = {"CONS", "MM"}.intersection
    is_plain = own(words) == own(marks) and words.get("CONS") != "no"
    # In older formats HMMER does not know the longest length.
    is_plain &= "longest" not in words or "CONS" in marks
    if not is_plain or 3 * nodes * _LEAST_LINE > len(text) - header.end():
        return None
    table = _Table(
        np.zeros((nodes + 1, RESIDUES), dtype=np.float32),
        np.empty((nodes + 1, RESIDUES), dtype=np.float32),
        np.empty((nodes + 1, 7), dtype=np.float32),
        np.zeros(RESIDUES, dtype=np.float32),
        np.zeros(nodes + 1, dtype=np.int32),
        np.empty((len(marks), nodes + 1), dtype=np.uint8),
    )
    codes = np.frombuffer(text, dtype=np.uint8)
    has_columns = words.get("MAP") == "yes"
    end = _fill_table(codes, header.end(), logarithms().short_exponential, has_columns, table)
    state = None if end == _NOT_PLAIN else _state_of(words, table)
    if state is None:
        return None
    hmm = pyhmmer_module("plan7").HMM(_alphabet(), nodes, words["name"])
    try:
        hmm.__setstate__(state)
    except (KeyError, TypeError, ValueError):  # Another version of pyhmmer may want more.
        return None
    above = text.count(b"\n", at, header.end())
    lines = above + bool(state["flags"] & _HAS_COMPOSITION) + 3 * nodes + 3
    name = f"HMMER3/{words['format']}".encode()
    return PlainProfile(hmm, name, end - at, lines, above - 1)


@cache
def _alphabet() -> Any:
    return pyhmmer_module("easel").Alphabet.amino()


def _state_of(words: dict[str, str], table: _Table) -> dict[str, Any] | None:
    """Return the state of a ``pyhmmer.plan7.HMM``; None if HMMER has to read a word."""
    date, checksum = words.get("date"), int(words.get("checksum", 0))
    try:
        time = None if date is None else datetime.strptime(date, "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return None
    # pyhmmer writes the date anew.
    is_same = time is None or time.strftime("%a %b %e %H:%M:%S %Y") == date
    if not is_same or checksum >> 32:
        return None
    letters = [row[1:].tobytes().decode() for row in table.marks]
    marks = dict(zip(_MARKS[words["format"]], letters, strict=True))
    flags = _HAS_STATISTICS | _HAS_CONSENSUS
    flags |= sum(flag for word, flag in _HAS_WORD.items() if word in words)
    flags |= sum(flag for title, flag in _HAS_MARK.items() if words.get(title) == "yes")
    commands = [line.split(maxsplit=2)[2] for line in words["commands"].splitlines()]
    numbers, cutoffs = (
        [float(words.get(f"{title}{n}", _UNSET)) for title in titles for n in (1, 2)]
        for titles in (_STATISTICS, _CUTOFFS)
    )
    return {
        "M": len(table.matches) - 1,
        "t": table.transitions,
        "mat": table.matches,
        "ins": table.insertions,
        "name": words["name"],
        "acc": words.get("accession"),
        "desc": words.get("description"),
        "ctime": time,
        "comlog": "\n".join(commands) or None,
        "nseq": int(words.get("sequences", -1)),
        "eff_nseq": float(words.get("effective", -1)),
        "max_length": int(words.get("longest", -1)),
        "checksum": checksum,
        "evparam": np.array(numbers, dtype=np.float32),
        "cutoff": np.array(cutoffs, dtype=np.float32),
        "compo": table.composition,
        "offset": 0,
        "alphabet": _alphabet(),
        "flags": flags | (_HAS_COMPOSITION if table.composition[0] > 0 else 0),
        "consensus": marks.get("CONS") or _consensus(table.matches[1:]),
        "reference": marks["RF"] if words.get("RF") == "yes" else None,
        "model_mask": marks["MM"] if words.get("MM") == "yes" else None,
        "consensus_structure": marks["CS"] if words.get("CS") == "yes" else None,
        "consensus_accessibility": None,
        "map": table.columns,
    }


def _consensus(matches: Float32Array) -> str:
    """Return the likeliest amino acids, capitals where they are likely (older formats)."""
    best = matches.argmax(axis=1)
    pairs = zip(best.tolist(), (matches.max(axis=1) >= _LIKELY).tolist(), strict=True)
    return "".join(SYMBOLS[one] if is_likely else SYMBOLS[one].lower() for one, is_likely in pairs)


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
