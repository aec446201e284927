"""The interface of every backend: it takes pages and blocks of queries, and returns matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.block_text import BlockText, RowFormat
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns

if TYPE_CHECKING:
    from mummergpu.cuda.resident_matches import ResidentMatches
    from mummergpu.index.kmer_page import KmerPage
    from mummergpu.matching.device_columns import DeviceColumns, RecordPlaces

IndexedPart = TypeVar("IndexedPart")
Result = TypeVar("Result")


@frozen
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
    batch_bases : int
        About how many bases of pieces one thread searches together.
    max_rows : int
        A block with more matches than this is cut in two, to limit the memory.
    first_batch_bases : int
        About how many bases of a block are searched together before it is known how many matches
        the queries have.
    """

    block_bases: int
    piece_bases: int
    long_query: int
    batch_bases: int
    max_rows: int
    first_batch_bases: int


class Backend(ABC, Generic[IndexedPart]):
    """Finds the MEMs of blocks of queries on one kind of pages; several threads share one.

    Attributes
    ----------
    name : str
        The one in ``--backend``.
    """

    name: str
    sizes: WorkSizes

    @abstractmethod
    def memory_for_pages(self, reference_bases: int) -> int | None:
        """Return the most bytes of trees or k-mer tables that fit the device's memory together.

        The reference may need memory besides: the result is 0 if not even that fits, and None for a
        backend that uses the host's memory.
        """

    @abstractmethod
    def load_pages(self, pages: Sequence[IndexedPart], minimum_length: int) -> None:
        """Load at least one page to search, in place of earlier ones; no search may be running.

        Pages are in the order of the reference.
        """

    @abstractmethod
    def release_pages(self) -> None:
        """Release the pages and their memory; no search may be running."""

    @abstractmethod
    def find_mems(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs between the loaded pages and a block of queries.

        They start in the owned parts of the pages. The backend makes reverse complements. None
        means that there are more than `max_rows` on all strands together: the caller then cuts the
        block and tries again.
        """

    @abstractmethod
    def close(self) -> None:
        """Wait for running searches, then release all memory."""


class UniqueBackend(Backend[IndexedPart]):
    """A backend that can find the matches alone that are unique in the reference."""

    @property
    @abstractmethod
    def only_unique(self) -> bool:
        """Whether the loaded pages want `find_unique` in place of `find_mems`."""

    @abstractmethod
    def find_unique(
        self,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
        map_function: Callable[..., Iterable[Any]],
        tell: Callable[[int], None],
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block whose bases occur once in the reference.

        This is what `filter.keep_unique` leaves of all MEMs; queries may be long. Any thread calls
        `tell` with a number of bases whenever so many have been searched on all strands. None means
        that there are more than `max_rows`.
        """


class ResidentBackend(Backend[IndexedPart]):
    """A backend whose matches can stay on its device, for text, columns or further work there.

    Attributes
    ----------
    makes_text, leaves_columns, hands_over : bool
        Whether the loaded pages let it `find_text`, `find_columns`, or others `use_matches`.
    """

    makes_text = False
    leaves_columns = False
    hands_over = False

    @abstractmethod
    def set_format(self, row_format: RowFormat) -> None:
        """Set the format of the text; the next pages that are loaded follow it."""

    @abstractmethod
    def find_text(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> BlockText | None:
        """Return the text of the MEMs between the loaded pages and a block of queries.

        In each query the forward strand comes first. None means that the text has too many rows or
        bytes: the caller then cuts the block, or asks for columns.
        """

    @abstractmethod
    def set_records(self, records: RecordPlaces) -> None:
        """Set the places of the records; the next pages that are loaded follow them."""

    @abstractmethod
    def find_columns(
        self, blocks: Iterable[QueryBlock], strands: Sequence[Strand]
    ) -> DeviceColumns:
        """Return the columns of the MEMs of all blocks, in order, on the device that finds them.

        No query is searched in pieces. The memory is the caller's: it stays when the backend is
        closed. `BackendError` is raised if a query, its matches, or all columns do not fit the
        device's memory.
        """

    @abstractmethod
    def use_matches(
        self, block: QueryBlock, max_rows: int, use: Callable[[ResidentMatches], Result]
    ) -> Result | None:
        """Return what a function makes of the matches of a block, on both strands.

        The device is current in the thread that calls `use`; no query is searched in pieces. None
        means that there are more than `max_rows` matches, or that they or what is made of them do
        not fit the device's memory: the caller then cuts the block, or asks for columns.
        """

    @abstractmethod
    def for_windows(self, page: KmerPage, minimum_length: int) -> Self:
        """Return a backend on the same tables, of all pages, that searches them as a page says."""
