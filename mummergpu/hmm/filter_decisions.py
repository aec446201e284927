"""Which pairs of a profile and a sequence pass the filters between MSV's and Forward's.

These are the filter that corrects MSV's score for composition, and Viterbi's. HMMER's scores
without the profile, in float32, differ from those here by a margin: a pair may pass if the score
with the margin does, and HMMER lets it pass for sure if the score without it does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm import byte_filters, word_filter
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.stage_counts import UNKNOWN, VITERBI
from mummergpu.hmm.tables import BYTE_BASE, BYTE_SCALE, LN2, WORD_BASE, WORD_SCALE
from mummergpu.hmm.word_filter import StripedWords, score_viterbi
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int16Array, Int64Array
from mummergpu.runtime.jit import inline, jit

_BYTE_UNIT: Final = float(BYTE_SCALE)
_WORD_UNIT: Final = float(WORD_SCALE)

_MAY_BE_KEPT: Final = 1
"""Of a pair: it may pass the corrected filter of MSV's score."""
_IS_KEPT: Final = 2
_MAY_SKIP: Final = 4
"""MSV's score may be so high that Viterbi's filter is not asked."""
_SKIPS: Final = 8
_MAY_PASS: Final = 16
"""Viterbi's filter may let it pass."""
_PASSES: Final = 32

MSV_SCORE, SKIP_SCORE, VITERBI_SCORE = range(3)
"""The least passing scores of a profile in bits: MSV's, the one of MSV's from which on a sequence
passes Viterbi's filter too, and Viterbi's."""


class Background(NamedTuple):
    """The scores of sequences without the profile, and the largest differences to HMMER's; nats."""

    nats: Float64Array
    margin: Float64Array


class ScoredPairs(NamedTuple):
    """Pairs that pass MSV, for compiled functions."""

    profiles: Int64Array  # Their rows in `least`
    left: Int64Array  # The bytes with which they leave the profile
    moves: Int64Array  # The bytes of the steps before and after it
    background: Background
    least: Float64Array  # (profiles, 3): `MSV_SCORE`, `SKIP_SCORE` and `VITERBI_SCORE`


class Decisions(NamedTuple):
    """Room for what is decided about pairs."""

    states: ByteArray
    compared: Int64Array  # The numbers of the pairs that Viterbi has to decide about
    passed: Int64Array  # How many filters each pair passes, or `UNKNOWN`

    @classmethod
    def of_pairs(cls, count: int) -> Decisions:
        """Return room for some pairs."""
        compared, passed = np.empty((2, count), dtype=np.int64)
        return cls(np.zeros(count, dtype=np.uint8), compared, passed)


@jit
def compare_bytes(pairs: ScoredPairs, decisions: Decisions) -> int:
    """Decide by MSV's bytes; return the number of pairs that are left to Viterbi."""
    count = 0
    for pair in range(pairs.left.size):
        nats = (pairs.left[pair] - pairs.moves[pair] - BYTE_BASE) / _BYTE_UNIT - 3.0
        if pairs.left[pair] == byte_filters.OVERFLOW:
            nats = np.inf
        margin = pairs.background.margin[pair] / LN2
        high = (nats - pairs.background.nats[pair]) / LN2 + margin
        low = high - 2 * margin
        least = pairs.least[pairs.profiles[pair]]
        # Each threshold is compared with both ends of what HMMER's own score may be.
        state = 0
        if high >= least[MSV_SCORE]:
            state |= _MAY_BE_KEPT
        if low >= least[MSV_SCORE]:
            state |= _IS_KEPT
        if high >= least[SKIP_SCORE]:
            state |= _MAY_SKIP
        if low >= least[SKIP_SCORE]:
            state |= _SKIPS
        decisions.states[pair] = state
        if state & _MAY_BE_KEPT and not state & _MAY_SKIP:
            decisions.compared[count] = pair
            count += 1
    return count


@jit
def compare_words(
    pairs: ScoredPairs, words: Int64Array, moves: Int64Array, count: int, decisions: Decisions
) -> None:
    """Decide about the pairs that were left to Viterbi by its words; `moves` has a word for each.

    Then `Decisions.passed` is known.
    """
    for number in range(count):
        pair = decisions.compared[number]
        nats = (words[number] + moves[number] - WORD_BASE) / _WORD_UNIT - 3.0
        if words[number] == word_filter.OVERFLOW:
            nats = np.inf
        bits = (nats - pairs.background.nats[pair]) / LN2
        margin = pairs.background.margin[pair] / LN2
        least = pairs.least[pairs.profiles[pair], VITERBI_SCORE]
        if bits + margin >= least:
            decisions.states[pair] |= _MAY_PASS
        if bits - margin >= least:
            decisions.states[pair] |= _PASSES
    for pair in range(pairs.left.size):
        decisions.passed[pair] = filters_passed(decisions.states[pair])


@inline
def filters_passed(state: int) -> int:
    """Return how many filters a pair passes up to Viterbi's, or `UNKNOWN`."""
    is_kept, skips = state & _IS_KEPT != 0, state & _SKIPS != 0
    if is_kept != (state & _MAY_BE_KEPT != 0) or skips != (state & _MAY_SKIP != 0):
        return UNKNOWN
    if not skips and (state & _PASSES != 0) != (state & _MAY_PASS != 0):
        return UNKNOWN
    if not is_kept:
        return 1
    return VITERBI if skips or state & _PASSES else VITERBI - 1


@inline
def may_pass(state: int) -> bool:
    """Return whether a pair may pass all filters up to Viterbi's."""
    return bool(state & _MAY_BE_KEPT and state & (_MAY_SKIP | _MAY_PASS))


@jit
def keep_pairs(decisions: Decisions, counts: bool, kept: Int64Array) -> int:
    """Write the numbers of the pairs that may pass, or of all if `counts`; return how many."""
    found = 0
    for pair in range(decisions.states.size):
        if counts or may_pass(decisions.states[pair]):
            kept[found] = pair
            found += 1
    return found


@jit
def pass_viterbi(
    block: ProteinBlock,
    words: StripedWords,
    moves: Int64Array,
    cells: Int16Array,
    sequences: Int64Array,
    pairs: ScoredPairs,
    decisions: Decisions,
    room: Int64Array,
) -> int:
    """Fill `Decisions` of sequences and a profile; return the residues that Viterbi compared.

    `moves` and `cells` are as for `score_viterbi`; `room` has three rows of numbers.
    """
    count = compare_bytes(pairs, decisions)
    some, scores, own = room[0, :count], room[1, :count], room[2, :count]
    residues = 0
    for number in range(count):
        some[number] = sequences[decisions.compared[number]]
        size = block.offsets[some[number] + 1] - block.offsets[some[number]]
        own[number] = moves[size]
        residues += size
    score_viterbi(block, words, moves, cells, some, scores)
    compare_words(pairs, scores, own, count, decisions)
    return residues
