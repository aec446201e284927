"""Memory that the tasks of several threads share."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from threading import Condition


class SharedMemory:
    """Has tasks wait while what they are about to take does not fit beside what others have.

    A task that takes more than there is waits until it is alone. So no task waits for one that has
    not begun.

    Parameters
    ----------
    size : int or None
        How much there is, in any unit; None for no bound.
    """

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def taken(self, size: int) -> Generator[None]:
        """Take a part while the ``with`` block runs, as soon as it is there."""
        if self._size is None:
            yield
            return
        most = self._size - size
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken <= most)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()
