"""The MD5 of each record of a FASTA file, which SAM uses to tell references apart (tag M5).

It is of all letters in upper case, also of those that are no bases, so it cannot come from the
codes: the file is read for it.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import Input
from mummergpu.input.bytes.formats import Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import jit_without_refcounts

_CHUNK_BYTES: Final = 1 << 20

_LINE_FEED: Final = 10
_CARRIAGE_RETURN: Final = 13
_START: Final = 62
"""What begins the header of a record, at the beginning of a line: ``>``."""

_FIRST_LETTER: Final = 33
_LAST_LETTER: Final = 126
"""The bytes that count: those that are printable (SAM format specification, 1.3.2)."""

_LOWER_A: Final = 97
_LOWER_Z: Final = 122
_TO_UPPER: Final = 32

_LETTERS, _IN_HEADER, _LAST_BYTE = range(3)
"""What `split_letters` keeps: the letters it copied, and where the next text goes on."""


class RecordChecksums:
    """Finds the MD5 of each record of a FASTA file, whose text comes in parts of any size."""

    def __init__(self) -> None:
        self._state = np.array([0, 0, _LINE_FEED], dtype=np.int64)
        self._letters = np.empty(0, dtype=np.uint8)
        self._starts = np.empty(1, dtype=np.int64)
        # What comes before the first record counts for none.
        self._current = hashlib.md5(usedforsecurity=False)
        self._found: list[str] = []

    def add(self, part: memoryview | ByteArray) -> None:
        """Take the next part of the text, of at least one byte."""
        text = np.frombuffer(part, dtype=np.uint8)
        if self._letters.size < text.size:
            self._letters = np.empty(text.size, dtype=np.uint8)
            self._starts = np.empty(text.size // 2 + 1, dtype=np.int64)
        begun = split_letters(text, text.size, self._letters, self._starts, self._state)
        begin, view = 0, self._letters.data
        for start in self._starts[:begun].tolist():
            self._current.update(view[begin:start])
            self._found.append(self._current.hexdigest())
            self._current = hashlib.md5(usedforsecurity=False)
            begin = start
        self._current.update(view[begin : int(self._state[_LETTERS])])

    def finish(self) -> tuple[str, ...]:
        """Return the MD5 of each record, as 32 hexadecimal digits."""
        return *self._found[1:], self._current.hexdigest()


def record_checksums(path: str, threads: ReadingThreads | None = None) -> tuple[str, ...]:
    """Return the MD5 of each record of a FASTA file, as 32 hexadecimal digits.

    The file is plain or compressed; it cannot be standard input, which was read before.

    Raises
    ------
    InputError
        If the file cannot be read, or is no FASTA.
    """
    with Input(path, threads) as file:
        if file.format is not Format.FASTA:
            raise InputError(f"a reference must be FASTA, and this is {file.format.value}", path)
        text, checksums = np.empty(_CHUNK_BYTES, dtype=np.uint8), RecordChecksums()
        while size := file.text.readinto(text.data) or 0:
            checksums.add(text[:size])
        return checksums.finish()


@jit_without_refcounts
def split_letters(
    text: ByteArray, size: int, letters: ByteArray, starts: Int64Array, state: Int64Array
) -> int:
    """Copy the letters of records in upper case; return how many records begin in a text.

    Other threads run Python code meanwhile, which they cannot while methods of `bytes` do this.

    Parameters
    ----------
    text, size
        The text of a FASTA file, and how many of its bytes count.
    letters : ndarray, dtype=uint8
        Output, as long as the text or longer: the letters.
    starts : ndarray, dtype=int64
        Output, half as long as the text, and one more: where the letters of each record begin.
    state : ndarray, dtype=int64, shape=(3,)
        `_LETTERS`, `_IN_HEADER` and `_LAST_BYTE`: those of the text before become those of this
        one.
    """
    count, records, place = 0, 0, 0
    in_header, before = state[_IN_HEADER] != 0, state[_LAST_BYTE]
    while place < size:
        if in_header:
            while place < size and text[place] != _LINE_FEED and text[place] != _CARRIAGE_RETURN:
                place += 1
            in_header = place == size
            continue
        letter = text[place]
        if letter == _START:
            last = np.int64(text[place - 1]) if place else before
            if last == _LINE_FEED or last == _CARRIAGE_RETURN:
                starts[records] = count
                records += 1
                in_header = True
                continue
        is_lower = _LOWER_A <= letter <= _LOWER_Z
        letters[count] = letter - _TO_UPPER if is_lower else letter
        count += _FIRST_LETTER <= letter <= _LAST_LETTER
        place += 1
    state[_LETTERS] = count
    state[_IN_HEADER] = in_header
    state[_LAST_BYTE] = text[size - 1]
    return records
