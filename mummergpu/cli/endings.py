"""How a signal ends the process: the line, the exit code, and handlers from the first moment on.

This module is imported before everything else, so it imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Final, NoReturn

PROGRAM: Final = "mummergpu"

ENDINGS: Final = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminal closed",
}


def end_at_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end the process with a line and 128 plus their number.

    Python runs such a handler only between two steps of the main thread. That is soon enough
    while modules are imported; `mummergpu.cli.signals.SignalWatch` takes over before there is
    work to do. Signals that the parent process ignores stay ignored.
    """
    for number in ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def end_now(number: signal.Signals) -> NoReturn:
    """Write which signal ended the process, and end it.

    Parameters
    ----------
    number : signal.Signals
        One of `ENDINGS`.
    """
    # On a terminal the line replaces the echo of Ctrl-C and what progress was shown.
    start = "\r\x1b[K" if os.isatty(2) else ""
    try:
        os.write(2, f"{start}{PROGRAM}: {ENDINGS[number]}\n".encode())
    finally:
        os._exit(128 + number)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    end_now(signal.Signals(number))
