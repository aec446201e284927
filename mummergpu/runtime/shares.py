"""Adds up the share of a job that is done, from steps that several threads do."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Shares:
    """Counts the steps of the parts of a job; any thread may call what `part` returns.

    After each step, the share of the job is told that is done, 0 to 1.
    """

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._done = 0.0

    def part(self, share: float, steps: int) -> Callable[[], None]:
        """Begin a part, which is expected to take a share of the job and has so many steps.

        Returned is what to call after each step.
        """
        step = share / max(steps, 1)

        def add() -> None:
            with self._lock:
                self._done += step
                self._tell(min(self._done, 1.0))

        return add
