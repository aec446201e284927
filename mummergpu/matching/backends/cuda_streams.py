"""The common part of the two ``cuda`` backends: streams, programs, and blocks that do not fit."""

from __future__ import annotations

import queue
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from mummergpu.cuda.device import Buffer, Device, DeviceMemoryError, Program
from mummergpu.cuda.kernel_cache import KernelCache, Programs
from mummergpu.cuda.pinned_staging import Uploader
from mummergpu.cuda.program import ProgramSource
from mummergpu.errors import BackendError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import Backend, WorkSizes
from mummergpu.matching.backends.memory_plan import LARGEST_BLOCK, divide_memory
from mummergpu.matching.backends.stream_searcher import (
    Consumer,
    ContextType,
    HostColumns,
    Result,
    StreamSearcher,
)
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

PageType = TypeVar("PageType")

LONGEST_MATCH: Final = 0xFFFFFFFF
"""The largest minimum match length that kernels take: a search with a larger one finds nothing."""

STREAMS: Final = 3
"""The blocks processed at once: one is copied in, one searched, one copied out."""

PART_BASES: Final = 1 << 23
MAX_ROWS: Final = 1 << 24


class CudaStreamsBackend(Backend[PageType], Generic[PageType, ContextType]):
    """Searches blocks of queries on a GPU; many threads may call it at once.

    Parameters
    ----------
    notice : callable
        Receives progress messages, shown with -v.
    memory : int or None
        The most bytes of device memory to use; None for nearly all free memory.
    max_block_bases : int
        The most bases of a block of queries; fewer if memory is short.
    threads : int
        The most threads that copy pages to the device (`pinned_staging.Uploader`).
    closes_device : bool
        Whether the device is closed with the backend, because nothing else uses it.

    Attributes
    ----------
    page_memory : int
        The most bytes that pages, and the other data of a backend, may take together.

    Raises
    ------
    BackendError
        If the device has too little memory.
    """

    name = "cuda"
    kernels: tuple[str, ...] = ()
    """The kernels whose resources are reported."""

    searcher: type[StreamSearcher[ContextType, Any]]

    piece_bases: int
    """The number of starts that a piece of a long query owns."""

    long_query: int
    """A query of more bases than this is cut into pieces."""

    def __init__(
        self,
        device: Device,
        cache: KernelCache,
        stats: Stats,
        notice: Callable[[str], None],
        memory: int | None = None,
        max_block_bases: int = LARGEST_BLOCK,
        threads: int = 1,
        closes_device: bool = False,
    ) -> None:
        self.device = device
        self._closes_device = closes_device
        self.cache = cache
        self._stats = stats
        self._notice = notice
        self._programs = Programs(device, cache)
        self._buffers: list[Buffer] = []
        self._context: ContextType | None = None
        self._searchers: list[StreamSearcher[ContextType, Any]] = []
        # None ends a wait that would never end, because the backend is closed.
        self._idle: queue.SimpleQueue[StreamSearcher[ContextType, Any] | None] = queue.SimpleQueue()
        with device.current():
            free, total = device.memory()
            plan = divide_memory(free, memory, STREAMS, max_block_bases)
            self._stream = device.new_stream()
            self._uploader = Uploader(device, self._stream, threads)
            for _ in range(STREAMS):
                self._searchers.append(self.searcher(device, plan.search_bytes, stats))
                self._idle.put(self._searchers[-1])
        self.sizes = WorkSizes(
            plan.block_bases,
            self.piece_bases,
            self.long_query,
            min(PART_BASES, plan.block_bases),
            MAX_ROWS,
            plan.block_bases,
        )
        self.page_memory = plan.tree_bytes
        stats.set(
            device=device.name,
            architecture=device.architecture,
            device_memory=total,
            device_library=device.library,
        )
        notice(
            f"device {device.name} ({device.architecture}) through {device.library}, "
            f"{free / 2**30:.1f} GiB free; "
            f"{STREAMS} blocks of {plan.block_bases:,} bases at once"
        )

    def memory_for_pages(self, reference_bases: int) -> int:
        """Return the most bytes of pages that fit the device (`interface.Backend`)."""
        return self.page_memory

    @abstractmethod
    def _let_go(self) -> None:
        """Free the memory of the pages."""

    def find_mems(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs between the loaded pages and a block (`interface.Backend.find_mems`).

        `BackendError` is raised if the MEMs of a single query do not fit the device's memory, the
        device fails, or the backend was closed.
        """
        with self._idle_searcher() as searcher:
            return self._consume(searcher, block, max_rows, HostColumns(strands))

    def release_pages(self) -> None:
        """Release the pages and their memory."""
        with self.device.current():
            self._let_go()

    def close(self) -> None:
        """Wait for running searches, then free all memory on the device."""
        for _ in self._searchers:
            self._idle.get()
        self._idle.put(None)
        try:
            with self.device.current():
                self._let_go()
                for searcher in self._searchers:
                    searcher.free()
                self._searchers.clear()
                self._stream.free()
        finally:
            if self._closes_device:
                self.device.close()

    @contextmanager
    def _idle_searcher(self) -> Iterator[StreamSearcher[ContextType, Any]]:
        """Wait for a searcher that is idle, and make the device current for its work."""
        searcher = self._idle.get()
        if searcher is None:
            self._idle.put(None)
            raise BackendError("cuda", "the backend is closed")
        try:
            with self.device.current():
                yield searcher
        finally:
            self._idle.put(searcher)

    def _consume(
        self,
        searcher: StreamSearcher[ContextType, Any],
        block: QueryBlock,
        max_rows: int,
        consumer: Consumer[Any, Result],
    ) -> Result | None:
        """Return a consumer's result for a block, in halves if it does not fit the device."""
        assert self._context is not None
        try:
            return searcher.use_matches(self._context, block, max_rows, consumer)
        except DeviceMemoryError as error:
            searcher.release()
            if block.query_count == 1 or not consumer.may_be_cut:
                consumer.refuse(block, error)
                return None
            self._notice(f"{block.query_count:,} queries do not fit the device: {error}; halving")
        one, other = block.halves()
        first = self._consume(searcher, one, max_rows, consumer)
        if first is None:
            return None
        second = self._consume(searcher, other, max_rows - consumer.count(first), consumer)
        return None if second is None else consumer.join(first, second)

    def program(self, source: ProgramSource) -> Program:
        """Return a program, compiled and loaded (`Programs.load`)."""
        if source not in self._programs:
            with self._stats.stage("kernels_compiled"):
                self._programs.load(source)
            self._stats.set(
                kernel_cache_hits=self.cache.hits,
                kernel_cache_misses=self.cache.misses,
                kernel_cache_repaired=self.cache.repaired,
            )
        return self._programs.load(source)

    def _program(self, source: ProgramSource) -> Program:
        """Return the program of the search, whose kernels are reported."""
        program = self.program(source)
        for kernel in self.kernels:
            self._stats.set_resources(kernel, vars(program.resources(kernel)))
        return program
