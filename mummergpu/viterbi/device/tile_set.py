"""Tiles that are aligned from corner to corner, and their alignments."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import OperationArray

CORNER_OF_TWO: Final = 1 << 14
"""Added to the scores of tiles that a device computes two at a time."""


@frozen
class TileSet:
    """Some tiles of two sets of sequences.

    Attributes
    ----------
    query_starts, reference_starts : ndarray, dtype=int64, shape=(n_tiles,)
        The index of the first base of each, in the codes of the queries and of the reference.
    lengths, reference_lengths : ndarray, dtype=int64, shape=(n_tiles,)
        The bases of each.
    """

    query_starts: Int64Array
    lengths: Int64Array
    reference_starts: Int64Array
    reference_lengths: Int64Array

    @property
    def count(self) -> int:
        """The number of tiles."""
        return self.lengths.size

    @property
    def cells(self) -> int:
        """The cells of all matrices, but for their first rows and columns."""
        return int((self.lengths * self.reference_lengths).sum())


@frozen
class AlignedTiles:
    """The best alignments of tiles from corner to corner.

    Attributes
    ----------
    scores : ndarray, dtype=int64, shape=(n_tiles,)
        The scores.
    offsets : ndarray, dtype=int64, shape=(n_tiles + 1,)
        Where the operations of each tile begin, and where the last ones end.
    operations : ndarray, dtype=uint32
        The operations as BAM packs them; those of `whole_matrix.align_whole`.
    """

    scores: Int64Array
    offsets: Int64Array
    operations: OperationArray


def fit_two(costs: Costs, lengths: Int64Array, reference_lengths: Int64Array) -> BoolArray:
    """Return whether the halves of words hold the scores of each tile.

    They do if no path that leaves the range of scores can be the best one: it would have to come
    back by matches, and score more than the tile's diagonal with one gap.
    """
    shorter = np.minimum(lengths, reference_lengths)
    gap = np.abs(lengths - reference_lengths)
    opening = max(costs.insertion_open, costs.deletion_open)
    extension = max(costs.insertion_extend, costs.deletion_extend)
    worst = shorter * max(costs.mismatch, costs.unknown) + (opening + gap * extension) * (gap > 0)
    highest = shorter * costs.match
    # A gap may be opened next to each border, in addition to those counted.
    spare = 2 * (opening + extension) + max(costs.mismatch, costs.unknown)
    fits: BoolArray = worst + highest + spare < CORNER_OF_TWO
    return fits & (lengths > 0) & (reference_lengths > 0)
