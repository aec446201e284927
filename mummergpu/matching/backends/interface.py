"""The interface of every backend: it takes pages and blocks of queries, and returns matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.row_order import join_all
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

if TYPE_CHECKING:
    from mummergpu.cuda.resident_matches import ResidentMatches
    from mummergpu.index.kmer_table import KmerPage
    from mummergpu.matching.device_columns import DeviceColumns, RecordPlaces


TextArray = ByteArray


@frozen
class RowFormat:
    """The facts with which a backend writes headers and rows as the output's formatter does.

    Attributes
    ----------
    record_starts : ndarray, dtype=int64, shape=(n_records,)
        Where each record begins in the joined reference.
    buckets : ndarray, dtype=int32
        The last record that starts at or before each bucket of positions, and one bucket more.
    bucket_shift : int
        The binary logarithm of the positions in a bucket.
    record_names : ndarray, dtype=uint8
        The names of the records, one after the other.
    record_name_offsets : ndarray, dtype=int64, shape=(n_records + 1,)
        Where each name begins, and where the last one ends.
    head_bytes : int
        The bytes before the numbers of a row: the record's name and the blanks around it, or 0
        if rows have no names.
    forward_coordinates : bool
        Whether query positions of reverse matches are given on the forward strand.
    show_query_lengths : bool
        Whether headers end with the length of the query.
    piece_bytes : int
        The most bytes of a piece of text.
    new_piece : callable
        Returns an array for a piece of the given size, at most `piece_bytes`; any thread may call
        it.
    with_columns : bool
        Whether the matches are also needed as columns.
    """

    record_starts: Int64Array
    buckets: Int32Array
    bucket_shift: int
    record_names: TextArray
    record_name_offsets: Int64Array
    head_bytes: int
    forward_coordinates: bool
    show_query_lengths: bool
    piece_bytes: int
    new_piece: Callable[[int], TextArray]
    with_columns: bool = False


@frozen
class BlockText:
    """The text of a block's matches.

    Attributes
    ----------
    pieces : sequence of ndarray, dtype=uint8
        The text, from one piece to the next; a line may lie in two pieces.
    mems : mapping of Strand to MemColumns
        The matches as columns, on each strand that was searched, if the format asks for them; else
        empty.
    """

    pieces: Sequence[TextArray]
    count: int
    mems: Mapping[Strand, MemColumns] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of the text."""
        return sum(piece.size for piece in self.pieces)


def join_texts(one: BlockText, other: BlockText) -> BlockText:
    """Append the text of a block to that of the block before it."""
    mems = {strand: join_all((one.mems[strand], other.mems[strand])) for strand in one.mems}
    return BlockText([*one.pieces, *other.pieces], one.count + other.count, mems)


class QueryCodes(NamedTuple):
    """The bases of a block of queries on the strand that is searched."""

    codes: CodeArray  # The codes, with margins in the k-mer search and without in the tree search.
    # Where each query begins, and where the last one ends, not counting margins; (n_queries + 1,).
    offsets: Int64Array


IndexedPart = TypeVar("IndexedPart")
Result = TypeVar("Result")


@frozen
class WorkSizes:
    """The amounts of work that suit a backend."""

    block_bases: int  # About how many bases make a block of queries.
    piece_bases: int  # The number of starts that a piece of a long query owns.
    long_query: int  # A query of more bases than this is cut into pieces.
    batch_bases: int  # About how many bases of pieces one thread searches together.
    max_rows: int  # A block with more matches than this is cut in two, to limit the memory.
    # About how many bases of a block are searched together before it is known how many matches the
    # queries have.
    first_batch_bases: int


class Backend(ABC, Generic[IndexedPart]):
    """Finds the MEMs of blocks of queries on one kind of pages; several threads share one."""

    name: str  # The one in ``--backend``.
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
    """A backend that can find only the matches that are unique in the reference."""

    @property
    @abstractmethod
    def only_unique(self) -> bool:
        """Whether the loaded pages are for `find_unique` in place of `find_mems`."""

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

        This is the result of `filter.keep_unique` on all MEMs; queries may be long. Any thread
        calls `tell` with the number of bases just searched on all strands. None means that there
        are more than `max_rows`.
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
        """Return a function's result for the matches of a block, on both strands.

        The device is current in the thread that calls `use`; no query is searched in pieces. None
        means that there are more than `max_rows` matches, or that they or the result do not fit
        the device's memory: the caller then cuts the block, or asks for columns.
        """

    @abstractmethod
    def for_windows(self, page: KmerPage, minimum_length: int) -> Self:
        """Return a backend on the same tables, of all pages, with the windows of `page`."""
