"""Announces that functions are compiled, and how far that is."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

REPORT_SECONDS: Final = 10.0
"""The seconds of compiling between two reports."""


class Compilation:
    """Adds up what this process compiles; numba compiles one function at a time."""

    def __init__(self) -> None:
        self.functions = 0
        self._waiting: list[tuple[float, Callable[[int, float], None]]] = []
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

        def repeat(functions: int, seconds: float) -> None:
            assert go_on is not None
            go_on(functions, seconds)
            self._waiting.append((seconds + REPORT_SECONDS, repeat))

        def first(_functions: int, seconds: float) -> None:
            announce()
            if go_on is not None:
                self._waiting.append((seconds + REPORT_SECONDS, repeat))

        self._waiting.append((after, first))

    def begin(self) -> None:
        """Announce that a function is going to be compiled."""
        due = [one for one in self._waiting if self._seconds >= one[0]]
        self._waiting = [one for one in self._waiting if self._seconds < one[0]]
        for _, call in due:
            call(self.functions, self._seconds)
        self._begin = perf_counter()

    def end(self) -> None:
        """Count a function that has been compiled."""
        self.functions += 1
        self._seconds += perf_counter() - self._begin


compilation: Final = Compilation()
