"""Finds the sequences of a block that HMMER's filters let pass for a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.hmm.byte_filters import LANES, find_cells, settle_msv, striped_bytes
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.tables import BYTE_SCALE, byte_tables, length_tables
from mummergpu.hmm.thresholds import lowest_passing_score, minimal_cells
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.stats import Stats

_MIN_LENGTH_BITS: Final = 11
"""Tables for lengths are made for powers of two, from this one on."""


@dataclass(frozen=True)
class FilterThresholds:
    """The P-values up to which sequences pass HMMER's filters.

    Attributes
    ----------
    F1, F2, F3 : float
        For MSV (and MSV corrected for composition), Viterbi and Forward.
    bias_filter : bool
        Whether scores are corrected for the composition of the profile (HMMER's ``--nobias``).
    """

    F1: float = 0.02
    F2: float = 1e-3
    F3: float = 1e-5
    bias_filter: bool = True

    @classmethod
    def without_filters(cls) -> FilterThresholds:
        """Return those that let all sequences pass (HMMER's ``--max``)."""
        return cls(1.0, 1.0, 1.0, False)


class ProfileFilter:
    """The filters for one profile; threads share it."""

    def __init__(self, profile: Profile, thresholds: FilterThresholds) -> None:
        self.profile = profile
        self.thresholds = thresholds
        tables = byte_tables(profile)
        statistics = profile.statistics
        self._tables = tables
        self._striped = striped_bytes(tables)
        self._msv_score = lowest_passing_score(
            thresholds.F1, statistics.msv_mu, statistics.msv_lambda
        )
        self._least = np.zeros(0, dtype=np.int64)

    def survivors(self, block: ProteinBlock, stats: Stats) -> Int64Array:
        """Return the sequences that pass to the Forward filter, and perhaps more.

        Parameters
        ----------
        block : ProteinBlock
            The sequences; empty ones never pass.
        stats : Stats
            Counts the cells and the survivors of each stage.

        Returns
        -------
        ndarray of int64
            The numbers of the sequences, increasing.
        """
        sizes = np.diff(block.offsets)
        if self.thresholds.F1 >= 1:
            return np.nonzero(sizes)[0]
        return self._pass_msv(block, int(sizes.max(initial=0)))[0]

    def _pass_msv(self, block: ProteinBlock, longest: int) -> tuple[Int64Array, Int64Array]:
        """Return the sequences that pass MSV, and the bytes with which they leave the profile."""
        lengths = length_tables(1 << max(longest.bit_length(), _MIN_LENGTH_BITS))
        least = self._least
        if least.size <= longest:
            least = self._least = minimal_cells(self._tables, lengths, self._msv_score)
        striped = self._striped
        parts = striped.scores.shape[0]
        count = block.offsets.size - 1
        sequences, cells = np.empty((2, count), dtype=np.int64)
        borders = np.empty(longest * LANES if parts > 1 else 0, dtype=np.uint8)
        found = find_cells(block, striped, least, borders, sequences, cells)
        sequences, cells = sequences[:found], cells[:found]
        numbers = np.array([self._msv_score, BYTE_SCALE], dtype=np.float32)
        row = np.empty(striped.costs.shape[1], dtype=np.uint8)
        kept = settle_msv(block, striped, lengths, numbers, row, sequences, cells)
        return sequences[:kept], cells[:kept]
