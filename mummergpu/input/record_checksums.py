"""The MD5 of each record of a FASTA file, which SAM uses to tell references apart (tag M5).

It is of all letters in upper case, also of those that are no bases, so it cannot come from the
codes: the file is read for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.input.files import Input
from mummergpu.input.formats import Format
from mummergpu.input.reading_threads import ReadingThreads
from mummergpu.runtime.jit import jit_without_refcounts, writable

_CHUNK_BYTES: Final = 1 << 20

_LINE_ENDS: Final = b"\n\r"
_START: Final = b">"
_FIRST_LETTER: Final = 33
_LAST_LETTER: Final = 126
"""The bytes that count: those that are printable (SAM format specification, 1.3.2)."""

_LOWER_A: Final = 97
_LOWER_Z: Final = 122
_TO_UPPER: Final = 32

ByteArray = npt.NDArray[np.uint8]


def record_checksums(path: str, threads: ReadingThreads | None = None) -> list[str]:
    """Return the MD5 of each record of a FASTA file.

    Parameters
    ----------
    path : str
        The file, plain or compressed; it cannot be standard input, which was read before.
    threads : ReadingThreads, optional
        They decompress a large file.

    Returns
    -------
    list of str
        32 hexadecimal digits for each record, also for those without bases.

    Raises
    ------
    InputError
        If the file cannot be read, or is no FASTA.
    """
    with Input(path, threads) as file:
        if file.format is not Format.FASTA:
            raise InputError(f"a reference must be FASTA, and this is {file.format.value}", path)
        found = []
        letters = np.empty(_CHUNK_BYTES, dtype=np.uint8)
        for part in _parts_of(file):
            if part is None:
                found.append(hashlib.md5(usedforsecurity=False))
            elif found:
                count = copy_letters(writable(np.frombuffer(part, dtype=np.uint8)), letters)
                found[-1].update(letters[:count].data)
        return [one.hexdigest() for one in found]


@jit_without_refcounts
def copy_letters(text: ByteArray, letters: ByteArray) -> int:
    """Copy the letters of a text in upper case; return how many there are.

    Other threads run Python code meanwhile, which they cannot while methods of `bytes` do this.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The text.
    letters : ndarray, dtype=uint8
        Output, as long as the text or longer: the bytes that count.

    Returns
    -------
    int
        Their number.
    """
    count = 0
    for place in range(text.size):
        letter = text[place]
        is_lower = _LOWER_A <= letter <= _LOWER_Z
        letters[count] = letter - _TO_UPPER if is_lower else letter
        count += _FIRST_LETTER <= letter <= _LAST_LETTER
    return count


def _parts_of(file: Input) -> Iterator[bytes | None]:
    """Yield None for the header of each record, and then its text in parts."""
    in_header, before = False, b"\n"
    chunk = bytearray(_CHUNK_BYTES)
    while size := file.text.readinto(chunk):
        text = bytes(memoryview(chunk)[:size])
        at = 0
        while at < size:
            if in_header:
                at = _end_of_line(text, at)
                in_header = at == size
                continue
            start = _start_of_record(text, at, before)
            end = size if start < 0 else start
            if end > at:
                yield text[at:end]
            if start >= 0:
                yield None
                in_header = True
            at = end + (start >= 0)
        before = text[-1:]


def _start_of_record(text: bytes, at: int, before: bytes) -> int:
    """Return where the next record begins, -1 for nowhere; `before` is the byte before the text."""
    while (start := text.find(_START, at)) >= 0:
        if (text[start - 1 : start] or before) in (b"\n", b"\r"):
            return start
        at = start + 1
    return -1


def _end_of_line(text: bytes, at: int) -> int:
    """Return where the line ends, or the end of the text."""
    ends = [place for mark in _LINE_ENDS if (place := text.find(mark, at)) >= 0]
    return min(ends, default=len(text))
