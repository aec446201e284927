"""Whether a command shows its progress: on a terminal, or with -v in lines."""

import io
import sys
import time

import pytest

from mummergpu.cli.run_verb import progress_shown
from mummergpu.runtime import progress as runtime
from mummergpu.runtime.progress import Phase, Work


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


def wait_for_text(stream):
    end = time.monotonic() + 60
    while not stream.getvalue():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("is_long", [False, True])
def test_progress_is_shown_where_it_serves(monkeypatch, hidden, verbose, terminal, is_long):
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    for name in ("DELAY", "INTERVAL", "LINE_INTERVAL"):
        monkeypatch.setattr(runtime, name, 0.01 if is_long else 1000.0)
    appears = is_long and not hidden and (terminal or verbose)
    with progress_shown(hidden, verbose) as progress:
        progress.tell(Work(Phase.READS, (5,)))
        if appears:
            wait_for_text(stream)
        progress.write_line("text")
    shown = stream.getvalue()
    if not appears:
        assert shown == "text\n"
        return
    assert "text\n" in shown
    assert "mummergpu: 5 reads done" in shown.splitlines()[-1]
    assert ("\r" in shown) == terminal


def test_a_failed_command_keeps_how_far_it_came(monkeypatch):
    stream = Stream(True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(runtime, "DELAY", 0.01)
    with pytest.raises(OSError, match="played"), progress_shown(False, False) as progress:
        progress.tell(Work(Phase.READS, (5,)))
        wait_for_text(stream)
        raise OSError("played")
    assert "\rmummergpu: 5 reads done" in stream.getvalue()
    assert stream.getvalue().endswith("\n")


def test_a_quiet_command_writes_nothing(monkeypatch):
    stream = Stream(True)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_shown(True, False, quiet=True) as progress:
        progress.write_line("text")
    assert stream.getvalue() == ""
