"""Opens the backend of a run while the main thread reads the reference."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, Final

from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.open_backend import open_backend
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline.context import RunContext

THREADS_AT_DEVICE: Final = 4
"""The threads that wait for a device at any time: one for each block that it searches at once, and
one for the next block."""


def start_to_open(
    context: RunContext,
    stack: ExitStack,
    kind: KmerOptions | TreeOptions,
    device: DeviceOptions,
    max_block_bases: int = LARGEST_BLOCK,
) -> Future[Backend[Any]]:
    """Open the backend in a thread: a device takes as long as reading a reference.

    Parameters
    ----------
    context : RunContext
        Its executor starts no more tasks when the stack ends.
    stack : contextlib.ExitStack
        Closes the backend.
    kind : KmerOptions or TreeOptions
        The kind of index to search, and its options.
    device : DeviceOptions
        The options of the backend.
    max_block_bases : int
        The most bases of a block of queries that a device searches at once.

    Returns
    -------
    concurrent.futures.Future of Backend
        It also holds the error if the backend cannot be opened.
    """
    executor, told = context.executor, (context.stats, context.notice)
    opening = executor.submit(open_backend, kind, device, *told, max_block_bases)
    stack.callback(_close_if_opened, opening)
    # After a failure, do not wait for the tasks that are still running.
    stack.callback(executor.shutdown, wait=False, cancel_futures=True)
    return opening


def waiting_threads(device: DeviceOptions) -> int:
    """Return how many more threads keep all processors busy if some wait for a device."""
    if device.backend != "cpu":
        from mummergpu.cuda.driver import driver_facts

        if driver_facts().devices:
            return THREADS_AT_DEVICE
    return 0


def _close_if_opened(opening: Future[Backend[Any]]) -> None:
    """Close a backend that a thread has opened, unless it failed to."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
