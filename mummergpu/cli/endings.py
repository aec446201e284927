"""How a signal ends the process: with one line and an exit code.

The handlers are set before anything else is imported, so this module imports nothing that the
interpreter has not: ``signal`` and ``typing`` take longer than all that is before them.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import FrameType
    from typing import Final, NoReturn

PROGRAM: Final = "mummergpu"

ENDINGS: Final[dict[int, str]] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminal closed",
}


def end_at_signals() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end the process with one line and exit code 128 + number.

    Python runs such a handler only between two instructions of the main thread. That is soon
    enough while modules are imported; `mummergpu.cli.signals.SignalWatch` takes over before the
    work begins. Signals that the parent process ignores stay ignored.
    """
    for number in ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def end_now(number: int) -> NoReturn:
    """Write one line that names the signal, and end the process."""
    # On a terminal the line replaces the echo of Ctrl-C and the progress line.
    start = "\r\x1b[K" if os.isatty(2) else ""
    try:
        os.write(2, f"{start}{PROGRAM}: {ENDINGS[number]}\n".encode())
    finally:
        os._exit(128 + number)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    end_now(number)
