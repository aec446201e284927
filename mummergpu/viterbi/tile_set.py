"""Tiles that are aligned from corner to corner, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mummergpu.viterbi.operations import OperationArray

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
