"""Processes many items in parallel, returns the results in order, and keeps few in memory."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import closing
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_END: Final = object()


class _Parts(Generic[Result]):
    """The futures of the parts of an item that was cut, in order."""

    def __init__(self, futures: list[Future[Result | _Parts[Result] | None]]) -> None:
        self.futures = futures


class _Worker(Generic[Item, Result]):
    """Processes an item in a thread of the pool, or submits the parts it must be cut into."""

    def __init__(
        self,
        executor: Executor,
        work: Callable[[Item], Result | None],
        cut: Callable[[Item], Iterable[Item]] | None,
    ) -> None:
        self._executor = executor
        self._work = work
        self._cut = cut
        self.is_closed = False
        self.waiting: deque[None] = deque()
        """An element for each item that no thread has begun with."""

    def submit(self, item: Item) -> Future[Result | _Parts[Result] | None]:
        self.waiting.append(None)
        return self._executor.submit(self._run, item)

    def _run(self, item: Item) -> Result | _Parts[Result] | None:
        self.waiting.pop()
        # The parts of an item that was cut may start after the iterator was closed.
        if self.is_closed:
            return None
        result = self._work(item)
        if result is None and self._cut is not None:
            # Parts begin at once: if they waited for their turn, items that are all cut would be
            # processed one after the other.
            return _Parts([self.submit(part) for part in self._cut(item)])
        return result


def ordered_results(
    executor: Executor,
    window: int,
    items: Iterable[Item],
    work: Callable[[Item], Result | None],
    cut: Callable[[Item], Iterable[Item]] | None = None,
    at_once: int = 1,
) -> Generator[Result]:
    """Apply `work` to all items in a pool of threads, and yield the results in order.

    At most `window` items are in work, or done but not yet yielded; the calling thread draws the
    next one when the window has space. `work` returns None if an item must be split into the
    smaller ones that `cut` returns. The first exception that `items` or `work` raises is raised
    here; no further work starts then, and none if the iterator is closed.

    If the window is full, the calling thread sleeps until `at_once` items are done: to wake for
    each short one takes longer than what it does then. A window must have room for the items that
    threads work at meanwhile.
    """
    under_way: deque[Future[Result | _Parts[Result] | None]] = deque()
    worker = _Worker(executor, work, cut)

    def finish_first() -> Result | None:
        future = under_way.popleft()
        try:
            result = future.result()
        finally:
            # The future holds its exception, which holds this frame: a circle, and with it all
            # memory of the run, until a garbage collection.
            del future
        if isinstance(result, _Parts):
            under_way.extendleft(reversed(result.futures))
            return None
        return result

    try:
        for item in items:
            under_way.append(worker.submit(item))
            if len(under_way) >= window > at_once > 1:
                wait((under_way[at_once - 1],))
            # Done results are taken early, for their memory, only while another item than this one
            # waits for a thread: else threads would wait for their next item meanwhile.
            while len(under_way) >= window or (
                len(worker.waiting) > 1 and under_way and under_way[0].done()
            ):
                if (result := finish_first()) is not None:
                    yield result
        while under_way:
            if (result := finish_first()) is not None:
                yield result
    finally:
        worker.is_closed = True
        for future in under_way:
            future.cancel()


def ordered_map(
    executor: Executor,
    window: int,
    items: Iterable[Item],
    work: Callable[[Item], Result | None],
    take: Callable[[Result], None],
    cut: Callable[[Item], Iterable[Item]] | None = None,
) -> None:
    """Apply `work` to all items as `ordered_results` does, and `take` to the results in order.

    The calling thread takes them. The first exception that `items`, `work` or `take` raises is
    raised; no further work starts.
    """
    results = ordered_results(executor, window, items, work, cut)
    with closing(results):
        for result in results:
            take(result)
            del result


_LONGEST_START: Final = 1.0
"""The seconds within which a thread begins to run, if it does at all."""


class Prefetcher(Generic[Item]):
    """Draws items ahead of the consumer, in a thread of its own; at most `most` items wait.

    It is a context manager and an iterator over the items, which the thread draws from the start of
    the ``with`` block. If `items` raises an exception, the iterator raises it after the items
    before it. The thread ends before the ``with`` block does.
    """

    def __init__(self, items: Iterable[Item], most: int) -> None:
        self._items = items
        self._waiting: queue.Queue[tuple[object, BaseException | None]] = queue.Queue(most)
        self._stopped = False
        self._is_starting = False
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="read", daemon=True)

    def __enter__(self) -> Self:
        self._is_starting = True
        self._thread.start()
        self._is_starting = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped = True
        if self._is_starting:
            # An interrupt came meanwhile: the thread may run or not.
            self._begun.wait(_LONGEST_START)
        while self._thread.is_alive():
            # Remove an item from the queue, so that the thread can add its own and then see the
            # end.
            try:
                self._waiting.get(timeout=0.01)
            except queue.Empty:
                continue

    def limit(self, most: int) -> None:
        """Let at most `most` items wait from now on; more that do already stay."""
        self._waiting.maxsize = most

    def __iter__(self) -> Iterator[Item]:
        while True:
            item, error = self._waiting.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item  # type: ignore[misc]

    def _draw(self) -> None:
        self._begun.set()
        try:
            for item in self._items:
                if self._stopped:
                    break
                self._waiting.put((item, None))
            if isinstance(self._items, Generator):
                # Here, since it may hold what only this thread can give back.
                self._items.close()
            self._waiting.put((_END, None))
        except BaseException as error:
            self._waiting.put((_END, error))
