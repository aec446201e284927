"""Gives the modules that write LLVM's code by hand what they need, without an import of numba.

`ir` and `types` stand for `llvmlite.ir` and `numba.core.types`. They are imported when the first
function is compiled, so their names must be used inside functions only.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from mummergpu.runtime.compiled.lazy_dispatch import LazyObject


class _LateModule:
    """Imports a module when one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found


ir: Final[Any] = _LateModule("llvmlite.ir")
types: Final[Any] = _LateModule("numba.core.types")


def intrinsic(generator: Callable[..., Any]) -> Any:
    """Return a function for compiled code whose code a generator writes by hand.

    The generator is one for ``numba.extending.intrinsic``.
    """
    return LazyObject(generator, _intrinsic_of)


def _intrinsic_of(generator: Callable[..., Any]) -> Any:
    from numba.extending import intrinsic

    make: Callable[[Any], Any] = intrinsic
    return make(generator)


def address_of(context: Any, builder: Any, kind: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Return the address of ``array[at]`` as a pointer to LLVM's type `kind`, in compiled code.

    The first two arguments are what numba passes to the generator of an intrinsic; `array_type` is
    the array's type for numba. The place is not checked.
    """
    view = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(view.data, [at]), kind.as_pointer())


def load_from(context: Any, builder: Any, kind: Any, array_type: Any, array: Any, at: Any) -> Any:
    """Return the value of another type from ``array[at]`` on, in compiled code.

    The arguments are those of `address_of`; the address need not be aligned.
    """
    address = address_of(context, builder, kind, array_type, array, at)
    return builder.load(address, align=1, typ=kind)


def store_to(context: Any, builder: Any, value: Any, array_type: Any, array: Any, at: Any) -> None:
    """Store a value of any type from ``array[at]`` on, in compiled code; see `load_from`."""
    builder.store(value, address_of(context, builder, value.type, array_type, array, at), align=1)


def prefetch_address(builder: Any, address: Any) -> None:
    """Ask for the cache line of an address in memory, which need not be readable."""
    integer = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [address.type, integer, integer, integer])
    name = "llvm.prefetch.p0"
    function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    # Prefetch for reading (0), into all caches (3), as data (1).
    builder.call(function, [address, *(ir.Constant(integer, value) for value in (0, 3, 1))])
