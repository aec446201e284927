"""Functions that write numbers: in the columns of MUMmer's rows, and as fields between other text.

No function checks for the end of the text. The caller makes sure that
`texts.OVERSHOOT` bytes after the end of the written text may be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.texts import LINE_END, TAB, TextArray, store
from mummergpu.runtime.jit import as_index, as_int64, inline, lowest_bit
from mummergpu.runtime.llvm import address_of, intrinsic, ir, types

DigitWords = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

COLUMN: Final = 8
"""The columns in which a number is right-aligned."""

EIGHT_DIGITS: Final = 10**COLUMN
"""The smallest number that needs more columns."""

_ZEROS: Final = np.uint64(0x1010_1010_1010_1010)
"""Bits that turn eight blanks into eight zero digits."""
_NO_ZEROS: Final = np.uint64(0)
_REGISTER: Final = 256


def _lanes(bits: int) -> Any:
    """Return the type of a vector register with lanes of `bits` bits."""
    return ir.VectorType(ir.IntType(bits), _REGISTER // bits)


def _all(bits: int, value: int) -> Any:
    return ir.Constant(_lanes(bits), [value] * (_REGISTER // bits))


def _digits(builder: Any, numbers: Any) -> Any:
    """Return the eight digits of each number in the bytes of its lane, the first digit lowest.

    Each number is cut in half, each half in half again, and each quarter too. Multiplications
    by reciprocals replace the divisions; they are exact for numbers with so few digits.
    """

    def cut(bits: int, parts: Any, high: Any, base: int) -> Any:
        low = builder.sub(parts, builder.mul(high, _all(bits, base)))
        return builder.or_(high, builder.shl(low, _all(bits, bits // 2)))

    # The mask shows the compiler that a 32-bit by 32-bit multiplication is enough. The lanes
    # keep their width, so that the low half can hold the remainder.
    numbers = builder.and_(numbers, _all(64, 0xFFFF_FFFF))
    high = builder.lshr(builder.mul(numbers, _all(64, (1 << 40) // 10_000 + 1)), _all(64, 40))
    parts = builder.bitcast(cut(64, numbers, high, 10_000), _lanes(32))
    high = builder.lshr(builder.mul(parts, _all(32, (1 << 19) // 100 + 1)), _all(32, 19))
    parts = builder.bitcast(cut(32, parts, high, 100), _lanes(16))
    high = builder.lshr(builder.mul(parts, _all(16, (1 << 10) // 10 + 1)), _all(16, 10))
    return builder.bitcast(cut(16, parts, high, 10), _lanes(64))


def _marks(builder: Any, digits: Any) -> Any:
    """Return the bits that turn blanks into digits, for all digits except leading zeros."""
    # The last digit is written even if it is zero.
    seen = builder.or_(digits, _all(64, 1 << 56))
    for shift in (8, 16, 32):
        seen = builder.or_(seen, builder.shl(seen, _all(64, shift)))
    # The highest bit of each byte from 1 to 127 is set; bytes that are 0 become 127.
    seen = builder.add(seen, _all(64, 0x7F7F_7F7F_7F7F_7F7F))
    return builder.and_(builder.lshr(seen, _all(64, 3)), _all(64, int(_ZEROS)))


def _generate_columns(
    typing_context: Any, text: Any, at: Any, first: Any, second: Any, third: Any, zeros: Any
) -> Any:
    """Write three numbers below `EIGHT_DIGITS` in eight columns each, and a line end.

    Two blanks separate the columns, so this writes 29 bytes. If `zeros` is `_ZEROS` instead of
    `_NO_ZEROS`, zeros replace the blanks before the first number.
    """
    kinds = (text, *(types.int64 for _ in range(4)), types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = ir.IntType(32)
        numbers = _all(64, 0)
        for lane, number in enumerate(arguments[2:5]):
            numbers = builder.insert_element(numbers, number, ir.Constant(index, lane))
        digits = _digits(builder, numbers)
        marks = builder.or_(_marks(builder, digits), _all(64, 0x2020_2020_2020_2020))
        forced = builder.insert_element(_all(64, 0), arguments[5], ir.Constant(index, 0))
        columns = builder.or_(builder.or_(digits, marks), forced)
        blank, line_end = 32, 48
        fixed = ir.Constant(_lanes(8), [ord(" ")] * 16 + [ord("\n")] * 16)
        order = [*range(8), blank, blank, *range(8, 16), blank, blank, *range(16, 24)]
        order += [line_end] * (32 - len(order))
        lanes = ir.Constant(ir.VectorType(index, len(order)), order)
        row = builder.shuffle_vector(builder.bitcast(columns, _lanes(8)), fixed, lanes)
        address = address_of(context, builder, _lanes(8), signature.args[0], *arguments[:2])
        builder.store(row, address, align=1)
        return context.get_dummy_value()

    return types.void(*kinds), generate


def _generate_digits(typing_context: Any, one: Any, two: Any, three: Any, four: Any) -> Any:
    """Return the eight digits of each of four numbers, the first digit in the lowest byte.

    For numbers of `EIGHT_DIGITS` or more they are not the digits of the number.
    """
    kinds = tuple(types.int64 for _ in range(4))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = ir.IntType(32)
        numbers = _all(64, 0)
        for lane, number in enumerate(arguments):
            numbers = builder.insert_element(numbers, number, ir.Constant(index, lane))
        digits = _digits(builder, numbers)
        words = [builder.extract_element(digits, ir.Constant(index, lane)) for lane in range(4)]
        return context.make_tuple(builder, signature.return_type, words)

    return types.UniTuple(types.uint64, 4)(*kinds), generate


_write_columns = cast(
    "Callable[[TextArray, int, int, int, int, np.uint64], None]", intrinsic(_generate_columns)
)
digit_words = cast("Callable[[int, int, int, int], DigitWords]", intrinsic(_generate_digits))


@inline
def _write_head(text: TextArray, at: int, number: int) -> tuple[int, int, np.uint64]:
    """Write the digits of a number before its last eight digits.

    Returns where these digits end, the last eight digits as a number, and whether
    `_write_columns` must write zeros before it.
    """
    if number < EIGHT_DIGITS:
        return at, number, _NO_ZEROS
    head = number // EIGHT_DIGITS
    return put_one_number(text, at, head), number - head * EIGHT_DIGITS, _ZEROS


@inline
def write_numbers(text: TextArray, at: int, first: int, second: int, third: int) -> int:
    """Write three numbers in columns of eight or more, and a line end; return where it ends."""
    if max(second, third) < EIGHT_DIGITS:
        at, first, zeros = _write_head(text, at, first)
        _write_columns(text, at, first, second, third, zeros)
        return at + 3 * COLUMN + 5
    for number in (first, second, third):
        at, number, zeros = _write_head(text, at, number)
        # The next number overwrites the two zeros.
        _write_columns(text, at, number, 0, 0, zeros)
        at += COLUMN + 2
    store(text, at - 2, LINE_END)
    return at - 1


MOST_DIGITS: Final = 2 * COLUMN
"""The most digits of a number: no computer holds so many bases."""

SMALL: Final = 1000
"""The smallest number whose text is not in the table of small numbers."""

_SIZE_SHIFT: Final[Any] = np.uint64(56)
_LETTERS: Final = np.uint64(0x3030_3030_3030_3030)
"""Bits that turn eight digits into their letters."""
_LAST_DIGIT: Final = np.uint64(1 << 56)


def number_words(end: int, before: bytes = b"", after: bytes = b"") -> Any:
    """Return the texts of the numbers below `end`, with other text around them, as words.

    A text has at most seven bytes; they are the low ones of its word, and the highest is its size.
    """
    numbers = np.arange(end, dtype=np.uint64)
    words = np.full(end, int.from_bytes(before, "little"), dtype=np.uint64)
    sizes = np.full(end, len(before), dtype=np.uint64)
    for power in (1000, 100, 10, 1):
        is_shown = (numbers >= power) | (power == 1)
        words |= (numbers // power % 10 + ord("0")) * is_shown << 8 * sizes
        sizes += is_shown
    words |= int.from_bytes(after, "little") << 8 * sizes
    return words | sizes + len(after) << 56


_SMALL_WORDS: Final = number_words(SMALL)


def _three_digits() -> Any:
    """Return the three digits of each small number in bytes, the first digit lowest."""
    numbers = [bytes(map(int, f"{number:03}")) for number in range(SMALL)]
    return np.array([int.from_bytes(digits, "little") for digits in numbers], dtype=np.uint64)


_THREE_DIGITS: Final = _three_digits()
_SMALL: Final = np.uint64(SMALL)


@inline
def _put_digits(text: TextArray, at: int, digits: np.uint64) -> int:
    """Write eight digits without leading zeros; return where they end."""
    leading = lowest_bit(digits | _LAST_DIGIT) >> 3
    store(text, at, (digits | _LETTERS) >> np.uint64(leading << 3))
    return at + COLUMN - leading


@inline
def put_number(text: TextArray, at: int, number: int, digits: np.uint64) -> int:
    """Write a number whose digits are known; return where it ends."""
    if number < EIGHT_DIGITS:
        return _put_digits(text, at, digits)
    head = number // EIGHT_DIGITS
    words = digit_words(head, number - head * EIGHT_DIGITS, 0, 0)
    at = _put_digits(text, at, words[0])
    store(text, at, words[1] | _LETTERS)
    return at + COLUMN


@inline
def put_word(text: TextArray, at: int, word: np.uint64) -> int:
    """Write a text of `number_words`; return where it ends."""
    store(text, at, word)
    return at + as_int64(word >> _SIZE_SHIFT)


@inline
def put_small(text: TextArray, at: int, number: int) -> int:
    """Write a number that is mostly less than `SMALL`; return where it ends."""
    if number < SMALL:
        return put_word(text, at, _SMALL_WORDS[as_index(number)])
    return put_number(text, at, number, digit_words(number, 0, 0, 0)[0])


@inline
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


@inline
def put_tab(text: TextArray, at: int) -> int:
    """Write a tab; return where it ends."""
    store(text, at, TAB)
    return at + 1
