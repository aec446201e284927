"""Numba's dispatchers of functions as their callers see them: typed and translated, nothing more.

Numba optimises each function and makes machine code and a wrapper of it, also if others only
inline it: half of the time of compiling. Here a function that others call stays LLVM's code as it
was translated, and is optimised once, as a part of what is called from Python.

What this needs of numba is private, so `can_defer` looks for it. Without it, callees are compiled
as numba does.

Nothing imports this module before numba is needed (`mummergpu.runtime.compiled.pending`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from numba.core import codegen
from numba.core.registry import CPUDispatcher

_LIBRARY: Final[Any] = codegen.JITCodeLibrary
_NO_WRAPPERS: Final = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _PlainLibrary(_LIBRARY):  # type: ignore[misc]
    """The code of a function and of all that it calls, not optimised; no memory is filled with it.

    A caller links it into its own, as numba does with its libraries.
    """

    def finalize(self) -> None:
        """Link what is called."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            # Numba 0.61 has no functions that set a library up when it is loaded again.
            if hasattr(library, "_reload_init"):
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@cache
def can_defer() -> bool:
    """Return whether numba has the parts that are needed here."""
    from numba.core.registry import cpu_target

    context: Any = cpu_target.target_context
    parts = ("_raise_if_finalized", "_finalize_dynamic_globals", "_get_module_for_linking")
    return (
        all(callable(getattr(_LIBRARY, name, None)) for name in parts)
        and callable(getattr(context, "get_executable", None))
        and getattr(context.codegen(), "_library_class", None) is _LIBRARY
        and hasattr(context.codegen(), "_module_pass_manager")
    )


class Callee(CPUDispatcher):
    """Is called by compiled functions only; a call from Python would find no code."""

    def compile(self, sig: Any) -> Any:
        """Translate the function for types of arguments; numba calls this while it finds types."""
        with _nothing_executable(self.targetctx):
            return super().compile(sig)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Refuse."""
        raise RuntimeError("a callee has no code of its own")


def callee_of(function: Callable[..., Any], options: dict[str, Any]) -> Callee:
    """Return the dispatcher of a function for its callers; `options` are numba's."""
    return Callee(function, {}, {**_NO_WRAPPERS, **options})


@contextmanager
def _nothing_executable(context: Any) -> Iterator[None]:
    """Have numba make no machine code meanwhile; it compiles in one thread at a time."""
    from numba.core.compiler_lock import global_compiler_lock

    with global_compiler_lock:
        generator = context.codegen()
        if generator._library_class is _PlainLibrary:
            yield
            return
        generator._library_class = _PlainLibrary
        context.get_executable = _no_executable
        try:
            yield
        finally:
            # What the classes have comes into view again.
            del generator._library_class, context.get_executable


def _no_executable(library: Any, description: Any, environment: Any) -> Any:
    """Return an object of its own that stands for a function without code of its own."""
    # It is an extension module, which has no types.
    make: Any = importlib.import_module("numba._dynfunc")
    library._ensure_finalized()
    module, name = description.lookup_module(), description.qualname.split(".")[-1]
    return make.make_function(module, name, "not executable", 0, environment, (library,))
