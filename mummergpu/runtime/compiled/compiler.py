"""Makes numba's dispatchers of the functions to compile, with one common set of options.

Nothing imports this module before numba is needed (`mummergpu.runtime.compiled.pending`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

import numba
import numpy as np
from numba import types

from mummergpu.runtime.compiled import code_cache
from mummergpu.runtime.compiled.code_target import chosen_target

_SEEN: Final[set[Any]] = set()
"""The types returned so far: numba holds only weak references to them."""

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


def _set_target() -> None:
    """Have numba compile for the target of `code_target.compile_for`, if there is one."""
    target = chosen_target()
    if target is not None:
        config: Any = numba.config
        config.CPU_NAME, config.CPU_FEATURES = target.cpu, ""


# Numba reads the settings when it makes the first dispatcher.
_set_target()


def dispatcher_of(function: Callable[..., Any], counts_references: bool) -> Any:
    """Return a dispatcher that compiles a function at its first call, and keeps the code."""
    options = _COUNTING if counts_references else _BORROWER
    dispatcher = numba.njit(nogil=True, **options)(function)
    tell_types_of_plain_arrays(dispatcher)
    code_cache.keep(dispatcher, "_nrt" not in options, repr(sorted(options.items())))
    return dispatcher


def inlined_dispatcher_of(function: Callable[..., Any], counts_references: bool) -> Any:
    """Return a dispatcher that compiles a function into each of its callers."""
    options = _COUNTING if counts_references else _BORROWER
    return numba.njit(forceinline=True, **options)(function)


def callee_of(function: Callable[..., Any], counts_references: bool, inlined: bool) -> Any:
    """Return the dispatcher of a function for compiled callers, or None where that is numba's."""
    from mummergpu.runtime.compiled import callees

    if not callees.can_defer():
        return None
    options = _COUNTING if counts_references else _BORROWER
    return callees.callee_of(function, options | {"nogil": not inlined, "forceinline": inlined})


def tell_types_of_plain_arrays(dispatcher: Any) -> None:
    """Make a dispatcher find the types of plain arrays itself, and ask numba for other types.

    Before numba returns the type of an array, it checks whether the array is masked. Numpy then
    imports its masked arrays, which takes a twentieth of the time of a small run. An array that is
    of no derived class is not masked, so it needs no check.

    It stays as it is if it no longer has the method for this.
    """
    ask_numba = getattr(dispatcher, "typeof_pyval", None)
    if ask_numba is None:
        return

    def typeof_pyval(value: Any) -> Any:
        found = type_of_plain_arrays(value)
        return ask_numba(value) if found is None else found

    dispatcher.typeof_pyval = typeof_pyval


def type_of_plain_arrays(value: Any) -> Any:
    """Return numba's type of a plain array (of no derived class), or of a tuple with some.

    None stands for other values, and if numba has changed.
    """
    try:
        if type(value) is np.ndarray:
            found = _type_of_array(value)
        elif isinstance(value, tuple):
            ask_numba: Callable[[Any], Any] = numba.typeof
            parts = [type_of_plain_arrays(part) or ask_numba(part) for part in value]
            join: Callable[..., Any] = types.BaseTuple.from_types
            found = join(parts, type(value))
        else:
            return None
    except Exception:
        # Numba then finds the type itself, or raises an error that explains the fault of the value.
        return None
    _SEEN.add(found)
    return found


def _type_of_array(array: Any) -> Any:
    from numba.np.numpy_support import from_dtype, map_layout

    layout, readonly = map_layout(array), not array.flags.writeable
    return types.Array(from_dtype(array.dtype), array.ndim, layout, readonly=readonly)


TOLD_SECONDS: Final = 10.0
"""The seconds of compiling after which its progress is told again."""


def announce_compilation(
    announce: Callable[[], None],
    after: float,
    go_on: Callable[[int, float], None] | None = None,
) -> None:
    """Call `announce` before numba compiles a function, after so many seconds of compiling.

    Then `go_on` is called every `TOLD_SECONDS`, with what is compiled (`on_first_compilation`).
    """
    with suppress(ImportError, AttributeError):
        from numba.core import event

        class Announcer(event.Listener):
            """Adds up the time of compiling; numba compiles one function at a time."""

            def __init__(self) -> None:
                self.done = False
                self.seconds = 0.0
                self.functions = 0
                self.told_at = TOLD_SECONDS
                self.begins: list[float] = []

            def on_start(self, _event: Any) -> None:
                now = perf_counter()
                # A function is compiled while those that call it are.
                running = now - self.begins[0] if self.begins else 0.0
                self.begins.append(now)
                seconds = self.seconds + running
                if not self.done and seconds >= after:
                    self.done = True
                    announce()
                elif self.done and go_on is not None and seconds >= self.told_at:
                    self.told_at = seconds + TOLD_SECONDS
                    go_on(self.functions, seconds)

            def on_end(self, _event: Any) -> None:
                self.functions += 1
                begin = self.begins.pop() if self.begins else perf_counter()
                if not self.begins:
                    self.seconds += perf_counter() - begin

        register: Callable[[str, Any], None] = event.register
        register("numba:compile", Announcer())
