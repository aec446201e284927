"""How far a sequence agrees with the reverse complement of another one, without making that one.

To the right of a base of the first sequence come the complements of the bases to the left of a base
of the second one. As in `extension`, codes are compared one vector register at a time, and a break
ends the agreement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mummergpu.runtime.jit import inline
from mummergpu.runtime.llvm import ir
from mummergpu.sequence.codes import STEP, CodeArray
from mummergpu.sequence.extension import counting, load_lanes


def _difference(before: int, other_before: int) -> Callable[[Any, Any, Any, Any], Any]:
    """Return what makes a mask of the bases that do not pair: the first with the last other one."""

    def differs(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, at, other, other_at = arguments
        lanes = load_lanes(context, builder, signature.args[0], one, at, before)
        others = load_lanes(context, builder, signature.args[2], other, other_at, other_before)
        order = ir.Constant(ir.VectorType(ir.IntType(32), STEP), list(range(STEP))[::-1])
        # Three less a break is no code, so a break differs from everything.
        others = builder.sub(
            ir.Constant(lanes.type, [3] * STEP), builder.shuffle_vector(others, others, order)
        )
        return builder.bitcast(builder.icmp_unsigned("!=", lanes, others), ir.IntType(STEP))

    return differs


_extend_lanes_right = counting(_difference(0, STEP), True)
_extend_lanes_left = counting(_difference(STEP, 0), False)


@inline
def extend_right_reversed(
    one: CodeArray, at: int, other: CodeArray, other_end: int, most: int
) -> int:
    """Return how many bases from a position on pair with those before a position of the other.

    Both sequences have margins, which the indices include. The base before `other_end` is compared
    first. At most `most` bases are counted.
    """
    equal = 0
    while True:
        run = _extend_lanes_right(one, at + equal, other, other_end - equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        equal += STEP


@inline
def extend_left_reversed(
    one: CodeArray, at: int, other: CodeArray, other_at: int, most: int
) -> int:
    """Return how many bases before a position pair with those from a position of the other on.

    Both sequences have margins, which the indices include. The base before `at` is compared first.
    At most `most` bases are counted.
    """
    equal = 0
    while True:
        run = _extend_lanes_left(one, at - equal, other, other_at + equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        equal += STEP
