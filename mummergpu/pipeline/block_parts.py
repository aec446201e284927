"""Cut blocks of queries into parts whose matches fit into memory.

Large blocks keep threads out of each other's way: between two blocks a thread runs Python code, for
which all threads share one lock. But a block with too many matches is searched in vain, and once
more in halves. How many matches the queries have shows while they are searched.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import WorkSizes

SAFETY: Final = 4.0
"""How many times as many matches as expected must fit."""

FORGETTING: Final = 0.75
"""What is left of the highest density when a part with fewer matches has been searched."""


class BlockParts:
    """Cuts blocks into parts, by the number of matches of the parts before; any thread may add."""

    def __init__(self, sizes: WorkSizes) -> None:
        self._trial_bases = sizes.trial_bases
        self._most_rows = sizes.most_rows
        self._density: float | None = None
        self._lock = threading.Lock()

    def add(self, bases: int, rows: int) -> None:
        """Take into account how many matches a part had."""
        density = rows / max(bases, 1)
        with self._lock:
            kept = 0.0 if self._density is None else self._density * FORGETTING
            self._density = max(density, kept)

    def parts(self, block: QueryBlock) -> Iterator[QueryBlock]:
        """Yield the queries of a block in parts, in order; no query is cut."""
        while block.base_count > self.most_bases() and block.can_be_cut:
            first, block = block.split_at(self.most_bases())
            yield first
        yield block

    def most_bases(self) -> int:
        """Return about how many bases a part should have now."""
        density = self._density
        if density is None:
            return self._trial_bases
        return max(self._trial_bases, int(self._most_rows / (SAFETY * density + 1e-9)))
