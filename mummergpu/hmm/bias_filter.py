"""HMMER's correction for composition: a background of two states, one with the profile's residues.

Its Forward score is computed here with doubles, and without a logarithm a residue; HMMER's own, in
float32, differs by what `BiasFilter.scores` returns.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.proteins import CODES, RESIDUES, ProteinBlock
from mummergpu.hmm.tables import Constants, constants
from mummergpu.runtime.arrays import Float32Array, Float64Array, Int64Array
from mummergpu.runtime.jit import jit
from mummergpu.runtime.llvm import intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import Vectors, join_turns

_SCALE: Final = 1e-100
"""Sums below it are scaled up, and counted."""

_AT_ONCE: Final = 8
"""The number of pairs that are computed side by side."""

_MOST_UNSCALED: Final = 32
"""A sum is scaled after this number of residues: it cannot have left the range of a double."""

_MARGIN: Final = 0.007
"""The largest difference to HMMER's score, in nats; it grows for long sequences."""


class BiasFilter:
    """The background of a profile, corrected for its mean composition.

    `odds` are the odds of each code in that composition; `steps` are the chances to leave
    the state with it, and to stay.
    """

    def __init__(self, composition: Float32Array, nodes: int) -> None:
        self.odds: Float64Array = np.empty(CODES, dtype=np.float64)
        _fill_odds(composition, constants(), self.odds)
        stay = nodes / 8 / (nodes / 8 + 1)
        self.steps = np.array([1 - stay, stay])

    def scores(
        self, block: ProteinBlock, sequences: Int64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the scores of sequences in nats, and the largest differences to HMMER's."""
        same = np.zeros(sequences.size, dtype=np.int64)
        return bias_scores(block, self.odds[np.newaxis], self.steps[np.newaxis], same, sequences)


@jit
def _fill_odds(composition: Float32Array, constants: Constants, odds: Float64Array) -> None:
    """Compute the odds of each code as HMMER rounds them; a gap and marks have 1."""
    background = constants.background
    for code in range(CODES):
        own, others = np.float32(0), np.float32(0)
        for residue in range(RESIDUES):
            if constants.meant[code, residue]:
                own += composition[residue]
                others += background[residue]
        odds[code] = own / others if others > 0 else np.float32(1)


def bias_scores(
    block: ProteinBlock,
    odds: Float64Array,
    steps: Float64Array,
    profiles: Int64Array,
    sequences: Int64Array,
) -> tuple[Float64Array, Float64Array]:
    """Return `BiasFilter.scores` for pairs; odds and steps have a row for each profile."""
    sums = np.empty((2, sequences.size), dtype=np.float64)
    begins, last, firsts = np.empty((3, _AT_ONCE), dtype=np.int64)
    lanes = _Lanes(begins, last, firsts, np.empty((5, _AT_ONCE), dtype=np.float64))
    _fill_sums(block, odds, steps, profiles, sequences, lanes, sums)
    return scores_of_sums(sums, block.offsets[sequences + 1] - block.offsets[sequences])


def scores_of_sums(sums: Float64Array, sizes: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Return the scores and margins from chances, how often each was scaled, and lengths.

    A chance is scaled up by 1e100, or down if the number is negative.
    """
    lengths = sizes.astype(np.float64)
    odds = np.log(sums[0]) + sums[1] * np.log(_SCALE)
    scores = odds + lengths * np.log(lengths / (lengths + 1)) - np.log(lengths + 1)
    # HMMER adds a float32 for each residue.
    rounding = np.spacing(np.abs(odds).astype(np.float32) + np.float32(20)) + 1e-6
    return scores, _MARGIN + lengths * rounding


class _Lanes(NamedTuple):
    """Pairs side by side in compiled code; each array has a number for each pair."""

    # (_AT_ONCE,): the places of the first residue of each sequence, and how far after it the last
    # one is.
    begins: Int64Array
    last: Int64Array
    odds: Int64Array  # Where the odds of each profile begin
    # (5, _AT_ONCE): of the states without and with the composition; to stay in the first; to leave
    # the second, and to stay there.
    chances: Float64Array


def _pass_residues(
    typing_context: Any,
    codes: Any,
    odds: Any,
    begins: Any,
    last: Any,
    firsts: Any,
    chances: Any,
    place: Any,
    end: Any,
) -> Any:
    """Advance `_AT_ONCE` pairs by some residues; those that have ended keep their chances."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        codes, odds, _, _, _, _, first, end = arguments
        numbers, number = Vectors(builder, 64, _AT_ONCE), ir.IntType(64)
        kind = ir.VectorType(ir.DoubleType(), _AT_ONCE)
        zero = ir.Constant(number, 0)
        begins, last, firsts = (
            numbers.load(array, zero)
            for array in numbers.arrays(context, signature, arguments, 2, 3, 4)
        )
        (states,) = numbers.arrays(context, signature, arguments, 5)
        states = builder.bitcast(states, kind.as_pointer())
        rows = [builder.gep(states, [ir.Constant(number, row)]) for row in range(5)]
        plain_before, biased_before, stay, leave, remain = (
            builder.load(row, align=1, typ=kind) for row in rows
        )
        move = builder.fsub(ir.Constant(kind, [1.0] * _AT_ONCE), stay)
        before = builder.block
        body, after = (builder.append_basic_block(name) for name in ("residue", "after"))
        builder.branch(body)
        builder.position_at_end(body)
        place, plain, biased = builder.phi(number), builder.phi(kind), builder.phi(kind)
        at = numbers.splat(place)
        is_in = builder.icmp_signed("<=", at, last)
        # After its end a sequence has its last residue again.
        places = builder.add(begins, builder.select(is_in, at, last))
        likelier: Any = ir.Constant(kind, ir.Undefined)
        for n in range(_AT_ONCE):
            lane = ir.Constant(ir.IntType(32), n)
            where = builder.extract_element(places, lane)
            byte = ir.IntType(8)
            code = load_from(context, builder, byte, signature.args[0], codes, where)
            where = builder.add(builder.zext(code, number), builder.extract_element(firsts, lane))
            double = ir.DoubleType()
            value = load_from(context, builder, double, signature.args[1], odds, where)
            likelier = builder.insert_element(likelier, value, lane)
        new_plain = builder.fadd(builder.fmul(plain, stay), builder.fmul(biased, leave))
        new_biased = builder.fadd(builder.fmul(plain, move), builder.fmul(biased, remain))
        new_plain = builder.select(is_in, new_plain, plain)
        new_biased = builder.select(is_in, builder.fmul(new_biased, likelier), biased)
        following = builder.add(place, ir.Constant(number, 1))
        turns = (
            (place, first, following),
            (plain, plain_before, new_plain),
            (biased, biased_before, new_biased),
        )
        join_turns(turns, before, body)
        builder.cbranch(builder.icmp_signed("<", following, end), body, after)
        builder.position_at_end(after)
        builder.store(new_plain, rows[0], align=1)
        builder.store(new_biased, rows[1], align=1)
        return context.get_dummy_value()

    one = types.int64
    return types.void(codes, odds, begins, last, firsts, chances, one, one), generate


pass_residues = cast(Any, intrinsic(_pass_residues))
"""Called with codes, the odds of all profiles, the arrays of `_Lanes`, the first of the places in
each sequence, and the place after the last of them."""


@jit
def _fill_sums(
    block: ProteinBlock,
    odds: Float64Array,
    steps: Float64Array,
    profiles: Int64Array,
    sequences: Int64Array,
    lanes: _Lanes,
    sums: Float64Array,
) -> None:
    """Fill the arguments of `scores_of_sums`; a residue waits for the last one, pairs do not.

    Of the two states, one of which emits residue x likelier by odds[x]:

        plain, biased = (plain * stay + biased * leave,
                         (plain * (1 - stay) + biased * remain) * odds[x])
    """
    plain, biased, stay, leave, remain = lanes.chances
    for first in range(0, sequences.size, _AT_ONCE):
        longest = 0
        for lane in range(_AT_ONCE):
            # Lanes without a pair repeat the last one.
            pair = min(first + lane, sequences.size - 1)
            profile, begin = profiles[pair], block.offsets[sequences[pair]]
            length = block.offsets[sequences[pair] + 1] - begin
            lanes.begins[lane], lanes.last[lane] = begin, length - 1
            lanes.odds[lane] = profile * odds.shape[1]
            stay[lane] = length / (length + 1.0)
            leave[lane], remain[lane] = steps[profile, 0], steps[profile, 1]
            plain[lane], biased[lane] = 0.999, 0.001 * odds[profile, block.codes[begin]]
            longest = max(longest, length)
            if pair == first + lane:
                sums[1, pair] = 0
        for place in range(1, longest, _MOST_UNSCALED):
            pass_residues(
                block.codes,
                odds,
                lanes.begins,
                lanes.last,
                lanes.odds,
                lanes.chances,
                place,
                min(place + _MOST_UNSCALED, longest),
            )
            for lane in range(min(_AT_ONCE, sequences.size - first)):
                total = plain[lane] + biased[lane]
                if total < _SCALE:
                    plain[lane] /= _SCALE
                    biased[lane] /= _SCALE
                    sums[1, first + lane] += 1
                elif total > 1 / _SCALE:
                    plain[lane] *= _SCALE
                    biased[lane] *= _SCALE
                    sums[1, first + lane] -= 1
        for lane in range(min(_AT_ONCE, sequences.size - first)):
            sums[0, first + lane] = plain[lane] + biased[lane]
