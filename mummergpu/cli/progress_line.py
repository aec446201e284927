"""Shows the progress of a command on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mummergpu.runtime.progress import Messages


@contextmanager
def progress_shown(hidden: bool, verbose: bool, quiet: bool = False) -> Iterator[Messages]:
    """Show the progress of the ``with`` block, on a terminal or in a line at times.

    Lines of text are written all the same, unless it is quiet.
    """
    from mummergpu.runtime.progress import Messages, Progress

    stream = sys.stderr
    on_terminal = stream.isatty()
    is_shown = not hidden and (on_terminal or verbose)
    none = Messages(None if quiet else stream)
    with closing(Progress(stream, on_terminal) if is_shown else none) as progress:
        yield progress
