"""The odds of a profile as HMMER's Forward and Backward multiply them: in float32, to the bit.

A row has a vector of four nodes for each of ceil(M / 4) registers, at least two: lane r of register
q is node r * registers + q, counted from 0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import RESIDUES
from mummergpu.hmm.tables import entry_probabilities, match_scores
from mummergpu.runtime.arrays import ByteArray, Float32Array

LANES: Final = 4
"""The nodes of a register in HMMER."""

STEPS: Final = 7
"""The chances of each register before those of its deletions: into its matches from the begin state
and from the last node's match, insertion and deletion; from its match to the next deletion and to
its insertion; and its insertion's own loop."""

_LOG2_INVERSE: Final = np.float32(1.44269504088896341)
_LOG2_PARTS: Final = np.array([0.693359375, -2.12194440e-4], dtype=np.float32)
_COEFFICIENTS: Final = np.array(
    [
        *(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3),
        *(4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
    ],
    dtype=np.float32,
)
"""Of exp(f) - 1 - f over f * f, for f up to half of log 2 (S. Moshier's Cephes library)."""

_LEAST_LOG: Final = np.float32(-88.3762626647949)
"""Here and below the exponential is 0."""


class Odds(NamedTuple):
    """The odds of a profile, for compiled functions."""

    # (29, registers, 4): by code, of each node's match against the background.
    emissions: Float32Array
    by_register: Float32Array  # (registers, 20, 4): those of amino acids
    # (8 * registers, 4): `STEPS` of each register, and then of each the deletion that goes on.
    steps: Float32Array
    plain: ByteArray  # (registers,): 1 where all steps of a register are possible
    registers: int
    nodes: int


def odds_of(profile: Profile) -> Odds:
    """Return the odds of a profile."""
    nodes = profile.nodes
    registers = registers_of(nodes)
    nodes_of = np.arange(LANES) * registers + np.arange(registers)[:, np.newaxis]

    def striped(logs: Float32Array, last: int) -> Float32Array:
        """Return (rows, nodes) as (rows, registers, 4); 0 where there is no node."""
        padded = np.full((len(logs), LANES * registers), -np.inf, dtype=np.float32)
        padded[:, :last] = logs[:, :last]
        return np.ascontiguousarray(exponentials(padded)[:, nodes_of])

    with np.errstate(divide="ignore"):
        logs = np.log(profile.transitions[:nodes].astype(np.float64)).astype(np.float32)
        entry = np.log(entry_probabilities(profile).astype(np.float64)).astype(np.float32)
    # No path goes on from the begin state as from a node.
    logs[0] = -np.inf
    match, insert, delete, insert_match, loop, delete_match, deletes = logs.T
    before = np.stack([entry, match, insert_match, delete_match])
    after = np.full((4, nodes), -np.inf, dtype=np.float32)
    after[:, :-1] = np.stack([delete, insert, loop, deletes])[:, 1:]
    steps = np.concatenate([striped(before, nodes), striped(after, nodes)])
    rows = steps[:STEPS].swapaxes(0, 1).reshape(-1, LANES)
    emissions = striped(np.ascontiguousarray(match_scores(profile.matches).T), nodes)
    return Odds(
        emissions,
        np.ascontiguousarray(emissions[:RESIDUES].swapaxes(0, 1)),
        np.ascontiguousarray(np.concatenate([rows, steps[STEPS]])),
        np.asarray((steps > 0).all(axis=(0, 2)), dtype=np.uint8),
        registers,
        nodes,
    )


def registers_of(nodes: int) -> int:
    """Return the registers of a row for a profile of some nodes."""
    return max(2, -(-nodes // LANES))


def exponentials(logs: Float32Array) -> Float32Array:
    """Return the exponentials as HMMER computes them, a few units of the last place off.

    Each operation rounds to float32, in the order of Easel's vectors.
    """
    is_zero = logs <= _LEAST_LOG
    rest = np.where(is_zero, np.float32(0), logs)
    turns = np.floor(rest * _LOG2_INVERSE + np.float32(0.5))
    rest = rest - turns * _LOG2_PARTS[0]
    rest = rest - turns * _LOG2_PARTS[1]
    found = np.full_like(rest, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        found = found * rest + coefficient
    found = found * (rest * rest) + rest + np.float32(1)
    powers = ((turns.astype(np.int32) + 127) << 23).view(np.float32)
    odds: Float32Array = np.where(is_zero, np.float32(0), found * powers)
    return odds
