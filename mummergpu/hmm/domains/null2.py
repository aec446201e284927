"""HMMER's correction for biased composition: the odds of residues in the states of a hit."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mummergpu.hmm.domains.accuracy import Alignment
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.quarters import Quarters, looped, number, written
from mummergpu.hmm.proteins import CODES, RESIDUES
from mummergpu.runtime.arrays import ByteArray, Float32Array
from mummergpu.runtime.jit import inline, jit

_AT_ONCE: Final = 5
"""The codes whose sums are added up side by side."""


@written("void")
def sum_codes(
    vectors: Quarters, _quarters: Any, profile: Any, weights: Any, code: Any, scales: Any, odds: Any
) -> None:
    """Sum up the odds of some codes, from one on, over all states, into rows of `odds`.

    The weights of states are scaled by a number of each quarter.
    """
    builder, registers = vectors.builder, profile.registers
    emissions, weights = vectors.narrow(profile.emissions), vectors.registers(weights)
    scale = vectors.spread(vectors.numbers.load(vectors.row_of(scales), number(0)))
    codes = [builder.add(code, number(n)) for n in range(_AT_ONCE)]
    lines = [builder.mul(one, registers) for one in codes]

    def body(register: Any, *totals: Any) -> list[Any]:
        at = builder.mul(register, number(2))
        match, insertion = (
            builder.fmul(vectors.load(weights, builder.add(at, number(n))), scale) for n in range(2)
        )
        found = []
        for line, total in zip(lines, totals, strict=True):
            chance = vectors.in_all(emissions, builder.add(line, register))
            total = builder.fadd(total, builder.fmul(match, chance))
            found.append(builder.fadd(total, insertion))
        return found

    totals = looped(builder, registers, [vectors.constant(0)] * _AT_ONCE, body)
    for one, total in zip(codes, totals, strict=True):
        vectors.numbers.store(vectors.totals(total), vectors.row_of(odds, one), number(0))


@inline
def complete_odds(meant: ByteArray, odds: Float32Array, quarter: int) -> None:
    """Average the odds for letters that stand for several amino acids; marks have 1."""
    for code in range(RESIDUES, CODES):
        total, count = np.float32(0), np.float32(0)
        for residue in range(RESIDUES):
            if meant[code, residue]:
                total += odds[residue, quarter]
                count += np.float32(1)
        odds[code, quarter] = total / count if count > 0 else np.float32(1)


@jit
def expected_odds(profile: Odds, alignment: Alignment, scales: Float32Array) -> None:
    """Compute the odds of each code from the weights of all states, after `fill_accuracies`.

    `scales` receives 1 by the residues of each sequence.
    """
    quarters, found = alignment.cells.quarters, alignment.found
    odds, outside = found.null2, found.outside
    for quarter in range(len(quarters)):
        size = alignment.group.sizes[quarter]
        scales[quarter] = np.float32(1) / np.float32(size if size else 1)
    for code in range(0, RESIDUES, _AT_ONCE):
        sum_codes(quarters, profile, found.weights, code, scales, odds)
    for quarter in range(len(quarters)):
        scale = scales[quarter]
        plain = (outside[0, quarter] * scale + outside[2, quarter] * scale) + (
            outside[1, quarter] * scale
        )
        for code in range(RESIDUES):
            odds[code, quarter] += plain
        complete_odds(found.meant, odds, quarter)


@written("void")
def sum_traced(
    vectors: Quarters, _quarters: Any, profile: Any, counts: Any, scale: Any, sums: Any
) -> None:
    """Sum up the odds of all codes over the nodes of a path, four codes side by side.

    `sums` receives the sums of the four lanes of each code.
    """
    builder, registers = vectors.builder, profile.registers
    counts, sums = vectors.narrow(counts), vectors.registers(sums)
    emissions, scales = vectors.registers(profile.by_register), vectors.splat(scale)
    at_once = RESIDUES // vectors.quarters

    def body(register: Any, *totals: Any) -> list[Any]:
        weight = builder.fmul(vectors.in_all(counts, register), scales)
        line = builder.mul(register, number(at_once))
        places = (builder.add(line, number(n)) for n in range(at_once))
        products = [builder.fmul(weight, vectors.load(emissions, place)) for place in places]
        return [*map(builder.fadd, totals, products)]

    totals = looped(builder, registers, [vectors.constant(0)] * at_once, body)
    for n, total in enumerate(totals):
        vectors.store(total, sums, number(n))


@inline
def traced_odds(profile: Odds, counts: Float32Array, scale: np.float32, odds: Float32Array) -> None:
    """Compute the odds of amino acids, (29, 1), in a path with counts of residues at nodes.

    Insertions count as matches, as in HMMER.
    """
    sums = odds[CODES:]
    sum_traced((0, 1, 2, 3), profile, counts, scale, sums)
    for code in range(RESIDUES):
        at = 4 * code
        odds[code, 0] = (sums[at, 0] + sums[at + 1, 0]) + (sums[at + 2, 0] + sums[at + 3, 0])
