"""How the hot loops are compiled: one decorator, one set of options.

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

    Numba has a private one for that. Where it does not, the functions count: they are slower,
    and their results are the same.
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
    """Compile `function` into each compiled caller, where it costs no call.

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
    """As `jit`, for functions that create no array and slice none.

    Their arrays are lent by the caller, so nobody needs to count references to them. Numba
    counts with atomic operations wherever an array goes into an inlined function; where that
    happens every few nanoseconds it costs three quarters of the time.

    Parameters
    ----------
    function : callable
        A function in numba's subset of Python that uses just the arrays it is given.

    Returns
    -------
    callable
        The dispatcher; typed as `function` itself.
    """
    return _kept(function, _BORROWER)


def inline_without_refcounts(function: Function) -> Function:
    """As `inline`, for functions that create no array and slice none.

    Parameters
    ----------
    function : callable
        A small function in numba's subset of Python that uses just the arrays it is given.

    Returns
    -------
    callable
        The dispatcher; typed as `function` itself.
    """
    return cast(Function, numba.njit(forceinline=True, **_BORROWER)(function))


@inline
def unsigned(number: int) -> int:
    """Return an index that is known not to be negative as one that cannot be.

    Compiled indexing counts negative indices from the end; without that check the hottest
    loops are a fifth faster. Not for arithmetic, where signs must not be mixed.

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
    """Return a number of an array as 64 bits wide, before it is shifted or multiplied.

    Parameters
    ----------
    number : int
        Of any integer type; if it is unsigned, less than 2**63.

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
        Called without arguments, at most once in the life of the process; never if numba
        does not tell when it compiles.
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
    """Ask for the cache line of an element of a contiguous array, or of what lies after it.

    It never faults, and it changes nothing. To compiled functions it is known as
    ``prefetch(array, index)``.

    Parameters
    ----------
    typing_context : numba typing context
        As every intrinsic of numba gets it; not used.
    array : numba array type
        Of ``array``, a C-contiguous array of any dtype and shape.
    index : numba integer type
        Of ``index``, a position in ``array``, counted in elements from 0 whatever the
        dimensions; it may lie outside.

    Returns
    -------
    signature, callable
        Of a function that returns nothing, and what makes its code.
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
        # For reading (0), into all caches (3), as data (1).
        builder.call(function, [address, *(ir.Constant(integer, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch = cast("Callable[[npt.NDArray[Any], int], None]", intrinsic(_prefetch))
