"""The searches of the two passes of mapping: the second looks for shorter matches of few reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mummergpu.index.kmer_page import KmerPage
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.seeding.seeds import second_seed_length
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.search import BlockSearch
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import BlockMems

MOST_OCCURRENCES: Final = 512
"""The second pass skips k-mers that occur more often in the reference: they say little, and would
take most of the time."""


def pages_of_first_pass(pages: Sequence[KmerPage], options: MappingOptions) -> list[KmerPage]:
    """Return pages in which a search looks up one k-mer in each window of a read.

    A read of n bases with e edits matches its place in one of any ``e + 1`` windows as a whole. So
    one k-mer for each window finds all placements with so few edits, though not all matches.

    Parameters
    ----------
    pages : sequence of KmerPage
        The pages.
    options : MappingOptions
        How the first pass maps; the bases of a window are the length of its seeds.

    Returns
    -------
    list of KmerPage
        The same pages if matches count wherever they begin, or if their tables list only some
        positions: then a search that finds all matches looks up as few k-mers.
    """
    if not options.by_windows or any(page.table.sampling.reference_step > 1 for page in pages):
        return list(pages)
    return [replace(page, sample_step=options.seed_length) for page in pages]


def length_of_second_pass(first: int, shortest: int) -> int:
    """Return the length of the shortest matches of the second pass.

    Parameters
    ----------
    first : int
        That of the first pass, in bases.
    shortest : int
        The shortest matches that the index finds.

    Returns
    -------
    int
        As many bases as in the first pass if there is no use for a second one.
    """
    return min(max(second_seed_length(first), shortest), first)


class SecondSearch:
    """Looks for the matches of the second pass, on the processor.

    Parameters
    ----------
    reference : Reference
        The reference.
    length : int
        The length of the shortest matches of the second pass (`length_of_second_pass`).
    stats : Stats
        Collects the time of the search.

    Attributes
    ----------
    search : BlockSearch
        Searches a block on the pages that are loaded.
    """

    def __init__(self, reference: Reference, length: int, stats: Stats) -> None:
        self._backend = KmerCpuBackend(stats)
        self._length = length
        strands = (Strand.FORWARD, Strand.REVERSE)
        self.search = BlockSearch(self._backend, reference.codes, strands, length, length)

    def load_pages(self, pages: Sequence[KmerPage]) -> None:
        """Load the pages to search, in place of earlier ones."""
        rare = [replace(page, max_occurrences=MOST_OCCURRENCES) for page in pages]
        self._backend.load_pages(rare, self._length)

    def release_pages(self) -> None:
        """Release the pages and their memory."""
        self._backend.release_pages()

    def find_mems(self, block: ReadBlock) -> BlockMems:
        """Return the matches of a block on the pages that are loaded."""
        found = self.search.find_mems(block)
        assert found is not None
        return found
