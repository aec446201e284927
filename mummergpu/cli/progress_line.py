"""Shows the progress of a command on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mummergpu.runtime.progress import NullProgress


@contextmanager
def progress_shown(hidden: bool, verbose: bool) -> Iterator[NullProgress]:
    """Show the progress of the ``with`` block, on a terminal or in a line at times."""
    from mummergpu.runtime.progress import NullProgress, Progress

    stream = sys.stderr
    on_terminal = stream.isatty()
    progress = NullProgress(stream)
    if not hidden and (on_terminal or verbose):
        progress = Progress(stream, on_terminal)
    is_done = False
    try:
        yield progress
        is_done = True
    finally:
        progress.close(is_done)
