"""Ends the process at a signal, with one line and an exit code.

The first handlers are set before anything else is imported, so this module imports only modules
that the interpreter has loaded: ``signal`` and ``typing`` take longer than all imports before them.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Final, NoReturn

PROGRAM: Final = "mummergpu"

COMPLETION_VARIABLE: Final = "_MUMMERGPU_COMPLETE"
"""The environment variable of completion scripts, set to ``bash_complete`` or similar."""

ENDINGS: Final[dict[int, str]] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminal closed",
}


def end_at_signals() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end the process with one line and exit code 128 + number.

    Python runs such a handler only between two instructions of the main thread. That is soon
    enough while modules are imported; `SignalWatch` takes over before the work begins. Signals that
    the parent process ignores stay ignored.
    """
    for number in ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


class SignalWatch:
    """Ends the process within a moment of Ctrl-C, SIGTERM or SIGHUP.

    The main thread may be inside compiled code for minutes, where it runs no handler. So Python
    also writes each signal to a pipe, and a thread that reads this pipe ends the process.
    """

    def __enter__(self) -> None:
        import threading

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
        from mummergpu.runtime.unfinished_file import remove_unfinished

        while data := os.read(self._reading, 1):
            if data[0] in self._previous:
                remove_unfinished()
                _end(data[0])


def _end(number: int, _frame: FrameType | None = None) -> NoReturn:
    """Write one line that names the signal, and end the process."""
    # On a terminal the line replaces the echo of Ctrl-C and the progress line.
    start = "\r\x1b[K" if os.isatty(2) else ""
    try:
        os.write(2, f"{start}{PROGRAM}: {ENDINGS[number]}\n".encode())
    finally:
        os._exit(128 + number)


def _leave_to_the_watch(_number: int, _frame: FrameType | None) -> None:
    """Do nothing, so that the main thread goes on until the process ends."""
