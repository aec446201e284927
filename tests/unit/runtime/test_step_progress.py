"""The line of progress of a job in steps, with a clock that the test turns."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.studies import Sink

from mummergpu.runtime import step_progress
from mummergpu.runtime.step_progress import DRAW_INTERVAL, LINE_INTERVAL, StepProgress

CLEAR = "\r\x1b[K"


@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_comes_at_times(clock: Any, terminal: bool) -> None:
    stream = Sink(terminal)
    progress = StepProgress(stream, False, clock)
    interval = DRAW_INTERVAL if terminal else LINE_INTERVAL
    assert (DRAW_INTERVAL, LINE_INTERVAL) == (0.2, 10.0)
    progress.begin(0)
    shown = []
    for step in range(1, 41):
        clock.now += interval / 4 + 1e-9
        before = stream.getvalue()
        progress.step("LMONO", step, 2000)
        if stream.getvalue() != before:
            shown.append(step)
    assert shown == list(range(4, 41, 4))
    first = stream.getvalue().removeprefix(CLEAR if terminal else "")
    assert first.startswith("mummergpu: LMONO: 4 of 2,000 runs, 0%, ")


def test_lines_follow_each_other_where_there_is_no_terminal(clock: Any) -> None:
    stream = Sink()
    progress = StepProgress(stream, False, clock)
    progress.begin(0)
    for done in (1, 2, 3, 4):
        clock.now += 10
        progress.step("x", done, 4)
    progress.write_line("end")
    progress.close()
    assert stream.getvalue() == (
        "mummergpu: x: 1 of 4 runs, 25%\n"
        "mummergpu: x: 2 of 4 runs, 50%\n"
        "mummergpu: x: 3 of 4 runs, 75%, 10 s left\n"
        "mummergpu: x: 4 of 4 runs, 100%\n"
        "end\n"
    )


def test_a_line_is_rewritten_and_erased_on_a_terminal(clock: Any) -> None:
    stream = Sink(terminal=True)
    progress = StepProgress(stream, False, clock)
    progress.begin(0)
    progress.write_line("early")
    clock.now += 1
    progress.step("x", 3, 5)
    clock.now += 1
    progress.step("x", 4, 5)
    progress.write_line("text")
    progress.close()
    assert stream.getvalue() == (
        "early\n"
        f"{CLEAR}mummergpu: x: 3 of 5 runs, 60%, 1 s left"
        f"{CLEAR}mummergpu: x: 4 of 5 runs, 80%, 0 s left"
        f"{CLEAR}text\n"
    )


def test_closing_erases_the_line_once(clock: Any) -> None:
    stream = Sink(terminal=True)
    progress = StepProgress(stream, False, clock)
    clock.now += 1
    progress.step("x", 3, 3)
    progress.close()
    progress.close()
    assert stream.getvalue() == f"{CLEAR}mummergpu: x: 3 of 3 runs, 100%{CLEAR}"


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_hidden_writes_nothing(clock: Any, terminal: bool) -> None:
    stream = Sink(terminal)
    progress = StepProgress(stream, True, clock)
    progress.begin(0)
    clock.now += 100
    progress.step("x", 1, 2)
    progress.write_line("text")
    progress.close()
    assert stream.getvalue() == ""


def test_the_time_left_is_that_of_the_steps_since_the_beginning(clock: Any) -> None:
    """Steps that an earlier process did took no time of this one."""
    stream = Sink()
    progress = StepProgress(stream, False, clock)
    clock.now += 5000
    progress.begin(60)
    clock.now += 20
    progress.step("x", 70, 100)
    assert stream.getvalue() == "mummergpu: x: 70 of 100 runs, 70%, 1 min 0 s left\n"
    progress.begin(70)
    clock.now += 30
    progress.step("x", 70, 100)
    assert stream.getvalue().endswith("\nmummergpu: x: 70 of 100 runs, 70%\n")


def test_a_line_fits_the_terminal(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_progress, "columns_of", lambda stream: 30)
    stream = Sink(terminal=True)
    progress = StepProgress(stream, False, clock)
    clock.now += 1
    progress.step("a workload with a long name", 1, 3)
    assert len(stream.getvalue().removeprefix(CLEAR)) == 29


def test_a_terminal_that_has_gone_does_not_end_the_job(clock: Any) -> None:
    class Gone(Sink):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    progress = StepProgress(Gone(terminal=True), False, clock)
    clock.now += 1
    progress.step("x", 1, 3)
    progress.close()
