"""Shows how many steps of a long job are done, and how much time is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TextIO

from mummergpu.runtime.progress import CLEAR_LINE, columns_of, duration

LINE_INTERVAL: Final = 10.0
"""Seconds between two lines where there is no terminal."""

DRAW_INTERVAL: Final = 0.2
"""Seconds between two updates of the line on a terminal."""


FEWEST_STEPS: Final = 3
"""The steps after which the time left is told; the first ones compile and fill caches."""


class StepProgress:
    """Reports the steps of a job: a line that is rewritten on a terminal, else a line at times."""

    def __init__(
        self, stream: TextIO, hidden: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._hidden = hidden
        self._clock = clock
        self._on_terminal = stream.isatty()
        self._interval = DRAW_INTERVAL if self._on_terminal else LINE_INTERVAL
        self._last_shown = clock()
        self._began = clock()
        self._done_before = 0
        self._is_visible = False

    def begin(self, done: int) -> None:
        """Start the clock of a job of which some steps are already done."""
        self._began = self._clock()
        self._done_before = done

    def step(self, label: str, done: int, total: int) -> None:
        """Record how many steps are done of all; the label says what is being worked on."""
        now = self._clock()
        if self._hidden or now - self._last_shown < self._interval:
            return
        self._last_shown = now
        text = f"mummergpu: {label}: {done:,} of {total:,} runs, {done / total:.0%}"
        fresh = done - self._done_before
        if fresh >= FEWEST_STEPS and done < total:
            text += f", {duration((now - self._began) * (total - done) / fresh)} left"
        if self._on_terminal:
            text = CLEAR_LINE + text[: columns_of(self._stream) - 1]
        else:
            text += "\n"
        # A closed terminal must not end the job.
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
            self._is_visible = self._on_terminal

    def write_line(self, text: str) -> None:
        """Write a line of text for the user, above the line of progress."""
        if self._hidden:
            return
        self.close()
        self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Erase the line of progress."""
        if self._is_visible:
            self._stream.write(CLEAR_LINE)
            self._stream.flush()
            self._is_visible = False
