"""Writes the bases of queries as letters, on either strand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types
from mummergpu.sequence.codes import BASES, BREAK, LETTERS, MARGIN, STEP, CodeArray

_LETTER_OF_CODE: Final = np.frombuffer(LETTERS, dtype=np.uint8)

_COMPLEMENT: Final = 3
"""The bits that differ between the codes of a base and of its complement."""


def _lanes(bits: int = 8) -> Any:
    return ir.VectorType(ir.IntType(bits), STEP)


def _all(value: int) -> Any:
    return ir.Constant(_lanes(), [value] * STEP)


def _letters(builder: Any, codes: Any) -> Any:
    """Return the letter of each code, N for all that is not the code of a base."""
    found = _all(BASES[-1])
    for code, letter in enumerate(BASES[:-1]):
        is_code = builder.icmp_unsigned("==", codes, _all(code))
        found = builder.select(is_code, _all(letter), found)
    return found


def _generate_letters(
    typing_context: Any, text: Any, at: Any, codes: Any, begin: Any, is_reverse: Any
) -> Any:
    """Write the letters of `STEP` codes; or of their complements, the last one first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target = address_of(context, builder, _lanes(), signature.args[0], *arguments[:2])
        lanes = load_from(context, builder, _lanes(), signature.args[2], *arguments[2:4])
        order = ir.Constant(_lanes(32), list(range(STEP))[::-1])
        complements = builder.xor(lanes, _all(_COMPLEMENT))
        turned = builder.shuffle_vector(complements, complements, order)
        # No branch: the processor cannot predict the strand.
        flag = builder.trunc(arguments[4], ir.IntType(1))
        lanes = builder.select(flag, turned, lanes)
        builder.store(_letters(builder, lanes), target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, codes, types.int64, types.int64), generate


_Step = Callable[[TextArray, int, CodeArray, int, int], None]
_letters_step = cast(_Step, intrinsic(_generate_letters))


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

    The sequence is from `begin` to `end`, without the margin; `first` counts on the strand.
    """
    turn = as_int64(is_reverse)
    # The codes beyond those to write are others of the block, or of a margin.
    source = MARGIN + (end - first - STEP if is_reverse else begin + first)
    step = STEP - 2 * STEP * turn
    for done in range(0, count, STEP):
        _letters_step(text, at + done, padded_codes, source, turn)
        source += step
    return at + count


@inline_without_refcounts
def write_letters(text: TextArray, at: int, codes: CodeArray, begin: int, length: int) -> None:
    """Put the letters that stand for several bases into a text that `write_bases` has written."""
    for base in range(length):
        code = codes[as_index(begin + base)]
        if code > BREAK:
            text[as_index(at + base)] = _LETTER_OF_CODE[code & 15]
