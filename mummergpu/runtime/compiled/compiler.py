"""Makes numba's dispatchers of the functions to compile, with one common set of options.

Nothing imports this module before numba is needed (`mummergpu.runtime.compiled.pending`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

import numba

from mummergpu.runtime.compiled import code_cache
from mummergpu.runtime.compiled.argument_types import tell_types_of_plain_arrays
from mummergpu.runtime.compiled.code_target import chosen_target
from mummergpu.runtime.compiled.native.function import NativeKeeper

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
    keeper = NativeKeeper(function, counts_references)
    code_cache.keep(dispatcher, "_nrt" not in options, repr(sorted(options.items())), keeper)
    return dispatcher


def inlined_dispatcher_of(function: Callable[..., Any], counts_references: bool) -> Any:
    """Return a dispatcher that compiles a function into each of its callers."""
    options = _COUNTING if counts_references else _BORROWER
    return numba.njit(forceinline=True, **options)(function)


def announce_compilation(announce: Callable[[], None], after: float) -> None:
    """Call `announce` before numba compiles a function, after so many seconds of compiling."""
    with suppress(ImportError, AttributeError):
        from numba.core import event

        class Announcer(event.Listener):
            """Adds up the time of compiling; numba compiles one function at a time."""

            def __init__(self) -> None:
                self.done = False
                self.seconds = 0.0
                self.begins: list[float] = []

            def on_start(self, _event: Any) -> None:
                now = perf_counter()
                # A function is compiled while those that call it are.
                running = now - self.begins[0] if self.begins else 0.0
                self.begins.append(now)
                if not self.done and self.seconds + running >= after:
                    self.done = True
                    announce()

            def on_end(self, _event: Any) -> None:
                begin = self.begins.pop() if self.begins else perf_counter()
                if not self.begins:
                    self.seconds += perf_counter() - begin

        register: Callable[[str, Any], None] = event.register
        register("numba:compile", Announcer())
