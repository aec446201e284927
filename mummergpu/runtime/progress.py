"""Tells how far a run is: on one line of a terminal, or in a line at times.

A run tells its progress at each block of work, which costs a microsecond. Text is made of it when
a line is due; a run that ends before the first one shows nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Final, TextIO

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.words import counted

DELAY: Final = 2.0
"""Seconds before the line appears on a terminal: shorter runs show none."""

INTERVAL: Final = 0.5
"""Seconds between two updates of the line."""

LINE_INTERVAL: Final = 30.0
"""Seconds before the first line and between two lines where there is no terminal."""

WINDOW: Final = 15.0
"""Seconds back to which the rate and the time left look: what was slow before, such as compiling,
says little about the rest."""

CLEAR_LINE: Final = "\r\x1b[K"


class Phase(Enum):
    """What a run is doing, as text for the numbers of what is done; some have a noun."""

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


class _Counted(int):
    """A number whose format may be a noun."""

    def __format__(self, form: str) -> str:
        return counted(self, form) if form.isalpha() else super().__format__(form)


@frozen
class Work:
    """What is done of a phase.

    Attributes
    ----------
    phase : Phase
        The phase.
    numbers : tuple of int or str
        The numbers that its text takes.
    bases : int
        The bases that are done; 0 if it has none.
    share : float or None
        The share of the phase that is done, 0 to 1, if it is known.
    """

    phase: Phase
    numbers: tuple[int | str, ...] = ()
    bases: int = 0
    share: float | None = None

    @property
    def text(self) -> str:
        """What is done, without the rate and the time left."""
        text = self.phase.value.format(
            *(_Counted(one) if isinstance(one, int) else one for one in self.numbers)
        )
        return f"{text}, {bases_text(self.bases)}" if self.bases else text


class NullProgress:
    """Shows no progress, and writes lines of text to a stream at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def tell(self, work: Work) -> None:
        """Record what is done; any thread may call this."""

    def write_line(self, text: str) -> None:
        """Write a line of text for the user, which has no line end."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def close(self, is_done: bool) -> None:
        """End the display; the run has done all of its work or has not."""


class Progress(NullProgress):
    """Shows what is done, bases a second and the time left.

    On a terminal this is one line, which appears when the run has lasted two seconds and is
    rewritten in place. Elsewhere it is a line every 30 seconds. If any line has appeared, the last
    one tells what was done in all. Any thread may call all methods.

    Of the seconds that the clock returns only differences count. If it is ticking, a thread shows a
    line when it is due.
    """

    def __init__(
        self,
        stream: TextIO,
        on_terminal: bool = True,
        clock: Callable[[], float] = time.monotonic,
        ticking: bool = True,
    ) -> None:
        super().__init__(stream)
        self._on_terminal = on_terminal
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._has_appeared = False
        self._visible = False
        self._work: Work | None = None
        # The first work of each phase, and what the last lines showed of the phase that goes on.
        self._beginnings: dict[Phase, tuple[float, Work]] = {}
        self._shown: deque[tuple[float, Work]] = deque()
        self._closed = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
        if ticking:
            self._ticker.start()

    def tell(self, work: Work) -> None:
        """Record what is done; the first call of a phase starts its clock."""
        with self._lock:
            if work.phase not in self._beginnings:
                self._beginnings[work.phase] = (self._clock(), work)
            self._work = work

    def write_line(self, text: str) -> None:
        """Write a line of text for the user, above the line of progress."""
        with self._lock:
            self._wipe()
            super().write_line(text)

    def draw(self) -> None:
        """Show what is done, if the run has lasted long enough."""
        with self._lock:
            now = self._clock()
            first = DELAY if self._on_terminal else LINE_INTERVAL
            if self._closed.is_set() or self._work is None or now - self._started < first:
                return
            self._show(self._line(self._work, now))

    def close(self, is_done: bool) -> None:
        """Show the last line if there has been one, and no further one.

        If all work is done, it tells how long that took.
        """
        with self._lock:
            self._closed.set()
            if self._has_appeared and self._work is not None:
                # A closed terminal must not end the run.
                with suppress(OSError):
                    now = self._clock()
                    self._show(
                        self._summary(self._work, now) if is_done else self._line(self._work, now)
                    )
                    if self._on_terminal:
                        super().write_line("")
                self._visible = False
        if self._ticker.ident is not None:
            self._ticker.join()

    def _tick(self) -> None:
        interval = INTERVAL if self._on_terminal else LINE_INTERVAL
        wait = min(DELAY, interval) if self._on_terminal else interval
        # A closed terminal must not end the run.
        with suppress(OSError):
            while not self._closed.wait(wait):
                self.draw()
                wait = interval

    def _show(self, line: str) -> None:
        if self._on_terminal:
            line = CLEAR_LINE + line[: columns_of(self._stream) - 1]
        else:
            line += "\n"
        self._stream.write(line)
        self._stream.flush()
        self._has_appeared = True
        self._visible = self._on_terminal

    def _wipe(self) -> None:
        if self._visible:
            self._stream.write(CLEAR_LINE)
            self._stream.flush()
            self._visible = False

    def _line(self, work: Work, now: float) -> str:
        """Return the line while the work goes on."""
        began, before = self._earlier(work, now)
        seconds = now - began
        parts = [work.text]
        if work.bases > before.bases and seconds > 0:
            parts.append(f"{bases_text((work.bases - before.bases) / seconds)}/s")
        if work.share is not None and work.share > (before.share or 0.0):
            left = seconds * (1 - work.share) / (work.share - (before.share or 0.0))
            parts.append(f"{work.share:.0%}")
            parts.append(f"{duration(left)} left")
        return "mummergpu: " + ", ".join(parts)

    def _earlier(self, work: Work, now: float) -> tuple[float, Work]:
        """Return when the phase was less far, about `WINDOW` seconds ago, and how far it was."""
        shown = self._shown
        if shown and shown[0][1].phase is not work.phase:
            shown.clear()
        while len(shown) > 1 and shown[1][0] <= now - WINDOW:
            shown.popleft()
        shown.append((now, work))
        began, before = shown[0]
        has_advanced = work.bases > before.bases and (work.share or 0) >= (before.share or 0)
        if now - began >= WINDOW and has_advanced:
            return began, before
        return self._beginnings[work.phase]

    def _summary(self, work: Work, now: float) -> str:
        """Return the line when the work is done."""
        began, before = self._beginnings[work.phase]
        parts = [work.text]
        if work.bases > before.bases and now > began:
            parts.append(f"{bases_text((work.bases - before.bases) / (now - began))}/s")
        parts.append(f"{duration(now - self._started)} in all")
        return "mummergpu: " + ", ".join(parts)


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


def bases_text(bases: float) -> str:
    """Return a number of bases as text, with three digits or more: ``1.23 Mbp``."""
    for unit in ("", "k", "M", "G"):
        if bases < 999.5 or unit == "G":
            break
        bases /= 1000
    digits = 0 if not unit or bases >= 99.95 else 1 if bases >= 9.995 else 2
    return f"{bases:,.{digits}f} {unit}bp"
