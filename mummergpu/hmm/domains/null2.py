"""HMMER's correction for biased composition: the odds of residues in the states of a hit."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.quarters import Quarters, looped, number
from mummergpu.hmm.proteins import CODES, DEGENERATE, RESIDUES, SYMBOLS
from mummergpu.runtime.arrays import ByteArray, Float32Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.llvm import intrinsic, types

_AT_ONCE: Final = 5
"""The codes whose sums are added up side by side."""


def meanings() -> ByteArray:
    """Return which amino acids each code may stand for, (29, 20), 0 or 1."""
    found = np.zeros((CODES, RESIDUES), dtype=np.uint8)
    found[:RESIDUES] = np.eye(RESIDUES, dtype=np.uint8)
    for letter, meant in DEGENERATE.items():
        found[SYMBOLS.index(letter), [*map(SYMBOLS.index, meant)]] = 1
    return found


def _sum_codes(
    typing_context: Any,
    quarters: Any,
    weights: Any,
    emissions: Any,
    registers: Any,
    code: Any,
    scales: Any,
    odds: Any,
) -> Any:
    """Sum up the odds of some codes, from one on, over all states, into rows of `odds`.

    The weights of states are scaled by a number of each quarter.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        weights, scales, odds = vectors.arrays(context, signature, arguments, 1, 5, 6)
        (emissions,) = vectors.places(context, signature, arguments, 2)
        registers, code = arguments[3:5]
        scale = vectors.spread(scales, 0)
        lines = [builder.mul(builder.add(code, number(n)), registers) for n in range(_AT_ONCE)]

        def body(register: Any, *totals: Any) -> list[Any]:
            at = builder.mul(register, number(2))
            match, insertion = (
                builder.fmul(vectors.load(weights, builder.add(at, number(n))), scale)
                for n in range(2)
            )
            found = []
            for line, total in zip(lines, totals, strict=True):
                chance = vectors.in_all(emissions, builder.add(line, register))
                total = builder.fadd(total, builder.fmul(match, chance))
                found.append(builder.fadd(total, insertion))
            return found

        zero = vectors.constant(0)
        totals = looped(builder, registers, [zero] * _AT_ONCE, body)
        for n, total in enumerate(totals):
            row = builder.mul(builder.add(code, number(n)), number(vectors.quarters))
            moved = vectors.moved(odds, row)
            vectors.pick(vectors.totals(total), moved, 0)
        return context.get_dummy_value()

    one = types.int64
    return types.void(quarters, weights, emissions, one, one, scales, odds), generate


sum_codes = cast(Any, intrinsic(_sum_codes))


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
def expected_odds(
    quarters: tuple[int, ...],
    profile: Odds,
    weights: Float32Array,
    outside: Float32Array,
    scales: Float32Array,
    meant: ByteArray,
    odds: Float32Array,
) -> None:
    """Compute the odds of each code, (29, quarters), from the weights of all states.

    `outside` are the weights of residues outside the profile, (3, quarters), and `scales` is 1 by
    the residues of each sequence.
    """
    for code in range(0, RESIDUES, _AT_ONCE):
        sum_codes(quarters, weights, profile.emissions, profile.registers, code, scales, odds)
    for quarter in range(len(quarters)):
        scale = scales[quarter]
        plain = (outside[0, quarter] * scale + outside[2, quarter] * scale) + (
            outside[1, quarter] * scale
        )
        for code in range(RESIDUES):
            odds[code, quarter] += plain
        complete_odds(meant, odds, quarter)


def _sum_traced(
    typing_context: Any,
    quarters: Any,
    counts: Any,
    emissions: Any,
    registers: Any,
    scale: Any,
    sums: Any,
) -> Any:
    """Sum up the odds of all codes over the nodes of a path, four codes side by side.

    `sums` receives the sums of the four lanes of each code.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Quarters(builder, quarters)
        counts = vectors.places(context, signature, arguments, 1)[0]
        emissions, sums = vectors.arrays(context, signature, arguments, 2, 5)
        registers, scale = arguments[3:5]
        at_once = RESIDUES // vectors.quarters
        scales = vectors.splat(scale)

        def body(register: Any, *totals: Any) -> list[Any]:
            weight = builder.fmul(vectors.in_all(counts, register), scales)
            line = builder.mul(register, number(at_once))
            return [
                builder.fadd(
                    total,
                    builder.fmul(weight, vectors.load(emissions, builder.add(line, number(n)))),
                )
                for n, total in enumerate(totals)
            ]

        zero = vectors.constant(0)
        for n, total in enumerate(looped(builder, registers, [zero] * at_once, body)):
            vectors.store(total, sums, number(n))
        return context.get_dummy_value()

    one = types.int64
    return types.void(quarters, counts, emissions, one, types.float32, sums), generate


sum_traced = cast(Any, intrinsic(_sum_traced))


@inline
def traced_odds(profile: Odds, counts: Float32Array, scale: np.float32, odds: Float32Array) -> None:
    """Compute the odds of amino acids, (29, 1), in a path with counts of residues at nodes.

    Insertions count as matches, as in HMMER.
    """
    sums = odds[CODES:]
    sum_traced((0, 1, 2, 3), counts, profile.by_register, profile.registers, scale, sums)
    for code in range(RESIDUES):
        at = 4 * code
        odds[code, 0] = (sums[at, 0] + sums[at + 1, 0]) + (sums[at + 2, 0] + sums[at + 3, 0])
