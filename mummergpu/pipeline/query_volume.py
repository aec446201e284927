"""Estimate how many bases the queries have, from the sizes and beginnings of their files."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Final

from mummergpu.input.files import STANDARD_INPUT

_BASES_PER_BYTE: Final = ((b"\x1f\x8b", 2.0), (b"CRAM", 4.0), (b"@", 0.45))
"""The first bytes of compressed text and BAM, of CRAM and of FASTQ, and about how many bases a byte
of such files stands for. A byte of FASTA is about one base."""


def estimate_query_bases(paths: Sequence[str]) -> int | None:
    """Return about how many bases are in some files, at most a few times too many or too few.

    Parameters
    ----------
    paths : sequence of str
        The files of queries, "-" being standard input.

    Returns
    -------
    int or None
        None if one of them is not a regular file, or cannot be read: reading it will tell why.
    """
    total = 0.0
    for path in paths:
        if path == STANDARD_INPUT:
            return None
        try:
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode):
                return None
            with open(path, "rb", buffering=0) as file:
                beginning = file.read(4)
        except OSError:
            return None
        factors = (factor for magic, factor in _BASES_PER_BYTE if beginning.startswith(magic))
        total += found.st_size * next(factors, 1.0)
    return int(total)
