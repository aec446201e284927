"""The line of progress, with a clock that the test turns."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest

from mummergpu.runtime.progress import (
    DELAY,
    LINE_INTERVAL,
    WINDOW,
    NullProgress,
    Phase,
    Progress,
    Work,
    bases_text,
    duration,
)

CLEAR = "\r\x1b[K"


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def pages(done: int, total: int) -> Work:
    return Work(Phase.PAGES, (done, total))


def reads(done: int, bases: int = 0, share: float | None = None) -> Work:
    return Work(Phase.READS, (done,), bases, share)


def on_terminal(stream: io.StringIO, clock: Any) -> Progress:
    return Progress(stream, True, clock, ticking=False)


def last_line(stream: io.StringIO) -> str:
    return stream.getvalue().rpartition(CLEAR)[2]


@pytest.mark.parametrize("is_done", [True, False])
def test_nothing_appears_in_the_first_two_seconds(
    clock: Any, stream: io.StringIO, is_done: bool
) -> None:
    progress = on_terminal(stream, clock)
    progress.tell(pages(1, 2))
    clock.now += DELAY - 0.01
    progress.draw()
    clock.now += 10
    progress.close(is_done)
    assert stream.getvalue() == ""


def test_nothing_appears_before_there_is_something_to_tell(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    clock.now += 60
    progress.draw()
    progress.close(True)
    assert stream.getvalue() == ""


def test_the_line_is_rewritten_and_the_last_one_is_kept(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    progress.tell(pages(1, 3))
    clock.now += DELAY
    progress.draw()
    first = CLEAR + "mummergpu: 1 of 3 pages ready"
    assert stream.getvalue() == first
    progress.tell(reads(7, 0))
    clock.now += 58
    progress.tell(reads(1_234_567, 145_000_000))
    progress.close(True)
    progress.draw()
    last = "mummergpu: 1,234,567 reads done, 145 Mbp, 2.50 Mbp/s, 1 min 0 s in all"
    assert stream.getvalue() == first + CLEAR + last + "\n"


def test_a_run_that_fails_keeps_how_far_it_came(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    progress.tell(reads(0, 0, 0.0))
    clock.now += 4
    progress.draw()
    progress.tell(reads(100, 4000, 0.25))
    progress.close(False)
    expected = "mummergpu: 100 reads done, 4.00 kbp, 1.00 kbp/s, 25%, 12 s left\n"
    assert last_line(stream) == expected


def test_there_are_a_rate_and_a_time_left(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    clock.now += 60
    progress.tell(reads(0, 0, 0.0))
    clock.now += 10
    progress.tell(reads(50_000, 5_000_000, 0.1))
    progress.draw()
    expected = "mummergpu: 50,000 reads done, 5.00 Mbp, 500 kbp/s, 10%, 1 min 30 s left"
    assert last_line(stream) == expected


def test_the_rate_is_that_of_the_last_seconds(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    progress.tell(reads(0, 0, 0.0))
    clock.now += 100  # Nothing happens for long.
    for second in range(int(WINDOW) + 5):
        clock.now += 1
        progress.tell(reads(second, (second + 1) * 1_000_000, (second + 1) / 100))
        progress.draw()
    assert last_line(stream).endswith("20.0 Mbp, 1.00 Mbp/s, 20%, 1 min 20 s left")
    # Without anything new, what is known of the whole phase counts.
    clock.now += 2 * WINDOW
    progress.draw()
    clock.now += 2 * WINDOW
    progress.draw()
    assert last_line(stream).endswith("20.0 Mbp, 111 kbp/s, 20%, 12 min 0 s left")


def test_each_phase_has_a_clock_of_its_own(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    for bases in (0, 1_000_000, 2_000_000):
        progress.tell(Work(Phase.PAGES, (bases // 1_000_000, 2), bases, bases / 2_000_000))
        clock.now += 20
    progress.draw()
    assert (
        last_line(stream) == "mummergpu: 2 of 2 pages ready, 2.00 Mbp, 33.3 kbp/s, 100%, 0 s left"
    )
    progress.tell(reads(0, 0))
    progress.draw()
    assert last_line(stream) == "mummergpu: 0 reads done"
    clock.now += 2
    progress.tell(reads(10, 3000))
    progress.draw()
    assert last_line(stream) == "mummergpu: 10 reads done, 3.00 kbp, 1.50 kbp/s"


def test_unknown_share_shows_no_time_left(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    progress.tell(reads(0))
    clock.now += 4
    progress.tell(reads(100, 10_000))
    progress.draw()
    assert last_line(stream) == "mummergpu: 100 reads done, 10.0 kbp, 2.50 kbp/s"


def test_line_fits_the_terminal(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    progress.tell(pages(10**30, 10**40))
    clock.now += 4
    progress.draw()
    assert len(last_line(stream)) == 79


def test_text_is_written_above_the_line(clock: Any, stream: io.StringIO) -> None:
    progress = on_terminal(stream, clock)
    progress.write_line("early")
    progress.tell(pages(1, 1))
    clock.now += 4
    progress.draw()
    progress.write_line("late")
    drawn = CLEAR + "mummergpu: 1 of 1 page ready"
    assert stream.getvalue() == "early\n" + drawn + CLEAR + "late\n"
    progress.close(True)
    assert last_line(stream) == "mummergpu: 1 of 1 page ready, 4 s in all\n"


def test_without_a_terminal_there_is_a_line_at_times(clock: Any, stream: io.StringIO) -> None:
    progress = Progress(stream, False, clock, ticking=False)
    progress.tell(reads(0, 0, 0.0))
    clock.now += LINE_INTERVAL - 1
    progress.draw()
    assert stream.getvalue() == ""
    for count in (1, 2):
        clock.now += LINE_INTERVAL
        progress.tell(reads(1000 * count, 59_000 * count, 0.4 * count))
        progress.draw()
        progress.write_line("text")
    clock.now += 11
    progress.close(True)
    assert stream.getvalue().splitlines() == [
        "mummergpu: 1,000 reads done, 59.0 kbp, 1.00 kbp/s, 40%, 1 min 28 s left",
        "text",
        "mummergpu: 2,000 reads done, 118 kbp, 1.97 kbp/s, 80%, 15 s left",
        "text",
        "mummergpu: 2,000 reads done, 118 kbp, 1.18 kbp/s, 1 min 40 s in all",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_ticking_draws_without_being_asked(
    clock: Any, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    for name in ("INTERVAL", "LINE_INTERVAL"):
        monkeypatch.setattr(f"mummergpu.runtime.progress.{name}", 0.001)
    progress = Progress(stream, terminal, clock)
    progress.tell(pages(1, 1))
    clock.now += 4
    while not stream.getvalue():
        time.sleep(0.001)
    progress.close(True)
    assert "mummergpu: 1 of 1 page ready" in stream.getvalue()
    assert stream.getvalue().endswith("mummergpu: 1 of 1 page ready, 4 s in all\n")


def test_a_terminal_that_has_gone_is_no_error(clock: Any) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    progress = Progress(Gone(), True, clock, ticking=False)
    progress.tell(pages(1, 1))
    clock.now += 4
    progress._closed.wait = lambda _seconds: False  # type: ignore[method-assign]
    progress._tick()
    progress._has_appeared = True
    progress.close(True)


def test_no_progress_shows_only_text(stream: io.StringIO) -> None:
    progress = NullProgress(stream)
    progress.tell(pages(1, 2))
    progress.write_line("text")
    progress.close(True)
    assert stream.getvalue() == "text\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (7325, "2 h 2 min"), (-1, "0 s")],
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("bases", "text"),
    [
        (0, "0 bp"),
        (999, "999 bp"),
        (1000, "1.00 kbp"),
        (9_994, "9.99 kbp"),
        (9_996, "10.0 kbp"),
        (99_960, "100 kbp"),
        (999_499, "999 kbp"),
        (999_500, "1.00 Mbp"),
        (3_099_750_718, "3.10 Gbp"),
        (4e12, "4,000 Gbp"),
    ],
)
def test_numbers_of_bases_have_three_digits(bases: float, text: str) -> None:
    assert bases_text(bases) == text
