"""Loads the groups of an index for both passes of mapping, and searches them.

The second pass finds shorter matches of a few reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from mummergpu.index.kmer_table import KmerPage
from mummergpu.index.reference_index import ReferenceIndex
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.options import MappingOptions, second_seed_length
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.mapping.seeding.windows import ChosenBy, ReadCodes, chosen_matches
from mummergpu.matching.backends.interface import Backend, ResidentBackend
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.long_queries import has_long_query
from mummergpu.matching.search import BlockSearch
from mummergpu.pipeline.block_search_loop import FusedSearch
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.progress import PageProgress
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems
from mummergpu.sequence.strand import Strand

if TYPE_CHECKING:
    from mummergpu.mapping.seeding.device_candidates import DeviceCandidates

Result = TypeVar("Result")

SECOND_MATCHES: Final = 512
"""If a read has more matches on a strand in the second pass, only those of rare windows count: the
others are hardly informative, and would take most of the time."""

SECOND_DISTANCE: Final = 4
"""The distance in bases between windows of the second pass. They overlap, so that one window stays
free of differences in reads with more of them."""


def pages_of_first_pass(
    pages: Sequence[KmerPage], options: MappingOptions, is_whole: bool
) -> list[KmerPage]:
    """Return pages in which a search looks up only the windows of a read, and chooses seeds.

    Of any ``e + 1`` disjoint windows, a read with e edits matches its place in at least one whole
    window. So a few k-mers for each window find all placements with e edits, though not all
    matches. Without windows (`by_windows`), matches may begin anywhere.
    """
    window = options.seed_length if options.by_windows else None
    most = options.max_occurrences
    if is_whole or most is None:
        return [replace(page, window_bases=window, max_matches=most) for page in pages]
    # Rare seeds are known only after all pages have been searched.
    return list(pages)


def length_of_second_pass(first: int, shortest: int) -> int:
    """Return the minimum match length of the second pass; the index finds at least `shortest`.

    It is that of the first pass if a second pass is of no use.
    """
    return min(max(second_seed_length(first), shortest), first)


class SecondSearch:
    """Finds the matches of the second pass, of at least `length` bases, on the processor."""

    def __init__(self, reference: Reference, length: int, stats: Stats, is_whole: bool) -> None:
        self._backend = KmerCpuBackend(stats)
        self._length = length
        self._is_whole = is_whole
        strands = (Strand.FORWARD, Strand.REVERSE)
        self.search = BlockSearch(self._backend, reference.codes, strands, length, length)

    def load_pages(self, pages: Sequence[KmerPage]) -> None:
        """Load the pages to search, in place of earlier ones."""
        self._backend.load_pages(
            [
                replace(
                    page,
                    window_bases=self._length,
                    window_distance=SECOND_DISTANCE,
                    max_matches=SECOND_MATCHES if self._is_whole else None,
                )
                for page in pages
            ],
            self._length,
        )

    def release_pages(self) -> None:
        """Release the pages and their memory."""
        self._backend.release_pages()

    def chosen(self, mems: BlockMems, part: ReadBlock) -> BlockMems:
        """Return the matches that count among those found on all pages."""
        if self._is_whole:
            return mems
        by = ChosenBy(self._length, SECOND_DISTANCE, SECOND_MATCHES)
        return {s: chosen_matches(one, ReadCodes(part.offsets), by) for s, one in mems.items()}

    def find_mems(self, block: ReadBlock) -> BlockMems:
        """Return the matches of a block that count, if all pages are loaded."""
        found = self.search.find_mems(block)
        assert found is not None
        return self.chosen(found, block)


class CandidateSearch(Generic[Result]):
    """Finds candidates on a device, and maps the reads to them."""

    def __init__(
        self,
        backend: ResidentBackend[Any],
        finder: DeviceCandidates,
        mapper: BlockMapper,
        sizes: PairSizes,
        prepare: Callable[[ReadBlock, AlignmentColumns], Result],
        stats: Stats,
    ) -> None:
        self._backend = backend
        self._finder = finder
        self._mapper = mapper
        self._sizes = sizes
        self._prepare = prepare
        self._stats = stats

    def suits(self, block: QueryBlock) -> bool:
        """Return whether the device can find the candidates of a block."""
        # The device handles only one library and no circular records.
        return (
            self._backend.hands_over
            and self._mapper.is_linear
            and not has_long_query(block, self._backend.sizes.long_query)
            and self._sizes.libraries_of(cast(ReadBlock, block)).size == 1
        )

    def prepared(self, block: QueryBlock) -> tuple[Result] | None:
        """Return a block's alignments, prepared to be written."""
        reads = cast(ReadBlock, block)
        with self._stats.stage("device_search"):
            found = self._backend.use_matches(
                block,
                self._backend.sizes.max_rows,
                lambda matches: self._finder.find(matches, reads, self._sizes),
            )
        if found is None:
            return None
        with self._stats.stage("mapping"):
            columns = self._mapper.map_found(reads, found, self._sizes)
        return (self._prepare(reads, columns),)


class MappingSearch:
    """Loads one group of pages after the other, for the searches of both passes.

    `first` finds the matches of the first pass on the loaded pages, and `second` those of the
    second pass; it is None if the first pass already finds matches of `second_length`. `kept_pages`
    are the pages of the only group if they stay in memory and the backend has loaded them.
    """

    def __init__(
        self,
        index: ReferenceIndex[Any],
        backend: Backend[Any],
        options: MappingOptions,
        second_length: int,
        context: RunContext,
        tell: Callable[[QueryBlock, int], None],
        kept_pages: Sequence[KmerPage] | None = None,
    ) -> None:
        reference, length = index.reference, options.seed_length
        self.first = BlockSearch(
            backend, reference.codes, (Strand.FORWARD, Strand.REVERSE), length, length, tell=tell
        )
        self.second: SecondSearch | None = None
        if second_length < length:
            self.second = SecondSearch(
                reference, second_length, context.stats, len(index.pages) == 1
            )
        self._is_whole = len(index.pages) == 1
        self._index = index
        self._backend = backend
        self._options = options
        self._context = context
        self._kept_pages = kept_pages
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
        pages = self._kept_pages
        if pages is None:
            self._backend.release_pages()
            if self.second is not None:
                self.second.release_pages()
            group = self._index.groups[number]
            ready = PageProgress(self._context.progress.tell, group)
            pages = self._index.load_pages(group, self._context.build_work(ready))
            length = self._options.seed_length
            self._backend.load_pages(
                pages_of_first_pass(pages, self._options, self._is_whole), length
            )
        if self.second is not None:
            self.second.load_pages(pages)
        self._loaded = number

    def mapper(self) -> BlockMapper:
        """Return the mapper of reads; it maps in both passes if all pages fit into memory."""
        find_more = None
        if self.second is not None and self.group_count == 1:
            find_more = self.second.find_mems
        return BlockMapper(self._index.reference, self._options, find_more, self._is_whole)

    def fused_search(
        self,
        mapper: BlockMapper,
        sizes: PairSizes,
        prepare: Callable[[ReadBlock, AlignmentColumns], Result],
    ) -> FusedSearch[Result] | None:
        """Return the device's seeding, or None if the backend keeps no matches on a device."""
        backend = self._backend
        if not (isinstance(backend, ResidentBackend) and backend.hands_over):
            return None
        from mummergpu.mapping.seeding.device_candidates import DeviceCandidates

        finder = DeviceCandidates(self._index.reference, self._options)
        stats = self._context.stats
        return CandidateSearch(backend, finder, mapper, sizes, prepare, stats)
