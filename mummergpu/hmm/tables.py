"""The scores of a profile as the small integers that HMMER's filters add up.

The formulas, and the places where they round to float32, are those of HMMER's
``p7_ProfileConfig``, ``mf_conversion`` and ``vf_conversion``.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.logarithms import Logarithms, log64, logarithms
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import CODES, RESIDUES, meanings
from mummergpu.runtime.arrays import ByteArray, Float32Array, Float64Array, Int16Array, Int64Array
from mummergpu.runtime.jit import flattened, inline, jit

BACKGROUND: Final = np.array(
    [
        *(0.0787945, 0.0151600, 0.0535222, 0.0668298, 0.0397062, 0.0695071, 0.0229198),
        *(0.0590092, 0.0594422, 0.0963728, 0.0237718, 0.0414386, 0.0482904, 0.0395639),
        *(0.0540978, 0.0683364, 0.0540687, 0.0673417, 0.0114135, 0.0304133),
    ],
    dtype=np.float32,
)
"""The frequencies of the amino acids in Swiss-Prot 50.8, by code."""

LN2: Final = 0.69314718055994529
BYTE_SCALE: Final = np.float32(3.0 / LN2)
"""The bytes are thirds of a bit."""
BYTE_BASE: Final = 190
"""The byte of a score of 0."""
BYTE_LEAVE: Final = 3
"""The cost of the step from the end state to another pass, or to the end: half of a chance."""


class ByteTables(NamedTuple):
    """The costs of SSV and MSV, in thirds of a bit."""

    costs: ByteArray  # (29, nodes): by code and node: a match's cost plus `bias`; 255: impossible
    bias: int  # The highest score of a match
    entry: int  # The cost to enter the profile at some node


class Constants(NamedTuple):
    """The constants of tables, for compiled functions."""

    background: Float32Array
    meant: ByteArray  # As in `meanings`
    logs: Logarithms


@cache
def constants() -> Constants:
    """Return the constants."""
    return flattened(Constants(BACKGROUND, meanings(), logarithms()))


def match_scores(profile: Profile) -> Float32Array:
    """Return the scores in nats (29, nodes) of each code, -inf for a gap and for marks."""
    scores = np.empty((CODES, profile.nodes), dtype=np.float32)
    fill_scores(profile.matches, constants(), scores)
    return scores


@jit
def fill_scores(matches: Float32Array, constants: Constants, scores: Float32Array) -> None:
    """Compute `match_scores`."""
    background, nodes = constants.background, len(matches)
    for code in range(RESIDUES):
        chance = np.float64(background[code])
        for node in range(nodes):
            odds = np.float64(matches[node, code]) / chance
            scores[code, node] = np.float32(log64(constants.logs.long, odds))
    for code in range(RESIDUES, CODES):
        weight = np.float32(0)
        # The order of the sum decides about its last digit.
        for residue in range(RESIDUES):
            if constants.meant[code, residue]:
                for node in range(nodes):
                    total = scores[code, node] if weight else np.float32(0)
                    scores[code, node] = total + scores[residue, node] * background[residue]
                weight += background[residue]
        for node in range(nodes):
            scores[code, node] = scores[code, node] / weight if weight else np.float32(-np.inf)


def rounded(numbers: Float32Array | np.float32) -> Float64Array:
    """Return the nearest integers; a half goes away from 0."""
    exact = np.asarray(numbers, dtype=np.float64)
    return np.trunc(exact + np.copysign(0.5, exact))


class LengthTables(NamedTuple):
    """The numbers that depend only on the length of a sequence, for lengths from 0 on."""

    null: Float32Array  # The score of the background in nats
    # The cost in bytes of the steps that leave the residues before and after the profile.
    move: Int64Array


@cache
def length_tables(longest: int) -> LengthTables:
    """Return the tables for lengths up to one; callers round it up, to share them."""
    lengths = np.arange(longest + 1, dtype=np.int64)
    stay = lengths.astype(np.float32) / (lengths + 1).astype(np.float32)
    exact = stay.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        null = lengths.astype(np.float32) * np.log(exact) + np.log(1.0 - exact)
    moves = np.float32(3) / (lengths + 3).astype(np.float32)
    logs = np.log(moves.astype(np.float64)).astype(np.float32)
    cost = np.minimum(255, -rounded(BYTE_SCALE * logs))
    return LengthTables(null.astype(np.float32), cost.astype(np.int64))


WORD_SCALE: Final = np.float32(500.0 / LN2)
"""The words are five hundredths of a bit."""
WORD_BASE: Final = 12000
"""The word of a score of 0."""
WORD_LEAVE: Final = 500
"""The cost of the step from the end state to another pass, or to the end."""
WORD_NEVER: Final = -32768
STEP_ROWS: Final = 8
"""The rows of `WordTables.transitions`."""
_FAR: Final = 1e6
"""Beyond the scores in bytes and in words."""


class WordTables(NamedTuple):
    """The scores of the Viterbi filter, in 1/500 bit; `WORD_NEVER` is an impossible one."""

    emissions: Int16Array  # (29, nodes): by code and node
    # (8, nodes): into each node's match from the begin state and from the last node's match,
    # insertion and deletion; from its match to the next deletion and its insertion; its insertion's
    # own loop; from its deletion to the next.
    transitions: Int16Array
    # The most that two deletions in a row may gain over a new entry (HMMER's lazy evaluation).
    delete_bound: int


class FilterTables(NamedTuple):
    """The tables of the filters before Forward's."""

    bytes: ByteTables
    words: WordTables


def filter_tables(profile: Profile) -> FilterTables:
    """Return the bytes and the words of a profile."""
    nodes = profile.nodes
    costs = np.empty((CODES, nodes), dtype=np.uint8)
    emissions = np.empty((CODES, nodes), dtype=np.int16)
    transitions = np.empty((STEP_ROWS, nodes), dtype=np.int16)
    scores = np.empty((CODES, nodes), dtype=np.float32)
    found = np.empty(3, dtype=np.int64)
    _fill_tables(
        *(profile.matches, profile.transitions, constants(), scores),
        *(costs, emissions, transitions, found),
    )
    bias, entry, bound = found.tolist()
    words = WordTables(emissions, transitions, bound)
    return FilterTables(ByteTables(costs, bias, entry), words)


@jit
def _fill_tables(
    matches: Float32Array,
    transitions: Float32Array,
    constants: Constants,
    scores: Float32Array,
    costs: ByteArray,
    emissions: Int16Array,
    steps: Int16Array,
    found: Int64Array,
) -> None:
    """Compute `filter_tables`; `found` are `bias`, `entry` and `delete_bound`."""
    nodes = costs.shape[1]
    fill_scores(matches, constants, scores)
    highest = np.float32(0)
    for code in range(RESIDUES):
        for node in range(nodes):
            highest = max(highest, scores[code, node])
    bias = min(255, _rounded(BYTE_SCALE * highest))
    for code in range(CODES):
        for node in range(nodes):
            cost = bias - _rounded(BYTE_SCALE * scores[code, node])
            costs[code, node] = min(cost, 255)
            emissions[code, node] = _word(scores[code, node])
    enters = np.float32(2) / np.float32(np.float32(nodes) * np.float32(nodes + 1))
    found[0] = bias
    found[1] = min(255, -_rounded(BYTE_SCALE * np.float32(log64(constants.logs.long, enters))))
    # The scores have been used: their memory receives the probabilities of the steps.
    fill_steps(transitions, scores)
    for row in range(STEP_ROWS):
        for node in range(nodes):
            log = np.float32(log64(constants.logs.long, np.float64(scores[row, node])))
            steps[row, node] = _word(log)
    found[2] = WORD_NEVER
    for node in range(3, nodes):
        # The deletion of the node before the last one goes on, and ends; or a new entry.
        pair = np.int64(steps[7, node - 2]) + steps[3, node] - steps[0, node]
        found[2] = max(found[2], pair)
    for node in range(nodes):
        # An insertion without a cost could go on for ever.
        for row in range(STEP_ROWS - 1):
            steps[row, node] = min(steps[row, node], -1 if row == 6 else 0)


@inline
def _rounded(number: np.float32) -> int:
    """Return the nearest integer up to some thousands away; a half goes away from 0."""
    exact = float(number)
    exact += 0.5 if exact > 0 else -0.5
    exact = _FAR if exact > _FAR else -_FAR if exact < -_FAR else exact
    # As in HMMER, what is no number becomes 0.
    return np.int32(exact if exact == exact else 0.0)  # type: ignore[return-value]


@inline
def _word(score: np.float32) -> int:
    """Return a score in nats as a word, saturated."""
    return min(max(_rounded(WORD_SCALE * score), -32768), 32767)


@inline
def fill_steps(transitions: Float32Array, steps: Float32Array) -> None:
    """Fill rows of the probabilities of `WordTables.transitions`; 0 where there is no step."""
    nodes = len(transitions) - 1
    fill_entries(transitions, steps[0])
    for node in range(nodes):
        # Row n of the transitions leaves node n from 1 on; no path goes on from the begin state.
        before, after = transitions[node], transitions[node + 1]
        for row, column in ((1, 0), (2, 3), (3, 5)):
            steps[row, node] = before[column] if node else np.float32(0)
        for row, column in ((4, 2), (5, 1), (6, 4), (7, 6)):
            steps[row, node] = after[column] if node < nodes - 1 else np.float32(0)


def entry_probabilities(profile: Profile) -> Float32Array:
    """Return how likely a local alignment enters at each node, as often as the node is used."""
    entries = np.empty(profile.nodes, dtype=np.float32)
    fill_entries(profile.transitions, entries)
    return entries


@jit
def fill_entries(transitions: Float32Array, entries: Float32Array) -> None:
    """Compute `entry_probabilities`."""
    nodes = len(transitions) - 1
    entries[0] = transitions[0, 1] + transitions[0, 0]
    for node in range(1, nodes):
        before = entries[node - 1]
        kept = np.float32(before * np.float32(transitions[node, 0] + transitions[node, 1]))
        # As in HMMER, the second product is one of doubles.
        back = (1.0 - np.float64(before)) * np.float64(transitions[node, 5])
        entries[node] = np.float32(np.float64(kept) + back)
    total = np.float32(0)
    for node in range(nodes):
        total += np.float32(entries[node] * np.float32(nodes - node))
    for node in range(nodes):
        entries[node] /= total


@cache
def word_moves(longest: int) -> Int64Array:
    """Return the word of the step into or out of the profile for lengths up to one."""
    lengths = np.arange(longest + 1, dtype=np.int64)
    moves = np.float32(3) / (lengths + 3).astype(np.float32)
    logs = np.log(moves.astype(np.float64)).astype(np.float32)
    return rounded(WORD_SCALE * logs).astype(np.int64)
