"""Estimate how many bases the queries have, from the sizes and names of their files."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Final

from mummergpu.input.bytes.files import STANDARD_INPUT

_BASES_PER_BYTE: Final = (
    ((".gz", ".bgz", ".bgzf", ".bz2", ".xz", ".zst", ".bam"), 2.0),
    ((".cram",), 4.0),
    ((".fq", ".fastq", ".sam"), 0.45),
)
"""The endings of names, and about how many bases a byte of such files stands for. A byte of FASTA
is about one base."""


def estimate_query_bases(paths: Sequence[str]) -> int | None:
    """Return about how many bases are in some files, at most a few times too many or too few.

    Parameters
    ----------
    paths : sequence of str
        The files of queries, "-" being standard input.

    Returns
    -------
    int or None
        None if one of them is not a regular file.
    """
    total = 0.0
    for path in paths:
        if path == STANDARD_INPUT:
            return None
        try:
            found = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        name = path.lower()
        factors = (factor for endings, factor in _BASES_PER_BYTE if name.endswith(endings))
        total += found.st_size * next(factors, 1.0)
    return int(total)
