"""Runs of like bytes, 32 at a time: what the parsers of FASTA and FASTQ are made of.

Each function starts at a byte of a text and returns where a run ends. There is no test for
the end of the text: whoever calls puts a line feed, which ends every run, behind the text
and makes sure that `STEP` bytes behind it can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from mummergpu.runtime.jit import inlined_borrower
from mummergpu.sequence.codes import BREAK

STEP: Final = 32
"""Bytes looked at together: one vector register on most machines."""

Text = npt.NDArray[np.uint8]
RunFrom = Callable[[Text, int], int]
RunFromTo = Callable[[Text, int, Text, int], int]

_BYTES: Final = ir.VectorType(ir.IntType(8), STEP)
_MASK: Final = ir.IntType(STEP)


def _all(value: int) -> ir.Constant:
    return ir.Constant(_BYTES, [value] * STEP)


def _vector_at(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return the address of ``array[index]`` as that of a vector."""
    view = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(view.data, [index]), _BYTES.as_pointer())


def _load(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    address = _vector_at(context, builder, array_type, array, index)
    return builder.load(address, align=1, typ=_BYTES)


def _first(builder: Any, outside: Any) -> Any:
    """Return the index of the first lane that is set, `STEP` if there is none."""
    mask = builder.bitcast(outside, _MASK)
    index = builder.cttz(mask, ir.Constant(ir.IntType(1), 0))
    return builder.zext(index, ir.IntType(64))


def _run_of(outside: Callable[[Any, Any], Any]) -> RunFrom:
    """Return an intrinsic ``f(text, at)``: how many of `STEP` bytes come before one outside."""

    def run(typing_context: Any, text: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = _load(context, builder, signature.args[0], *arguments)
            return _first(builder, outside(builder, lanes))

        return types.int64(text, types.int64), generate

    return cast(RunFrom, intrinsic(run))


def _not_quality(builder: Any, lanes: Any) -> Any:
    return builder.icmp_unsigned(">", builder.sub(lanes, _all(33)), _all(126 - 33))


def _control(builder: Any, lanes: Any) -> Any:
    return builder.icmp_unsigned("<", lanes, _all(32))


_run_of_quality = _run_of(_not_quality)
_run_of_text = _run_of(_control)


def _generate_copy_run(typing_context: Any, text: Any, at: Any, names: Any, to: Any) -> Any:
    """Copy `STEP` bytes; return how many come before a blank or control byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature.args[0], *arguments[:2])
        builder.store(
            lanes, _vector_at(context, builder, signature.args[2], *arguments[2:]), align=1
        )
        return _first(builder, builder.icmp_unsigned("<=", lanes, _all(32)))

    return types.int64(text, types.int64, names, types.int64), generate


def _generate_encode_run(typing_context: Any, text: Any, at: Any, codes: Any, to: Any) -> Any:
    """Write the codes of `STEP` bytes; return how many come before one that is no letter."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = _load(context, builder, signature.args[0], *arguments[:2])
        lower = builder.or_(lanes, _all(0x20))
        encoded: Any = _all(BREAK)
        for code, letter in enumerate(b"acgt"):
            same = builder.icmp_unsigned("==", lower, _all(letter))
            encoded = builder.select(same, _all(code), encoded)
        builder.store(
            encoded, _vector_at(context, builder, signature.args[2], *arguments[2:]), align=1
        )
        outside = builder.icmp_unsigned(">", builder.sub(lower, _all(ord("a"))), _all(25))
        return _first(builder, outside)

    return types.int64(text, types.int64, codes, types.int64), generate


_copy_run_of_name = cast(RunFromTo, intrinsic(_generate_copy_run))
_encode_run_of_letters = cast(RunFromTo, intrinsic(_generate_encode_run))


@inlined_borrower
def encode_letters(text: Text, at: int, codes: Text, to: int) -> int:
    """Write the codes of a run of letters to ``codes[to:]``; return where the run ends.

    Up to `STEP` codes behind those of the run are overwritten.
    """
    while True:
        run = _encode_run_of_letters(text, at, codes, to)
        at += run
        to += run
        if run < STEP:
            return at


@inlined_borrower
def copy_name(text: Text, at: int, names: Text, to: int) -> int:
    """Copy a run without blanks and control bytes; return where the run ends.

    Up to `STEP` bytes behind the copy are overwritten.
    """
    while True:
        run = _copy_run_of_name(text, at, names, to)
        at += run
        to += run
        if run < STEP:
            return at


@inlined_borrower
def skip_quality(text: Text, at: int) -> int:
    """Return where a run of quality characters (33 to 126) ends."""
    while True:
        run = _run_of_quality(text, at)
        at += run
        if run < STEP:
            return at


@inlined_borrower
def skip_text(text: Text, at: int) -> int:
    """Return where a run without control bytes ends."""
    while True:
        run = _run_of_text(text, at)
        at += run
        if run < STEP:
            return at
