"""Keeps pysam, through which htslib is used, from writing to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final

_CLOSING_FAULT: Final = "Closing failed"
"""The text of pysam's error when htslib cannot close a file."""


@contextmanager
def silent_deallocation() -> Iterator[None]:
    """Keep pysam from printing that it could not close a file that it could not open.

    pysam closes such a file where Python cannot raise an exception. The exception goes to the
    two hooks of the interpreter instead.
    """
    exception_hook, unraisable_hook = sys.excepthook, sys.unraisablehook

    def on_exception(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if _CLOSING_FAULT not in str(error):
            exception_hook(kind, error, trace)

    def on_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
        if _CLOSING_FAULT not in str(unraisable.exc_value):
            unraisable_hook(unraisable)

    sys.excepthook, sys.unraisablehook = on_exception, on_unraisable
    try:
        yield
    finally:
        sys.excepthook, sys.unraisablehook = exception_hook, unraisable_hook
