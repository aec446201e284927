"""Loads the groups of an index for both passes of mapping, and searches what is loaded."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from mummergpu.index.reference_index import BuildWork, ReferenceIndex
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.placing.pair_sizes import PairSizes
from mummergpu.matching.backends.interface import Backend, ResidentBackend
from mummergpu.matching.search import BlockSearch
from mummergpu.pipeline.mapping_passes import SecondSearch, pages_of_first_pass
from mummergpu.pipeline.page_progress import PageProgress
from mummergpu.pipeline.shortcut import Shortcut
from mummergpu.runtime.progress import NullProgress
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand

Result = TypeVar("Result")


class MappingSearch:
    """Loads one group of pages after the other, for the searches of both passes.

    Parameters
    ----------
    index : KmerIndex
        The index that has the pages.
    backend : Backend
        Searches the pages in the first pass.
    options : MappingOptions
        How the first pass maps.
    second_length : int
        The length of the shortest matches of the second pass; there is none if the first pass has
        those already.
    executor : concurrent.futures.ThreadPoolExecutor
        Runs the tasks that build the pages.
    threads : int
        The number of its threads.
    stats : Stats
        Collects times, numbers and bytes.
    progress : Progress or NullProgress
        Shows how many pages are ready.
    tell : callable
        Receives what is searched of blocks with long reads (`search.BlockSearch`).

    Attributes
    ----------
    first : BlockSearch
        Searches the loaded pages for the matches of the first pass.
    second : SecondSearch or None
        Searches them for those of the second pass.
    """

    def __init__(
        self,
        index: ReferenceIndex[Any],
        backend: Backend[Any],
        options: MappingOptions,
        second_length: int,
        executor: ThreadPoolExecutor,
        threads: int,
        stats: Stats,
        progress: NullProgress,
        tell: Callable[[QueryBlock, int], None],
    ) -> None:
        reference, length = index.reference, options.seed_length
        self.first = BlockSearch(
            backend, reference.codes, (Strand.FORWARD, Strand.REVERSE), length, length, tell=tell
        )
        self.second: SecondSearch | None = None
        if second_length < length:
            self.second = SecondSearch(reference, second_length, stats)
        self._index = index
        self._backend = backend
        self._options = options
        self._executor = executor
        self._threads = threads
        self._stats = stats
        self._progress = progress
        self._loaded: int | None = None

    @property
    def group_count(self) -> int:
        """The number of groups, at least 1."""
        return len(self._index.groups)

    def load_group(self, number: int) -> None:
        """Load a group of pages in place of the one before, unless it is loaded already."""
        if number == self._loaded:
            return
        # Two groups together would not fit into memory.
        self._loaded = None
        self._backend.release_pages()
        if self.second is not None:
            self.second.release_pages()
        group = self._index.groups[number]
        ready = PageProgress(self._progress.tell, group)
        ready.begin()
        told = ready.page_is_ready, ready.share_of_next
        work = BuildWork(self._executor, self._threads, self._stats, *told)
        pages = self._index.load_pages(group, work)
        length = self._options.seed_length
        self._backend.load_pages(pages_of_first_pass(pages, self._options), length)
        if self.second is not None:
            self.second.load_pages(pages)
        self._loaded = number

    def single_mapper(self) -> BlockMapper:
        """Return what maps reads in each pass by itself."""
        return BlockMapper(self._index.reference, self._options)

    def whole_mapper(self) -> BlockMapper:
        """Return what maps reads in both passes, while all pages are loaded."""
        find_more = None if self.second is None else self.second.find_mems
        return BlockMapper(self._index.reference, self._options, find_more)

    def shortcut(
        self,
        mapper: BlockMapper,
        sizes: PairSizes,
        prepare: Callable[[ReadBlock, AlignmentColumns], Result],
    ) -> Shortcut[Result] | None:
        """Return what has the candidates of reads found where their matches are.

        Parameters
        ----------
        mapper : BlockMapper
            What maps reads in both passes (`whole_mapper`).
        sizes : PairSizes
            The sizes of the templates of pairs.
        prepare : callable
            Receives a block and its alignments; returns the result.

        Returns
        -------
        Shortcut or None
            None if the backend hands over no matches on a device.
        """
        if not isinstance(self._backend, ResidentBackend) or not self._backend.hands_over:
            return None
        from mummergpu.mapping.seeding.device_candidates import DeviceCandidates
        from mummergpu.pipeline.candidate_shortcut import CandidateShortcut

        return CandidateShortcut(
            self._backend,
            DeviceCandidates(self._index.reference, self._options),
            mapper,
            sizes,
            prepare,
            self._stats,
        )
