"""Writes the bases of queries as letters, and their qualities, on either strand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.texts import TextArray
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.jit import as_index, as_int64, inline
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import Vectors
from mummergpu.sequence.codes import BASES, BREAK, LETTERS, MARGIN, STEP, CodeArray

_LETTER_OF_CODE: Final = np.frombuffer(LETTERS, dtype=np.uint8)

_COMPLEMENT: Final = 3
"""The bits that differ between the codes of a base and of its complement."""


def _letters(vectors: Vectors, codes: Any) -> Any:
    """Return the letter of each code, N for all that is not the code of a base."""
    builder, found = vectors.builder, vectors.constant(BASES[-1])
    for code, letter in enumerate(BASES[:-1]):
        is_code = builder.icmp_unsigned("==", codes, vectors.constant(code))
        found = builder.select(is_code, vectors.constant(letter), found)
    return found


def _generate_letters(
    typing_context: Any, text: Any, at: Any, codes: Any, begin: Any, is_reverse: Any
) -> Any:
    """Write the letters of `STEP` codes; or of their complements, the last one first."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 8, STEP)
        target = address_of(context, builder, vectors.kind, signature.args[0], *arguments[:2])
        lanes = load_from(context, builder, vectors.kind, signature.args[2], *arguments[2:4])
        complements = builder.xor(lanes, vectors.constant(_COMPLEMENT))
        reversed_lanes = vectors.shuffled(complements, complements, range(STEP - 1, -1, -1))
        # No branch: the processor cannot predict the strand.
        flag = builder.trunc(arguments[4], ir.IntType(1))
        lanes = builder.select(flag, reversed_lanes, lanes)
        builder.store(_letters(vectors, lanes), target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, codes, types.int64, types.int64), generate


_Step = Callable[[TextArray, int, CodeArray, int, int], None]
_letters_step = cast(_Step, intrinsic(_generate_letters))


@inline
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


@inline
def write_letters(text: TextArray, at: int, codes: CodeArray, begin: int, length: int) -> None:
    """Put the letters that stand for several bases into a text that `write_bases` has written."""
    for base in range(length):
        code = codes[as_index(begin + base)]
        if code > BREAK:
            text[as_index(at + base)] = _LETTER_OF_CODE[code & 15]


QualityArray = ByteArray

LETTERS_FROM: Final = np.uint8(33)
"""The letter of quality 0 in text."""

NUMBERS_FROM: Final = np.uint8(0)
"""What is added to a quality where numbers are written."""


def _step(is_reverse: bool, text: Any, qualities: Any) -> Any:
    """Return the signature and the generator of a function that writes `STEP` qualities."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(builder, 8, STEP)
        target = address_of(context, builder, vectors.kind, signature.args[0], *arguments[:2])
        lanes = load_from(context, builder, vectors.kind, signature.args[2], *arguments[2:4])
        if is_reverse:
            lanes = vectors.shuffled(lanes, lanes, range(STEP - 1, -1, -1))
        zero = ir.Constant(ir.IntType(32), 0)
        first = builder.insert_element(vectors.constant(0), arguments[4], zero)
        added = vectors.shuffled(first, first, [0] * STEP)
        builder.store(builder.add(lanes, added), target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, qualities, types.int64, types.uint8), generate


def _generate_forward(
    typing_context: Any, text: Any, at: Any, qualities: Any, begin: Any, added: Any
) -> Any:
    """Write `STEP` qualities, with a number added to each."""
    return _step(False, text, qualities)


def _generate_reverse(
    typing_context: Any, text: Any, at: Any, qualities: Any, begin: Any, added: Any
) -> Any:
    """Write `STEP` qualities, the last one first, with a number added to each."""
    return _step(True, text, qualities)


_QualityStep = Callable[[TextArray, int, QualityArray, int, np.uint8], None]
_forward_step = cast(_QualityStep, intrinsic(_generate_forward))
_reverse_step = cast(_QualityStep, intrinsic(_generate_reverse))


@inline
def write_qualities(
    text: TextArray,
    at: int,
    qualities: QualityArray,
    bounds: tuple[int, int],
    first: int,
    count: int,
    is_reverse: bool,
    added: np.uint8,
) -> int:
    """Write qualities of a read, in the order of either strand; return where they end."""
    begin, end = bounds
    if is_reverse:
        last = end - first
        # Only the first reads of a block have no 32 qualities before them, the last none after.
        if last - count >= STEP:
            for done in range(0, count, STEP):
                _reverse_step(text, at + done, qualities, last - done - STEP, added)
        else:
            for done in range(count):
                text[as_index(at + done)] = qualities[as_index(last - 1 - done)] + added
    elif begin + first + count + STEP <= qualities.size:
        for done in range(0, count, STEP):
            _forward_step(text, at + done, qualities, begin + first + done, added)
    else:
        for done in range(count):
            text[as_index(at + done)] = qualities[as_index(begin + first + done)] + added
    return at + count
