"""Compiled primitives of searches: how far two sequences agree, and k-mers as numbers.

Codes are compared one vector register at a time, and a k-mer is read as two words. These
reads can touch up to `MARGIN` codes before the first and after the last code of interest.
Sequences are therefore copied with a margin of breaks on both sides (`with_margins`).

Functions whose names end in ``_reversed`` compare with the reverse complement of the other sequence
without making it: to the right of a base of the first sequence come the complements of the bases to
the left of a base of the second one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.jit import as_int64, bit_count, inline
from mummergpu.runtime.llvm import intrinsic, ir, load_from, types
from mummergpu.sequence.codes import BREAK, STEP, CodeArray

WORD_STEP: Final = 8
"""The bases of a word: the comparison step if at most this number of bases are compared."""

MAXIMUM_KMER_LENGTH: Final = 15
"""The longest k-mer: with it, k-mers and the number of all possible k-mers fit 32 bits."""

Compare = Callable[[CodeArray, int, CodeArray, int], int]
"""Compares two sequences, each from a position on."""

BREAKS: Final = np.uint64(0x0404040404040404)
_PAIRS: Final = np.uint64(0x000F000F000F000F)
_FOURS: Final = np.uint64(0x000000FF000000FF)
_EIGHTS: Final = np.uint64(0xFFFF)

FOUR: Final = 4
_FOUR_BASES: Final = np.uint64(0x03030303)
_EIGHT_BASES: Final = np.uint64(0x0303030303030303)
"""The bits of a word that hold four or eight bases, without those of breaks."""


def _bytes() -> Any:
    """Return the type of a vector register with `STEP` codes."""
    return ir.VectorType(ir.IntType(8), STEP)


def load_lanes(context: Any, builder: Any, kind: Any, array: Any, index: Any, before: int) -> Any:
    """Return `STEP` codes of an array, from `before` codes before an index, in compiled code."""
    first = builder.sub(index, ir.Constant(index.type, before))
    return load_from(context, builder, _bytes(), kind, array, first)


def counting(differs: Callable[[Any, Any, Any, Any], Any], from_first: bool) -> Compare:
    """Return a compiled function that counts the equal codes of two sequences.

    `differs` receives a context, a builder, a signature and arguments, as numba passes them to the
    generator of an intrinsic, and returns a mask of `STEP` bits for the codes that differ. Codes
    are counted from the first one on, or from the last one backwards.
    """

    def count(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
        """Return how many codes are equal before the first difference."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            zeros = builder.cttz if from_first else builder.ctlz
            mask = differs(context, builder, signature, arguments)
            return builder.zext(zeros(mask, ir.Constant(ir.IntType(1), 0)), ir.IntType(64))

        return types.int64(one, types.int64, other, types.int64), generate

    return cast(Compare, intrinsic(count))


def differences(before: int) -> Callable[[Any, Any, Any, Any], Any]:
    """Return a function that masks the bases that differ or are breaks in one sequence."""

    def differs(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, at, other, other_at = arguments
        lanes = load_lanes(context, builder, signature.args[0], one, at, before)
        others = load_lanes(context, builder, signature.args[2], other, other_at, before)
        is_break = builder.icmp_unsigned("==", lanes, ir.Constant(_bytes(), [BREAK] * STEP))
        outside = builder.or_(builder.icmp_unsigned("!=", lanes, others), is_break)
        return builder.bitcast(outside, ir.IntType(STEP))

    return differs


def _differences_right(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Return a mask of differences in the next `STEP` bases, the nearest base in the lowest bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = differences(0)(context, builder, signature, arguments)
        return builder.zext(mask, ir.IntType(64))

    return types.uint64(one, types.int64, other, types.int64), generate


def _differences_left(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Return a mask of differences in the `STEP` bases before, the nearest in the lowest bit."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        mask = differences(STEP)(context, builder, signature, arguments)
        return builder.zext(builder.bitreverse(mask), ir.IntType(64))

    return types.uint64(one, types.int64, other, types.int64), generate


def _extend_word_left(typing_context: Any, one: Any, at: Any, other: Any, other_at: Any) -> Any:
    """Return how many of the `WORD_STEP` bases before these positions match, without a break."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def word_before(array_type: Any, array: Any, index: Any) -> Any:
            first = builder.sub(index, ir.Constant(index.type, WORD_STEP))
            return load_from(context, builder, ir.IntType(64), array_type, array, first)

        word = word_before(signature.args[0], *arguments[:2])
        other_word = word_before(signature.args[2], *arguments[2:])
        breaks = builder.and_(word, ir.Constant(ir.IntType(64), int(BREAKS)))
        outside = builder.or_(builder.xor(word, other_word), breaks)
        zeros = builder.ctlz(outside, ir.Constant(ir.IntType(1), 0))
        return builder.lshr(zeros, ir.Constant(ir.IntType(64), 3))

    return types.int64(one, types.int64, other, types.int64), generate


def _eight_codes(typing_context: Any, codes: Any, at: Any) -> Any:
    """Return eight codes as one word, the first in its lowest byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return load_from(context, builder, ir.IntType(64), signature.args[0], *arguments)

    return types.uint64(codes, types.int64), generate


def _equal_bytes(typing_context: Any, array: Any, at: Any, bits: Any, wanted: Any) -> Any:
    """Return a mask of the bytes among the next `STEP` whose `bits` are `wanted`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = load_lanes(context, builder, signature.args[0], arguments[0], arguments[1], 0)
        none = ir.Constant(_bytes(), ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), STEP), None)
        alike = []
        for number in arguments[2:]:
            byte = builder.trunc(number, ir.IntType(8))
            one = builder.insert_element(none, byte, ir.Constant(ir.IntType(32), 0))
            alike.append(builder.shuffle_vector(one, none, first))
        equal = builder.icmp_unsigned("==", builder.and_(lanes, alike[0]), alike[1])
        return builder.zext(builder.bitcast(equal, ir.IntType(STEP)), ir.IntType(64))

    return types.uint64(array, types.int64, types.int64, types.int64), generate


_Masks = Callable[[CodeArray, int, CodeArray, int], np.uint64]
equal_bytes = cast("Callable[[ByteArray, int, int, int], np.uint64]", intrinsic(_equal_bytes))
differences_right = cast(_Masks, intrinsic(_differences_right))
differences_left = cast(_Masks, intrinsic(_differences_left))
_extend_lanes_right = counting(differences(0), True)
_extend_lanes_left = counting(differences(STEP), False)
extend_word_left = cast(Compare, intrinsic(_extend_word_left))
codes_as_word = cast("Callable[[CodeArray, int], np.uint64]", intrinsic(_eight_codes))


@inline
def extend_right(one: CodeArray, at: int, other: CodeArray, other_at: int, most: int) -> int:
    """Return how many bases match from two positions on, without a break, up to `most`.

    Both sequences have margins, which the indices of the first bases to compare include.
    """
    equal = 0
    while True:
        run = _extend_lanes_right(one, at + equal, other, other_at + equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        # Not `run`, on which the next addresses would wait: the processor guesses branches.
        equal += STEP


@inline
def extend_left(one: CodeArray, at: int, other: CodeArray, other_at: int, most: int) -> int:
    """Return how many bases match before two positions, without a break, up to `most`.

    Both sequences have margins, which the indices after the first bases to compare include.
    """
    equal = 0
    while True:
        run = _extend_lanes_left(one, at - equal, other, other_at - equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        # Not `run`, on which the next addresses would wait: the processor guesses branches.
        equal += STEP


@inline
def first_of_step(bases: int) -> np.uint64:
    """Return a mask of the nearest `bases` of `STEP` bases."""
    return (np.uint64(1) << np.uint64(min(STEP, bases))) - np.uint64(1)


@inline
def is_near(
    one: CodeArray,
    at: int,
    other: CodeArray,
    other_at: int,
    bases: int,
    before: int,
    behind: int,
    most: int,
) -> bool:
    """Return whether at most `most` bases differ around `bases` bases that match.

    `before` bases before the match and `behind` bases after it are compared; a break differs. Both
    sequences have margins, which the indices of the first matching bases include; one may end in
    its margin before the other does.
    """
    # From the match outwards: a margin differs throughout, so at most one step enters it.
    found, done = as_int64(0), as_int64(0)
    while done < before and found <= most:
        mask = differences_left(one, at - done, other, other_at - done)
        found += bit_count(mask & first_of_step(before - done))
        done += STEP
    done = as_int64(0)
    while done < behind and found <= most:
        mask = differences_right(one, at + bases + done, other, other_at + bases + done)
        found += bit_count(mask & first_of_step(behind - done))
        done += STEP
    return bool(found <= most)


@inline
def kmer_at(codes: CodeArray, at: int, length: int) -> int:
    """Return the k-mer that begins at a position as a number, or -1 if it contains a break.

    The first base takes the two lowest bits. The sequence has margins, which the position includes;
    the length is 1 to `MAXIMUM_KMER_LENGTH`.
    """
    low = codes_as_word(codes, at)
    high = codes_as_word(codes, at + 8)
    if length < 8:
        low &= (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
        high = np.uint64(0)
    else:
        high &= (np.uint64(1) << np.uint64(8 * (length - 8))) - np.uint64(1)
    if (low | high) & BREAKS:
        return -1
    return np.int64(packed(low) | packed(high) << np.uint64(16))  # type: ignore[return-value]


@inline
def four_before(codes: CodeArray, at: int) -> np.uint64:
    """Return the four bases before a position as a byte, the nearest in its two highest bits.

    The sequence has margins, which the position includes. A break counts as an A.
    """
    return packed(codes_as_word(codes, at - FOUR) & _FOUR_BASES)


@inline
def digest_before(codes: CodeArray, at: int) -> np.uint64:
    """Return a byte in which the twelve bases before a position count, and a break as an A.

    Its pairs of bits, from the highest on, are the nearest base, and the sums without carry of the
    next three bases, of the four after these, and of the last four. So one base that differs makes
    the byte differ, and fewer bases make its higher bits (`digest_bits`). The sequence has margins,
    which the position includes.
    """
    near = packed(codes_as_word(codes, at - 8) & _EIGHT_BASES)
    far = packed(codes_as_word(codes, at - 12) & _FOUR_BASES)
    nearest = near >> np.uint64(8)
    three = nearest ^ nearest >> np.uint64(2) ^ nearest >> np.uint64(4)
    return (
        nearest & np.uint64(0xC0)
        | (three & np.uint64(3)) << np.uint64(4)
        | sum_of_four(near) << np.uint64(2)
        | sum_of_four(far)
    )


@inline
def sum_of_four(bases: np.uint64) -> np.uint64:
    """Return the sum without carry of the bases in the lowest byte."""
    pairs = bases ^ bases >> np.uint64(4)
    return (pairs ^ pairs >> np.uint64(2)) & np.uint64(3)


@inline
def digest_bits(bases: int) -> int:
    """Return the bits of `digest_before` that depend on no more than the nearest `bases` bases."""
    if bases >= 12:
        return 0xFF
    if bases >= 8:
        return 0xFC
    if bases >= 4:
        return 0xF0
    return 0xC0 if bases >= 1 else 0


@inline
def packed(codes: np.uint64) -> np.uint64:
    """Pack eight codes below 4, of one byte each, into 16 bits; the lowest byte stays lowest."""
    codes = (codes | codes >> np.uint64(6)) & _PAIRS
    codes = (codes | codes >> np.uint64(12)) & _FOURS
    return (codes | codes >> np.uint64(24)) & _EIGHTS


@inline
def extend_match(
    joined_reference: CodeArray,
    codes: CodeArray,
    start: int,
    end: int,
    reference_start: int,
    length: int,
) -> int:
    """Return the full length of a match that may continue beyond the searched part.

    Parameters
    ----------
    joined_reference : ndarray, dtype=uint8
        The codes of the whole reference.
    codes : ndarray, dtype=uint8
        The codes of the queries, on the searched strand.
    start, end : int
        The indices in `codes` at which the match begins and its query ends.
    reference_start : int
        The index in the reference at which the match begins.
    length : int
        The number of bases known to match.
    """
    most = min(end - start, joined_reference.size - reference_start)
    while length + STEP <= most:
        run = _extend_lanes_right(codes, start + length, joined_reference, reference_start + length)
        if run < STEP:
            return length + run
        length += STEP
    # Base by base: these sequences may lack margins, and a step could read beyond their ends.
    while (
        length < most
        and codes[start + length] != BREAK
        and codes[start + length] == joined_reference[reference_start + length]
    ):
        length += 1
    return length


def _unpaired(before: int, other_before: int) -> Callable[[Any, Any, Any, Any], Any]:
    """Return a function that masks the bases that do not pair; the first pairs with the last."""

    def differs(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one, at, other, other_at = arguments
        lanes = load_lanes(context, builder, signature.args[0], one, at, before)
        others = load_lanes(context, builder, signature.args[2], other, other_at, other_before)
        order = ir.Constant(ir.VectorType(ir.IntType(32), STEP), list(range(STEP))[::-1])
        # 3 minus a break is not a code, so a break differs from everything.
        others = builder.sub(
            ir.Constant(lanes.type, [3] * STEP), builder.shuffle_vector(others, others, order)
        )
        return builder.bitcast(builder.icmp_unsigned("!=", lanes, others), ir.IntType(STEP))

    return differs


_pair_lanes_right = counting(_unpaired(0, STEP), True)
_pair_lanes_left = counting(_unpaired(STEP, 0), False)


@inline
def extend_right_reversed(
    one: CodeArray, at: int, other: CodeArray, other_end: int, most: int
) -> int:
    """Return how many bases from a position on pair with the bases before `other_end`.

    Both sequences have margins, which the indices include. The base before `other_end` is compared
    first. At most `most` bases are counted.
    """
    equal = 0
    while True:
        run = _pair_lanes_right(one, at + equal, other, other_end - equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        equal += STEP


@inline
def extend_left_reversed(
    one: CodeArray, at: int, other: CodeArray, other_at: int, most: int
) -> int:
    """Return how many bases before a position pair with the bases of the other from one on.

    Both sequences have margins, which the indices include. The base before `at` is compared first.
    At most `most` bases are counted.
    """
    equal = 0
    while True:
        run = _pair_lanes_left(one, at - equal, other, other_at + equal)
        if run < STEP or equal + STEP >= most:
            return min(equal + run, most)
        equal += STEP
