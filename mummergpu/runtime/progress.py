"""Shows the progress of a run on one line of a terminal."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TextIO

DELAY: Final = 2.0
"""Seconds before the line appears: shorter runs show none."""

INTERVAL: Final = 0.5
"""Seconds between two updates of the line."""

CLEAR_LINE: Final = "\r\x1b[K"


class NullProgress:
    """Shows no progress, and writes lines of text at once.

    Parameters
    ----------
    stream : text stream
        The stream for lines of text: standard error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def pages(self, done: int, total: int) -> None:
        """Record how many pages are built."""

    def reads(self, done: int, fraction: float | None) -> None:
        """Record how many reads are done."""

    def write_line(self, text: str) -> None:
        """Write a line of text for the user.

        Parameters
        ----------
        text : str
            The text without the line end.
        """
        self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """End the display."""


class Progress(NullProgress):
    """Shows pages built, reads done, reads per second and the time left, on one line.

    The line appears when the run has lasted two seconds, is rewritten in place and is erased at the
    end. Any thread may call all methods.

    Parameters
    ----------
    stream : text stream
        A terminal.
    clock : callable
        Returns seconds; only differences count.
    ticking : bool
        Whether a thread keeps the line up to date.
    """

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        ticking: bool = True,
    ) -> None:
        super().__init__(stream)
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._visible = False
        self._pages: tuple[int, int] | None = None
        self._reads: tuple[int, float | None] | None = None
        self._reads_began = (0.0, 0, 0.0)
        self._closed = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
        if ticking:
            self._ticker.start()

    def pages(self, done: int, total: int) -> None:
        """Record how many pages are built.

        Parameters
        ----------
        done : int
            The number of pages whose index is built.
        total : int
            The number of pages that the reference is divided into.
        """
        with self._lock:
            self._pages = (done, total)

    def reads(self, done: int, fraction: float | None) -> None:
        """Record how many reads are done.

        Parameters
        ----------
        done : int
            The number of reads whose matches are written.
        fraction : float, optional
            The share of the work on reads that is done, 0 to 1, if it is known.
        """
        with self._lock:
            if self._reads is None:
                self._reads_began = (self._clock(), done, fraction or 0.0)
            self._reads = (done, fraction)

    def write_line(self, text: str) -> None:
        """Write a line of text for the user, above the line of progress.

        Parameters
        ----------
        text : str
            The text without the line end.
        """
        with self._lock:
            self._wipe()
            super().write_line(text)

    def draw(self) -> None:
        """Rewrite the line, if the run has lasted long enough for one."""
        with self._lock:
            now = self._clock()
            if self._closed.is_set() or now - self._started < DELAY:
                return
            text = self._text(now)
            if text:
                self._stream.write(CLEAR_LINE + text[: columns_of(self._stream) - 1])
                self._stream.flush()
                self._visible = True

    def close(self) -> None:
        """Erase the line and show no further one."""
        with self._lock:
            self._closed.set()
            self._wipe()
        if self._ticker.ident is not None:
            self._ticker.join()

    def _tick(self) -> None:
        # A closed terminal must not end the run.
        with suppress(OSError):
            while not self._closed.wait(INTERVAL):
                self.draw()

    def _wipe(self) -> None:
        if self._visible:
            self._stream.write(CLEAR_LINE)
            self._stream.flush()
            self._visible = False

    def _text(self, now: float) -> str:
        parts = []
        if self._pages is not None:
            parts.append("{:,} of {:,} pages built".format(*self._pages))
        if self._reads is not None:
            done, fraction = self._reads
            began, done_before, fraction_before = self._reads_began
            seconds = now - began
            parts.append(f"{done:,} reads done")
            if done > done_before and seconds > 0:
                parts.append(f"{(done - done_before) / seconds:,.0f} reads/s")
            if fraction is not None and fraction > fraction_before:
                left = seconds * (1 - fraction) / (fraction - fraction_before)
                parts.append(f"{fraction:.0%}")
                parts.append(f"{duration(left)} left")
        return "mummergpu: " + ", ".join(parts) if parts else ""


def columns_of(stream: TextIO) -> int:
    """Return the width of a terminal in characters, or 80 if it is not known."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def duration(seconds: float) -> str:
    """Return a duration as text, in its two largest units."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
