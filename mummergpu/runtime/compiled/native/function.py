"""Functions that are called without numba if their code has been kept by an earlier run.

Code is found by the types of the arguments at each call. If there is none for them, or if
anything about it is unusual, numba takes over (`mummergpu.runtime.compiled.pending`).
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from mummergpu.runtime.compiled.native.loader import load_code
from mummergpu.runtime.compiled.native.store import key_of, native_stores
from mummergpu.runtime.compiled.native.values import UnsuitedValueError, flatten, text_of_types
from mummergpu.runtime.compiled.pending import Pending

_LOCK: Final = threading.RLock()
"""Held while a store is used."""


class NativeFunction(Pending):
    """Stands for a dispatcher, and needs none for the types whose code has been kept."""

    def __init__(
        self,
        function: Callable[..., Any],
        make: Callable[[Any], Any],
        counts_references: bool,
    ) -> None:
        super().__init__(function, make)
        self._keeper = NativeKeeper(function, counts_references)
        self._callers: dict[str, Callable[[list[int]], Any]] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the kept code, or numba's dispatcher if there is none for these arguments."""
        numbers: list[int] = []
        try:
            if named:
                raise UnsuitedValueError
            types = flatten(arguments, numbers)
            call = self._callers.get(types)
            if call is None:
                if self._made is not None:
                    return self._made(*arguments)
                call = self._load(types, len(numbers))
            return call(numbers)
        except (UnsuitedValueError, struct.error):
            return self.made()(*arguments, **named)

    def _load(self, types: str, number_count: int) -> Callable[[list[int]], Any]:
        with _LOCK:
            found = self._callers.get(types)
            if found is None:
                packed = self._keeper.load(types)
                if not packed:
                    raise UnsuitedValueError
                try:
                    found = load_code(packed, number_count)
                except Exception as error:
                    # The content is intact, so this system differs in a way that no name covers.
                    raise UnsuitedValueError from error
                self._callers[types] = found
            return found


class NativeKeeper:
    """Keeps the code of a function for later processes, besides what numba keeps."""

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

    def save_if_lacking(self, signature: Any, result: Any) -> None:
        """Keep the code, or that it needs numba, if nothing is kept yet."""
        from mummergpu.runtime.compiled.native.build import build_code, has_usual_settings

        with suppress(UnsuitedValueError), _LOCK:
            key = self._key(text_of_types(signature))
            stores = native_stores() if has_usual_settings() else ()
            if not stores or stores[0].folder() is None or stores[0].load(key) is not None:
                return
            try:
                code = build_code(result)
            except Exception:
                # A version of numba or llvmlite that is different inside: do not try again.
                code = b""
            stores[0].save(key, code)

    def _key(self, types: str) -> bytes:
        return key_of(self._function, f"{types} {self._counts_references}")
