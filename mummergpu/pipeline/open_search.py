"""Opens the reference or its index file, and the backend, for one run or for many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.index.reference_index import BuildWork, ReferenceIndex
from mummergpu.index.verification import verify_for_run
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference, read_reference, refuse_proteins
from mummergpu.matching.backends.interface import Backend, RowFormat
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK
from mummergpu.matching.open_backend import open_backend
from mummergpu.matching.options import DeviceOptions, SearchOptions, Uniqueness
from mummergpu.matching.search import UNBOUNDED, BlockSearch
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.options import RunOptions
from mummergpu.pipeline.progress import PageProgress
from mummergpu.runtime.progress import Phase, Work

THREADS_AT_DEVICE: Final = 4
"""The threads that wait for a device at any time: one for each block that it searches at the same
time, and one for the next block."""


def start_to_open(
    context: RunContext,
    stack: ExitStack,
    kind: KmerOptions | TreeOptions,
    device: DeviceOptions,
    max_block_bases: int = LARGEST_BLOCK,
) -> Future[Backend[Any]]:
    """Open the backend in a thread: opening a device takes as long as reading a reference.

    The stack closes the backend, and ends the executor of the context. `max_block_bases` is the
    size of the largest block that a device searches at once.
    """
    executor = context.executor
    arguments = kind, device, context.stats, context.notice, max_block_bases
    opening = executor.submit(open_backend, *arguments)
    stack.callback(_close_if_opened, opening)
    # After a failure, do not wait for the tasks that are still running.
    stack.callback(executor.shutdown, wait=False, cancel_futures=True)
    return opening


def waiting_threads(device: DeviceOptions) -> int:
    """Return how many extra threads keep all processors busy while some wait for a device."""
    if device.backend != "cpu":
        from mummergpu.cuda.driver import driver_facts

        if driver_facts().devices:
            return THREADS_AT_DEVICE
    return 0


def _close_if_opened(opening: Future[Backend[Any]]) -> None:
    """Close a backend that a thread has opened, unless opening failed."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def open_source(
    options: RunOptions,
    context: RunContext,
    reading: ReadingThreads,
    wants_checksums: bool = False,
    *,
    any_letters: bool = False,
    maps_reads: bool = False,
) -> Reference | IndexFile:
    """Read the reference or open its index file; verify the index file if requested.

    `wants_checksums` and `any_letters` are those of `read_reference`. An index for which reads are
    mapped may have circular records, but no proteins.
    """
    context.progress.tell(Work(Phase.READING_REFERENCE))
    path = options.reference_path
    with context.stats.stage("ref_from_disk"):
        index = IndexFile(path) if is_index(path) else None
        if options.verify:
            verify_for_run(index, path, context.executor.map)
        if index is not None:
            if index.circular.size and not maps_reads:
                text = f"'{path}' is an index with circular records, to which reads are mapped only"
                raise OptionError("reference", text)
            if maps_reads:
                refuse_proteins(index.original)
            return index
        reference = read_reference(
            path,
            any_letters=any_letters,
            threads=reading,
            needs_base=False,
            wants_checksums=wants_checksums,
            warn=context.warn,
        )
    if reference.base_count == 0:
        context.warn(f"{path}: the reference holds no A, C, G or T, so nothing is found in it")
    return reference


def reference_of(source: Reference | IndexFile) -> Reference:
    """Return the reference as in its file, also for an index file."""
    return source.original if isinstance(source, IndexFile) else source


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
        The minimum length of a match that the backend finds, in bases.
    kept : KeptIndex or None
        The index, if it serves other searches, too; None for an index of one run.
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
        """Load a group of pages into the backend, unless it is loaded already.

        `ready` is notified of each built page.
        """
        with self.lock:
            if self.is_loaded:
                return
            # Not kept: a reference cycle would hold the index until a garbage collection.
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
        """Return the search of a block of queries on the loaded pages.

        `max_rows` limits the matches held for a part of a long query, if the options drop those
        that are not unique.
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
        """Lock the pages if a search has to change them."""
        if self.kept is not None and self.kept.has_one_group:
            yield
            return
        with self.lock:
            yield
