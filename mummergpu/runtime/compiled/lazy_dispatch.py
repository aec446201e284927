"""What the decorators of `runtime/jit.py` return: functions that are compiled at their first call.

A warm run needs no compiler, and the import of numba takes longer than a small search. So the first
call of a function with arguments of some types goes this way:

1. If the store has an image of its machine code, from an earlier run or from the wheel, the image
   is loaded and called, and numba is not imported (`store.py`, `image.py`).
2. Else numba compiles the function, with all that it calls, to an image, which is called and saved
   for later runs (`compiler.py`).
3. Where there can be no image, because of unusual arguments (`signatures.flatten`), another system,
   or settings of numba, its dispatcher is called, which keeps code in numba's own cache.

Later calls with arguments of these types find the loaded image at once. A compiled function that
calls another one does not come here: its image contains the code of both.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from mummergpu.errors import VariableError
from mummergpu.runtime.blake2 import blake2b
from mummergpu.runtime.compiled.announcement import compilation
from mummergpu.runtime.compiled.image import Call, load_code
from mummergpu.runtime.compiled.levels import PREFIX, numba_settings, usable_levels
from mummergpu.runtime.compiled.signatures import Flattened, UnsuitedValueError, flatten
from mummergpu.runtime.compiled.sources import digest_of_function
from mummergpu.runtime.compiled.store import process_store

_KEY_BYTES: Final = 32
_PRINTING: Final = tuple(PREFIX + word for word in ("DEBUG", "DUMP_", "TRACE"))
_NO_IMAGE: Final = b"no image by numba "
"""Kept in place of an image that a version of numba, which follows, could not make."""

_LOCK: Final = threading.RLock()
"""Held while images are loaded, never while numba is used: numba has a lock of its own."""


class LazyObject:
    """Stands for an object that numba makes of a function; `make` imports numba."""

    def __init__(self, function: Callable[..., Any], make: Callable[[Any], Any]) -> None:
        self.function = function
        self._make = make
        self._made: Any = None

    def made(self) -> Any:
        """Return numba's object, always the same one."""
        if self._made is None:
            import_numba()
            made = self._make(self.function)
            with _LOCK:
                if self._made is None:
                    self._made = made
        return self._made

    @property
    def _numba_type_(self) -> Any:
        """Where a compiled function names this object, numba asks for its type."""
        from mummergpu.runtime.compiled.compiler import type_of

        return type_of(self.made())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call numba's object."""
        return self.made()(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        # Only for names that are not found here: all that a dispatcher has besides. Numba looks for
        # a name where compiled functions call this object, which needs no dispatcher of its own.
        if name.startswith("_") or name == "name":
            raise AttributeError(name)
        return getattr(self.made(), name)


class LazyFunction(LazyObject):
    """Stands for a compiled function; its module docstring says what a call does.

    If it is `inlined`, each compiled caller has its code as a part of its own.
    """

    targetoptions: Final[dict[str, Any]] = {}
    """Where numba looks for an option to inline before it finds types."""

    def __init__(self, function: Callable[..., Any], inlined: bool) -> None:
        super().__init__(function, self._dispatcher_of)
        self._inlined = inlined
        self._callee: Any = None
        self._images: dict[str, Call] = {}
        self._without_image: set[str] = set()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the image for the types of the arguments, or numba's dispatcher if there is none."""
        numbers: list[int] = []
        try:
            if named:
                raise UnsuitedValueError
            types = flatten(arguments, numbers)
            call = self._images.get(types) or self._first_call(types, len(numbers))
            return call(numbers)
        except (UnsuitedValueError, struct.error):
            plain = (one.value if type(one) is Flattened else one for one in arguments)
            return self.made()(*plain, **named)

    def callee(self) -> Any:
        """Return the dispatcher for compiled callers, or None where that is `made`."""
        if self._callee is None:
            from mummergpu.runtime.compiled.compiler import callee_of

            self._callee = callee_of(self.function, self._inlined)
        return self._callee

    @property
    def _numba_type_(self) -> Any:
        callee = self.callee()
        return super()._numba_type_ if callee is None else callee._numba_type_

    def _dispatcher_of(self, function: Callable[..., Any]) -> Any:
        from mummergpu.runtime.compiled.compiler import dispatcher_of

        return dispatcher_of(function, self._inlined)

    def _first_call(self, types: str, number_count: int) -> Call:
        """Return a caller of the function for some types: a kept image, or one compiled now."""
        if types in self._without_image or not usable_levels():
            raise UnsuitedValueError
        try:
            return self._loaded(types, number_count) or self._compiled(types, number_count)
        except Exception as error:
            # Numba's dispatcher calls it, or raises an error that explains what is wrong with it.
            self._without_image.add(types)
            raise UnsuitedValueError from error

    def _loaded(self, types: str, number_count: int) -> Call | None:
        with _LOCK:
            if types in self._images:
                return self._images[types]
            key = self._key(types)
            packed = None if key is None else process_store().load(key)
            if packed is not None and not packed.startswith(_NO_IMAGE):
                self._images[types] = load_code(packed, number_count)
                return self._images[types]
        # Numba is imported without the lock, for which first calls of other functions would wait.
        if packed is not None and packed == _no_image():
            raise UnsuitedValueError
        return None

    def _compiled(self, types: str, number_count: int) -> Call:
        import_numba()
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.errors import NumbaError

        from mummergpu.runtime.compiled.compiler import compile_image, has_unusual_settings

        with global_compiler_lock:
            # Another thread may have compiled it meanwhile.
            loaded = self._loaded(types, number_count)
            if loaded is not None:
                return loaded
            if self.callee() is None or has_unusual_settings():
                raise UnsuitedValueError
            compilation.begin()
            try:
                packed = compile_image(self.callee(), types)
            except (NumbaError, MemoryError, OSError):
                # Numba's dispatcher raises it once more, or does better than this time.
                raise
            except Exception:
                # This function, or this version of numba, is unsuited: later runs need not try.
                packed = _no_image()
            finally:
                compilation.end()
            if not packed.startswith(_NO_IMAGE):
                self._images[types] = load_code(packed, number_count)
        key = self._key(types)
        if key is not None:
            process_store().save(key, packed)
        if types not in self._images:
            raise UnsuitedValueError
        return self._images[types]

    def _key(self, types: str) -> bytes | None:
        """Return the name of an image in the store; None if it must not be kept there."""
        sources = digest_of_function(self.function, types)
        if sources is None:
            return None
        name = f"{self.function.__module__} {self.function.__qualname__} {types}"
        return blake2b(name.encode() + sources, digest_size=_KEY_BYTES).digest()


def _no_image() -> bytes:
    import_numba()
    import numba

    version: str = numba.__version__
    return _NO_IMAGE + version.encode()


@cache
def import_numba() -> None:
    """Import numba; raise `VariableError` if no function can be called with its settings."""
    names = numba_settings()
    printing = [
        name
        for name in names
        if name.startswith(_PRINTING) and name != f"{PREFIX}DEBUGINFO"
        if os.environ.get(name, "") not in ("", "0", "none")
    ]
    if printing:
        raise VariableError(printing, "numba would print to standard output, among results")
    try:
        from numba import config
    except Exception as error:
        if not names:
            raise
        raise VariableError(names, f"numba cannot be imported ({error})") from error
    if getattr(config, "DISABLE_JIT", False):
        disabling = [name for name in names if "DISABLE_JIT" in name]
        raise VariableError(disabling or names, "numba is told to compile nothing")
