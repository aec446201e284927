"""What a run says on standard error, and what its report says about the run itself."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from mummergpu.cli.option_types import PROGRAM
from mummergpu.version import __version__

if TYPE_CHECKING:
    from mummergpu.pipeline.context import RunContext
    from mummergpu.runtime.progress import Messages
    from mummergpu.runtime.stats import Stats


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
