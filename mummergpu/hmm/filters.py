"""Finds the sequences of a block that HMMER's filters let pass for a profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm import tables, word_filter
from mummergpu.hmm.bias_filter import BiasFilter, bias_scores
from mummergpu.hmm.byte_filters import (
    LANES,
    StripedBytes,
    filter_by_msv,
    find_cells,
    minimal_cells,
    striped_bytes,
)
from mummergpu.hmm.filter_decisions import (
    Background,
    Decisions,
    ScoredPairs,
    keep_pairs,
    pass_viterbi,
)
from mummergpu.hmm.forward_filter import chances_of, margins, nats_of_sums, row_cells, score_forward
from mummergpu.hmm.logarithms import Logarithms, exp64, logarithms
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.profiles import Profile, Statistics
from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.hmm.stage_counts import UNKNOWN, VITERBI, Reached
from mummergpu.hmm.word_filter import StripedWords, score_viterbi, striped_words
from mummergpu.runtime.arrays import BoolArray, Float32Array, Float64Array, Int64Array
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.stats import Stats

_MIN_LENGTH_BITS: Final = 11
"""Tables for lengths are made for powers of two, from this one on."""

_ROUNDING: Final = 1e-4
"""The largest difference of HMMER's scores in float32 to those in doubles, in nats."""

_SMALL: Final = 5e-9
"""Up to here HMMER takes 1 - exp(-x) for x."""

_HIGHEST: Final = 1e30
"""Above any score."""


class PassScores(NamedTuple):
    """The least passing scores in bits, in the order of `filter_decisions`."""

    msv: np.float32
    skip: np.float32  # From which on MSV's score lets a sequence pass Viterbi's filter too
    viterbi: np.float32


def pass_scores(statistics: Statistics, thresholds: FilterThresholds) -> PassScores:
    """Return the least float32 whose chances are not above the thresholds.

    One is -inf if all scores pass, and NaN if none do.
    """
    msv = statistics.msv_mu, statistics.msv_lambda
    viterbi = statistics.viterbi_mu, statistics.viterbi_lambda
    thresholds_of = (thresholds.F1, *msv), (thresholds.F2, *msv), (thresholds.F2, *viterbi)
    scores = np.empty(len(thresholds_of), dtype=np.float32)
    _fill_pass_scores(np.array(thresholds_of), logarithms(), scores)
    return PassScores(*scores)


@jit
def _fill_pass_scores(tails: Float64Array, logs: Logarithms, scores: Float32Array) -> None:
    """Compute least scores from rows of the highest chance, mu and lambda."""
    for number in range(len(scores)):
        limit, mu, rate = tails[number, 0], tails[number, 1], tails[number, 2]
        # Integers in the order of the float32: its bits, or their opposite if it is negative.
        high = int(np.float32(_HIGHEST).view(np.int32))
        low = -high
        while high - low > 1:
            middle = (low + high) // 2
            if _gumbel_tail(np.float64(_float_of(middle)), mu, rate, logs) > limit:
                low = middle
            else:
                high = middle
        if limit < 0:
            scores[number] = np.float32(np.nan)
        elif limit >= 1 or not rate > 0:
            scores[number] = np.float32(-np.inf)
        else:
            scores[number] = _float_of(high)


@inline
def _gumbel_tail(score: float, mu: float, rate: float, logs: Logarithms) -> float:
    """Return the chance of a score in bits or a higher one among random sequences."""
    events: float = exp64(logs.exponential, -rate * (score - mu))
    if not events < _SMALL:
        events = 1.0 - exp64(logs.exponential, -events)
    return events


@inline
def _float_of(order: int) -> np.float32:
    size = np.int32(abs(order)).view(np.float32)
    return size if order >= 0 else -size


def lengths_up_to(longest: int) -> tables.LengthTables:
    """Return tables for lengths up to one and some beyond; few different ones are made."""
    return tables.length_tables(1 << max(longest.bit_length(), _MIN_LENGTH_BITS))


def plain_background(lengths: tables.LengthTables, sizes: Int64Array) -> Background:
    """Return the background without correction for composition, for sequences of some lengths."""
    return Background(lengths.null[sizes].astype(np.float64), np.full(sizes.size, _ROUNDING))


class ProfileFilter:
    """The filters for one profile; threads share it.

    There is no `bias` if the profile has no composition.
    """

    def __init__(self, profile: Profile, thresholds: FilterThresholds) -> None:
        self.profile = profile
        self.thresholds = thresholds
        self.scores = pass_scores(profile.statistics, thresholds)
        self._least_scores = np.array([self.scores], dtype=np.float64)
        composition = profile.composition
        self.bias = None if composition is None else BiasFilter(composition, profile.nodes)
        self._least = np.zeros(0, dtype=np.int64)

    @cached_property
    def _tables(self) -> tables.FilterTables:
        return tables.filter_tables(self.profile)

    @property
    def bytes(self) -> tables.ByteTables:
        """The tables of SSV and MSV, for devices: the filters here have them striped."""
        return self._tables.bytes

    @property
    def words(self) -> tables.WordTables:
        """The tables of Viterbi's filter, as `bytes`."""
        return self._tables.words

    @cached_property
    def _all_striped(self) -> tuple[StripedBytes, StripedWords]:
        # Only a device needs the tables themselves: they are not kept.
        own = tables.filter_tables(self.profile)
        return striped_bytes(own.bytes), striped_words(own.words)

    @property
    def _striped(self) -> StripedBytes:
        return self._all_striped[0]

    @property
    def _striped_words(self) -> StripedWords:
        return self._all_striped[1]

    @cached_property
    def _forward(self) -> ForwardFilter:
        return ForwardFilter([self])

    def survivors(self, block: ProteinBlock, stats: Stats) -> Int64Array:
        """Return the sequences that pass to the Forward filter, and perhaps more, in their order.

        Empty ones never pass. `stats` counts the cells and the survivors of each stage.
        """
        return self.filtered(block, stats, False).sequences

    def filtered(self, block: ProteinBlock, stats: Stats, counts: bool) -> Reached:
        """Return the `survivors`; if stages are counted, all sequences that pass MSV."""
        cells = int(block.codes.size) * self.profile.nodes
        stats.add(cells=cells)
        if self.thresholds.F1 >= 1:
            return self.unfiltered(block, stats)
        longest = int(np.diff(block.offsets).max(initial=0))
        lengths = lengths_up_to(longest)
        with stats.stage("profile_msv"):
            sequences, exit_scores = self._pass_msv(block, longest, lengths)
        stats.add_cells("profile_msv", cells)
        stats.add(passed_msv=int(sequences.size))
        # Without a composition HMMER's number is no score: HMMER decides about these itself.
        if self.thresholds.bias_filter and self.bias is None:
            found, survivors = Reached.of_all(sequences, UNKNOWN), sequences
        else:
            found = self._pass_viterbi(block, sequences, exit_scores, lengths, stats, counts)
            survivors = found.passing(VITERBI)
        stats.add(passed_viterbi=int(survivors.size))
        return found

    def unfiltered(self, block: ProteinBlock, stats: Stats) -> Reached:
        """Return `filtered` if all sequences pass MSV; they are not compared."""
        sequences = np.nonzero(np.diff(block.offsets))[0]
        stats.add(passed_msv=int(sequences.size), passed_viterbi=int(sequences.size))
        return Reached.of_all(sequences, VITERBI if self.thresholds.F2 >= 1 else UNKNOWN)

    def pass_forward(self, block: ProteinBlock, reached: Reached, stats: Stats) -> Reached:
        """Return how many filters those sequences pass that pass Viterbi's, or may.

        Most do not pass Forward's, and this check costs a fraction of the one in `finishing`.
        """
        survivors = reached.those_passing(VITERBI)
        if not survivors.sequences.size:
            stats.add(passed_forward=0)
            return survivors
        same = np.zeros(survivors.sequences.size, dtype=np.int64)
        passing = self._forward.passing(block, same, survivors.sequences, stats)
        return survivors.after_forward(*passing)

    def decide(self, block: ProteinBlock, background: Float64Array) -> tuple[BoolArray, BoolArray]:
        """Return which sequences pass HMMER's filters up to Viterbi's, and which may or may not.

        `background` has HMMER's own scores of the sequences without the profile, in nats.
        """
        passes = np.ones(background.size, dtype=np.bool_)
        unknown = np.zeros(background.size, dtype=np.bool_)
        thresholds = self.thresholds
        if thresholds.F1 >= 1 and thresholds.F2 >= 1:
            return passes, unknown
        if min(thresholds.F1, thresholds.F2) < 0:
            return ~passes, unknown
        if thresholds.F1 >= 1:
            return ~passes, ~unknown
        longest = int(np.diff(block.offsets).max(initial=0))
        lengths = lengths_up_to(longest)
        sequences, exit_scores = self._pass_msv(block, longest, lengths)
        own = Background(background[sequences], np.full(sequences.size, _ROUNDING))
        found = self._reached(block, sequences, exit_scores, own, lengths, None, True)
        passes[:] = False
        passes[sequences] = found.filters >= VITERBI
        unknown[sequences] = found.filters == UNKNOWN
        return passes, unknown

    def _pass_viterbi(
        self,
        block: ProteinBlock,
        sequences: Int64Array,
        exit_scores: Int64Array,
        lengths: tables.LengthTables,
        stats: Stats,
        counts: bool,
    ) -> Reached:
        """Return `filtered` of the sequences that pass MSV."""
        sizes = block.offsets[sequences + 1] - block.offsets[sequences]
        background = plain_background(lengths, sizes)
        if self.thresholds.bias_filter and self.bias is not None:
            background = Background(*self.bias.scores(block, sequences))
        return self._reached(block, sequences, exit_scores, background, lengths, stats, counts)

    def _reached(
        self,
        block: ProteinBlock,
        sequences: Int64Array,
        exit_scores: Int64Array,
        background: Background,
        lengths: tables.LengthTables,
        stats: Stats | None,
        counts: bool,
    ) -> Reached:
        """Return `filtered` of the sequences that pass MSV, given their background."""
        if not sequences.size:
            return Reached.of_all(sequences, VITERBI)
        byte_moves = lengths.move[block.offsets[sequences + 1] - block.offsets[sequences]]
        same = np.zeros(sequences.size, dtype=np.int64)
        room = np.empty((3, sequences.size), dtype=np.int64)
        pairs = ScoredPairs(same, exit_scores, byte_moves, background, self._least_scores)
        decisions = Decisions.of_pairs(sequences.size)
        with nullcontext() if stats is None else stats.stage("profile_viterbi"):
            words, moves = self._striped_words, tables.word_moves(lengths.move.size - 1)
            cells = word_filter.row_cells(words)
            residues = pass_viterbi(block, words, moves, cells, sequences, pairs, decisions, room)
        if stats is not None:
            stats.add_cells("profile_viterbi", residues * self.profile.nodes)
        kept = room[0, : keep_pairs(decisions, counts, room[0])]
        return Reached(sequences[kept], decisions.passed[kept])

    def viterbi_words(
        self, block: ProteinBlock, sequences: Int64Array, lengths: tables.LengthTables
    ) -> Int64Array:
        """Return the words with which the best paths of some sequences leave the profile."""
        scores = np.empty(sequences.size, dtype=np.int64)
        if sequences.size:
            words, moves = self._striped_words, tables.word_moves(lengths.move.size - 1)
            score_viterbi(block, words, moves, word_filter.row_cells(words), sequences, scores)
        return scores

    def _pass_msv(
        self, block: ProteinBlock, longest: int, lengths: tables.LengthTables
    ) -> tuple[Int64Array, Int64Array]:
        """Return the sequences that pass MSV, and the bytes with which they leave the profile."""
        least = self._least
        if least.size <= longest:
            least = self._least = minimal_cells(self._striped, lengths, self.scores.msv)
        striped = self._striped
        is_cut = striped.scores.shape[0] > 1
        borders = np.empty(longest * LANES if is_cut else 0, dtype=np.uint8)
        sequences, cells = np.empty((2, block.offsets.size - 1), dtype=np.int64)
        found = find_cells(block, striped, least, borders, sequences, cells)
        sequences, cells = sequences[:found], cells[:found]
        numbers = np.array([self.scores.msv, tables.BYTE_SCALE], dtype=np.float32)
        row = np.empty(striped.costs.shape[1], dtype=np.uint8)
        kept = filter_by_msv(block, striped, lengths, numbers, row, sequences, cells)
        return sequences[:kept], cells[:kept]


class ForwardFilter:
    """The Forward filter for profiles with the same thresholds; threads share it.

    It takes pairs of many profiles at once: a call for each profile would have threads wait for
    the interpreter's lock.
    """

    def __init__(self, filters: Sequence[ProfileFilter]) -> None:
        thresholds = filters[0].thresholds
        self._is_corrected = thresholds.bias_filter
        self._all_pass = thresholds.F3 >= 1
        self._nodes = np.array([one.profile.nodes for one in filters])
        plain = np.ones(CODES), np.full(2, 0.5)
        biases = [plain if one.bias is None else (one.bias.odds, one.bias.steps) for one in filters]
        self._odds, self._steps = (np.array(one) for one in zip(*biases, strict=True))
        self._least = np.array([*map(self._least_bits, filters)])
        self._chances = chances_of([one.profile for one in filters])

    def _least_bits(self, one: ProfileFilter) -> float:
        """Return the least passing score of a profile; -inf if all pass."""
        limit, statistics = one.thresholds.F3, one.profile.statistics
        # Without a composition HMMER's number is no score: all pass, and HMMER decides.
        has_score = not self._is_corrected or one.bias is not None
        if not (has_score and 0 < limit < 1 and statistics.forward_lambda > 0):
            return -math.inf
        return statistics.forward_tau - math.log(limit) / statistics.forward_lambda

    def passing(
        self, block: ProteinBlock, profiles: Int64Array, sequences: Int64Array, stats: Stats
    ) -> tuple[BoolArray, BoolArray]:
        """Return which pairs pass, by the numbers of their profiles and of their sequences.

        The second array tells of which of these HMMER's own numbers would say the same.
        """
        passes = np.ones(sequences.size, dtype=np.bool_)
        is_sure = np.full(sequences.size, self._all_pass)
        compared = np.nonzero(self._least[profiles] > -np.inf)[0]
        if compared.size:
            profiles, sequences = profiles[compared], sequences[compared]
            with stats.stage("profile_forward"):
                passes[compared], is_sure[compared] = self._passing(block, profiles, sequences)
            sizes = block.offsets[sequences + 1] - block.offsets[sequences]
            stats.add_cells("profile_forward", int((sizes * self._nodes[profiles]).sum()))
        stats.add(passed_forward=int(np.count_nonzero(passes)))
        return passes, is_sure

    def _passing(
        self, block: ProteinBlock, profiles: Int64Array, sequences: Int64Array
    ) -> tuple[BoolArray, BoolArray]:
        sizes = block.offsets[sequences + 1] - block.offsets[sequences]
        if self._is_corrected:
            scores = bias_scores(block, self._odds, self._steps, profiles, sequences)
            background = Background(*scores)
        else:
            background = plain_background(lengths_up_to(int(sizes.max())), sizes)
        sums = np.empty((2, sequences.size), dtype=np.float64)
        # Chances far from any path are too small for float32.
        with flushed_floats():
            cells = row_cells(self._chances)
            score_forward(block, self._chances, cells, profiles, sequences, sums)
        nats = nats_of_sums(sums)
        margin, least = background.margin + margins(sizes), self._least[profiles]
        bits = (nats - background.nats + margin) / tables.LN2
        # NaN goes on to HMMER, which reports it as an error.
        is_number = np.isfinite(nats)
        passes: BoolArray = ~(bits < least) | ~is_number
        return passes, (bits - 2 * margin / tables.LN2 >= least) & is_number
