"""End the process soon after a signal, even while compiled code runs."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

from mummergpu.cli.endings import ENDINGS, end_now
from mummergpu.runtime.unfinished_file import remove_unfinished


class SignalWatch:
    """Ends the process within a moment of Ctrl-C, SIGTERM or SIGHUP.

    Python's own handlers run only between two instructions of the main thread, and the main
    thread may be inside compiled code for minutes. So Python also writes each signal to a pipe,
    and a thread that reads this pipe ends the process. Signals that the parent process ignores
    stay ignored.
    """

    def __enter__(self) -> None:
        self._previous: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._previous_descriptor = signal.set_wakeup_fd(self._writing)
        self._previous = {
            number: signal.signal(number, _leave_to_the_watch)
            for number in ENDINGS
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        self._thread = threading.Thread(target=self._watch, name="signals", daemon=True)
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        if not self._previous:
            return
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_descriptor)
        os.close(self._writing)
        self._thread.join()
        os.close(self._reading)

    def _watch(self) -> None:
        while data := os.read(self._reading, 1):
            if data[0] in self._previous:
                remove_unfinished()
                end_now(data[0])


def _leave_to_the_watch(_number: int, _frame: FrameType | None) -> None:
    """Do nothing, so that the main thread goes on until the process ends."""
