"""The threads that decompress and parse pieces of the input for the thread that reads it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from mummergpu.runtime.closing import Closing

MOST_THREADS: Final = 8
"""More threads would wait for the one that reads the file and orders their results."""


class ReadingThreads(Closing):
    """A pool of threads for pieces of input files.

    It is a context manager. A thread starts when there is a piece for it, so small files need none.

    Attributes
    ----------
    window : int
        The number of pieces in work at once, so that no thread waits.
    can_share : bool
        Whether there is more than one thread to share work for which the search waits.
    executor : concurrent.futures.ThreadPoolExecutor
        Runs the work, which must not wait for other work; only `close` may shut it down.
    has_many : bool
        Whether to work on pieces in parallel. With two processors, which are busy with the search,
        passing the pieces on would only cost time.
    """

    def __init__(self, threads: int) -> None:
        count = min(threads, MOST_THREADS)
        self.window = count + 1
        self.has_many = count > 2
        self.can_share = count > 1
        self.executor = ThreadPoolExecutor(count, thread_name_prefix="read-piece")

    def close(self) -> None:
        """Drop the work that has not begun, and wait until the threads have ended."""
        self.executor.shutdown(wait=True, cancel_futures=True)
