"""Search of a block of queries, strand by strand; long queries are searched in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import (
    Backend,
    BlockText,
    QueryCodes,
    ResidentBackend,
    RowFormat,
    UniqueBackend,
)
from mummergpu.matching.filter import keep_long
from mummergpu.matching.long_queries import (
    PartMems,
    Pieces,
    cut_queries,
    has_long_query,
    join_parts,
    keep_witnesses,
    owned_mems,
)
from mummergpu.matching.row_order import merge_pages
from mummergpu.sequence.codes import CodeArray, reverse_complement_each
from mummergpu.sequence.mems import BlockMems, MemColumns
from mummergpu.sequence.strand import Strand

UNBOUNDED: Final = 1 << 62
"""More rows than any search can find."""

PARTS_OF_TASK: Final = 2
"""All threads together search a query that makes more parts than this."""


class BlockSearch:
    """Searches blocks of queries on the pages that a backend has loaded.

    Several threads may share one.

    Parameters
    ----------
    minimum_length : int
        The fewest bases of a reported match.
    search_length : int
        The fewest bases of a match that the backend finds; may be less than `minimum_length`.
    row_format : RowFormat or None
        The format of the text that the backend may make in place of columns; None for columns. It
        is set before pages are loaded.
    tell : callable
        Receives a block with long queries and the number of its bases just searched on one strand;
        any thread calls it.
    unique_rows : int or None
        If only matches that are unique in the reference are wanted: the most matches of a part of a
        long query that are held at once. Matches that do not decide which ones are unique are left
        out of each part. None keeps them all.
    """

    def __init__(
        self,
        backend: Backend[Any],
        reference: CodeArray,
        strands: tuple[Strand, ...],
        minimum_length: int,
        search_length: int,
        row_format: RowFormat | None = None,
        tell: Callable[[QueryBlock, int], None] = lambda block, bases: None,
        unique_rows: int | None = None,
    ) -> None:
        self.strands = strands
        self.sizes = backend.sizes
        self._backend = backend
        self._reference = reference
        self.minimum_length = minimum_length
        self._search_length = search_length
        self._tell = tell
        self._unique_rows = unique_rows
        # Parts with more starts are cut at once. Threads need not agree: it only saves time.
        self._fewer_starts = UNBOUNDED
        self._text_backend: ResidentBackend[Any] | None = None
        # The text of a backend has all matches that it finds.
        if row_format is not None and search_length >= minimum_length:
            if isinstance(backend, ResidentBackend):
                backend.set_format(row_format)
                self._text_backend = backend

    def needs_all_threads(self, block: QueryBlock) -> bool:
        """Return whether a block has a query that is too long for one thread."""
        return has_long_query(block, PARTS_OF_TASK * self.sizes.batch_bases)

    def makes_text(self, block: QueryBlock) -> bool:
        """Return whether the backend makes the text of a block on the loaded pages."""
        makes_text = self._text_backend is not None and self._text_backend.makes_text
        return makes_text and not has_long_query(block, self.sizes.long_query)

    def find_text(self, block: QueryBlock) -> BlockText | None:
        """Return the text of a block for which `makes_text` is true, made by the backend.

        None means that the text has too many rows or bytes. Then the block must be cut; if it has
        only one query, `find_mems` finds the matches.
        """
        assert self._text_backend is not None
        return self._text_backend.find_text(block, self.strands, self.sizes.max_rows)

    def find_mems(
        self,
        block: QueryBlock,
        max_rows: int = UNBOUNDED,
        map_function: Callable[..., Iterable[Any]] = map,
    ) -> BlockMems | None:
        """Return the matches of a block on the loaded pages.

        None means that there are more matches than `max_rows` and no query of the block is long.
        Parts of long queries are searched through `map_function`.
        """
        backend = self._backend
        is_long = has_long_query(block, self.sizes.long_query)
        if isinstance(backend, UniqueBackend) and backend.only_unique:

            def tell(bases: int) -> None:
                if is_long:
                    self._tell(block, len(self.strands) * bases)

            # The backend searches parts of long queries by itself.
            most = UNBOUNDED if is_long else max_rows
            return backend.find_unique(block, self.strands, most, map_function, tell)
        mems: BlockMems | None
        if is_long:
            mems = {
                strand: self._find_in_pieces(block, strand, map_function) for strand in self.strands
            }
        else:
            mems = backend.find_mems(block, self.strands, max_rows)
        if mems is None or self._search_length >= self.minimum_length:
            return mems
        return {strand: keep_long(columns, self.minimum_length) for strand, columns in mems.items()}

    def merge_groups(self, groups: Sequence[BlockMems]) -> BlockMems:
        """Merge the matches of a block on several groups of pages."""
        return {strand: merge_pages([group[strand] for group in groups]) for strand in self.strands}

    def _find_in_pieces(
        self, block: QueryBlock, strand: Strand, map_function: Callable[..., Iterable[PartMems]]
    ) -> MemColumns:
        """Return the matches of a block with long queries, found piece by piece.

        The pieces are cut from the strand that is searched, so the backend searches them as forward
        strands. Each piece has enough bases after its owned starts for a whole match.
        """
        codes = block.codes
        if strand is Strand.REVERSE:
            codes = reverse_complement_each(codes, block.offsets)

        queries, overlap = QueryCodes(codes, block.offsets), self._search_length - 1

        def search(part: Pieces) -> PartMems:
            rows, found = self._unique_rows, None
            most = UNBOUNDED if rows is None or not part.can_be_cut else rows
            if most == UNBOUNDED or part.owned_bases <= self._fewer_starts:
                found = self._backend.find_mems(part.as_block(codes), (Strand.FORWARD,), most)
            if found is None:
                self._fewer_starts = min(self._fewer_starts, part.owned_bases // 2)
                return keep_witnesses([search(half) for half in part.halves(overlap)])
            self._tell(block, part.owned_bases)
            mems = owned_mems(part, found[Strand.FORWARD], queries, self._reference)
            if rows is None:
                return mems
            if found[Strand.FORWARD].count < rows // 4:
                self._fewer_starts = max(self._fewer_starts, 2 * part.owned_bases)
            return keep_witnesses([mems])

        pieces = cut_queries(block.offsets, overlap, self.sizes.piece_bases)
        return join_parts(list(map_function(search, pieces.parts(self.sizes.batch_bases))))
