"""Matches of another run or program, from PAF and nucmer's .delta, for pictures."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import open_binary, reading
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen

PAF, DELTA = "paf", "delta"

_GZIPPED: Final = frozenset({".gz", ".bgz"})
_PAF_FIELDS: Final = 12
_HEADER_WORDS, _MATCH_WORDS = 4, 7
"""The words of the lines of .delta."""


@frozen
class FileMatches:
    """Matches of a file as `segments.Matches`, in the order of its records.

    An alignment with gaps has the length of its shorter side. `identity` is the percentage of equal
    columns: that of PAF, or of .delta the longer side without its errors.
    """

    query: UInt32Array
    reference: UInt32Array
    query_start: Int64Array
    reference_start: Int64Array
    length: Int64Array
    reverse: BoolArray
    query_names: list[str]
    reference_names: list[str]
    query_lengths: Int64Array
    reference_lengths: Int64Array
    identity: Float64Array


def format_of_matches(path: str) -> str | None:
    """Return the format that the name of a file ends with: `PAF`, `DELTA` or None."""
    stem, suffix = os.path.splitext(path)
    if suffix.lower() in _GZIPPED:
        suffix = os.path.splitext(stem)[1]
    suffix = suffix.lower().removeprefix(".")
    return suffix if suffix in (PAF, DELTA) else None


def read_matches(path: str, min_length: int = 1) -> FileMatches:
    """Read the matches of a minimum length from PAF or .delta, plain or compressed with gzip."""
    with reading(path), open_binary(path) as file:
        lines: Iterable[bytes] = file
        if os.path.splitext(path)[1].lower() in _GZIPPED:
            import gzip

            lines = gzip.GzipFile(fileobj=file)
        else:
            from io import BufferedReader, FileIO

            lines = BufferedReader(file) if isinstance(file, FileIO) else file
        collected = _Columns(path, min_length)
        if format_of_matches(path) == DELTA:
            _read_delta(lines, collected)
        else:
            _read_paf(lines, collected)
    return collected.matches()


class _Names:
    """The records of one side, numbered in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.lengths = array("q")

    def number(self, name: bytes, length: int) -> int:
        """Return the number of a record; raise `ValueError` if its length was another one."""
        number = self._numbers.setdefault(name, len(self.lengths))
        if number == len(self.lengths):
            self.lengths.append(length)
        elif self.lengths[number] != length:
            raise ValueError(f"'{_text(name)}' had {self.lengths[number]:,} bases before")
        return number

    @property
    def texts(self) -> list[str]:
        """The names."""
        return [_text(name) for name in self._numbers]


class _Columns:
    """Collects matches."""

    def __init__(self, path: str, min_length: int) -> None:
        self.path = path
        self._min_length = min_length
        self.queries, self.references = _Names(), _Names()
        # Query, its start, record, start in it, length, strand.
        self._columns = tuple(array("q") for _ in range(6))
        self._identities = array("d")

    def add(
        self,
        query: int,
        query_span: tuple[int, int],
        record: int,
        span: tuple[int, int],
        turn: bool,
        share: tuple[int, int],
    ) -> None:
        """Take a match; raise `ValueError` if it lies outside its records.

        `share` is the number of its equal columns and that of all, at least one.
        """
        for names, number, (begin, end) in (
            (self.queries, query, query_span),
            (self.references, record, span),
        ):
            if not 0 <= begin <= end <= names.lengths[number]:
                raise ValueError(f"{begin}-{end} is no part of {names.lengths[number]:,} bases")
        length = min(query_span[1] - query_span[0], span[1] - span[0])
        if length < self._min_length:
            return
        row = (query, query_span[0], record, span[0], length, turn)
        for column, number in zip(self._columns, row, strict=True):
            column.append(number)
        self._identities.append(100 * share[0] / max(1, share[1]))

    def matches(self) -> FileMatches:
        """Return all matches."""
        query, query_start, record, start, length, turn = (
            np.array(column, dtype=np.int64) for column in self._columns
        )
        return FileMatches(
            query.astype(np.uint32),
            record.astype(np.uint32),
            query_start,
            start,
            length,
            turn.astype(np.bool_),
            self.queries.texts,
            self.references.texts,
            np.array(self.queries.lengths, dtype=np.int64),
            np.array(self.references.lengths, dtype=np.int64),
            np.array(self._identities, dtype=np.float64),
        )

    def wrong(self, number: int, message: str) -> InputError:
        """Return the error for a line, counted from 1."""
        return InputError(message, self.path, number)


def _read_paf(lines: Iterable[bytes], collected: _Columns) -> None:
    for number, line in enumerate(lines, start=1):
        fields = line.rstrip(b"\r\n").split(b"\t")
        if fields == [b""]:
            continue
        if len(fields) < _PAF_FIELDS or fields[4] not in (b"+", b"-"):
            raise collected.wrong(number, "not a line of PAF: twelve fields, the fifth + or -")
        try:
            query = collected.queries.number(fields[0], int(fields[1]))
            record = collected.references.number(fields[5], int(fields[6]))
            query_span = int(fields[2]), int(fields[3])
            span = int(fields[7]), int(fields[8])
            share = int(fields[9]), int(fields[10])
            collected.add(query, query_span, record, span, fields[4] == b"-", share)
        except ValueError as error:
            raise collected.wrong(number, f"not a line of PAF: {error}") from None


def _read_delta(lines: Iterable[bytes], collected: _Columns) -> None:
    numbered: Iterator[tuple[int, bytes]] = enumerate(lines, start=1)
    head = [line.split() for _, line in (next(numbered, (0, b"")) for _ in range(2))]
    if head[1] not in ([b"NUCMER"], [b"PROMER"]):
        raise collected.wrong(2, "not a .delta: its second line is NUCMER or PROMER")
    query = record = -1
    for number, line in numbered:
        words = line.split()
        try:
            if line.startswith(b">") and len(words) == _HEADER_WORDS:
                record = collected.references.number(words[0][1:], int(words[2]))
                query = collected.queries.number(words[1], int(words[3]))
            elif len(words) == _MATCH_WORDS and query >= 0:
                first, last, query_first, query_last, errors = map(int, words[:5])
                low, high = sorted((query_first, query_last))
                turn = (query_first > query_last) != (first > last)
                first, last = sorted((first, last))
                columns = max(high + 1 - low, last + 1 - first)
                share = columns - errors, columns
                collected.add(query, (low - 1, high), record, (first - 1, last), turn, share)
            elif len(words) != 1:
                raise ValueError("neither a header, nor a match, nor a distance")
        except ValueError as error:
            raise collected.wrong(number, f"not a line of .delta: {error}") from None


def _text(name: bytes) -> str:
    return name.decode(errors="replace")
