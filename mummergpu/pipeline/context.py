"""The context of a run besides its options: threads, statistics, progress and messages."""

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
"""The blocks in work beyond one per thread: the minimum, and the number per thread. A finished
block waits for the block before it, while others are in work."""

Words = Callable[[str], None]
"""Receives a line for the user; any thread may call it."""


@frozen
class RunContext:
    """The threads of a run, its statistics, progress and messages.

    Attributes
    ----------
    threads : int
        The number of processors that the run may use.
    stats : Stats
        Collects counts, bytes and times.
    progress : Messages
        Shows the progress of the run.
    notice : callable
        Receives messages that only -v shows.
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
        """Runs the tasks of the run; the job that opens the context shuts it down."""
        return ThreadPoolExecutor(self.threads + self.waiting_threads, "mummergpu")

    @cached_property
    def urgent_executor(self) -> ThreadPoolExecutor:
        """Runs what others wait for, however long the queue of `executor` is."""
        return ThreadPoolExecutor(self.threads, "urgent")

    def shut_down(self) -> None:
        """End the threads; what they have not begun is not done."""
        self.executor.shutdown(cancel_futures=True)
        self.urgent_executor.shutdown(cancel_futures=True)

    @property
    def window(self) -> int:
        """The number of blocks in work at once."""
        ahead = max(TASKS_AHEAD, int(TASKS_AHEAD_OF_THREAD * self.threads))
        return self.threads + self.waiting_threads + ahead

    def build_work(self, ready: PageProgress | None = None) -> BuildWork:
        """Return the resources to build pages with; `ready` is notified of each built page."""
        # Imported here: searches without an index need not wait for it.
        from mummergpu.index.reference_index import BuildWork

        if ready is None:
            return BuildWork(self.executor, self.threads, self.stats, lambda: None)
        report = ready.page_is_ready, ready.share_of_next
        return BuildWork(self.executor, self.threads, self.stats, *report)
