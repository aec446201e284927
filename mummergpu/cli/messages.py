"""What a run says on standard error, and what its report says about the run itself."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

import click

from mummergpu.cli.option_types import PROGRAM
from mummergpu.version import __version__

if TYPE_CHECKING:
    from mummergpu.pipeline.context import RunContext
    from mummergpu.runtime.progress import Messages
    from mummergpu.runtime.stats import Stats

COMPILATION: Final = "20 s"
"""About the longest time that everything that a search for matches needs takes to compile."""


class RunWords:
    """Writes lines about a run beside its progress; any thread may call all methods."""

    def __init__(self, progress: Messages, verbose: bool, quiet: bool) -> None:
        self._progress = progress
        self._verbose = verbose
        self._quiet = quiet

    def notice(self, text: str) -> None:
        """Write a line, if the user asks for more."""
        if self._verbose:
            self._progress.write_line(f"{PROGRAM}: {text}")

    def warn(self, text: str) -> None:
        """Write a warning, unless the user asks for errors only."""
        self.say(f"warning: {text}")

    def context(self, threads: int, stats: Stats) -> RunContext:
        """Return what a job works with, which tells these words."""
        from mummergpu.pipeline.context import RunContext

        return RunContext(threads, stats, self._progress, self.notice, self.warn)

    def say(self, text: str) -> None:
        """Write a line, unless the user asks for errors only."""
        if not self._quiet:
            self._progress.write_line(f"{PROGRAM}: {text}")


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


def new_stats(command: str, mode: str) -> Stats:
    """Return the statistics of a run that begins."""
    from mummergpu.runtime.stats import Stats

    stats = Stats()
    stats.set(
        version=__version__,
        command=command,
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        host=os.uname().nodename,
        mode=mode,
    )
    return stats


@cache
def announce_compilation(time: str = COMPILATION) -> None:
    """Print messages when this process begins to compile, and how far that is."""
    from mummergpu.runtime.jit import on_first_compilation

    def announce() -> None:
        _tell(f"compiling what is needed for the first time here (up to {time})")

    def go_on(functions: int, seconds: float) -> None:
        _tell(f"compiling: {functions:,} functions in {seconds:.0f} s so far")

    on_first_compilation(announce, go_on=go_on)


def _tell(text: str) -> None:
    # On a terminal the line replaces the progress line, which comes back below it.
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    click.echo(f"{start}{PROGRAM}: {text}", err=True)


def tell_cache_trouble(notice: Callable[[str], None]) -> None:
    """Report trouble with the folders of compiled code."""
    from mummergpu.runtime.compiled.store import on_cache_trouble

    on_cache_trouble(notice)
