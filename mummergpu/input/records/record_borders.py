"""Finds where a record begins near any byte of a FASTA or FASTQ file."""

from __future__ import annotations

import os
from typing import Final

WINDOWS: Final = (1 << 14, 1 << 20)
"""The bytes in which the beginning of a record is looked for, first in fewer and then in more."""


def find_record(file_number: int, at: int, size: int, is_fastq: bool) -> int | None:
    """Return where the first record begins in a part of a file.

    Parameters
    ----------
    file_number : int
        The descriptor of the open file.
    at : int
        The first byte at which the record may begin, at least 1.
    size : int
        The bytes of the file.
    is_fastq : bool
        Whether the file is FASTQ rather than FASTA.

    Returns
    -------
    int or None
        In FASTA, the first line with '>'. In FASTQ, the first line with '@' whose next line but one
        begins with '+': a guess, which is right if each record has four lines. `size` if there is
        no such line in the rest of the file; None if there is none within `WINDOWS`.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    if at >= size:
        return size
    for window in WINDOWS:
        text = os.pread(file_number, window, at - 1)
        before = _find_fastq(text) if is_fastq else text.find(b"\n>")
        if before >= 0:
            return at + before
        if at - 1 + len(text) >= size:
            return size
    return None


def _find_fastq(text: bytes) -> int:
    """Return the index of the line feed before a record, -1 if there is none."""
    before = text.find(b"\n@")
    while before >= 0:
        second = text.find(b"\n", before + 1)
        third = text.find(b"\n", second + 1) if second >= 0 else -1
        if third < 0:
            return -1
        if text.startswith(b"+", third + 1):
            return before
        before = text.find(b"\n@", before + 1)
    return -1
