"""Reads the fields of nodes in compiled code, in either format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy.typing as npt

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
