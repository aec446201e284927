"""The line of progress, with a clock that the test turns."""

from __future__ import annotations

import io
import time

import pytest

from mummergpu.runtime.progress import DELAY, NullProgress, Progress, duration

CLEAR = "\r\x1b[K"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_nothing_appears_in_the_first_two_seconds(clock: Clock, stream: io.StringIO) -> None:
    progress = Progress(stream, clock, ticking=False)
    progress.pages(1, 2)
    clock.now += DELAY - 0.01
    progress.draw()
    progress.close()
    assert stream.getvalue() == ""


def test_line_is_rewritten_and_wiped(clock: Clock, stream: io.StringIO) -> None:
    progress = Progress(stream, clock, ticking=False)
    progress.pages(1, 3)
    clock.now += DELAY
    progress.draw()
    assert stream.getvalue() == CLEAR + "mummergpu: 1 of 3 pages built"
    progress.pages(3, 3)
    progress.draw()
    progress.close()
    progress.draw()
    last = CLEAR + "mummergpu: 3 of 3 pages built" + CLEAR
    assert stream.getvalue() == CLEAR + "mummergpu: 1 of 3 pages built" + last


def test_reads_have_a_rate_and_a_time_left(clock: Clock, stream: io.StringIO) -> None:
    progress = Progress(stream, clock, ticking=False)
    clock.now += 60
    progress.reads(0, 0.0)
    clock.now += 10
    progress.reads(50_000, 0.1)
    progress.draw()
    shown = stream.getvalue().removeprefix(CLEAR)
    assert shown == "mummergpu: 50,000 reads done, 5,000 reads/s, 10%, 1 min 30 s left"


def test_unknown_fraction_shows_no_time_left(clock: Clock, stream: io.StringIO) -> None:
    progress = Progress(stream, clock, ticking=False)
    progress.reads(0, None)
    clock.now += 4
    progress.reads(100, None)
    progress.draw()
    assert stream.getvalue() == CLEAR + "mummergpu: 100 reads done, 25 reads/s"


def test_line_fits_the_terminal(clock: Clock, stream: io.StringIO) -> None:
    progress = Progress(stream, clock, ticking=False)
    progress.pages(10**30, 10**40)
    clock.now += 4
    progress.draw()
    assert len(stream.getvalue().removeprefix(CLEAR)) == 79


def test_text_is_written_above_the_line(clock: Clock, stream: io.StringIO) -> None:
    progress = Progress(stream, clock, ticking=False)
    progress.write_line("early")
    progress.pages(1, 1)
    clock.now += 4
    progress.draw()
    progress.write_line("late")
    drawn = CLEAR + "mummergpu: 1 of 1 pages built"
    assert stream.getvalue() == "early\n" + drawn + CLEAR + "late\n"


def test_ticking_draws_without_being_asked(
    clock: Clock, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mummergpu.runtime.progress.INTERVAL", 0.001)
    progress = Progress(stream, clock)
    progress.pages(1, 1)
    clock.now += 4
    while not stream.getvalue():
        time.sleep(0.001)
    progress.close()
    assert stream.getvalue().startswith(CLEAR + "mummergpu: 1 of 1")


def test_a_terminal_that_has_gone_is_no_error(clock: Clock) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    progress = Progress(Gone(), clock, ticking=False)
    progress.pages(1, 1)
    clock.now += 4
    progress._closed.wait = lambda _seconds: False  # type: ignore[method-assign]
    progress._tick()


def test_no_progress_shows_only_text(stream: io.StringIO) -> None:
    progress = NullProgress(stream)
    progress.pages(1, 2)
    progress.reads(100, 0.5)
    progress.write_line("text")
    progress.close()
    assert stream.getvalue() == "text\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7325, "2 h 2 min"), (-1, "0 s")],
)
def testdurations_have_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
