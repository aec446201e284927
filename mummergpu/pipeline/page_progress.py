"""Tells how many pages of an index are ready."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from mummergpu.index.pages import Page
from mummergpu.runtime.progress import Phase, Work


class PageProgress:
    """Turns pages that become ready into progress; any thread may call all methods."""

    def __init__(
        self, tell: Callable[[Work], None], pages: Sequence[Page], writes: bool = False
    ) -> None:
        self._tell = tell
        self._writes = writes
        self._lock = threading.Lock()
        self._sizes = [page.owned_end - page.begin for page in pages]
        self._ready_count = 0

    def begin(self) -> None:
        """Record that no page is ready yet."""
        self.share_of_next(0.0)

    def share_of_next(self, share: float) -> None:
        """Record the share of the next page that is built, 0 to 1."""
        with self._lock:
            self._count(share)

    def page_is_ready(self) -> None:
        """Record that one more page is ready."""
        with self._lock:
            self._ready_count += 1
            if self._writes and self._ready_count == len(self._sizes):
                self._tell(Work(Phase.WRITING_INDEX))
            else:
                self._count(0.0)

    def end(self) -> None:
        """Record that all pages are ready, and written if they have to be."""
        with self._lock:
            self._count(0.0)

    def _count(self, share: float) -> None:
        count, sizes = self._ready_count, self._sizes
        # Several pages that are built at once have about the same size.
        bases = sum(sizes[:count]) + int(share * sum(sizes[count : count + 1]))
        numbers = (count, len(sizes))
        self._tell(Work(Phase.PAGES, numbers, bases, bases / max(1, sum(sizes))))
