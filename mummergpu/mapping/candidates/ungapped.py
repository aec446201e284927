"""Scores a read beside an exact match without gaps: compiled primitives.

A tail is what a read has before or after an exact match. It is compared with the reference on the
diagonal of the match, one vector register at a time; only the bases that differ are looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int32Array
from mummergpu.runtime.jit import inline_without_refcounts
from mummergpu.runtime.llvm import intrinsic, ir, types
from mummergpu.sequence.codes import BREAK, STEP, CodeArray
from mummergpu.sequence.extension import differences
from mummergpu.viterbi.recurrence.model import CostTuple

Tail = tuple[int, int, int]
"""The score of a tail, the bases of the read that its best part has, and its credit."""

Qualities = tuple[ByteArray, Int32Array]
"""The Phred qualities of the bases of a block of reads, and the credit of a base that differs for
each quality (`evidence.credits_of_qualities`)."""


def _differences_right(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Return a mask of the next `STEP` bases that differ, the nearest base in the lowest bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = differences(0)(context, builder, signature, arguments)
        return builder.zext(mask, ir.IntType(64))

    return types.uint64(one, types.int64, other, types.int64), generate


def _differences_left(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Return a mask of the `STEP` bases before that differ, the nearest in the lowest bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = differences(STEP)(context, builder, signature, arguments)
        return builder.zext(builder.bitreverse(mask), ir.IntType(64))

    return types.uint64(one, types.int64, other, types.int64), generate


def _first_bit(typing_context: Any, mask: Any) -> Any:
    """Return the number of the lowest bit of a mask that is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


_Compare = Callable[[CodeArray, int, CodeArray, int], np.uint64]
differences_right = cast(_Compare, intrinsic(_differences_right))
differences_left = cast(_Compare, intrinsic(_differences_left))
first_bit = cast("Callable[[np.uint64], int]", intrinsic(_first_bit))


@inline_without_refcounts
def score_tail(
    read: CodeArray,
    at: int,
    length: int,
    reference: CodeArray,
    reference_at: int,
    most: int,
    leftwards: bool,
    costs: CostTuple,
    qualities: Qualities,
    quality_at: int,
    quality_step: int,
) -> Tail:
    """Return the best score of a tail without gaps."""
    best, taken, score, credit, best_credit = 0, 0, 0, 0, 0
    base_qualities, credits = qualities
    end = min(length, most)
    done = 0
    while done < end:
        if leftwards:
            mask = differences_left(read, at - done, reference, reference_at - done)
        else:
            mask = differences_right(read, at + done, reference, reference_at + done)
        count = min(STEP, end - done)
        mask &= (np.uint64(1) << np.uint64(count)) - np.uint64(1)
        behind = 0
        while mask != np.uint64(0):
            place = first_bit(mask)
            score += (place - behind) * costs.match
            if score >= best:
                best, taken, best_credit = score, done + place, credit
            base = at - 1 - done - place if leftwards else at + done + place
            if read[base] == BREAK:
                score -= costs.unknown
            else:
                score -= costs.mismatch
                credit += credits[base_qualities[quality_at + quality_step * base]]
            behind = place + 1
            mask &= mask - np.uint64(1)
        score += (count - behind) * costs.match
        done += count
        if score >= best:
            best, taken, best_credit = score, done, credit
        elif score + (end - done) * costs.match + costs.end_bonus < best:
            return best, taken, best_credit
    if end == length:
        if score + costs.end_bonus >= best:
            best, taken, best_credit = score + costs.end_bonus, length, credit
    return best, taken, best_credit
