"""Finds the sequences of a block that HMMER's filters let pass for a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.hmm import byte_filters, word_filter
from mummergpu.hmm.bias_filter import BiasFilter
from mummergpu.hmm.byte_filters import LANES, find_cells, settle_msv, striped_bytes
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.tables import (
    BYTE_BASE,
    BYTE_SCALE,
    LN2,
    WORD_BASE,
    WORD_SCALE,
    LengthTables,
    byte_tables,
    length_tables,
    word_moves,
    word_tables,
)
from mummergpu.hmm.thresholds import lowest_passing_score, minimal_cells
from mummergpu.hmm.word_filter import score_viterbi, striped_words
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.stats import Stats

_MIN_LENGTH_BITS: Final = 11
"""Tables for lengths are made for powers of two, from this one on."""

_ROUNDING: Final = 1e-4
"""How far HMMER's scores in float32 may be from those in doubles, in nats."""


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
        self._words = striped_words(word_tables(profile))
        self._msv_score, self._skip_score = (
            lowest_passing_score(limit, statistics.msv_mu, statistics.msv_lambda)
            for limit in (thresholds.F1, thresholds.F2)
        )
        self._viterbi_score = lowest_passing_score(
            thresholds.F2, statistics.viterbi_mu, statistics.viterbi_lambda
        )
        composition = profile.composition
        self._bias = None if composition is None else BiasFilter(composition, profile.nodes)
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
        stats.add(cells=int(block.codes.size) * self.profile.nodes)
        if self.thresholds.F1 >= 1:
            return np.nonzero(sizes)[0]
        longest = int(sizes.max(initial=0))
        lengths = length_tables(1 << max(longest.bit_length(), _MIN_LENGTH_BITS))
        sequences, left = self._pass_msv(block, longest, lengths)
        stats.add(passed_msv=int(sequences.size))
        # Without a composition, what HMMER computes is no score: what it does then is its matter.
        if self.thresholds.bias_filter and self._bias is None:
            return sequences
        survivors = self._pass_viterbi(block, sequences, left, lengths)
        stats.add(passed_viterbi=int(survivors.size))
        return survivors

    def _pass_viterbi(
        self, block: ProteinBlock, sequences: Int64Array, left: Int64Array, lengths: LengthTables
    ) -> Int64Array:
        """Return the sequences that pass MSV corrected for composition, and Viterbi."""
        sizes = block.offsets[sequences + 1] - block.offsets[sequences]
        nats = (left - lengths.move[sizes] - BYTE_BASE) / float(BYTE_SCALE) - 3.0
        nats[left == byte_filters.OVERFLOW] = np.inf
        background: Float64Array = lengths.null[sizes].astype(np.float64)
        margin: Float64Array = np.full(sizes.size, _ROUNDING)
        if self.thresholds.bias_filter and self._bias is not None:
            background, margin = self._bias.scores(block, sequences)
        bits, slack = (nats - background) / LN2, margin / LN2
        kept = bits + slack >= self._msv_score
        passes = bits + slack >= self._skip_score
        compared = np.nonzero(kept & ~passes)[0]
        words, move = self._words, word_moves(lengths.move.size - 1)
        cells = np.empty(3 * words.registers * word_filter.LANES, dtype=np.int16)
        scores = np.empty(compared.size, dtype=np.int64)
        score_viterbi(block, words, move, cells, sequences[compared], scores)
        nats = (scores + move[sizes[compared]] - WORD_BASE) / float(WORD_SCALE) - 3.0
        nats[scores == word_filter.OVERFLOW] = np.inf
        bits = (nats - background[compared]) / LN2 + slack[compared]
        passes[compared] = bits >= self._viterbi_score
        survivors: Int64Array = sequences[kept & passes]
        return survivors

    def _pass_msv(
        self, block: ProteinBlock, longest: int, lengths: LengthTables
    ) -> tuple[Int64Array, Int64Array]:
        """Return the sequences that pass MSV, and the bytes with which they leave the profile."""
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
