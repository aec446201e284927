"""Compiles the hot loops: decorators with one common set of options.

`jit` is numba's ``njit`` with a cache on disk and the interpreter lock released, so
that compiled functions run side by side in a pool of Python threads. Numba itself is imported
only when something has to be compiled (`mummergpu.runtime.compiled.pending`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.compiled.native.function import NativeFunction
from mummergpu.runtime.compiled.native.values import Flattened, UnsuitedValueError
from mummergpu.runtime.compiled.pending import (
    PendingFunction,
    before_numba_compiles,
    wait_for_numba,
)
from mummergpu.runtime.llvm import intrinsic, ir, types

Function = TypeVar("Function", bound=Callable[..., Any])
Scalar = TypeVar("Scalar", bound=np.generic)
Value = TypeVar("Value", bound=tuple[Any, ...])


def _dispatcher_of(function: Callable[..., Any], counts_references: bool) -> Any:
    from mummergpu.runtime.compiled.compiler import dispatcher_of

    return dispatcher_of(function, counts_references)


def _inlined_dispatcher_of(function: Callable[..., Any], counts_references: bool) -> Any:
    from mummergpu.runtime.compiled.compiler import inlined_dispatcher_of

    return inlined_dispatcher_of(function, counts_references)


_counting = partial(_dispatcher_of, counts_references=True)
_borrowing = partial(_dispatcher_of, counts_references=False)
_inlined_counting = partial(_inlined_dispatcher_of, counts_references=True)
_inlined_borrowing = partial(_inlined_dispatcher_of, counts_references=False)


def jit(function: Function) -> Function:
    """Compile `function` at its first call, cache the machine code, release the lock.

    The function is in numba's subset of Python. Returned is the dispatcher, typed as the function
    itself; so it is from the other decorators here.
    """
    return cast(Function, wait_for_numba(NativeFunction(function, _counting, True)))


def inline(function: Function) -> Function:
    """Compile a small `function` into each compiled caller, to save the call."""
    return cast(Function, wait_for_numba(PendingFunction(function, _inlined_counting, True, True)))


def jit_without_refcounts(function: Function) -> Function:
    """Compile as `jit` does, for functions that create no array and slice none.

    They use only arrays from their arguments. The caller keeps these alive, so they need not count
    references. Numba counts with atomic operations whenever an array is passed to an inlined
    function. In loops of a few nanoseconds per step, that takes three quarters of the time.
    """
    return cast(Function, wait_for_numba(NativeFunction(function, _borrowing, False)))


def inline_without_refcounts(function: Function) -> Function:
    """Compile as `inline` does, for functions that create no array and slice none."""
    return cast(
        Function, wait_for_numba(PendingFunction(function, _inlined_borrowing, False, True))
    )


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


def on_first_compilation(
    announce: Callable[[], None],
    after: float = 0.0,
    go_on: Callable[[int, float], None] | None = None,
) -> None:
    """Call `announce` once, just before the first compilation (a warm cache has none).

    It is called after so many seconds of compiling, before a further function is compiled; at most
    once per process, and never if numba does not report when it compiles. `go_on` is told at times
    how many functions have been compiled since, and for how many seconds.
    """

    def register() -> None:
        from mummergpu.runtime.compiled.compiler import announce_compilation

        announce_compilation(announce, after, go_on)

    before_numba_compiles(register)


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of an element of a contiguous array, or of memory after it.

    A prefetch never faults and changes no data. Compiled functions call it as ``prefetch(array,
    index)``; the index counts elements from 0 for any number of dimensions, and may lie outside.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte_pointer = ir.IntType(8).as_pointer()
        integer = ir.IntType(32)
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), byte_pointer)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, integer, integer, integer])
        function = builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            builder.module, function_type, "llvm.prefetch.p0"
        )
        # Prefetch for reading (0), into all caches (3), as data (1).
        builder.call(function, [address, *(ir.Constant(integer, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch = cast("Callable[[npt.NDArray[Any], int], None]", intrinsic(_prefetch))
