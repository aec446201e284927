"""Announces that functions are compiled, and how far that is."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

REPORT_SECONDS: Final = 10.0
"""The seconds of compiling between two reports."""


class _Listener:
    def __init__(
        self,
        announce: Callable[[], None],
        after: float,
        go_on: Callable[[int, float], None] | None,
    ) -> None:
        self._announce: Callable[[], None] | None = announce
        self._go_on = go_on
        self._next = after

    def hear(self, functions: int, seconds: float) -> None:
        if seconds < self._next:
            return
        self._next = seconds + REPORT_SECONDS
        if self._announce is not None:
            self._announce()
            self._announce = None
        elif self._go_on is not None:
            self._go_on(functions, seconds)


class Compilation:
    """Adds up what this process compiles; numba compiles one function at a time."""

    def __init__(self) -> None:
        self.functions = 0
        self._listeners: list[_Listener] = []
        self._seconds = 0.0
        self._begin = 0.0

    def on_first(
        self,
        announce: Callable[[], None],
        after: float = 0.0,
        go_on: Callable[[int, float], None] | None = None,
    ) -> None:
        """Call `announce` once, before a function is compiled (a warm start compiles none).

        It is called after some seconds of compiling. `go_on` is then called every ten seconds of
        compiling, with how many functions this process has compiled, and for how many seconds.
        """
        self._listeners.append(_Listener(announce, after, go_on))

    def begin(self) -> None:
        """Announce that a function is going to be compiled."""
        for listener in self._listeners:
            listener.hear(self.functions, self._seconds)
        self._begin = perf_counter()

    def end(self) -> None:
        """Count a function that has been compiled."""
        self.functions += 1
        self._seconds += perf_counter() - self._begin


compilation: Final = Compilation()
