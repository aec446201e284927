"""Lets the processor compute with zeros in place of denormal numbers, as HMMER does."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

_ENVIRONMENT_BYTES: Final = 32
_CONTROL: Final = slice(28, 32)
"""Where C's ``fenv_t`` has the control register of vector units, on x86-64 and Linux."""
_FLUSH: Final = 0x8040
"""Its bits for results and for operands that are denormal."""


@cache
def _library() -> Any:
    """Return C's functions for the environment of floats; None where they are not known."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        # Its functions return at once: to give the interpreter's lock back meanwhile costs more.
        library = ctypes.PyDLL("libm.so.6")
    except OSError:
        return None
    return library if hasattr(library, "fesetenv") else None


@contextmanager
def flushed_floats() -> Iterator[None]:
    """Flush denormal numbers to zero in this thread meanwhile, where the processor is x86-64.

    HMMER computes so: it prints an E-value of 0 where the P-value is below 2.2e-308.
    """
    library = _library()
    if library is None:
        yield
        return
    before = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    library.fegetenv(before)
    after = ctypes.create_string_buffer(before.raw, _ENVIRONMENT_BYTES)
    control = int.from_bytes(after.raw[_CONTROL], "little") | _FLUSH
    ctypes.memmove(ctypes.byref(after, _CONTROL.start), control.to_bytes(4, "little"), 4)
    library.fesetenv(after)
    try:
        yield
    finally:
        library.fesetenv(before)
