"""What a mapper learns from the first reads: the length of seeds.

It is then kept, so that the output depends on nothing but the input and the options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.options import KmerOptions
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.options import seed_length
from mummergpu.runtime.arrays import Int64Array

TEMPLATES_OF_ESTIMATE: Final = 1 << 14
"""The templates, pairs or single reads, that are looked at together: the first ones of the input,
however it is cut into blocks."""

TEMPLATES_OF_LENGTHS: Final = 1 << 16
"""The first templates whose lengths choose the length of seeds."""

SHORT_READS: Final = 0.1
"""The share of the first reads that may be shorter than the length that seeds are chosen for."""

LEAST_MAPPED: Final = 30
"""Shorter reads have no alignment with the usual scores, and say nothing about the others."""


def shortest_seed(file: IndexFile) -> int:
    """Return the length of the shortest matches that an index file finds."""
    header = file.header
    if header.search != KmerOptions.search:
        raise OptionError(
            "reference",
            f"the index '{file.path}' has suffix trees, and reads are mapped with one of k-mers: "
            "make one with 'mummergpu index --search kmer'",
        )
    return header.sampling.shortest_match


def usual_length(first: Iterable[ReadBlock]) -> int:
    """Return the bases that all but a few of some reads have at least; 0 if there are none.

    Seeds for the median would lose the shorter half of reads whose lengths differ much.
    """
    lengths = np.concatenate([np.zeros(0, np.int64), *map(_mapped_lengths, first)])
    lengths = lengths[lengths >= LEAST_MAPPED]
    return int(np.quantile(lengths, SHORT_READS, method="lower")) if lengths.size else 0


def _mapped_lengths(block: ReadBlock) -> Int64Array:
    """Return the lengths of the reads that are searched with all of their bases."""
    lengths, written = np.diff(block.offsets), np.diff(block.as_written.offsets)
    mapped: Int64Array = lengths[lengths == written]
    return mapped


def choose_seed_length(
    asked: int | None,
    first: Iterable[ReadBlock],
    shortest: int,
    name: str,
    warn: Callable[[str], None],
) -> int:
    """Return the length of the shortest matches to look for: what is `asked`, or what suits reads.

    `shortest` is that of the matches that the index finds, 1 if it is not made yet; a warning names
    its file if these reads want shorter ones.
    """
    if asked is not None:
        if asked < shortest:
            raise OptionError(
                "seed_length",
                f"the index '{name}' finds no matches of less than {shortest} bases; make one "
                f"with 'mummergpu index -l {asked}'",
            )
        return asked
    length = seed_length(usual_length(first))
    if length < shortest:
        warn(
            f"the index '{name}' finds matches of {shortest} bases and more, and these reads are "
            f"mapped better with those of {length}: make an index with 'mummergpu index -l "
            f"{length}'"
        )
    return max(length, shortest)
