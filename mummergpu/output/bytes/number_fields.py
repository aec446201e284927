"""Functions that write numbers as fields between other text, with wide stores.

No function checks for the end of the text. The caller makes sure that `text_stores.OVERSHOOT` bytes
after the end of what is written may be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.number_text import COLUMN, EIGHT_DIGITS, digit_words
from mummergpu.output.bytes.text_stores import TAB, TextArray, store
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.runtime.llvm import intrinsic, ir, types

MOST_DIGITS: Final = 2 * COLUMN
"""The most digits of a number: no computer holds so many bases."""

SMALL: Final = 1000
"""The smallest number whose text is not in the table of small numbers."""

_SIZE_SHIFT: Final = np.uint64(56)
_LETTERS: Final = np.uint64(0x3030_3030_3030_3030)
"""Bits that turn eight digits into their letters."""
_LAST_DIGIT: Final = np.uint64(1 << 56)
_BYTE_BITS: Final = np.uint64(0x38)
"""The bits of a number of bits, at most 63, that tell its whole bytes."""


def _small_words() -> Any:
    """Return the text of each small number in the low bytes of a word, its size in the highest."""
    texts = [b"%d" % number for number in range(SMALL)]
    words = [int.from_bytes(text, "little") | len(text) << 56 for text in texts]
    return np.array(words, dtype=np.uint64)


_SMALL_WORDS: Final = _small_words()


def _three_digits() -> Any:
    """Return the three digits of each small number in bytes, the first digit lowest."""
    numbers = [bytes(map(int, f"{number:03}")) for number in range(SMALL)]
    return np.array([int.from_bytes(digits, "little") for digits in numbers], dtype=np.uint64)


_THREE_DIGITS: Final = _three_digits()
_SMALL: Final = np.uint64(SMALL)


def _generate_zero_bits(typing_context: Any, word: Any) -> Any:
    """Return how many of the lowest bits of a number are zero before the first that is not."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


_zero_bits = cast("Callable[[np.uint64], Any]", intrinsic(_generate_zero_bits))


@inline_without_refcounts
def _put_digits(text: TextArray, at: int, digits: np.uint64) -> int:
    """Write eight digits without leading zeros; return where they end."""
    leading = _zero_bits(digits | _LAST_DIGIT) & _BYTE_BITS
    store(text, at, (digits | _LETTERS) >> leading)
    return at + COLUMN - as_int64(leading >> np.uint64(3))


@inline_without_refcounts
def put_number(text: TextArray, at: int, number: int, digits: np.uint64) -> int:
    """Write a number whose digits are known; return where it ends."""
    if number < EIGHT_DIGITS:
        return _put_digits(text, at, digits)
    head = number // EIGHT_DIGITS
    words = digit_words(head, number - head * EIGHT_DIGITS, 0, 0)
    at = _put_digits(text, at, words[0])
    store(text, at, words[1] | _LETTERS)
    return at + COLUMN


@inline_without_refcounts
def put_small(text: TextArray, at: int, number: int) -> int:
    """Write a number that is mostly less than `SMALL`; return where it ends."""
    if number < SMALL:
        word = _SMALL_WORDS[as_index(number)]
        store(text, at, word)
        return at + as_int64(word >> _SIZE_SHIFT)
    return put_number(text, at, number, digit_words(number, 0, 0, 0)[0])


@inline_without_refcounts
def put_one_number(text: TextArray, at: int, number: int) -> int:
    """Write a number that is the only large one near it; return where it ends.

    `digit_words` makes the digits of four numbers for the time of about two of these.
    """
    if number < EIGHT_DIGITS:
        thousands = np.uint64(number) // _SMALL
        millions = thousands // _SMALL
        digits = _THREE_DIGITS[millions] >> np.uint64(8)
        digits |= _THREE_DIGITS[thousands - millions * _SMALL] << np.uint64(16)
        digits |= _THREE_DIGITS[np.uint64(number) - thousands * _SMALL] << np.uint64(40)
        return _put_digits(text, at, digits)
    return put_number(text, at, number, np.uint64(0))


@inline_without_refcounts
def put_tab(text: TextArray, at: int) -> int:
    """Write a tab; return where it ends."""
    store(text, at, TAB)
    return at + 1
