"""Compiles the hot loops: decorators with one common set of options.

`jit` is numba's ``njit`` with a cache on disk and the interpreter lock released, so
that compiled functions run side by side in a pool of Python threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mummergpu.runtime import code_cache
from mummergpu.runtime.argument_types import tell_types_of_plain_arrays

Function = TypeVar("Function", bound=Callable[..., Any])

_COUNTING: Final[dict[str, Any]] = {"error_model": "numpy"}


def _without_counting() -> dict[str, Any]:
    """Return the options of functions that count no references.

    Numba has a private option for that. If a version of numba lacks it, the functions count
    references: they are slower, with the same results.
    """
    try:
        from numba.core.cpu import CPUTargetOptions

        known = hasattr(CPUTargetOptions, "_nrt")
    except ImportError:
        known = False
    return _COUNTING | {"_nrt": False} if known else _COUNTING


_BORROWER: Final = _without_counting()


def _kept(function: Function, options: dict[str, Any]) -> Function:
    """Compile `function` at its first call, and keep the machine code on disk."""
    dispatcher = numba.njit(nogil=True, **options)(function)
    tell_types_of_plain_arrays(dispatcher)
    code_cache.keep(dispatcher, "_nrt" not in options, repr(sorted(options.items())))
    return cast(Function, dispatcher)


def jit(function: Function) -> Function:
    """Compile `function` at its first call, cache the machine code, release the lock.

    Parameters
    ----------
    function : callable
        A function in numba's subset of Python.

    Returns
    -------
    callable
        The dispatcher; typed as `function` itself.
    """
    return _kept(function, _COUNTING)


def inline(function: Function) -> Function:
    """Compile `function` into each compiled caller, to save the call.

    Parameters
    ----------
    function : callable
        A small function in numba's subset of Python.

    Returns
    -------
    callable
        The dispatcher; typed as `function` itself.
    """
    return cast(Function, numba.njit(forceinline=True, **_COUNTING)(function))


def jit_without_refcounts(function: Function) -> Function:
    """Compile as `jit` does, for functions that create no array and slice none.

    The caller keeps their arrays alive, so these functions need not count references. Numba
    counts with atomic operations whenever an array is passed to an inlined function. In loops
    of a few nanoseconds per step, that takes three quarters of the time.

    Parameters
    ----------
    function : callable
        A function in numba's subset of Python that uses only arrays from its arguments.

    Returns
    -------
    callable
        The dispatcher; typed as `function` itself.
    """
    return _kept(function, _BORROWER)


def inline_without_refcounts(function: Function) -> Function:
    """Compile as `inline` does, for functions that create no array and slice none.

    Parameters
    ----------
    function : callable
        A small function in numba's subset of Python that uses only arrays from its arguments.

    Returns
    -------
    callable
        The dispatcher; typed as `function` itself.
    """
    return cast(Function, numba.njit(forceinline=True, **_BORROWER)(function))


@inline
def unsigned(number: int) -> int:
    """Return a non-negative index as an unsigned number.

    Compiled code checks whether an index is negative, to count it from the end. Without that
    check the hottest loops are a fifth faster. Do not use it for arithmetic, where signed and
    unsigned numbers must not be mixed.

    Parameters
    ----------
    number : int
        An index of any integer type, not negative.

    Returns
    -------
    int
        The same number as uint64.
    """
    return np.uint64(number)  # type: ignore[return-value]


@inline
def widened(number: int) -> int:
    """Return a number from an array as 64 bits, before it is shifted or multiplied.

    Parameters
    ----------
    number : int
        A number of any integer type; if it is unsigned, it is less than 2**63.

    Returns
    -------
    int
        The same number as int64.
    """
    return np.int64(number)  # type: ignore[return-value]


def on_first_compilation(announce: Callable[[], None]) -> None:
    """Call `announce` once, just before the first compilation (a warm cache has none).

    Parameters
    ----------
    announce : callable
        Called without arguments, at most once per process; never if numba does not report when it
        compiles.
    """
    with suppress(ImportError, AttributeError):
        from numba.core import event

        class Announcer(event.Listener):
            def __init__(self) -> None:
                self.done = False

            def on_start(self, _event: Any) -> None:
                if not self.done:
                    self.done = True
                    announce()

            def on_end(self, _event: Any) -> None:
                pass

        register: Callable[[str, Any], None] = event.register
        register("numba:compile", Announcer())


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of an element of a contiguous array, or of memory after it.

    A prefetch never faults and changes no data. Compiled functions call it as
    ``prefetch(array, index)``.

    Parameters
    ----------
    typing_context : numba typing context
        The context that numba passes to every intrinsic; not used.
    array : numba array type
        The type of ``array``, a C-contiguous array of any dtype and shape.
    index : numba integer type
        The type of ``index``, a position in ``array``, counted in elements from 0 for any number of
        dimensions; it may lie outside.

    Returns
    -------
    signature, callable
        The signature of a function that returns nothing, and the generator of its code.
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
