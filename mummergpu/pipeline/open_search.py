"""An index with the backend that searches it: for one run, or kept in memory for many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mummergpu.index.reference_index import BuildWork, ReferenceIndex
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import Backend, RowFormat
from mummergpu.matching.options import SearchOptions, Uniqueness
from mummergpu.matching.search import UNBOUNDED, BlockSearch
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.progress import PageProgress

Plan = TypeVar("Plan", bound=ReferenceIndex[Any])


@dataclass
class KeptIndex(Generic[Plan]):
    """The plan of an index, with its pages if they stay in memory together.

    Attributes
    ----------
    plan : KmerIndex, MinimizerIndex or TreeIndex
        The plan.
    pages : list or None
        The pages of the only group, once they are built or opened; None if there are several
        groups.
    lock : threading.RLock
        Held while pages are built or opened.
    """

    plan: Plan
    pages: list[Any] | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def has_one_group(self) -> bool:
        """Whether all pages are in memory together, so that searches can share them."""
        return len(self.plan.groups) == 1

    def bring_in(self, work: BuildWork) -> list[Any]:
        """Return the pages of the only group, built or opened once."""
        with self.lock:
            if self.pages is None:
                self.pages = self.plan.load_pages(self.plan.groups[0], work)
            return self.pages


@dataclass
class OpenSearch:
    """A backend that searches an index for matches of one minimum length.

    Attributes
    ----------
    index : ReferenceIndex
        The index.
    backend : Backend
        The backend.
    search_length : int
        The fewest bases of a match that the backend finds.
    kept : KeptIndex or None
        The same index if it serves other searches, too; None for an index of one run.
    is_loaded : bool
        Whether the backend has the pages of the only group of a kept index.
    lock : threading.RLock
        Held while pages are loaded; and during a search, if there are several groups.
    """

    index: ReferenceIndex[Any]
    backend: Backend[Any]
    search_length: int
    kept: KeptIndex[Any] | None = None
    is_loaded: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)

    def load_group(
        self, number: int, context: RunContext, ready: PageProgress | None = None
    ) -> None:
        """Load a group of pages into the backend, unless it has it.

        `ready` learns which pages are built.
        """
        with self.lock:
            if self.is_loaded:
                return
            # Not kept: a circle of references would hold the index until a garbage collection.
            work = context.build_work(ready)
            if self.kept is not None and self.kept.has_one_group:
                pages = self.kept.bring_in(work)
            else:
                # Two groups together would not fit into memory.
                self.backend.release_pages()
                pages = self.index.load_pages(self.index.groups[number], work)
            self.backend.load_pages(pages, self.search_length)
            self.is_loaded = self.kept is not None and self.kept.has_one_group

    def block_search(
        self,
        options: SearchOptions,
        row_format: RowFormat | None = None,
        tell: Callable[[QueryBlock, int], None] = lambda block, bases: None,
        max_rows: int = UNBOUNDED,
    ) -> BlockSearch:
        """Return what searches a block of queries on the pages that are loaded.

        `max_rows` is the most matches of a part of a long query to hold, if the options let others
        than unique ones be left out.
        """
        is_bounded = max_rows < UNBOUNDED and options.uniqueness is not Uniqueness.ALL
        codes, strands = self.index.reference.codes, options.strands
        lengths = options.minimum_length, self.search_length
        unique_rows = max_rows if is_bounded else None
        return BlockSearch(
            self.backend, codes, strands, *lengths, row_format, tell, unique_rows=unique_rows
        )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Let no other search change the pages, if a search has to change them."""
        if self.kept is not None and self.kept.has_one_group:
            yield
            return
        with self.lock:
            yield
