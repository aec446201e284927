"""The MD5 of each record of a FASTA file, which SAM uses to tell references apart (tag M5).

It is of all letters in upper case, also of those that are no bases, so it cannot come from the
codes: the file is read for it.
"""

from __future__ import annotations

import hashlib
from typing import Final

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import Input
from mummergpu.input.bytes.formats import Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.runtime.arrays import ByteArray

_CHUNK_BYTES: Final = 1 << 17
"""So few that the letters of a part stay in the caches of a processor."""

_LINE_ENDS: Final = b"\n\r"

_FIRST_COUNTED: Final = 33
_LAST_COUNTED: Final = 126
"""The bytes that count: those that are printable (SAM format specification, 1.3.2)."""

_NOT_COUNTED: Final = bytes({*range(256)}.difference(range(_FIRST_COUNTED, _LAST_COUNTED + 1)))

_UPPER_CASE: Final = bytes(range(256)).upper()


class RecordChecksums:
    """Finds the MD5 of each record of a FASTA file, whose text comes in parts of any size."""

    def __init__(self) -> None:
        self._in_header = False
        self._before = _LINE_ENDS[:1]
        # What comes before the first record counts for none.
        self._current = hashlib.md5(usedforsecurity=False)
        self._found: list[str] = []

    def add(self, part: memoryview | ByteArray) -> None:
        """Take the next part of the text, of at least one byte."""
        text = bytes(part)
        place = 0
        while place < len(text):
            if self._in_header:
                ends = [text.find(_LINE_ENDS[one : one + 1], place) for one in range(2)]
                place = min((end for end in ends if end >= 0), default=len(text))
                self._in_header = place == len(text)
                continue
            begin, place = place, self._next_header(text, place)
            self._current.update(text[begin:place].translate(_UPPER_CASE, _NOT_COUNTED))
            if place < len(text):
                self._found.append(self._current.hexdigest())
                self._current = hashlib.md5(usedforsecurity=False)
                self._in_header = True
        self._before = text[-1:]

    def _next_header(self, text: bytes, place: int) -> int:
        """Return where the next line begins that is a header; the end of the text if none does."""
        while (place := text.find(b">", place)) >= 0:
            before = text[place - 1 : place] if place else self._before
            if before in _LINE_ENDS:
                return place
            place += 1
        return len(text)

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
        text, checksums = memoryview(bytearray(_CHUNK_BYTES)), RecordChecksums()
        while size := file.text.readinto(text) or 0:
            checksums.add(text[:size])
        return checksums.finish()
