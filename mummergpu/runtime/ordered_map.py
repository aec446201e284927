"""Work on many items side by side, take the results in order, keep few in memory."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_END: Final = object()


def ordered_map(
    executor: Executor,
    window: int,
    items: Iterable[Item],
    work: Callable[[Item], Result | None],
    take: Callable[[Result], None],
    cut: Callable[[Item], Iterable[Item]] | None = None,
) -> None:
    """Apply `work` to all items in a pool of threads and `take` to the results in order.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Runs `work`.
    window : int
        The most items that are under way, or done and not yet taken.
    items : iterable
        Drawn from by the calling thread when there is room in the window.
    work : callable
        Returns a result, or None to have the item cut into smaller ones.
    take : callable
        Called by the calling thread, in the order of the items.
    cut : callable, optional
        Returns the items that take the place of one whose result was None.

    Raises
    ------
    Exception
        The first that `items`, `work` or `take` raises; nothing further is started.
    """
    under_way: deque[tuple[Item, Future[Result | None]]] = deque()

    def submit(item: Item) -> tuple[Item, Future[Result | None]]:
        return item, executor.submit(work, item)

    def take_first() -> None:
        item, future = under_way.popleft()
        result = future.result()
        if result is not None:
            take(result)
        elif cut is not None:
            under_way.extendleft(submit(part) for part in reversed(list(cut(item))))

    try:
        for item in items:
            under_way.append(submit(item))
            while len(under_way) >= window:
                take_first()
        while under_way:
            take_first()
    finally:
        for _, future in under_way:
            future.cancel()


class Prefetcher(Generic[Item]):
    """Draws items in a thread of its own, a few more than have been asked for.

    A context manager, and an iterator over the items. Whatever `items` raises is raised to
    whoever asks for the next item, after those before it. At the end of the block the thread
    has ended.

    Parameters
    ----------
    items : iterable
        Drawn from by the thread, from the start of the block on.
    most : int
        How many items wait at most.
    """

    def __init__(self, items: Iterable[Item], most: int) -> None:
        self._items = items
        self._waiting: queue.Queue[tuple[object, BaseException | None]] = queue.Queue(most)
        self._stopped = False
        self._thread = threading.Thread(target=self._draw, name="read", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped = True
        while self._thread.is_alive():
            # Make room for what the thread is about to hand over, so that it sees the end.
            try:
                self._waiting.get(timeout=0.01)
            except queue.Empty:
                continue
        self._thread.join()

    def __iter__(self) -> Iterator[Item]:
        while True:
            item, error = self._waiting.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item  # type: ignore[misc]

    def _draw(self) -> None:
        try:
            for item in self._items:
                if self._stopped:
                    return
                self._waiting.put((item, None))
            self._waiting.put((_END, None))
        except BaseException as error:
            self._waiting.put((_END, error))
