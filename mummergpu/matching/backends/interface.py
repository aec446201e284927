"""The interface of every backend: it takes pages and blocks of queries, and returns matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.block_text import BlockText, RowFormat
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns

if TYPE_CHECKING:
    from mummergpu.index.kmer_page import KmerPage
    from mummergpu.matching.device_columns import DeviceColumns, RecordPlaces
    from mummergpu.matching.resident_matches import ResidentMatches

IndexedPart = TypeVar("IndexedPart", contravariant=True)
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
    part_bases : int
        About how many bases of pieces one thread searches together.
    max_rows : int
        A block with more matches than this is cut in two, to limit the memory.
    trial_bases : int
        About how many bases of a block are searched together before it is known how many matches
        the queries have.
    """

    block_bases: int
    piece_bases: int
    long_query: int
    part_bases: int
    max_rows: int
    trial_bases: int


class Backend(Protocol[IndexedPart]):
    """Finds the MEMs of blocks of queries on one kind of pages; several threads share one.

    `name` is the one in ``--backend``.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def sizes(self) -> WorkSizes: ...  # noqa: D102

    def memory_for_pages(self, reference_bases: int) -> int | None:
        """Return the most bytes of trees or k-mer tables that fit the device's memory together.

        The reference may need memory besides: the result is 0 if not even that fits, and None for a
        backend that uses the host's memory.
        """
        ...

    def load_pages(self, pages: Sequence[IndexedPart], minimum_length: int) -> None:
        """Load at least one page to search, in place of earlier ones; no search may be running.

        Pages are in the order of the reference.
        """
        ...

    def release_pages(self) -> None:
        """Release the pages and their memory; no search may be running."""
        ...

    def find_mems(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs between the loaded pages and a block of queries.

        They start in the owned parts of the pages. The backend makes reverse complements. None
        means that there are more than `max_rows` on all strands together: the caller then cuts the
        block and tries again.
        """
        ...

    def close(self) -> None:
        """Wait for running searches, then release all memory."""
        ...


@runtime_checkable
class TextBackend(Protocol):
    """A backend that can also make the text of the matches, where these are.

    The loaded pages decide whether it `makes_text`: if not, it must be asked for columns.
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

        In each query the forward strand comes first. None means that the text has too many rows or
        bytes: the caller then cuts the block, or asks for columns.
        """
        ...


@runtime_checkable
class UniqueBackend(Protocol):
    """A backend that may search pages which serve only matches that are unique in the reference.

    If the loaded pages are such pages, `only_unique` is true and `find_unique` takes the place of
    `find_mems`.
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

        This is what `filter.keep_unique` leaves of all MEMs; queries may be long. Any thread calls
        `tell` with a number of bases whenever so many have been searched on all strands. None means
        that there are more than `max_rows`.
        """
        ...


@runtime_checkable
class ColumnsBackend(Protocol):
    """A backend that can also leave the columns of the matches on the device that finds them.

    The loaded pages decide whether it can (`leaves_columns`).
    """

    @property
    def leaves_columns(self) -> bool: ...  # noqa: D102

    def set_records(self, records: RecordPlaces) -> None:
        """Set the places of the records; the next pages that are loaded follow them."""
        ...

    def find_columns(
        self, blocks: Iterable[QueryBlock], strands: Sequence[Strand]
    ) -> DeviceColumns:
        """Return the columns of the MEMs between the loaded pages and all blocks, in order.

        No query is searched in pieces. The memory is the caller's: it stays when the backend is
        closed. `BackendError` is raised if a query, its matches, or all columns do not fit the
        device's memory.
        """
        ...


@runtime_checkable
class WindowBackend(Protocol):
    """A backend with the tables of all pages, which also searches them as other pages say."""

    def for_windows(self, page: KmerPage, minimum_length: int) -> Backend[KmerPage]:
        """Return a backend on the same tables that looks for windows (`KmerPage.sample_step`)."""
        ...


@runtime_checkable
class ResidentBackend(Protocol):
    """A backend that can also hand over matches on the device that finds them, for further work.

    The loaded pages decide whether it can (`hands_over`).
    """

    @property
    def sizes(self) -> WorkSizes: ...  # noqa: D102

    @property
    def hands_over(self) -> bool: ...  # noqa: D102

    def use_matches(
        self, block: QueryBlock, max_rows: int, use: Callable[[ResidentMatches], Result]
    ) -> Result | None:
        """Return what a function makes of the matches of a block, on both strands.

        The device is current in the thread that calls `use`; no query is searched in pieces. None
        means that there are more than `max_rows` matches, or that they or what is made of them do
        not fit the device's memory: the caller then cuts the block, or asks for columns.
        """
        ...
