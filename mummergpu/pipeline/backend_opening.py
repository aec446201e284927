"""Opens the backend of a run while the main thread reads the reference."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final

from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.open_backend import open_backend
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats

THREADS_AT_DEVICE: Final = 4
"""The threads that wait for a device at any time: one for each block that it searches at once, and
one for the next block."""


def start_to_open(
    stack: ExitStack,
    executor: ThreadPoolExecutor,
    kind: KmerOptions | TreeOptions,
    device: DeviceOptions,
    stats: Stats,
    notice: Callable[[str], None],
    max_block_bases: int = LARGEST_BLOCK,
) -> Future[Backend[Any]]:
    """Open the backend in a thread: a device takes as long as reading a reference.

    Parameters
    ----------
    stack : contextlib.ExitStack
        At its end the backend is closed, and the executor starts no more tasks.
    executor : concurrent.futures.ThreadPoolExecutor
        The threads of the run.
    kind : KmerOptions or TreeOptions
        The kind of index to search, and its options.
    device : DeviceOptions
        The options of the backend.
    stats : Stats
        Collects counts, bytes and times.
    notice : callable
        Receives progress messages.
    max_block_bases : int
        The most bases of a block of queries that a device searches at once.

    Returns
    -------
    concurrent.futures.Future of Backend
        It also holds the error if the backend cannot be opened.
    """
    opening = executor.submit(open_backend, kind, device, stats, notice, max_block_bases)
    stack.callback(_close_if_opened, opening)
    # After a failure, do not wait for the tasks that are still running.
    stack.callback(executor.shutdown, wait=False, cancel_futures=True)
    return opening


def worker_count(device: DeviceOptions, threads: int) -> int:
    """Return how many threads work on blocks if so many processors shall be busy.

    Parameters
    ----------
    device : DeviceOptions
        The options of the backend.
    threads : int
        The number of processors that the user grants.

    Returns
    -------
    int
        More than `threads` if a device probably searches the blocks: some threads wait for it.
    """
    if device.backend != "cpu":
        from mummergpu.cuda.driver import driver_facts

        if driver_facts().devices:
            return threads + THREADS_AT_DEVICE
    return threads


def _close_if_opened(opening: Future[Backend[Any]]) -> None:
    """Close a backend that a thread has opened, unless it failed to."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
