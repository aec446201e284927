"""What a run works with besides its options: threads, statistics, progress and messages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from mummergpu.pipeline.progress import PageProgress
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.progress import Messages
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import say_nothing

if TYPE_CHECKING:
    from mummergpu.index.reference_index import BuildWork

TASKS_AHEAD: Final = 2
TASKS_AHEAD_OF_THREAD: Final = 0.5
"""The blocks in work at once beyond one for each thread: at least, and for each thread. A block
that is done waits for the block before it, while others are in work."""

Words = Callable[[str], None]
"""Receives a line for the user; any thread may call it."""


@frozen
class RunContext:
    """The threads of a run, its statistics, progress and messages.

    Attributes
    ----------
    threads : int
        The processors that the user grants.
    stats : Stats
        Collects counts, bytes and times.
    progress : Messages
        Shows how far the run is.
    notice : callable
        Receives what is shown with -v.
    warn : callable
        Receives warnings.
    waiting_threads : int
        The threads beyond `threads` that wait for a device at any time.
    """

    threads: int = 1
    stats: Stats = field(default_factory=Stats)
    progress: Messages = field(default_factory=lambda: Messages(None))
    notice: Words = say_nothing
    warn: Words = say_nothing
    waiting_threads: int = 0

    @cached_property
    def executor(self) -> ThreadPoolExecutor:
        """Runs the tasks of the run; who opens the context for a job shuts it down."""
        return ThreadPoolExecutor(self.threads + self.waiting_threads, "mummergpu")

    @property
    def window(self) -> int:
        """The number of blocks in work at once."""
        ahead = max(TASKS_AHEAD, int(TASKS_AHEAD_OF_THREAD * self.threads))
        return self.threads + self.waiting_threads + ahead

    def build_work(self, ready: PageProgress | None = None) -> BuildWork:
        """Return the resources to build pages with; `ready` learns which are built."""
        # Searches without an index do not wait for this import.
        from mummergpu.index.reference_index import BuildWork

        if ready is None:
            return BuildWork(self.executor, self.threads, self.stats, lambda: None)
        report = ready.page_is_ready, ready.share_of_next
        return BuildWork(self.executor, self.threads, self.stats, *report)
