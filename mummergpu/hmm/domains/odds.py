"""The odds of a profile as HMMER's Forward and Backward multiply them: in float32, to the bit.

A row has a vector of four nodes for each of ceil(M / 4) registers, at least two: lane r of register
q is node r * registers + q, counted from 0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.logarithms import exp32, fill_exponentials, log64
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import CODES, RESIDUES
from mummergpu.hmm.tables import Constants, constants, fill_scores, fill_steps
from mummergpu.runtime.arrays import ByteArray, Float32Array
from mummergpu.runtime.jit import jit

LANES: Final = 4
"""The nodes of a register in HMMER."""

STEPS: Final = 7
"""The chances of each register before those of its deletions: into its matches from the begin state
and from the last node's match, insertion and deletion; from its match to the next deletion and to
its insertion; and its insertion's own loop."""


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
    nodes, registers = profile.nodes, registers_of(profile.nodes)
    odds = Odds(
        np.empty((CODES, registers, LANES), dtype=np.float32),
        np.empty((registers, RESIDUES, LANES), dtype=np.float32),
        np.empty(((STEPS + 1) * registers, LANES), dtype=np.float32),
        np.empty(registers, dtype=np.uint8),
        registers,
        nodes,
    )
    scores = np.empty((CODES, nodes), dtype=np.float32)
    _fill_odds(profile.matches, profile.transitions, constants(), scores, odds)
    return odds


@jit
def _fill_odds(
    matches: Float32Array,
    transitions: Float32Array,
    constants: Constants,
    scores: Float32Array,
    odds: Odds,
) -> None:
    nodes, registers = odds.nodes, odds.registers
    fill_scores(matches, constants, scores)
    fill_exponentials(scores, nodes)
    for code in range(CODES):
        for lane in range(LANES):
            for register in range(registers):
                node = lane * registers + register
                chance = scores[code, node] if node < nodes else np.float32(0)
                odds.emissions[code, register, lane] = chance
                if code < RESIDUES:
                    odds.by_register[register, code, lane] = chance
    # The scores have been used: their memory receives the probabilities of the steps.
    fill_steps(transitions, scores)
    odds.plain[:] = 1
    for row in range(STEPS + 1):
        for lane in range(LANES):
            for register in range(registers):
                node, chance = lane * registers + register, np.float32(0)
                if node < nodes:
                    log = log64(constants.logs.long, np.float64(scores[row, node]))
                    chance = exp32(np.float32(log))
                line = register * STEPS + row if row < STEPS else registers * STEPS + register
                odds.steps[line, lane] = chance
                if not chance > 0:
                    odds.plain[register] = 0


def registers_of(nodes: int) -> int:
    """Return the registers of a row for a profile of some nodes."""
    return max(2, -(-nodes // LANES))
