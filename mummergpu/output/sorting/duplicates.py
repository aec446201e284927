"""Finds duplicates: templates that were copied before they were sequenced.

As Picard and samtools define it: pairs are duplicates of each other if both of their ends, with the
clipped bases, lie at the same places on the same strands; a read without a mapped mate is one of
every pair with an end there, or of another such read. Of each set of duplicates, the one with the
largest sum of base qualities stays, of those of at least 15; of several, the first one of the
input. Only primary alignments decide, and only they are flagged; all reads are of one library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.input.record_lookup import Int64Array
from mummergpu.mapping.columns import NO_ROW, AlignmentColumns, SamFlag
from mummergpu.output.alignments.arrays import UNMAPPED, ReadsWithQualities
from mummergpu.output.sorting.duplicate_sets import add_good_qualities, mark_equal, mark_found
from mummergpu.output.sorting.places import Axis, spans_of_rows
from mummergpu.output.sorting.radix_order import KeyArray, radix_order
from mummergpu.runtime.jit import writable

BYTES_PER_TEMPLATE: Final = 36
"""The memory of a template until all have come: two ends, two rows, and a score; half of it is that
of a read of a pair."""

LEAST_QUALITY: Final = 15
"""The least quality that counts in the score of a template."""

NO_END: Final = np.iinfo(np.uint64).max
"""The second end of a template with one mapped read."""

_MOST_CLIPPED: Final = 1 << 20
"""The most clipped bases that are told apart."""

_NOT_PRIMARY: Final = int(SamFlag.SECONDARY | SamFlag.SUPPLEMENTARY)
_REVERSE: Final = int(SamFlag.REVERSE)
_CLIPS: Final = 0b110000
"""A bit for each operation that clips: S and H."""


@dataclass(frozen=True)
class TemplateColumns:
    """The templates of a block that have a mapped read.

    Attributes
    ----------
    first_ends, second_ends : ndarray, dtype=uint64, shape=(n_templates,)
        Where the reads of the template begin in sequencing, and on which strand; the smaller one
        first, and `NO_END` for a template with one mapped read.
    first_rows, second_rows : ndarray, dtype=int64, shape=(n_templates,)
        The primary rows of the reads in the block; `NO_ROW` for none.
    scores : ndarray, dtype=uint32, shape=(n_templates,)
        The sums of their qualities.
    """

    first_ends: KeyArray
    second_ends: KeyArray
    first_rows: Int64Array
    second_rows: Int64Array
    scores: npt.NDArray[np.uint32]


class DuplicateFinder:
    """Takes the templates of all blocks, and finds duplicates among them at the end.

    Parameters
    ----------
    axis : Axis
        The records of the reference.
    """

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        longest = int(axis.lengths.max(initial=0))
        # An end may lie before its record or after it, by the bases that are clipped.
        self._bits = (longest + 2 * _MOST_CLIPPED).bit_length() + 1
        self._key_bits = self._bits + int(axis.by_reference.size).bit_length()
        self._parts: list[TemplateColumns] = []
        self._row_count = 0

    def templates_of(self, reads: ReadsWithQualities, columns: AlignmentColumns) -> TemplateColumns:
        """Return the templates of a block; any thread may call this.

        Parameters
        ----------
        reads : ReadsWithQualities
            The reads.
        columns : AlignmentColumns
            Their alignments.

        Returns
        -------
        TemplateColumns
            In the order of the reads.
        """
        is_mapped = columns.flags & (UNMAPPED | _NOT_PRIMARY) == 0
        rows = np.flatnonzero(is_mapped)
        mates = columns.mate_rows[rows]
        has_mate = (mates != NO_ROW) & is_mapped[mates]
        # A pair is a template once: with the row of the read that comes first.
        is_first = ~has_mate | (rows < mates)
        rows, mates, has_mate = rows[is_first], mates[is_first], has_mate[is_first]
        ends, scores = self._ends_of(columns), _scores_of(reads)
        first, second = ends[rows], np.where(has_mate, ends[mates], NO_END)
        score = scores[columns.reads[rows]]
        score += np.where(has_mate, scores[columns.reads[mates]], 0).astype(np.uint32)
        return TemplateColumns(
            np.minimum(first, second),
            np.maximum(first, second),
            rows,
            np.where(has_mate, mates, NO_ROW),
            score,
        )

    def add(self, templates: TemplateColumns, row_count: int) -> None:
        """Take the templates of a block of so many rows, in the order of the input."""
        first = self._row_count
        self._parts.append(
            TemplateColumns(
                templates.first_ends,
                templates.second_ends,
                templates.first_rows + first,
                np.where(templates.second_rows == NO_ROW, NO_ROW, templates.second_rows + first),
                templates.scores,
            )
        )
        self._row_count += row_count

    def mark(self, marks: npt.NDArray[np.uint8]) -> None:
        """Find the duplicates, after the last block.

        Parameters
        ----------
        marks : ndarray, dtype=uint8, shape=(n_rows,)
            Zeros; receives 1 for each row to flag.
        """
        if not self._parts:
            return
        first, second, first_rows, second_rows, scores = (
            np.concatenate([getattr(part, name) for part in self._parts])
            for name in ("first_ends", "second_ends", "first_rows", "second_rows", "scores")
        )
        self._parts = []
        is_pair = second != NO_END
        pairs, fragments = np.flatnonzero(is_pair), np.flatnonzero(~is_pair)
        pair_ends = first[pairs], second[pairs]
        by_second, _ = radix_order(pair_ends[1], self._key_bits)
        by_both, _ = radix_order(pair_ends[0], self._key_bits, by_second.copy())
        is_duplicate = np.zeros(pairs.size, dtype=np.uint8)
        mark_equal(by_both, *pair_ends, scores[pairs], is_duplicate)
        chosen = pairs[is_duplicate != 0]
        marks[first_rows[chosen]] = 1
        marks[second_rows[chosen]] = 1
        ends = first[fragments]
        order, _ = radix_order(ends, self._key_bits)
        is_duplicate = np.zeros(fragments.size, dtype=np.uint8)
        mark_equal(order, ends, ends, scores[fragments], is_duplicate)
        mark_found(order, ends, by_second, pair_ends[1], is_duplicate)
        mark_found(order, ends, by_both, pair_ends[0], is_duplicate)
        marks[first_rows[fragments[is_duplicate != 0]]] = 1

    def _ends_of(self, columns: AlignmentColumns) -> KeyArray:
        """Return where the read of each row begins in sequencing, and on which strand.

        Rows without a place have any number.
        """
        before, after = _clipped(columns)
        is_reverse = (columns.flags & _REVERSE != 0).astype(np.int64)
        last = columns.positions + spans_of_rows(columns).astype(np.int64) - 1 + after
        place = np.where(is_reverse != 0, last, columns.positions - before) + _MOST_CLIPPED
        records = columns.records.astype(np.int64)
        ends: Int64Array = records << self._bits | place << 1 | is_reverse
        return ends.astype(np.uint64)


def _clipped(columns: AlignmentColumns) -> tuple[Int64Array, Int64Array]:
    """Return the clipped bases before and after each alignment."""
    begins, ends = columns.cigar_offsets[:-1], columns.cigar_offsets[1:]
    if not columns.cigars.size:
        return np.zeros_like(begins), np.zeros_like(begins)
    before, after = (
        _clips_from(columns, places, step) for places, step in ((begins, 1), (ends - 1, -1))
    )
    return np.minimum(before, _MOST_CLIPPED), np.minimum(after, _MOST_CLIPPED)


def _clips_from(columns: AlignmentColumns, places: Int64Array, step: int) -> Int64Array:
    """Return the bases that are clipped at one end of each alignment.

    Soft clips may lie inside hard ones. `places` are the outermost operations.
    """
    begins, ends = columns.cigar_offsets[:-1], columns.cigar_offsets[1:]
    bases = np.zeros(places.size, dtype=np.int64)
    is_open = np.ones(places.size, dtype=np.bool_)
    for _ in range(2):
        operations = columns.cigars[np.clip(places, 0, columns.cigars.size - 1)].astype(np.int64)
        is_open &= (places >= begins) & (places < ends) & ((_CLIPS >> (operations & 15)) & 1 != 0)
        bases += np.where(is_open, operations >> 4, 0)
        places = places + step
    return bases


def _scores_of(reads: ReadsWithQualities) -> npt.NDArray[np.uint32]:
    """Return the sum of the good qualities of each read."""
    scores = np.empty(reads.offsets.size - 1, dtype=np.uint32)
    add_good_qualities(
        writable(reads.base_qualities), writable(reads.offsets), scores, LEAST_QUALITY
    )
    return scores
