"""Work on many items side by side, take the results in order, keep few in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def work_in_order(
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
