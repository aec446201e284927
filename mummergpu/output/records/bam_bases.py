"""Writes bases as BAM has them: two in a byte, on the strand of the reference.

The four bits of a base are a set of the letters that it can be: A is 1, C is 2, G is 4, T is 8, and
N is all of them (SAM format specification, section 4.2.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types
from mummergpu.sequence.codes import BREAK, LETTERS, STEP, CodeArray

_ANY_BASE: Final = 15

_SETS: Final = np.array(["=ACMGRSVTWYHKDBN".index(letter) for letter in LETTERS.decode()], np.uint8)
"""The four bits of each letter."""


def _lanes(count: int) -> Any:
    """Return the type of a vector register with `count` bytes."""
    return ir.VectorType(ir.IntType(8), count)


def _all(value: int, count: int = STEP) -> Any:
    return ir.Constant(_lanes(count), [value] * count)


def _chosen(builder: Any, lanes: Any, order: range) -> Any:
    """Return the lanes of the numbers in `order`."""
    numbers = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), list(order))
    return builder.shuffle_vector(lanes, lanes, numbers)


def _packing(is_reverse: bool, codes: Any, text: Any) -> Any:
    """Return the signature and the generator of a function that packs `STEP` codes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = load_from(context, builder, _lanes(STEP), signature.args[0], *arguments[:2])
        is_break = builder.icmp_unsigned(">=", lanes, _all(BREAK))
        if is_reverse:
            lanes = builder.sub(_all(3), lanes)
        # The lower bit of a code moves the bit of its base by one place, the higher bit by two.
        bases = builder.add(builder.and_(lanes, _all(1)), _all(1))
        is_high = builder.icmp_unsigned("!=", builder.and_(lanes, _all(2)), _all(0))
        bases = builder.select(is_high, builder.shl(bases, _all(2)), bases)
        bases = builder.select(is_break, _all(_ANY_BASE), bases)
        if is_reverse:
            bases = _chosen(builder, bases, range(STEP - 1, -1, -1))
        first, second = (_chosen(builder, bases, range(half, STEP, 2)) for half in (0, 1))
        pairs = builder.or_(builder.shl(first, _all(4, STEP // 2)), second)
        packed = _lanes(STEP // 2)
        target = address_of(context, builder, packed, signature.args[2], *arguments[2:])
        builder.store(pairs, target, align=1)
        return context.get_dummy_value()

    return types.void(codes, types.int64, text, types.int64), generate


def _forward(typing_context: Any, codes: Any, at: Any, text: Any, to: Any) -> Any:
    """Pack `STEP` codes into half as many bytes."""
    return _packing(False, codes, text)


def _reverse(typing_context: Any, codes: Any, at: Any, text: Any, to: Any) -> Any:
    """Pack the reverse complement of `STEP` codes into half as many bytes."""
    return _packing(True, codes, text)


_Pack = Callable[[CodeArray, int, TextArray, int], None]
_pack_lanes = cast(_Pack, intrinsic(_forward))
_pack_reverse_lanes = cast(_Pack, intrinsic(_reverse))


@inline_without_refcounts
def pack_bases(
    text: TextArray, at: int, codes: CodeArray, begin: int, length: int, is_reverse: bool
) -> int:
    """Write a sequence, or its reverse complement; return where it ends.

    `begin` counts the margin of the codes; the last four bits of an odd number of bases are 0.
    """
    for done in range(0, length, STEP):
        to = at + (done >> 1)
        if is_reverse:
            _pack_reverse_lanes(codes, begin + length - done - STEP, text, to)
        else:
            _pack_lanes(codes, begin + done, text, to)
    if length & 1:
        last = as_index(at + (length >> 1))
        text[last] &= 0xF0
    return at + ((length + 1) >> 1)


@inline_without_refcounts
def pack_letters(text: TextArray, at: int, codes: CodeArray, begin: int, length: int) -> None:
    """Put letters that stand for several bases where `pack_bases` has written others."""
    for base in range(length):
        code = codes[as_index(begin + base)]
        if code > BREAK:
            shift = 0 if base & 1 else 4
            kept = as_int64(text[as_index(at + (base >> 1))]) & (15 << 4 - shift)
            text[as_index(at + (base >> 1))] = kept | as_int64(_SETS[code & 15]) << shift
