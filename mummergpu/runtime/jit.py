"""Compiles the hot loops: decorators for functions in numba's subset of Python.

A compiled function releases the interpreter lock, so calls run side by side in a pool of Python
threads. Such a function creates no array: it fills those that its caller gives it.
`compiled/lazy_dispatch.py` says what happens at its first call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.compiled.announcement import compilation
from mummergpu.runtime.compiled.lazy_dispatch import LazyFunction
from mummergpu.runtime.compiled.signatures import Flattened, UnsuitedValueError
from mummergpu.runtime.llvm import address_of, intrinsic, ir, prefetch_address, types

Function = TypeVar("Function", bound=Callable[..., Any])
Scalar = TypeVar("Scalar", bound=np.generic)
Value = TypeVar("Value", bound=tuple[Any, ...])

on_first_compilation: Final = compilation.on_first


def jit(function: Function) -> Function:
    """Compile a function that is called from Python, at its first call with some types."""
    return cast(Function, LazyFunction(function, inlined=False))


def inline(function: Function) -> Function:
    """Compile a small function into each compiled caller, to save the call."""
    return cast(Function, LazyFunction(function, inlined=True))


@inline
def as_index(number: int) -> int:
    """Return a non-negative index of any integer type as uint64.

    Compiled code checks whether an index is negative, to count it from the end. Without that
    check the hottest loops are a fifth faster. Do not use it for arithmetic, where signed and
    unsigned numbers must not be mixed.
    """
    return np.uint64(number)  # type: ignore[return-value]


@inline
def as_int64(number: int) -> int:
    """Return a number from an array as 64 bits, before it is shifted or multiplied.

    If it is unsigned, it is less than 2**63.
    """
    return np.int64(number)  # type: ignore[return-value]


def flattened(value: Value) -> Value:
    """Return a bundle of arrays as many calls of compiled functions take it faster: only they do.

    Each array of an argument costs a call most of a microsecond.
    """
    try:
        return cast(Value, Flattened(value))
    except UnsuitedValueError:
        return value


def writable(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return an array as compiled functions take it: for read-only ones numba would compile again.

    It is a copy if the array is read-only or not contiguous.
    """
    flags = array.flags
    if flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, requirements=["C", "W"])


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of an element of a contiguous array, or of memory after it.

    A prefetch never faults and changes no data. Compiled functions call it as ``prefetch(array,
    index)``; the index counts elements from 0 for any number of dimensions, and may lie outside.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = address_of(context, builder, ir.IntType(8), signature.args[0], *arguments)
        prefetch_address(builder, address)
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch = cast("Callable[[npt.NDArray[Any], int], None]", intrinsic(_prefetch))


def _generate_lowest_bit(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _generate_bit_count(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


_BitOf = Callable[[np.uint64], int]

lowest_bit = cast(_BitOf, intrinsic(_generate_lowest_bit))
"""Returns the number of the lowest bit that is set; called with a word that has one."""
bit_count = cast(_BitOf, intrinsic(_generate_bit_count))
"""Returns how many bits are set."""
