"""Reads and writes the fields of nodes in compiled code, in either format (`layout`).

Halves are written into zeroed memory. In the wide format a half is six words of an array of uint32.
In the paper's format it is written as two words of an array of int64. The position of a half is
counted in these words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from mummergpu.index.tree.layout import FLAGS, IS_LEAF, NodeHalfArray
from mummergpu.runtime.jit import as_index, as_int64, inline
from mummergpu.runtime.llvm import intrinsic, ir, types


def _load_number(typing_context: Any, halves: Any, half: Any, field: Any) -> Any:
    """Read one number of the half that begins at an element of an array.

    In an array of bytes a number has 24 bits. It is read by one unaligned 32-bit load and a mask,
    so the byte after the number must be readable. In an array of words each field is one element.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word_type = ir.IntType(32)
        array, half, field = arguments
        view = context.make_array(signature.args[0])(context, builder, array)
        if signature.args[0].dtype.bitwidth == 32:
            word = builder.load(builder.gep(view.data, [builder.add(half, field)]), typ=word_type)
        else:
            offset = builder.add(half, builder.mul(field, ir.Constant(field.type, 3)))
            address = builder.gep(view.data, [offset])
            pointer = builder.bitcast(address, word_type.as_pointer())
            word = builder.load(pointer, align=1, typ=word_type)
            word = builder.and_(word, ir.Constant(word_type, 0xFFFFFF))
        return builder.zext(word, ir.IntType(64))

    return types.int64(halves, types.int64, types.int64), generate


def _load_flags(typing_context: Any, halves: Any, half: Any) -> Any:
    """Read the flags of the half that begins at an element of an array.

    They are the sixteenth byte in an array of bytes, and the sixth word in an array of words.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        element_bits = signature.args[0].dtype.bitwidth
        last = ir.Constant(ir.IntType(64), 5 if element_bits == 32 else 15)
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(view.data, [builder.add(arguments[1], last)])
        flags = builder.load(address, typ=ir.IntType(element_bits))
        return builder.zext(flags, ir.IntType(64))

    return types.int64(halves, types.int64), generate


def _has_words(typing_context: Any, array: Any) -> Any:
    """Return whether an array has elements of 32 bits; a constant at compile time."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(1), int(signature.args[0].dtype.bitwidth == 32))

    return types.boolean(array), generate


load_number = cast("Callable[[npt.NDArray[Any], int, int], int]", intrinsic(_load_number))


load_flags = cast("Callable[[npt.NDArray[Any], int], int]", intrinsic(_load_flags))


has_words = cast("Callable[[npt.NDArray[Any]], bool]", intrinsic(_has_words))


NodeWordArray = npt.NDArray[Any]
"""Words of halves: dtype uint32 in the wide format, int64 in the paper's format."""

LEAF_BIT: Final = 1 << 56


def as_words(halves: NodeHalfArray) -> NodeWordArray:
    """Return a view of an array of halves as the words that they are written in."""
    return halves.view(np.int64) if halves.dtype == np.uint8 else halves


@inline
def write_half(
    words: NodeWordArray, half: int, first: int, second: int, third: int, fourth: int, fifth: int
) -> None:
    """Add five numbers to the half that begins at word `half`.

    Each field is written once, or several times with numbers that sum to its value. In the paper's
    format numbers have 24 bits.
    """
    if has_words(words):
        words[as_index(half)] += first
        words[as_index(half + 1)] += second
        words[as_index(half + 2)] += third
        words[as_index(half + 3)] += fourth
        words[as_index(half + 4)] += fifth
    else:
        words[as_index(half)] += first | (second << 24) | ((third & 0xFFFF) << 48)
        words[as_index(half + 1)] += (third >> 16) | (fourth << 8) | (fifth << 32)


@inline
def write_child(words: NodeWordArray, half: int, code: int, address: int) -> None:
    """Write one child of an inner node; `code` is the first code of the child's edge."""
    if has_words(words):
        words[as_index(half + code)] = address
    elif code < 2:
        words[as_index(half)] |= address << (24 * code)
    elif code == 2:
        write_half(words, half, 0, 0, address, 0, 0)
    else:
        words[as_index(half + 1)] |= address << (24 * code - 64)


@inline
def mark_leaf(words: NodeWordArray, half: int) -> None:
    """Mark the first half of a node as that of a leaf."""
    if has_words(words):
        words[as_index(half + IS_LEAF)] = 1
    else:
        words[as_index(half + 1)] |= LEAF_BIT


@inline
def write_flags(words: NodeWordArray, half: int, flags: int) -> None:
    """Write the flags of a second half, of eight bits; they must include `layout.LEAF_FLAG`."""
    if has_words(words):
        words[as_index(half + FLAGS)] = flags
    else:
        # The flags are the highest byte of the word, which contains its sign bit.
        words[as_index(half + 1)] |= as_int64(flags - 256) << 56
