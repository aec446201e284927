"""Shows how far a run is, on one line of a terminal or in a line at times.

A run reports its progress at each block of work. A thread makes text of it when a line is due, by
tqdm, which is imported then: a run that ends before shows nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from io import StringIO
from typing import Any, Final, TextIO

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.words import pluralize

DELAY: Final = 2.0
"""Seconds before the line appears on a terminal: shorter runs show none."""

INTERVAL: Final = 0.5
"""Seconds between two updates of the line."""

LINE_INTERVAL: Final = 30.0
"""Seconds before the first line and between two lines where there is no terminal."""

SHARE_FORMAT: Final = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"
TIME_FORMAT: Final = "{desc} [{elapsed}]"
"""The formats of lines without bases, with a share and without one; else it is tqdm's own."""


class Phase(Enum):
    """The phases of a run, each as text for the numbers of the work done; some have a noun."""

    READING_REFERENCE = "reading the reference"
    PAGES = "{:,} of {:page} ready"
    WRITING_INDEX = "writing the index"
    READS_OF_GROUP = "{:read} searched in pages of group {:,} of {:,}"
    READS = "{:read} done"
    SEQUENCES = "{:sequence} searched"
    PROFILES = "{:,} of {:profile} searched in {:sequence}"
    MAKING_GENOME = "making the genome"
    MAKING_COPY = "making the copy"
    WRITING_FILE = "writing {}"
    READS_MADE = "{:read} made"
    RUNS = "{}: {:,} of {:run}"


class _Counted(int):
    """A number whose format may be a noun."""

    def __format__(self, form: str) -> str:
        return pluralize(self, form) if form.isalpha() else super().__format__(form)


@frozen
class Work:
    """The work done in a phase: the numbers that its text takes, and bases, 0 if it has none.

    `share` is the share of the phase that is done, 0 to 1, if it is known.
    """

    phase: Phase
    numbers: tuple[int | str, ...] = ()
    bases: int = 0
    share: float | None = None

    @property
    def text(self) -> str:
        """What is done, without bases."""
        return self.phase.value.format(
            *(_Counted(one) if isinstance(one, int) else one for one in self.numbers)
        )


class Messages:
    """Writes lines of text to a stream, if there is one, and shows no progress."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def tell(self, work: Work) -> None:
        """Record the work done; any thread may call this."""

    def write_line(self, text: str) -> None:
        """Write a line of text, which has no line end."""
        if self._stream is not None:
            self._stream.write(text + "\n")
            self._stream.flush()

    def close(self) -> None:
        """End the display; if a line has appeared, the last one stays."""


class Progress(Messages):
    """Shows the work done, bases a second and the time left; any thread may call all methods."""

    def __init__(self, stream: TextIO, on_terminal: bool = True) -> None:
        super().__init__(stream)
        self._on_terminal = on_terminal
        self._work: Work | None = None
        self._phase: Phase | None = None
        self._bar: Any = None
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._draw_at_times, name="progress", daemon=True)
        self._thread.start()

    def tell(self, work: Work) -> None:
        """Record the work done."""
        self._work = work

    def write_line(self, text: str) -> None:
        """Write a line of text, above the line of progress."""
        with self._lock:
            if self._bar is not None:
                self._bar.clear()
            super().write_line(text)

    def close(self) -> None:
        """Show the last line, if there has been one."""
        self._closed.set()
        self._thread.join()
        # A closed terminal must not end the run.
        with self._lock, suppress(OSError):
            if self._bar is not None:
                self._draw()
                self._bar.leave = True
                self._bar.close()

    def _draw_at_times(self) -> None:
        wait, interval = (DELAY, INTERVAL) if self._on_terminal else (LINE_INTERVAL, LINE_INTERVAL)
        with suppress(OSError):
            while not self._closed.wait(wait):
                with self._lock:
                    self._draw()
                wait = interval

    def _draw(self) -> None:
        work = self._work
        if work is None:
            return
        form: str | None = None
        done: float = work.bases
        total: float | None = None
        if work.bases and work.share:
            total = work.bases / work.share
        elif work.share is not None and not work.bases:
            form, done, total = SHARE_FORMAT, work.share, 1.0
        elif not work.bases:
            form = TIME_FORMAT
        text = f"mummergpu: {work.text}"
        if work.phase is not self._phase or done < self._bar.n:
            self._begin_bar(desc=text, initial=done, total=total, bar_format=form)
            self._phase = work.phase
        else:
            self._bar.bar_format, self._bar.total = form, total
            self._bar.ncols = _columns_of(self._bar.fp)
            self._bar.set_description_str(text, refresh=False)
            # An update of nothing would take its time out of the rate.
            if done > self._bar.n:
                self._bar.update(done - self._bar.n)
            else:
                self._bar.refresh()
        if not self._on_terminal:
            super().write_line(str(self._bar))

    def _begin_bar(self, **first: Any) -> None:
        from tqdm import tqdm

        # Its own lock would be one of processes, and its thread would draw what this one does.
        tqdm.set_lock(self._lock)
        tqdm.monitor_interval = 0
        if self._bar is not None:
            self._bar.close()
        file = self._stream if self._on_terminal else StringIO()
        self._bar = tqdm(
            file=file,
            ncols=_columns_of(file),
            nrows=2,
            position=0,
            unit="bp",
            unit_scale=True,
            mininterval=0,
            miniters=0,
            leave=False,
            **first,
        )


def _columns_of(stream: TextIO | None) -> int | None:
    """Return the width of a terminal, 80 if it is not known; None where there is none."""
    try:
        return os.get_terminal_size(stream.fileno() if stream else -1).columns or 80
    except (OSError, ValueError):
        return None


class ProgressShares:
    """Adds up the share of a job that is done, from the steps of its parts.

    Any thread may call what `part` returns; after each step, the share of the job is reported that
    is done, 0 to 1.
    """

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._done = 0.0

    def part(self, share: float, steps: int) -> Callable[[], None]:
        """Begin a part, which is expected to take a share of the job and has `steps` steps.

        Returns a function to call after each step.
        """
        step = share / max(steps, 1)

        def add() -> None:
            with self._lock:
                self._done += step
                self._tell(min(self._done, 1.0))

        return add
