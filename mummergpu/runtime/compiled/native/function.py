"""Functions that are called without numba if their code has been kept by an earlier run.

Code is found by the types of the arguments at each call. If there is none for them, or if
anything about it is unusual, numba takes over (`mummergpu.runtime.compiled.pending`).
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any, Final

from mummergpu.runtime.compiled import code_cache
from mummergpu.runtime.compiled.native.loader import load_code
from mummergpu.runtime.compiled.native.store import key_of, native_stores, runs_here
from mummergpu.runtime.compiled.native.values import (
    Flattened,
    UnsuitedValueError,
    flatten,
    types_of_text,
)
from mummergpu.runtime.compiled.pending import PendingFunction, resolve

_LOCK: Final = threading.RLock()
"""Held while a store is used."""


_asked_first: list[Callable[[str, str, str], None]] = []


def ask_first(wait_for: Callable[[str, str, str], None] | None) -> None:
    """Have `wait_for` called before this process compiles: it may wait for another one to do so.

    It is given the function's module, its name and the text of its types. None ends that.
    """
    _asked_first[:] = [] if wait_for is None else [wait_for]


def keeps_code() -> bool:
    """Return whether code that this process compiles for this machine serves later ones."""
    with _LOCK:
        return any(store.folder() is not None for store in native_stores()[:1])


class NativeFunction(PendingFunction):
    """Stands for a dispatcher, and needs none for the types whose code can be kept."""

    def __init__(
        self,
        function: Callable[..., Any],
        make: Callable[[Any], Any],
        counts_references: bool,
    ) -> None:
        super().__init__(function, make, counts_references, inlined=False)
        self.keeper = NativeKeeper(function, counts_references)
        self._callers: dict[str, Callable[[list[int]], Any]] = {}
        self._unsuited: set[str] = set()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the kept code, or numba's dispatcher if there can be none for these arguments."""
        numbers: list[int] = []
        try:
            if named:
                raise UnsuitedValueError
            types = flatten(arguments, numbers)
            call = self._callers.get(types) or self._find(types, len(numbers))
            return call(numbers)
        except (UnsuitedValueError, struct.error):
            own = (one.value if type(one) is Flattened else one for one in arguments)
            return self.made()(*own, **named)

    def _find(self, types: str, number_count: int) -> Callable[[list[int]], Any]:
        """Return the code for types of arguments: kept code, or else code that is compiled now."""
        if types in self._unsuited:
            raise UnsuitedValueError
        packed = self.keeper.load(types)
        if packed is None:
            packed = self.keeper.compile(types, self)
        try:
            if not packed:
                raise UnsuitedValueError
            with _LOCK:
                if types not in self._callers:
                    self._callers[types] = load_code(packed, number_count)
                return self._callers[types]
        except Exception as error:
            # The content is intact, so this system differs in a way that no name covers.
            self._unsuited.add(types)
            raise UnsuitedValueError from error


class NativeKeeper:
    """Keeps the code of a function for later processes."""

    def __init__(self, function: Callable[..., Any], counts_references: bool) -> None:
        self._function = function
        self._counts_references = counts_references

    def load(self, types: str) -> bytes | None:
        """Return the kept code; empty if numba is known to be needed, None if nothing is kept."""
        with _LOCK:
            for store in native_stores():
                code = store.load(self._key(types))
                if code is not None:
                    return code
            return None

    def compile(self, types: str, function: PendingFunction) -> bytes:
        """Compile and keep the code; it is empty if numba is needed, and that is kept as well."""
        if not runs_here():
            return b""
        for wait_for in tuple(_asked_first):
            wait_for(self._function.__module__, self._function.__qualname__, types)
            kept = self.load(types)
            if kept is not None:
                return kept
        resolve()
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.errors import NumbaError

        from mummergpu.runtime.compiled.native.build import compile_code, has_usual_settings

        # Numba's lock comes first here as where numba keeps what it has compiled.
        with global_compiler_lock:
            kept = self.load(types)
            if kept is not None:
                return kept
            callee = function.callee()
            if callee is None or not has_usual_settings():
                return b""
            try:
                code = compile_code(callee, types_of_text(types))
            except (NumbaError, UnsuitedValueError):
                # Numba raises the error once more, for whoever calls.
                return b""
            except Exception:
                # A version of numba or llvmlite that is different inside: do not try again.
                code = b""
            if code_cache.can_be_kept(self._function) and code_cache.sources_are_unchanged():
                with _LOCK:
                    for store in native_stores()[:1]:
                        store.save(self._key(types), code)
            return code

    def _key(self, types: str) -> bytes:
        return key_of(self._function, f"{types} {self._counts_references}")
