"""Searches an index that stays in memory, and its minimizers for unique matches."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from mummergpu.api.log import LOG, log_compiling
from mummergpu.api.query_blocks import QuerySource
from mummergpu.errors import BackendError, OptionError
from mummergpu.index import kmer_index, kmer_plan, minimizer_index
from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.minimizer_index import MinimizerIndex
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.index.reference_index import StorableIndex
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.mapping.options import MappingOptions
from mummergpu.matching.backends.interface import Backend, ResidentBackend
from mummergpu.matching.open_backend import open_backend, open_cpu_backend
from mummergpu.matching.options import DeviceOptions, SearchOptions, Uniqueness
from mummergpu.matching.search import UNBOUNDED
from mummergpu.pipeline.backend_choice import processor_is_faster
from mummergpu.pipeline.block_search_loop import MOST_ROWS_IF_LIMITED, BlockSearchLoop
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.mapping_search import pages_of_first_pass
from mummergpu.pipeline.match import filter_mems
from mummergpu.pipeline.open_search import KeptIndex, OpenSearch
from mummergpu.pipeline.plan import plan_storable_index
from mummergpu.pipeline.progress import QueryProgress
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems
from mummergpu.sequence.strand import Strand

if TYPE_CHECKING:
    from mummergpu.matching.device_columns import DeviceColumns


class KeptMinimizers:
    """Decides which searches look up minimizers; one thread calls it at a time.

    One table serves every minimum match length from that of the index upwards.
    """

    def __init__(self, reference: Reference, options: IndexOptions) -> None:
        self._reference = reference
        self._options = options
        self._kept: KeptIndex[MinimizerIndex] | None = None
        self._likeness: tuple[float, ...] | None = None

    def index_for(
        self, kmers: KmerIndex, search: SearchOptions, query_bases: int | None
    ) -> KeptIndex[MinimizerIndex] | None:
        """Return the minimizers if a search on the processor should look them up, else None.

        It should if only unique matches are wanted, the index need not be small, and the k-mer
        tables are not expected to be faster. The time to build the table of minimizers counts
        unless an earlier search has built it.
        """
        kind, length = self._options.kind, self._options.minimum_length
        is_unique = search.uniqueness is not Uniqueness.ALL and search.minimum_length >= length
        if not is_unique or not isinstance(kind, KmerOptions) or kind.purpose == "memory":
            return None
        strands = len(search.strands)
        searched = strands * kmer_index.UNKNOWN_QUERY_BASES if query_bases is None else query_bases
        bases = self._reference.codes.size
        if self._likeness is None and searched >= kmer_index.BASES_WORTH_A_SAMPLE:
            self._likeness = kmer_index.kmer_likeness(self._reference.padded_codes)
        job = kmer_plan.KmerJob(
            *(bases, search.minimum_length, searched), is_kept=True, likeness=self._likeness or ()
        )
        # Its tables are in memory.
        by_kmers = kmer_plan.KmerCost(0.0, kmer_plan.expected_cost(job, kmers.sampling).search)
        if self._kept is not None:
            window = self._kept.plan.window
            cost = minimizer_index.expected_cost(
                self._reference.base_count, searched // strands, window
            )
            return (
                self._kept if cost.search <= minimizer_index.kept_seconds(by_kmers, bases) else None
            )
        budget = MemoryBudget.of(self._options.memory)
        if budget.is_limit:
            tables = max(kmers.peak_bytes(group, 1) for group in kmers.groups)
            budget = replace(budget, host=max(0, budget.host - tables))
        plan = MinimizerIndex.plan(
            *(self._reference, replace(kind, unique_strands=strands), length, budget, searched),
            by_kmers,
        )
        self._kept = None if plan is None else KeptIndex(plan)
        return self._kept


_REST: Final = "'match' and 'stream' find these matches, and return them on the host"

FoundBlock = tuple[QueryBlock, BlockMems]


class Engine:
    """Searches one reference any number of times, also from several threads at once."""

    def __init__(self, source: Reference | IndexFile, options: IndexOptions) -> None:
        log_compiling()
        self.source = source
        self.reference = source.reference if isinstance(source, IndexFile) else source
        self.options = options
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._kept: dict[int, KeptIndex[StorableIndex[Any]]] = {}
        self._open: dict[tuple[str, int], OpenSearch] = {}
        self._minimizers = KeptMinimizers(self.reference, options)
        self._is_closed = False

    def prepare(self, threads: int) -> None:
        """Build or open the pages before the first search."""
        context = RunContext(threads)
        with context.executor:
            kept = self.kept_index(self.options.minimum_length)
            if kept.has_one_group:
                kept.bring_in(context.build_work())

    def device_for(
        self, device: DeviceOptions, query_bases: int | None, minimum_length: int
    ) -> DeviceOptions:
        """Return the device for queries; `query_bases` counts all searched strands."""
        is_open = any(one.backend.name != "cpu" for one in self._open.values())
        if device.backend != "auto" or is_open or query_bases is None:
            return device
        if not isinstance(self.options.kind, KmerOptions):
            return device
        work = self.reference.codes.size, minimum_length, query_bases, device.threads
        faster = processor_is_faster(*work, has_index=True)
        return replace(device, backend="cpu") if faster else device

    def block_bases(self, device: DeviceOptions, minimum_length: int) -> int:
        """Return the approximate bases of a block of queries: few enough to search it uncut."""
        return self._opened(device, minimum_length).backend.sizes.first_batch_bases

    def find(
        self, queries: QuerySource, options: SearchOptions, device: DeviceOptions
    ) -> Generator[FoundBlock]:
        """Search queries, and yield them in blocks, each with its matches, in order."""
        bases = queries.base_count
        searched = None if bases is None else bases * len(options.strands)
        device = self.device_for(device, searched, options.minimum_length)
        block_bases = self.block_bases(device, options.minimum_length)

        def found() -> Generator[FoundBlock]:
            with queries.blocks(block_bases, device.threads) as blocks:
                yield from self._search(blocks, options, device, searched)

        return found()

    def _search(
        self,
        blocks: Iterator[QueryBlock],
        options: SearchOptions,
        device: DeviceOptions,
        query_bases: int | None,
    ) -> Generator[FoundBlock]:
        opened = self._opened_for(device, options, query_bases)
        context = RunContext(device.threads)

        def prepare(block: QueryBlock, mems: BlockMems) -> FoundBlock:
            return block, filter_mems(mems, options.uniqueness, context.stats)

        done = QueryProgress(context.progress.tell, len(options.strands))
        is_limited = self.options.memory is not None and opened.backend.name == "cpu"
        max_rows = MOST_ROWS_IF_LIMITED if is_limited else UNBOUNDED
        search = opened.block_search(options, max_rows=max_rows)
        try:
            with opened.exclusive():
                yield from BlockSearchLoop(search, context, done, cuts_blocks=False).results(
                    len(opened.index.groups),
                    lambda number: opened.load_group(number, context),
                    blocks,
                    prepare,
                )
        finally:
            # The pages must stay until running searches, which read them, have ended.
            context.executor.shutdown(wait=True, cancel_futures=True)

    def find_on_device(
        self, queries: QuerySource, options: SearchOptions, device: DeviceOptions
    ) -> tuple[list[QueryBlock], DeviceColumns]:
        """Search queries, and leave the columns of their matches on a GPU.

        The queries stay on the host: in one block if all of them are in memory.

        Raises
        ------
        OptionError, BackendError
            If the search takes several steps, whose matches only the host can merge; or if there
            is no GPU, or it has too little memory.
        """
        _refuse_several_steps(self.options, options)
        kept = [] if queries.block is None else [queries.block]
        block_bases = self.block_bases(device, options.minimum_length)

        def keep_each(blocks: Iterator[QueryBlock]) -> Iterator[QueryBlock]:
            for block in blocks:
                if queries.paths is not None:
                    kept.append(block)
                yield block

        with queries.blocks(block_bases, device.threads) as blocks:
            opened = self._opened(device, options.minimum_length)
            _refuse_several_parts(opened.index.groups)
            self._load(opened, device.threads)
            return kept, _columns_of(opened.backend, keep_each(blocks), options.strands)

    @contextmanager
    def lend_search(
        self, device: DeviceOptions, options: MappingOptions
    ) -> Iterator[tuple[Backend[Any], Sequence[Any] | None]]:
        """Lend a backend to map reads with; it stays open and keeps its pages loaded.

        Also yield all pages of the index: the backend has loaded those of the first pass, and other
        searches may run at the same time. The pages are None if there are several groups: the
        caller then loads one group after the other, and other searches wait.
        """
        length = self.options.minimum_length
        if not self.kept_index(length).has_one_group:
            opened = self._opened(device, length)
            with opened.lock:
                yield opened.backend, None
            return
        opened = self._opened(device, options.seed_length)
        self._load(opened, device.threads)
        assert opened.kept is not None and opened.kept.pages is not None
        backend, pages = opened.backend, opened.kept.pages
        searched = pages_of_first_pass(pages, options, len(pages) == 1)
        if isinstance(backend, ResidentBackend):
            backend = backend.for_windows(searched[0], options.seed_length)
        else:
            # A new backend costs no time, and may skip k-mers that other searches need.
            backend = open_cpu_backend(self.options.kind, Stats())
            backend.load_pages(searched, options.seed_length)
        yield backend, pages

    def kept_index(self, minimum_length: int) -> KeptIndex[StorableIndex[Any]]:
        """Return the index that serves a minimum length.

        One table of k-mers serves every length from its own upwards; trees have a plan for each.
        """
        with self._lock:
            built_for = self.options.minimum_length
            is_kmer = isinstance(self.options.kind, KmerOptions)
            key = built_for if is_kmer else minimum_length
            if key not in self._kept:
                options = replace(self.options, minimum_length=key)
                plan = plan_storable_index(self.source, options, 1)
                if plan.memory_warning:
                    LOG.warning(plan.memory_warning)
                self._kept[key] = KeptIndex(plan)
            kept = self._kept[key]
            if isinstance(kept.plan, KmerIndex):
                shortest = kept.plan.sampling.shortest_match
                if minimum_length < shortest:
                    raise OptionError(
                        "min_length",
                        f"this index finds matches of {shortest} bases or more, not of "
                        f"{minimum_length}; build one with min_length={minimum_length}",
                    )
            return kept

    def close(self) -> None:
        """Release the index and the devices; further calls do nothing."""
        with self._lock:
            self._is_closed = True
            opened, self._open, self._kept = list(self._open.values()), {}, {}
            self._minimizers = KeptMinimizers(self.reference, self.options)
        for one in opened:
            with one.lock:
                one.backend.close()

    def refuse_if_closed(self) -> None:
        """Raise an exception if the index is closed."""
        if self._is_closed:
            raise OptionError("index", "the index is closed")

    def _opened(self, device: DeviceOptions, minimum_length: int) -> OpenSearch:
        """Return the backend for a search, opened if need be."""
        # A fork copies locks as they are, also those that another thread held.
        if self._process != os.getpid():
            self._go_on_after_fork()
        with self._lock:
            self.refuse_if_closed()
            key = (device.backend, minimum_length)
            # Both words may mean the same GPU, which needs the index only once.
            other = {"auto": "cuda", "cuda": "auto"}.get(device.backend, "")
            found = self._open.get((other, minimum_length))
            if key not in self._open and found is not None and found.backend.name == "cuda":
                return found
            if key not in self._open:
                kept = self.kept_index(minimum_length)
                backend = self._open_backend(device, kept)
                if isinstance(backend, ResidentBackend):
                    reference = self.reference
                    lookup = record_lookup(reference.record_starts, reference.codes.size)
                    backend.set_records(lookup)
                is_kmer = isinstance(kept.plan, KmerIndex)
                length = minimum_length if is_kmer else kept.plan.search_length
                self._open[key] = OpenSearch(kept.plan, backend, length, kept)
            return self._open[key]

    def _opened_for(
        self, device: DeviceOptions, options: SearchOptions, query_bases: int | None
    ) -> OpenSearch:
        """Return the backend for a search, with the pages that are expected to be the fastest."""
        opened = self._opened(device, options.minimum_length)
        kmers = opened.index
        if opened.backend.name != "cpu" or not isinstance(kmers, KmerIndex):
            return opened
        with self._lock:
            kept = self._minimizers.index_for(kmers, options, query_bases)
            if kept is None:
                return opened
            key = ("unique", options.minimum_length)
            if key not in self._open:
                backend = open_cpu_backend(self.options.kind, Stats())
                self._open[key] = OpenSearch(kept.plan, backend, options.minimum_length, kept)
            return self._open[key]

    def _open_backend(self, device: DeviceOptions, kept: KeptIndex[Any]) -> Backend[Any]:
        """Open a backend that holds the pages of every group."""
        backend = open_backend(self.options.kind, device, Stats(), LOG.info)
        memory = backend.memory_for_pages(self.reference.codes.size)
        needed = max(kept.plan.peak_bytes(group, 1) for group in kept.plan.groups)
        if memory is None or needed <= memory:
            return backend
        backend.close()
        text = f"the index needs {needed >> 20:,} MiB of its memory, and {memory >> 20:,} are free"
        if device.backend == "cuda":
            raise BackendError("cuda", f"{text}; build one with a smaller max_memory")
        LOG.info("%s: the processor searches", text)
        return open_backend(self.options.kind, replace(device, backend="cpu"), Stats(), LOG.info)

    @staticmethod
    def _load(opened: OpenSearch, threads: int) -> None:
        """Load the only group of pages into a backend, unless it is loaded already."""
        context = RunContext(threads)
        with context.executor:
            opened.load_group(0, context)

    def _go_on_after_fork(self) -> None:
        """Replace the locks, which a thread of the parent may have held; refuse its GPU."""
        if any(one.backend.name != "cpu" for one in self._open.values()):
            raise BackendError(
                "cuda", "a GPU cannot be shared with a forked process; open the index again in it"
            )
        self._process = os.getpid()
        self._lock = threading.RLock()
        for one in self._open.values():
            one.lock = threading.RLock()
            if one.kept is not None:
                one.kept.lock = threading.RLock()
        for kept in self._kept.values():
            kept.lock = threading.RLock()


def _refuse_several_steps(index: IndexOptions, search: SearchOptions) -> None:
    """Raise `OptionError` if the host has to merge or filter the matches of a search."""
    if not isinstance(index.kind, KmerOptions):
        text = "this index has suffix trees, and only tables of k-mers leave matches on a device"
        raise OptionError("match_on_device", f"{text}; {_REST}")
    if search.uniqueness is not Uniqueness.ALL:
        text = f"{search.uniqueness.value!r} is filtered on the host; only 'all' stays on a device"
        raise OptionError("mode", f"{text}; {_REST}")


def _refuse_several_parts(groups: Sequence[Sequence[object]]) -> None:
    """Raise `OptionError` if an index has several groups of pages, or several pages."""
    count = sum(map(len, groups))
    if len(groups) > 1:
        text = f"the index is searched in {len(groups)} steps, which a larger max_memory would join"
    elif count > 1:
        text = f"the reference is in {count} parts, whose matches the host puts together"
    else:
        return
    raise OptionError("match_on_device", f"{text}; {_REST}")


def _columns_of(
    backend: Backend[Any], blocks: Iterable[QueryBlock], strands: tuple[Strand, ...]
) -> DeviceColumns:
    """Return the columns that a backend leaves on its device."""
    if not (isinstance(backend, ResidentBackend) and backend.leaves_columns):
        text = "the places of the records do not fit the device's memory beside the index"
        raise BackendError("cuda", f"{text}; {_REST}")
    return backend.find_columns(blocks, strands)
