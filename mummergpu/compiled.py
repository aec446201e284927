"""How the hot loops are compiled: one decorator, one set of options.

`compiled` is numba's ``njit`` with a cache on disk and the interpreter lock released, so
that compiled functions run side by side in a pool of Python threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
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
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
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
    return cast(Function, numba.njit(error_model="numpy", forceinline=True)(function))


def on_first_compilation(announce: Callable[[], None]) -> None:
    """Call `announce` once, just before the first compilation (a warm cache has none).

    Parameters
    ----------
    announce : callable
        Called without arguments, at most once in the life of the process.
    """

    class Announcer(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.done = False

        def on_start(self, _event: event.Event) -> None:
            if not self.done:
                self.done = True
                announce()

        def on_end(self, _event: event.Event) -> None:
            pass

    event.register("numba:compile", Announcer())


@intrinsic  # type: ignore[untyped-decorator]
def load_24_bits(typing_context: Any, array: Any, offset: Any) -> Any:
    """Read the little-endian 24-bit number at a byte offset of a uint8 array.

    One unaligned 32-bit load and a mask; the byte behind the number must be readable.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(view.data, [arguments[1]])
        word = builder.load(
            builder.bitcast(address, ir.IntType(32).as_pointer()), align=1, typ=ir.IntType(32)
        )
        return builder.zext(builder.and_(word, ir.Constant(ir.IntType(32), 0xFFFFFF)), ir.IntType(64))

    return types.int64(array, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]``; never faults, changes nothing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(
            builder.gep(view.data, [arguments[1]]), ir.IntType(8).as_pointer()
        )
        integer = ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(
                ir.VoidType(), [ir.IntType(8).as_pointer(), integer, integer, integer]
            ),
            "llvm.prefetch.p0",
        )
        # Arguments: read (0), keep in all caches (3), data cache (1).
        constants = [ir.Constant(integer, value) for value in (0, 3, 1)]
        builder.call(function, [address, *constants])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
