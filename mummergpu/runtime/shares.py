"""Adds up the share of a job that is done, from steps that several threads do."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Shares:
    """Counts the steps of the parts of a job; any thread may call what `part` returns.

    Parameters
    ----------
    tell : callable
        Receives the share of the job that is done, 0 to 1, after each step.
    """

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._done = 0.0

    def part(self, share: float, steps: int) -> Callable[[], None]:
        """Begin a part of the job.

        Parameters
        ----------
        share : float
            The share of the job that the part is expected to take.
        steps : int
            The number of its steps.

        Returns
        -------
        callable
            To be called after each step.
        """
        step = share / max(steps, 1)

        def add() -> None:
            with self._lock:
                self._done += step
                self._tell(min(self._done, 1.0))

        return add
