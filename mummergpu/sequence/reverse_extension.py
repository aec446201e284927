"""How far a sequence agrees with the reverse complement of another one, without making that one.

To the right of a base of the first sequence come the complements of the bases to the left of a base
of the second one. As in `extension`, codes are compared one vector register at a time, and a break
ends the agreement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mummergpu.runtime.jit import inline_without_refcounts
from mummergpu.runtime.llvm import intrinsic, ir, types
from mummergpu.sequence.codes import STEP, CodeArray


def _difference(
    context: Any, builder: Any, signature: Any, arguments: Any, steps: tuple[int, int]
) -> Any:
    """Return a mask of the bases that are not complements: the first one, and the last other."""

    def lanes_at(array_type: Any, array: Any, index: Any, before: int) -> Any:
        view = context.make_array(array_type)(context, builder, array)
        first = builder.sub(index, ir.Constant(index.type, before))
        address = builder.bitcast(builder.gep(view.data, [first]), lanes_type.as_pointer())
        return builder.load(address, align=1, typ=lanes_type)

    lanes_type = ir.VectorType(ir.IntType(8), STEP)
    one, at, other, other_at = arguments
    lanes = lanes_at(signature.args[0], one, at, steps[0])
    other = lanes_at(signature.args[2], other, other_at, steps[1])
    order = ir.Constant(ir.VectorType(ir.IntType(32), STEP), list(range(STEP))[::-1])
    # Three less a break is no code, so a break differs from everything.
    other = builder.sub(
        ir.Constant(lanes_type, [3] * STEP), builder.shuffle_vector(other, other, order)
    )
    return builder.bitcast(builder.icmp_unsigned("!=", lanes, other), ir.IntType(STEP))


def _extend_right(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Return how many of the next `STEP` bases pair with those before a base of the other."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = _difference(context, builder, signature, arguments, (0, STEP))
        count = builder.cttz(mask, ir.Constant(ir.IntType(1), 0))
        return builder.zext(count, ir.IntType(64))

    return types.int64(one, types.int64, other, types.int64), generate


def _extend_left(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Return how many of the `STEP` bases before a base pair with the next ones of the other."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = _difference(context, builder, signature, arguments, (STEP, 0))
        count = builder.ctlz(mask, ir.Constant(ir.IntType(1), 0))
        return builder.zext(count, ir.IntType(64))

    return types.int64(one, types.int64, other, types.int64), generate


_Compare = Callable[[CodeArray, int, CodeArray, int], int]
_extend_lanes_right = cast(_Compare, intrinsic(_extend_right))
_extend_lanes_left = cast(_Compare, intrinsic(_extend_left))


@inline_without_refcounts
def extend_right_reversed(
    one: CodeArray, at: int, other: CodeArray, other_end: int, most: int
) -> int:
    """Return how many bases from a position on pair with those before a position of the other.

    Parameters
    ----------
    one : ndarray, dtype=uint8
        The first sequence, with margins.
    at : int
        The index of the first base to compare; it includes the margin.
    other : ndarray, dtype=uint8
        The second sequence, with margins.
    other_end : int
        The index after its first base to compare; the next one lies before that base.
    most : int
        The most bases to count.

    Returns
    -------
    int
        Between 0 and `most`.
    """
    equal = 0
    while True:
        run = _extend_lanes_right(one, at + equal, other, other_end - equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        equal += STEP


@inline_without_refcounts
def extend_left_reversed(
    one: CodeArray, at: int, other: CodeArray, other_at: int, most: int
) -> int:
    """Return how many bases before a position pair with those from a position of the other on.

    Parameters
    ----------
    one : ndarray, dtype=uint8
        The first sequence, with margins.
    at : int
        The index after the first base to compare; it includes the margin.
    other : ndarray, dtype=uint8
        The second sequence, with margins.
    other_at : int
        The index of its first base to compare.
    most : int
        The most bases to count.

    Returns
    -------
    int
        Between 0 and `most`.
    """
    equal = 0
    while True:
        run = _extend_lanes_left(one, at - equal, other, other_at + equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        equal += STEP
