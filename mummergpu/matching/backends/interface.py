"""What every backend takes and gives: pages and a block of queries in, match columns out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mummergpu.input.queries import QueryBlock
from mummergpu.matching.columns import MemColumns
from mummergpu.sequence.codes import Strand

IndexedPart = TypeVar("IndexedPart", contravariant=True)


@dataclass(frozen=True)
class WorkSizes:
    """How much work a backend likes to be given at once.

    Attributes
    ----------
    block_bases : int
        About how many bases make a block of queries.
    piece_bases : int
        How many starts a piece of a long query owns.
    long_query : int
        A query of more bases than this is cut into pieces.
    part_bases : int
        About how many bases of pieces are searched together.
    most_rows : int
        A block with more matches than this is cut in two, to bound the memory.
    """

    block_bases: int
    piece_bases: int
    long_query: int
    part_bases: int
    most_rows: int


class Backend(Protocol[IndexedPart]):
    """What finds the MEMs of blocks of queries; shared by several threads.

    It is of one kind of index: of pages with trees, or with tables of k-mers.

    Attributes
    ----------
    name : str
        As in ``--backend``.
    sizes : WorkSizes
        How much work it likes to be given at once.
    page_memory : int or None
        The most bytes of trees that it can hold at once besides the memory of the host;
        None if that is all there is.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def sizes(self) -> WorkSizes: ...  # noqa: D102

    @property
    def page_memory(self) -> int | None: ...  # noqa: D102

    def load_pages(self, pages: Sequence[IndexedPart], minimum_length: int) -> None:
        """Take the pages to search, in place of those before; no search may be under way.

        Parameters
        ----------
        pages : sequence of page.TreePage or of kmer_page.KmerPage
            At least one, in the order of the reference.
        minimum_length : int
            The fewest bases of a MEM.
        """
        ...

    def release_pages(self) -> None:
        """Forget the pages, so that their memory can be used again; no search may be under way."""
        ...

    def find_mems(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs between the loaded pages and a block of queries.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        strands : sequence of Strand
            Which strands of the queries to search; the backend makes reverse complements.
        max_rows : int
            The most rows to make room for, on all strands together.

        Returns
        -------
        dict of Strand to MemColumns, or None
            The MEMs that start in the owned parts of the pages, in the order of `strands`, or
            None if there are more than `max_rows`: cut the block and ask again.
        """
        ...

    def close(self) -> None:
        """Give back what is held, after the searches that are under way."""
        ...
