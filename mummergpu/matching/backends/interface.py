"""The interface of every backend: it takes pages and blocks of queries, and returns matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from mummergpu.input.queries import QueryBlock
from mummergpu.matching.block_text import BlockText, RowFormat
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns

if TYPE_CHECKING:
    from mummergpu.matching.device_columns import DeviceColumns, RecordPlaces
    from mummergpu.matching.resident_matches import ResidentMatches

IndexedPart = TypeVar("IndexedPart", contravariant=True)
Result = TypeVar("Result")


@dataclass(frozen=True)
class WorkSizes:
    """The amounts of work that suit a backend.

    Attributes
    ----------
    block_bases : int
        About how many bases make a block of queries.
    piece_bases : int
        The number of starts that a piece of a long query owns.
    long_query : int
        A query of more bases than this is cut into pieces.
    part_bases : int
        About how many bases of pieces one thread searches together.
    most_rows : int
        A block with more matches than this is cut in two, to limit the memory.
    trial_bases : int
        About how many bases of a block are searched together before it is known how many matches
        the queries have.
    """

    block_bases: int
    piece_bases: int
    long_query: int
    part_bases: int
    most_rows: int
    trial_bases: int


class Backend(Protocol[IndexedPart]):
    """Finds the MEMs of blocks of queries; several threads share one.

    A backend searches one kind of index: pages with trees, or pages with k-mer tables.

    Attributes
    ----------
    name : str
        The name in ``--backend``.
    sizes : WorkSizes
        The amounts of work that suit it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def sizes(self) -> WorkSizes: ...  # noqa: D102

    def memory_for_pages(self, reference_bases: int) -> int | None:
        """Return the most bytes of trees or k-mer tables that fit the device's memory together.

        Parameters
        ----------
        reference_bases : int
            The bases of the reference, which may need memory besides.

        Returns
        -------
        int or None
            0 if not even the reference fits; None for a backend that uses the host's memory.
        """
        ...

    def load_pages(self, pages: Sequence[IndexedPart], minimum_length: int) -> None:
        """Load the pages to search, in place of earlier ones; no search may be running.

        Parameters
        ----------
        pages : sequence of page.TreePage or of kmer_page.KmerPage
            At least one, in the order of the reference.
        minimum_length : int
            The fewest bases of a MEM.
        """
        ...

    def release_pages(self) -> None:
        """Release the pages and their memory; no search may be running."""
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
            The strands of the queries to search; the backend makes reverse complements.
        max_rows : int
            The most rows to return, on all strands together.

        Returns
        -------
        dict of Strand to MemColumns, or None
            The MEMs that start in the owned parts of the pages, in the order of `strands`, or
            None if there are more than `max_rows`: the caller then cuts the block and tries again.
        """
        ...

    def close(self) -> None:
        """Wait for running searches, then release all memory."""
        ...


@runtime_checkable
class TextBackend(Protocol):
    """A backend that can also make the text of the matches, where these are.

    Attributes
    ----------
    makes_text : bool
        Whether it makes text of the matches on the loaded pages: if not, it must be asked for
        columns. The loaded pages decide this.
    """

    @property
    def makes_text(self) -> bool: ...  # noqa: D102

    def set_format(self, row_format: RowFormat) -> None:
        """Set the format of the text; the next pages that are loaded follow it."""
        ...

    def find_text(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> BlockText | None:
        """Return the text of the MEMs between the loaded pages and a block of queries.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        strands : sequence of Strand
            The strands of the queries to search.
        max_rows : int
            The most rows of the text, on all strands together.

        Returns
        -------
        BlockText or None
            The text, in each query the forward strand first, or None if it has too many rows or
            bytes: the caller then cuts the block, or asks for columns.
        """
        ...


@runtime_checkable
class UniqueBackend(Protocol):
    """A backend that may search pages which serve only matches that are unique in the reference.

    Attributes
    ----------
    only_unique : bool
        Whether the loaded pages are such pages: then `find_unique` takes the place of `find_mems`.
    """

    @property
    def only_unique(self) -> bool: ...  # noqa: D102

    def find_unique(
        self,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
        map_function: Callable[..., Iterable[Any]],
        tell: Callable[[int], None],
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block whose bases occur once in the reference.

        Parameters
        ----------
        block : QueryBlock
            The queries, which may be long.
        strands : sequence of Strand
            The strands of the queries to search.
        max_rows : int
            The most rows to return, on all strands together.
        map_function : callable
            Called like `map`, to search the parts of the block.
        tell : callable
            Receives a number of bases whenever so many have been searched on all strands; any
            thread calls it.

        Returns
        -------
        dict of Strand to MemColumns, or None
            What `filter.keep_unique` leaves of all MEMs, in the order of `strands`; or None if
            there are more than `max_rows`.
        """
        ...


@runtime_checkable
class ColumnsBackend(Protocol):
    """A backend that can also leave the columns of the matches on the device that finds them.

    Attributes
    ----------
    leaves_columns : bool
        Whether it can do so for the loaded pages, which decide this.
    """

    @property
    def leaves_columns(self) -> bool: ...  # noqa: D102

    def set_records(self, records: RecordPlaces) -> None:
        """Set the places of the records; the next pages that are loaded follow them."""
        ...

    def find_columns(
        self, blocks: Iterable[QueryBlock], strands: Sequence[Strand]
    ) -> DeviceColumns:
        """Return the columns of the MEMs between the loaded pages and all blocks of queries.

        Parameters
        ----------
        blocks : iterable of QueryBlock
            The queries, in order; no query is searched in pieces.
        strands : sequence of Strand
            The strands of the queries to search.

        Returns
        -------
        DeviceColumns
            All matches together. The memory is the caller's: it stays when the backend is closed.

        Raises
        ------
        BackendError
            If a query, its matches, or the columns of all matches do not fit the device's memory.
        """
        ...


@runtime_checkable
class ResidentBackend(Protocol):
    """A backend that can also hand over matches on the device that finds them, for further work.

    Attributes
    ----------
    sizes : WorkSizes
        The amounts of work that suit it.
    hands_over : bool
        Whether it can do so for the loaded pages, which decide this.
    """

    @property
    def sizes(self) -> WorkSizes: ...  # noqa: D102

    @property
    def hands_over(self) -> bool: ...  # noqa: D102

    def use_matches(
        self, block: QueryBlock, max_rows: int, use: Callable[[ResidentMatches], Result]
    ) -> Result | None:
        """Return what a function makes of the matches of a block, on both strands.

        Parameters
        ----------
        block : QueryBlock
            The queries; none is searched in pieces.
        max_rows : int
            The most matches, on both strands together.
        use : callable
            Receives the matches; the device is current in the thread that calls it.

        Returns
        -------
        object or None
            None if there are more matches, or they or what is made of them do not fit the device's
            memory: the caller then cuts the block, or asks for columns.
        """
        ...
