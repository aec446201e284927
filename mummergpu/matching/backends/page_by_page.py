"""What the two ``cpu`` backends share: pages that are searched one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from mummergpu.input.queries import QueryBlock
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.columns import MemColumns
from mummergpu.matching.merge import merge_pages
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import CodeArray

PageType = TypeVar("PageType")


class PageByPageBackend(ABC, Generic[PageType]):
    """Searches blocks of queries on the processor; may be called by many threads at once.

    Parameters
    ----------
    stats : Stats
        Takes the times of the kernels, and what else they tell.
    sizes : WorkSizes
        How much work is given at once.
    """

    name = "cpu"
    page_memory = None

    def __init__(self, stats: Stats, sizes: WorkSizes) -> None:
        self.stats = stats
        self.sizes = sizes
        self.minimum_length = 0
        self._pages: list[PageType] = []

    def load_pages(self, pages: Sequence[PageType], minimum_length: int) -> None:
        """Take the pages to search, in place of those before.

        Parameters
        ----------
        pages : sequence of page.TreePage or of kmer_page.KmerPage
            At least one, in the order of the reference.
        minimum_length : int
            The fewest bases of a MEM.
        """
        self.minimum_length = minimum_length
        self._pages = list(pages)

    def release_pages(self) -> None:
        """Forget the pages, so that their memory can be used again."""
        self._pages = []

    def close(self) -> None:
        """Forget the pages."""
        self.release_pages()

    def find_mems(self, block: QueryBlock, codes: CodeArray, most: int) -> MemColumns | None:
        """Return the MEMs between the held pages and a block of queries on one strand.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        codes : ndarray, dtype=uint8, shape=(block.base_count,)
            Their bases on the strand that is to be searched, at the block's offsets.
        most : int
            The most rows to make room for.

        Returns
        -------
        MemColumns or None
            The MEMs that belong to the pages, or None if there are more than `most`: cut the
            block and ask again.
        """
        codes = self._prepared(codes)
        found = []
        for page in self._pages:
            columns = self._search_page(page, block, codes, most)
            if columns is None:
                return None
            most -= columns.count
            found.append(columns)
        if len(found) == 1:
            return found[0]
        with self.stats.stage("coords_to_buffers"):
            return merge_pages(found)

    def _prepared(self, codes: CodeArray) -> CodeArray:
        """Return the codes of a block as all pages are searched with them."""
        return codes

    @abstractmethod
    def _search_page(
        self, indexed: PageType, block: QueryBlock, codes: CodeArray, most: int
    ) -> MemColumns | None:
        """Return the MEMs of one page, or None if there are too many."""
