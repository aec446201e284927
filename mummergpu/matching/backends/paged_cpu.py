"""The common part of the two ``cpu`` backends: they search page after page."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import Backend, QueryCodes, WorkSizes
from mummergpu.matching.row_order import merge_pages
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import padded_reverse_complements
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

PageType = TypeVar("PageType")


class PagedCpuBackend(Backend[PageType]):
    """Searches blocks of queries on the processor; many threads may call it at once."""

    name = "cpu"

    def __init__(self, stats: Stats, sizes: WorkSizes) -> None:
        self.stats = stats
        self.sizes = sizes
        self.minimum_length = 0
        self._pages: list[PageType] = []

    def memory_for_pages(self, reference_bases: int) -> None:
        """Return None: the pages are in the host's memory (`interface.Backend`)."""

    def load_pages(self, pages: Sequence[PageType], minimum_length: int) -> None:
        """Load the pages to search, in place of earlier ones."""
        self.minimum_length = minimum_length
        self._pages = list(pages)

    def release_pages(self) -> None:
        """Release the pages and their memory."""
        self._pages = []

    def close(self) -> None:
        """Release the pages."""
        self.release_pages()

    def find_mems(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs between the loaded pages and a block (`interface.Backend.find_mems`)."""
        found: dict[Strand, MemColumns] = {}
        counted: Counter[str] = Counter()
        for strand in strands:
            padded = block.padded_codes
            if strand is Strand.REVERSE:
                padded = padded_reverse_complements(padded, block.offsets)
            queries = QueryCodes(padded, block.offsets)
            on_pages = []
            for page in self._pages:
                columns = self._search_page(page, queries, max_rows, counted)
                if columns is None:
                    # The block is searched again in parts, and counted then.
                    return None
                max_rows -= columns.count
                on_pages.append(columns)
            if len(on_pages) > 1:
                with self.stats.stage("coords_to_buffers"):
                    on_pages = [merge_pages(on_pages)]
            (found[strand],) = on_pages
        self.stats.add(**counted)
        return found

    @abstractmethod
    def _search_page(
        self, indexed: PageType, queries: QueryCodes, max_rows: int, counted: Counter[str]
    ) -> MemColumns | None:
        """Return the MEMs of one page, or None if there are too many.

        The additions to `counted` count only if the block is not searched again.
        """
