"""Searching a block of queries: on each strand, in pieces where queries are long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from mummergpu.input.queries import QueryBlock
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.columns import MemColumns
from mummergpu.matching.filter import keep_long
from mummergpu.matching.long_queries import (
    PartMems,
    Pieces,
    cut_queries,
    has_long_query,
    join_parts,
    owned_mems,
)
from mummergpu.matching.merge import merge_pages
from mummergpu.sequence.codes import CodeArray, Strand, reverse_complement_each

UNBOUNDED: Final = 1 << 62
"""More rows than there can be."""

PARTS_OF_TASK: Final = 2
"""Long queries that make more parts than this are the work of all threads together."""

BlockMems = dict[Strand, MemColumns]
"""The matches of a block of queries, on each strand that was searched."""


class BlockSearch:
    """Searches blocks of queries on the pages that a backend has loaded.

    May be shared by threads.

    Parameters
    ----------
    backend : Backend
        What finds the matches.
    reference : ndarray, dtype=uint8
        The codes of the whole reference.
    strands : tuple of Strand
        Which strands of the queries are searched.
    minimum_length : int
        The fewest bases of a match.
    search_length : int
        The fewest bases of the matches that the pages are searched for; may be less.
    """

    def __init__(
        self,
        backend: Backend[Any],
        reference: CodeArray,
        strands: tuple[Strand, ...],
        minimum_length: int,
        search_length: int,
    ) -> None:
        self.strands = strands
        self.sizes = backend.sizes
        self._backend = backend
        self._reference = reference
        self._minimum_length = minimum_length
        self._search_length = search_length

    def needs_all_threads(self, block: QueryBlock) -> bool:
        """Return whether one thread would be busy with a block for long."""
        return has_long_query(block, PARTS_OF_TASK * self.sizes.part_bases)

    def find_mems(
        self,
        block: QueryBlock,
        max_rows: int = UNBOUNDED,
        map_function: Callable[..., Iterable[PartMems]] = map,
    ) -> BlockMems | None:
        """Return the matches of a block on the pages that are loaded.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        max_rows : int
            The most matches to make room for.
        map_function : callable
            A kind of map: it searches the parts of long queries.

        Returns
        -------
        dict of Strand to MemColumns, or None
            None if there are more matches than `max_rows`, and the block has more than one
            query.
        """
        mems: BlockMems | None
        if has_long_query(block, self.sizes.long_query):
            mems = {
                strand: self._find_in_pieces(block, strand, map_function) for strand in self.strands
            }
        else:
            mems = self._backend.find_mems(block, self.strands, max_rows)
        if mems is None or self._search_length >= self._minimum_length:
            return mems
        return {
            strand: keep_long(columns, self._minimum_length) for strand, columns in mems.items()
        }

    def merge_groups(self, groups: Sequence[BlockMems]) -> BlockMems:
        """Return the matches of a block on several groups of pages together."""
        return {strand: merge_pages([group[strand] for group in groups]) for strand in self.strands}

    def _find_in_pieces(
        self,
        block: QueryBlock,
        strand: Strand,
        map_function: Callable[..., Iterable[PartMems]],
    ) -> MemColumns:
        """Return the matches of a block with long queries, found piece by piece.

        Pieces are cut from the strand that is searched, each with the bases that its starts need
        after them: so they are forward strands for the backend.
        """
        codes = block.codes
        if strand is Strand.REVERSE:
            codes = reverse_complement_each(codes, block.offsets)

        def search(part: Pieces) -> PartMems:
            found = self._backend.find_mems(part.as_block(codes), (Strand.FORWARD,), UNBOUNDED)
            assert found is not None
            return owned_mems(part, found[Strand.FORWARD], block.offsets, codes, self._reference)

        pieces = cut_queries(block.offsets, self._search_length - 1, self.sizes.piece_bases)
        return join_parts(list(map_function(search, pieces.parts(self.sizes.part_bases))))
