"""Copies the two sequences of a tile, so that one program reads all tiles in the same way.

The read is copied backwards, seen from the corner, and the reference forwards: along an
anti-diagonal of the matrix both are then read in ascending order. Codes that equal no other stand
around the copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from mummergpu.runtime.jit import inline_without_refcounts
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types
from mummergpu.sequence.codes import BREAK, STEP, CodeArray

REFERENCE_BREAK: Final = BREAK + 1
"""A break of the reference in a copy: it equals no break of the read."""

OUTSIDE_READ: Final = BREAK + 2
OUTSIDE_REFERENCE: Final = BREAK + 3
"""What stands around the copies."""


def _lanes_type() -> Any:
    return ir.VectorType(ir.IntType(8), STEP)


def _splat(number: int) -> Any:
    return ir.Constant(_lanes_type(), [number] * STEP)


def _copy_lanes(backwards: bool) -> Callable[..., Any]:
    def copy(
        typing_context: Any, codes: Any, at: Any, result: Any, to: Any, break_step: Any
    ) -> Any:
        """Copy `STEP` codes from an index on, or back from it, and add to each break."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            codes, at, result, to, break_step = arguments
            if backwards:
                at = builder.sub(at, ir.Constant(at.type, STEP - 1))
            lanes = load_from(context, builder, _lanes_type(), signature.args[0], codes, at)
            if backwards:
                order = list(range(STEP))[::-1]
                order = ir.Constant(ir.VectorType(ir.IntType(32), STEP), order)
                lanes = builder.shuffle_vector(lanes, lanes, order)
            is_break = builder.icmp_unsigned(">=", lanes, _splat(BREAK))
            step = builder.insert_element(
                ir.Constant(_lanes_type(), ir.Undefined),
                builder.trunc(break_step, ir.IntType(8)),
                ir.Constant(ir.IntType(32), 0),
            )
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), STEP), [0] * STEP)
            step = builder.shuffle_vector(step, step, zeros)
            lanes = builder.select(is_break, builder.add(_splat(BREAK), step), lanes)
            target = address_of(context, builder, _lanes_type(), signature.args[2], result, to)
            builder.store(lanes, target, align=1)
            return context.get_dummy_value()

        arguments = (codes, types.int64, result, types.int64, types.int64)
        return types.void(*arguments), generate

    return copy


def _fill_lanes(typing_context: Any, result: Any, to: Any, code: Any) -> Any:
    """Write a code `STEP` times."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result, to, code = arguments
        lanes = builder.insert_element(
            ir.Constant(_lanes_type(), ir.Undefined),
            builder.trunc(code, ir.IntType(8)),
            ir.Constant(ir.IntType(32), 0),
        )
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), STEP), [0] * STEP)
        lanes = builder.shuffle_vector(lanes, lanes, zeros)
        target = address_of(context, builder, _lanes_type(), signature.args[0], result, to)
        builder.store(lanes, target, align=1)
        return context.get_dummy_value()

    return types.void(result, types.int64, types.int64), generate


_Copy = Callable[[CodeArray, int, CodeArray, int, int], None]
_copy_forwards = cast(_Copy, intrinsic(_copy_lanes(backwards=False)))
_copy_backwards = cast(_Copy, intrinsic(_copy_lanes(backwards=True)))
_fill = cast("Callable[[CodeArray, int, int], None]", intrinsic(_fill_lanes))


@inline_without_refcounts
def copy_codes(
    codes: CodeArray, at: int, length: int, step: int, copy: CodeArray, to: int, break_step: int
) -> None:
    """Copy codes, forwards or backwards; up to `STEP` - 1 more are written, and as many are read.

    `step` is 1 if the next code is the one after it, or -1; `break_step` is added to each break.
    """
    for done in range(0, length, STEP):
        if step > 0:
            _copy_forwards(codes, at + done, copy, to + done, break_step)
        else:
            _copy_backwards(codes, at - done, copy, to + done, break_step)


@inline_without_refcounts
def fill_codes(copy: CodeArray, to: int, length: int, code: int) -> None:
    """Write one code at least `length` times, and up to `STEP` - 1 times more."""
    for done in range(0, length, STEP):
        _fill(copy, to + done, code)
