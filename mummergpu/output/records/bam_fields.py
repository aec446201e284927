"""Compiled functions that write fields and bases of a record of BAM (SAM format, section 4.2).

The four bits of a base are a set of the letters that it can be: A is 1, C is 2, G is 4, T is 8, and
N is all of them (section 4.2.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.text_stores import TextArray, copy_text, store
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types
from mummergpu.sequence.codes import BREAK, LETTERS, STEP, CodeArray

Place = tuple[int, int]
"""A record, by its number in the header, and a 0-based position in it; -1 for what is not known."""

NAME_AT: Final = 36
"""Where the name begins, counted from the length of the record."""

_NO_QUALITIES: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_NO_NAME: Final = np.frombuffer(b"*\0", dtype="<u2")[0]


@inline_without_refcounts
def bin_of(begin: int, end: int) -> int:
    """Return the smallest bin that has a half-open range of a record."""
    last = end - 1
    shift, first = 14, 4681
    while shift < 29:
        if begin >> shift == last >> shift:
            return first + (begin >> shift)
        shift += 3
        first = (first - 1) >> 3
    return 0


@inline_without_refcounts
def write_tag(text: TextArray, at: int, tag: int, number: int) -> int:
    """Write a tag with a number in as few bytes as hold it; return where it ends."""
    if number < 1 << 8:
        kind, size = ord("C"), 1
    elif number < 1 << 16:
        kind, size = ord("S"), 2
    else:
        kind, size = ord("I"), 4
    store(text, at, np.uint64(tag | kind << 16 | number << 24))
    return at + 3 + size


@inline_without_refcounts
def write_name(
    text: TextArray, at: int, names: TextArray, name_offsets: Int64Array, read: int
) -> int:
    """Write a read's name and the zero that ends it; return where that ends."""
    begin, end = name_offsets[as_index(read)], name_offsets[as_index(read + 1)]
    if begin == end:
        store(text, at, _NO_NAME)
        return at + 2
    at = copy_text(text, at, names, begin, end)
    text[as_index(at)] = 0
    return at + 1


@inline_without_refcounts
def write_fixed_fields(
    text: TextArray,
    at: int,
    place: Place,
    size: int,
    name_bytes: int,
    quality: int,
    flag: int,
    operations: int,
    bases: int,
    mate_place: Place,
    template_length: int,
) -> None:
    """Write the fields of a record before its name, except for the length of the record."""
    bin_number = bin_of(place[1], place[1] + size) & 0xFFFF
    store(text, at + 4, np.uint32(place[0]))
    store(text, at + 8, np.uint32(place[1]))
    store(text, at + 12, np.uint32(name_bytes | quality << 8 | bin_number << 16))
    store(text, at + 16, np.uint32(operations | flag << 16))
    store(text, at + 20, np.uint32(bases))
    store(text, at + 24, np.uint32(mate_place[0]))
    store(text, at + 28, np.uint32(mate_place[1]))
    store(text, at + 32, np.uint32(template_length))


@inline_without_refcounts
def write_no_qualities(text: TextArray, at: int, count: int) -> int:
    """Write that the qualities of bases are not known; return where that ends."""
    for place in range(at, at + count, 8):
        store(text, place, _NO_QUALITIES)
    return at + count


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
