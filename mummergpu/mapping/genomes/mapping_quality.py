"""Mapping qualities of alignments of genomes: how likely another place than theirs is right.

Two kinds of other places count. Those that are among the alignments of the query are known, with
their scores. But matches that are unique in the reference find no place of several equal ones, and
are unique on one strand only. So places that may have been missed are estimated from the reference:
the share of its words at the place that occur nowhere else, on either strand, shows by how much the
place differs from its nearest copy. The more of these differences there are for each one that the
query has, the less likely it is that the query belongs to a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.overlaps import find_rivals
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, jit, writable
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.viterbi.recurrence.model import Costs

BEST_QUALITY: Final = 60
"""The highest quality, as in minimap2 and bwa mem."""

MAX_ERROR: Final = 0.3
"""An alignment that is likelier wrong than this is one of several, and has a quality of 0."""

COPY_QUALITY: Final = 20.0
"""The quality if the query has as many differences as the nearest copy of the place."""

WORD_BASES: Final = 24
"""The bases of a word: by chance, hardly any occurs twice in a genome."""

WORD_STEP: Final = 16
MAX_WORDS: Final = 1 << 21
"""One word in `WORD_STEP` positions is looked at, and about `MAX_WORDS` of a large reference."""

_SLICE_BASES: Final = 1 << 20
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_HASHES: Final = 1 << 63


def with_rivals(columns: GenomeAlignments, lengths: Int64Array, costs: Costs) -> GenomeAlignments:
    """Return alignments with the odds of those that compete with them.

    A competing alignment that is worse by what a mismatch costs is right if the query has an error
    there, of one of three bases; errors are as many as in the better alignment.
    """
    better = find_rivals(columns.queries, *columns.forward_ends(lengths), columns.scores)
    is_rival = better != np.arange(columns.count)
    best = better[is_rival]
    errors = (columns.errors[best] + 1) / (columns.columns_of_each[best] + 2)
    lead = (columns.scores[best] - columns.scores[is_rival]) / (costs.match + costs.mismatch)
    odds = (errors / (3 * (1 - np.minimum(errors, 0.5)))) ** lead
    rivals = np.zeros(columns.count)
    np.add.at(rivals, best, odds)
    rivals[is_rival] = np.inf
    return replace(columns, rivals=rivals)


class MappingQualities:
    """Computes mapping qualities of alignments with a reference, whose words are read once."""

    def __init__(
        self, reference: Reference, map_function: Callable[..., Iterable[Any]] = map
    ) -> None:
        self._reference = reference
        self._map = map_function
        self._words: tuple[Int64Array, Int64Array] | None = None

    def of(self, columns: GenomeAlignments) -> ByteArray:
        """Return the mapping quality of each alignment, 0 to `BEST_QUALITY`.

        The alignments have their rivals (`with_rivals`).
        """
        if self._words is None and columns.count:
            self._words = find_words(self._reference, self._map)
        if self._words is None:
            return np.empty(0, dtype=np.uint8)
        places, unique_before = self._words
        starts = self._reference.record_starts[columns.records]
        first = np.searchsorted(places, starts + columns.reference_starts)
        last_starts = starts + columns.reference_ends - WORD_BASES
        end = np.maximum(first, np.searchsorted(places, last_starts, side="right"))
        # As if there were one more word, which is unique with a probability of one half.
        repeated = end - first - (unique_before[end] - unique_before[first]) + 0.5
        differences = -np.log(repeated / (end - first + 1)) / WORD_BASES * columns.columns_of_each
        copies = 10 ** (-COPY_QUALITY / 10 * differences / (columns.errors + 1))
        odds = columns.rivals + copies
        errors = 1 - 1 / (1 + odds)
        qualities = -10 * np.log10(np.maximum(errors, 10 ** (-BEST_QUALITY / 10)))
        return np.where(errors > MAX_ERROR, 0, np.floor(qualities + 1e-9)).astype(np.uint8)


def find_words(
    reference: Reference, map_function: Callable[..., Iterable[Any]] = map
) -> tuple[Int64Array, Int64Array]:
    """Return some words of a reference, and which of them are unique.

    A word and its reverse complement are the same one. Whether a word is looked at is decided by
    its bases, so that a copy has the same ones.
    """
    codes = writable(reference.codes)
    step = max(WORD_STEP, codes.size // MAX_WORDS)
    limit = _HASHES // step

    def find(first: int) -> tuple[Int64Array, Int64Array]:
        end = min(first + _SLICE_BASES, codes.size - WORD_BASES + 1)
        room = np.empty(end - first, dtype=np.int64), np.empty(end - first, dtype=np.int64)
        count = sample_words(codes, first, end, limit, *room)
        return room[0][:count].copy(), room[1][:count].copy()

    parts = list(map_function(find, range(0, codes.size - WORD_BASES + 1, _SLICE_BASES)))
    empty = np.empty(0, dtype=np.int64)
    places = np.concatenate([empty, *(part[0] for part in parts)])
    hashes = np.concatenate([empty, *(part[1] for part in parts)])
    order = np.argsort(hashes, kind="stable")
    is_new = np.diff(hashes[order], prepend=-1) != 0
    is_unique = np.empty(order.size, dtype=np.bool_)
    is_unique[order] = is_new & np.append(is_new[1:], True)
    return places, np.concatenate(([0], np.cumsum(is_unique)))


@jit
def sample_words(
    codes: CodeArray, first: int, end: int, limit: int, places: Int64Array, hashes: Int64Array
) -> int:
    """Write the words of a range whose hash is below a limit, and their hashes; return how many."""
    top = 2 * (WORD_BASES - 1)
    most = (1 << 2 * WORD_BASES) - 1
    forward, reverse, unbroken, count = 0, 0, 0, 0
    for place in range(first, end + WORD_BASES - 1):
        code = as_int64(codes[as_index(place)])
        unbroken = unbroken + 1 if code < BREAK else 0
        forward = (forward << 2 | (code & 3)) & most
        reverse = reverse >> 2 | (3 - code & 3) << top
        lower = forward if forward < reverse else reverse
        mixed = np.uint64(lower) * _FACTOR
        mixed = (mixed ^ mixed >> np.uint64(32)) * _FACTOR
        word = np.int64((mixed ^ mixed >> np.uint64(29)) >> np.uint64(1))
        if word < limit and unbroken >= WORD_BASES:
            places[count] = place - WORD_BASES + 1
            hashes[count] = word
            count += 1
    return count
