"""An index that stays in memory, and the backends that search it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from mummergpu.api.device_search import columns_of, offer_records, refuse_several_parts
from mummergpu.api.kept_index import KeptIndex, OpenSearch
from mummergpu.api.kept_minimizers import KeptMinimizers
from mummergpu.api.log import LOG, tell_of_compiling
from mummergpu.errors import BackendError, OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.index.reference_index import BuildWork, StorableIndex
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.options import MappingOptions
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.open_backend import open_backend, open_cpu_backend
from mummergpu.matching.options import DeviceOptions, SearchOptions
from mummergpu.matching.search import BlockSearch
from mummergpu.pipeline.backend_choice import processor_is_faster
from mummergpu.pipeline.found_matches import filter_mems
from mummergpu.pipeline.mapping_passes import pages_of_first_pass
from mummergpu.pipeline.passes import GroupPasses
from mummergpu.pipeline.plan import plan_storable_index
from mummergpu.pipeline.query_progress import QueryProgress
from mummergpu.runtime.progress import Work
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems

if TYPE_CHECKING:
    from mummergpu.matching.device_columns import DeviceColumns

Result = TypeVar("Result")

FoundBlock = tuple[QueryBlock, BlockMems]


class Engine:
    """Searches one reference, as often as asked, also from several threads at once.

    Parameters
    ----------
    source : Reference or IndexFile
        The reference, or the file that holds its index.
    options : IndexOptions
        How to build the index; for a file, what it holds.
    """

    def __init__(self, source: Reference | IndexFile, options: IndexOptions) -> None:
        tell_of_compiling()
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
        """Build or open the pages now, so that no search has to."""
        with self._lock, ThreadPoolExecutor(threads) as executor:
            kept = self.kept_index(self.options.minimum_length)
            if kept.has_one_group:
                self._bring_in(kept, BuildWork(executor, threads, Stats(), _do_nothing))

    def choose_backend(
        self, asked: str, query_bases: int, minimum_length: int, threads: int
    ) -> str:
        """Return the backend for queries of so many bases, on all strands that are searched."""
        is_open = any(one.backend.name != "cpu" for one in self._open.values())
        if asked != "auto" or is_open or not isinstance(self.options.kind, KmerOptions):
            return asked
        bases = self.reference.codes.size
        faster = processor_is_faster(bases, minimum_length, query_bases, threads, has_index=True)
        return "cpu" if faster else asked

    def block_bases(self, device: DeviceOptions, minimum_length: int) -> int:
        """Return about how many bases of queries make a block: so few that none need be cut."""
        return self._opened(device, minimum_length).backend.sizes.trial_bases

    def search(
        self,
        blocks: Iterator[QueryBlock],
        options: SearchOptions,
        device: DeviceOptions,
        threads: int,
        query_bases: int | None = None,
    ) -> Generator[FoundBlock]:
        """Search blocks of queries, and yield each with its matches, in order.

        Parameters
        ----------
        blocks : iterator of QueryBlock
            The queries.
        options : SearchOptions
            Which matches to find.
        device : DeviceOptions
            Where to search.
        threads : int
            The number of working threads, which end with the iterator.
        query_bases : int, optional
            About how many bases the queries have, on all strands that are searched, if that is
            known.

        Yields
        ------
        block : QueryBlock
            The queries.
        mems : dict of Strand to MemColumns
            Their matches on each strand that is searched.
        """
        stats = Stats()

        def prepare(block: QueryBlock, mems: BlockMems) -> FoundBlock:
            return block, filter_mems(mems, options.uniqueness, stats)

        return self.results(blocks, options, device, threads, prepare, query_bases)

    def results(
        self,
        blocks: Iterator[QueryBlock],
        options: SearchOptions,
        device: DeviceOptions,
        threads: int,
        prepare: Callable[[QueryBlock, BlockMems], Result],
        query_bases: int | None = None,
    ) -> Generator[Result]:
        """Search blocks of queries, and yield what is made of each and its matches, in order.

        Parameters
        ----------
        blocks, device, threads, query_bases
            As for `search`.
        options : SearchOptions
            Which matches to find; those that are not unique may be among them.
        prepare : callable
            Receives a block and its matches; the working threads call it.

        Yields
        ------
        Result
            What `prepare` returns.
        """
        opened = self._opened_for(device, options, query_bases)
        stats = Stats()
        search = BlockSearch(
            opened.backend,
            self.reference.codes,
            options.strands,
            options.minimum_length,
            opened.search_length,
        )
        done = QueryProgress(_ignore, len(options.strands))

        executor = ThreadPoolExecutor(threads, thread_name_prefix="mummergpu")
        work = BuildWork(executor, threads, stats, _do_nothing)
        try:
            with _exclusive(opened):
                yield from GroupPasses(search, executor, threads, stats, done, False).results(
                    len(opened.index.plan.groups),
                    lambda number: self._load_group(opened, number, work),
                    blocks,
                    prepare,
                )
        finally:
            # Searches that are under way read the pages, which must not go before they end.
            executor.shutdown(wait=True, cancel_futures=True)

    def find_on_device(
        self, blocks: Iterator[QueryBlock], options: SearchOptions, device: DeviceOptions
    ) -> DeviceColumns:
        """Search blocks of queries, and leave the columns of their matches on a GPU.

        Parameters
        ----------
        blocks, options, device
            As for `search`, where `device` names the backend ``cuda``.

        Returns
        -------
        DeviceColumns
            The matches of all blocks, in order.

        Raises
        ------
        OptionError, BackendError
            If the search takes several steps, whose matches only the host puts together; or there
            is no GPU, or too little memory on it.
        """
        opened = self._opened(device, options.minimum_length)
        refuse_several_parts(opened.index.plan.groups)
        executor = ThreadPoolExecutor(device.threads, thread_name_prefix="mummergpu")
        with executor:
            work = BuildWork(executor, device.threads, Stats(), _do_nothing)
            self._load_group(opened, 0, work)
        return columns_of(opened.backend, blocks, options.strands)

    @contextmanager
    def lend_search(
        self, device: DeviceOptions, options: MappingOptions
    ) -> Iterator[tuple[Backend[Any], Sequence[Any] | None]]:
        """Lend a backend to whoever maps reads.

        Parameters
        ----------
        device : DeviceOptions
            Where to search.
        options : MappingOptions
            How the first pass maps.

        Yields
        ------
        backend : Backend
            It stays open, and with it what it has loaded.
        pages : sequence of KmerPage or None
            All pages of the index. The backend has loaded what the first pass searches of them, and
            others search beside the caller. None if there are several groups: the caller loads one
            after the other, and other searches wait.
        """
        length = self.options.minimum_length
        if not self.kept_index(length).has_one_group:
            opened = self._opened(device, length)
            with opened.lock:
                yield opened.backend, None
            return
        opened = self._opened(device, options.seed_length)
        with ThreadPoolExecutor(device.threads) as executor:
            self._load_group(opened, 0, BuildWork(executor, device.threads, Stats(), _do_nothing))
        backend, pages = opened.backend, opened.index.pages
        assert pages is not None
        if backend.name == "cpu":
            # One of its own takes no time, and skips k-mers that other searches need.
            backend = open_cpu_backend(self.options.kind, Stats())
            backend.load_pages(pages_of_first_pass(pages, options), options.seed_length)
        yield backend, pages

    def kept_index(self, minimum_length: int) -> KeptIndex[StorableIndex[Any]]:
        """Return the index that serves a minimum length.

        One table of k-mers serves every length from its own upwards; trees have a plan for each.

        Raises
        ------
        OptionError
            If the index finds no matches that are so short.
        """
        with self._lock:
            built_for = self.options.minimum_length
            is_kmer = isinstance(self.options.kind, KmerOptions)
            key = built_for if is_kmer else minimum_length
            if key not in self._kept:
                options = replace(self.options, minimum_length=key)
                self._kept[key] = KeptIndex(plan_storable_index(self.source, options, 1))
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
        """Release the index and the devices; a second call does nothing."""
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
        if self._process != os.getpid():
            self._go_on_after_fork()
        with self._lock:
            self.refuse_if_closed()
            key = (device.backend, minimum_length)
            # The two words may mean the same GPU, which needs the index once.
            other = {"auto": "cuda", "cuda": "auto"}.get(device.backend, "")
            found = self._open.get((other, minimum_length))
            if key not in self._open and found is not None and found.backend.name == "cuda":
                return found
            if key not in self._open:
                kept = self.kept_index(minimum_length)
                backend = self._open_backend(device, kept)
                offer_records(backend, self.reference)
                is_kmer = isinstance(kept.plan, KmerIndex)
                length = minimum_length if is_kmer else kept.plan.search_length
                self._open[key] = OpenSearch(kept, backend, length)
            return self._open[key]

    def _opened_for(
        self, device: DeviceOptions, options: SearchOptions, query_bases: int | None
    ) -> OpenSearch:
        """Return the backend for a search, with the pages that are expected to be the fastest."""
        opened = self._opened(device, options.minimum_length)
        kmers = opened.index.plan
        if opened.backend.name != "cpu" or not isinstance(kmers, KmerIndex):
            return opened
        with self._lock:
            kept = self._minimizers.index_for(kmers, options, query_bases)
            if kept is None:
                return opened
            key = ("unique", options.minimum_length)
            if key not in self._open:
                backend = open_cpu_backend(self.options.kind, Stats())
                self._open[key] = OpenSearch(kept, backend, options.minimum_length)
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

    def _load_group(self, opened: OpenSearch, number: int, work: BuildWork) -> None:
        """Load a group of pages into a backend, unless it has it."""
        with opened.lock:
            kept = opened.index
            if opened.is_loaded:
                return
            if kept.has_one_group:
                with self._lock:
                    pages = self._bring_in(kept, work)
            else:
                # Two groups together would not fit into memory.
                opened.backend.release_pages()
                pages = kept.plan.load_pages(kept.plan.groups[number], work)
            opened.backend.load_pages(pages, opened.search_length)
            opened.is_loaded = kept.has_one_group

    def _bring_in(self, kept: KeptIndex[Any], work: BuildWork) -> list[Any]:
        """Return the pages of the only group, built or opened once."""
        if kept.pages is None:
            kept.pages = kept.plan.load_pages(kept.plan.groups[0], work)
        return kept.pages

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


@contextmanager
def _exclusive(opened: OpenSearch) -> Iterator[None]:
    """Let no other search change the pages, if a search has to change them."""
    if opened.index.has_one_group:
        yield
        return
    with opened.lock:
        yield


def _do_nothing() -> None:
    """Report nothing when a page is ready."""


def _ignore(_work: Work) -> None:
    """Report no progress."""
