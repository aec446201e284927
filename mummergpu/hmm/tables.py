"""The scores of a profile as the small integers that HMMER's filters add up.

The formulas, and the places where they round to float32, are those of HMMER's
``p7_ProfileConfig``, ``mf_conversion`` and ``vf_conversion``.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import CODES, DEGENERATE, RESIDUES, SYMBOLS
from mummergpu.runtime.arrays import ByteArray, Float32Array, Float64Array, Int16Array, Int64Array
from mummergpu.runtime.jit import jit

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


def byte_tables(profile: Profile, scores: Float32Array | None = None) -> ByteTables:
    """Return the bytes of a profile; `scores` are its `match_scores`, if they are at hand."""
    scores = match_scores(profile.matches) if scores is None else scores
    highest = max(np.float32(0), np.float32(scores[:, :RESIDUES].max()))
    bias = min(255, int(rounded(BYTE_SCALE * highest)))
    costs = -rounded(BYTE_SCALE * scores)
    costs = np.where(costs > 255 - bias, 255, costs + bias)
    nodes = np.float32(profile.nodes)
    enters = np.float32(2) / np.float32(nodes * np.float32(nodes + np.float32(1)))
    entry = min(255, int(-rounded(BYTE_SCALE * np.float32(math.log(enters)))))
    return ByteTables(np.ascontiguousarray(costs.T.astype(np.uint8)), bias, entry)


def match_scores(matches: Float32Array) -> Float32Array:
    """Return the scores in nats of every code at each node, -inf for a gap and for marks."""
    with np.errstate(divide="ignore"):
        known = np.log(matches.astype(np.float64) / BACKGROUND).astype(np.float32)
    scores = np.full((len(matches), CODES), -np.inf, dtype=np.float32)
    scores[:, :RESIDUES] = known
    for letter, meant in DEGENERATE.items():
        total, weight = np.zeros(len(matches), dtype=np.float32), np.float32(0)
        # The order of the sum decides about its last digit.
        for code in map(SYMBOLS.index, meant):
            total += known[:, code] * BACKGROUND[code]
            weight += BACKGROUND[code]
        scores[:, SYMBOLS.index(letter)] = total / weight
    return scores


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


class WordTables(NamedTuple):
    """The scores of the Viterbi filter, in 1/500 bit; `WORD_NEVER` is an impossible one."""

    emissions: Int16Array  # (29, nodes): by code and node
    # (8, nodes): into each node's match from the begin state and from the last node's match,
    # insertion and deletion; from its match to the next deletion and its insertion; its insertion's
    # own loop; from its deletion to the next.
    transitions: Int16Array
    # The most that two deletions in a row may gain over a new entry (HMMER's lazy evaluation).
    delete_bound: int


def word_tables(profile: Profile, scores: Float32Array | None = None) -> WordTables:
    """Return the words of a profile; `scores` are its `match_scores`, if they are at hand."""
    nodes, probabilities = profile.nodes, profile.transitions
    with np.errstate(divide="ignore"):
        steps = words(np.log(probabilities.astype(np.float64)).astype(np.float32)[1:nodes])
        entries = entry_probabilities(profile)
        entry = words(np.log(entries.astype(np.float64)).astype(np.float32))
    match, insert, delete, insert_match, loop, delete_match, deletes = steps.T
    table = np.full((8, nodes), WORD_NEVER, dtype=np.int16)
    table[0] = np.minimum(entry, 0)
    for row, into in enumerate((match, insert_match, delete_match), 1):
        table[row, 1:] = np.minimum(into, 0)
    table[4, :-1] = np.minimum(delete, 0)
    table[5, :-1] = np.minimum(insert, 0)
    # An insertion without a cost could go on for ever.
    table[6, :-1] = np.minimum(loop, -1)
    table[7, :-1] = deletes
    bound = WORD_NEVER
    if nodes > 3:
        pairs = deletes[1:-1].astype(np.int64) + delete_match[2:] - entry[3:]
        bound = max(bound, int(pairs.max(initial=WORD_NEVER)))
    scores = match_scores(profile.matches) if scores is None else scores
    emissions = np.ascontiguousarray(words(scores).T)
    return WordTables(emissions, table, bound)


def words(scores: Float32Array) -> Int16Array:
    """Return scores in nats as words, saturated."""
    return np.clip(rounded(WORD_SCALE * scores), -32768, 32767).astype(np.int16)


def entry_probabilities(profile: Profile) -> Float32Array:
    """Return how likely a local alignment enters at each node, as often as the node is used."""
    occupied = np.empty(profile.nodes, dtype=np.float32)
    _fill_occupancy(profile.transitions, occupied)
    weights = occupied * np.arange(profile.nodes, 0, -1).astype(np.float32)
    total = np.add.accumulate(weights, dtype=np.float32)[-1]
    entries: Float32Array = occupied / total
    return entries


@jit
def _fill_occupancy(transitions: Float32Array, occupied: Float32Array) -> None:
    occupied[0] = transitions[0, 1] + transitions[0, 0]
    for node in range(1, occupied.size):
        before = occupied[node - 1]
        kept = np.float32(before * np.float32(transitions[node, 0] + transitions[node, 1]))
        # As in HMMER, the second product is one of doubles.
        back = (1.0 - np.float64(before)) * np.float64(transitions[node, 5])
        occupied[node] = np.float32(np.float64(kept) + back)


@cache
def word_moves(longest: int) -> Int64Array:
    """Return the word of the step into or out of the profile for lengths up to one."""
    lengths = np.arange(longest + 1, dtype=np.int64)
    moves = np.float32(3) / (lengths + 3).astype(np.float32)
    return words(np.log(moves.astype(np.float64)).astype(np.float32)).astype(np.int64)
