"""Writes the bases of queries as letters, on either strand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from mummergpu.output.number_text import TextArray, address_of
from mummergpu.runtime.jit import inline_without_refcounts
from mummergpu.runtime.llvm import intrinsic, ir, types
from mummergpu.sequence.codes import BASES, MARGIN, STEP, CodeArray

_COMPLEMENTS: Final = bytes([*BASES[3::-1], BASES[4]])
"""The letter of the complement of each code."""


def _letters(builder: Any, codes: Any, letters: bytes) -> Any:
    """Return the letter of each code."""
    kind = ir.VectorType(ir.IntType(8), STEP)
    found = ir.Constant(kind, [letters[-1]] * STEP)
    for code, letter in enumerate(letters[:-1]):
        is_code = builder.icmp_unsigned("==", codes, ir.Constant(kind, [code] * STEP))
        found = builder.select(is_code, ir.Constant(kind, [letter] * STEP), found)
    return found


def _generate_letters(typing_context: Any, text: Any, at: Any, codes: Any, begin: Any) -> Any:
    """Write the letters of `STEP` codes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), STEP)
        target = address_of(context, builder, kind, signature.args[0], *arguments[:2])
        origin = address_of(context, builder, kind, signature.args[2], *arguments[2:])
        lanes = builder.load(origin, align=1, typ=kind)
        builder.store(_letters(builder, lanes, BASES), target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, codes, types.int64), generate


def _generate_complements(typing_context: Any, text: Any, at: Any, codes: Any, begin: Any) -> Any:
    """Write the letters of the complements of `STEP` codes, the last one first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), STEP)
        target = address_of(context, builder, kind, signature.args[0], *arguments[:2])
        origin = address_of(context, builder, kind, signature.args[2], *arguments[2:])
        lanes = builder.load(origin, align=1, typ=kind)
        order = ir.Constant(ir.VectorType(ir.IntType(32), STEP), list(range(STEP))[::-1])
        lanes = builder.shuffle_vector(lanes, lanes, order)
        builder.store(_letters(builder, lanes, _COMPLEMENTS), target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, codes, types.int64), generate


_Step = Callable[[TextArray, int, CodeArray, int], None]
_letters_step = cast(_Step, intrinsic(_generate_letters))
_complements_step = cast(_Step, intrinsic(_generate_complements))


@inline_without_refcounts
def write_bases(
    text: TextArray,
    at: int,
    padded_codes: CodeArray,
    begin: int,
    end: int,
    first: int,
    count: int,
    is_reverse: bool,
) -> int:
    """Write bases of a sequence or of its reverse complement; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        The text; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    padded_codes : ndarray, dtype=uint8
        Codes of sequences between two margins (`queries.QueryBlock.padded_codes`).
    begin, end : int
        Where the sequence begins and ends, without the margin.
    first : int
        The first base to write, counted from the first one of the strand.
    count : int
        How many bases to write.
    is_reverse : bool
        Whether to write the reverse complement.

    Returns
    -------
    int
        Where the bases end.
    """
    for done in range(0, count, STEP):
        # The codes beyond those to write are others of the block, or of a margin.
        if is_reverse:
            step_end = MARGIN + end - first - done
            _complements_step(text, at + done, padded_codes, step_end - STEP)
        else:
            _letters_step(text, at + done, padded_codes, MARGIN + begin + first + done)
    return at + count
