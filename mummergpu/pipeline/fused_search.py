"""Searches that make the result of a block where its matches are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import BlockText, ResidentBackend
from mummergpu.matching.long_queries import has_long_query
from mummergpu.matching.search import BlockSearch
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.input.blocks.read_block import ReadBlock
    from mummergpu.mapping.alignments.columns import AlignmentColumns
    from mummergpu.mapping.block_mapper import BlockMapper
    from mummergpu.mapping.placing.insert_size import PairSizes
    from mummergpu.mapping.seeding.device_candidates import DeviceCandidates

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class FusedSearch(Protocol[Made]):
    """Searches a block and prepares its result in one step; many threads may call it at once."""

    def suits(self, block: QueryBlock) -> bool:
        """Return whether a block can be searched in this way on the loaded pages."""

    def prepared(self, block: QueryBlock) -> tuple[Made] | None:
        """Return the result of a block.

        Parameters
        ----------
        block : QueryBlock
            The queries, for which `suits` is true.

        Returns
        -------
        tuple or None
            The result alone in a tuple; None if the block has too many matches: then it must be
            cut, or its matches be found and prepared in two steps if it has only one query.
        """


class TextSearch(Generic[Result]):
    """Prepares the text that a backend makes of the matches (`FusedSearch`)."""

    def __init__(
        self, search: BlockSearch, prepare: Callable[[QueryBlock, BlockText], Result]
    ) -> None:
        self._search = search
        self._prepare = prepare

    def suits(self, block: QueryBlock) -> bool:
        """Return whether the backend makes the text of a block (`FusedSearch`)."""
        return self._search.makes_text(block)

    def prepared(self, block: QueryBlock) -> tuple[Result] | None:
        """Return what is prepared of a block's text (`FusedSearch`)."""
        text = self._search.find_text(block)
        return None if text is None else (self._prepare(block, text),)


class CandidateSearch(Generic[Result]):
    """Has candidates found on a device, and maps the reads to them (`FusedSearch`)."""

    def __init__(
        self,
        backend: ResidentBackend[Any],
        finder: DeviceCandidates,
        mapper: BlockMapper,
        sizes: PairSizes,
        prepare: Callable[[ReadBlock, AlignmentColumns], Result],
        stats: Stats,
    ) -> None:
        self._backend = backend
        self._finder = finder
        self._mapper = mapper
        self._sizes = sizes
        self._prepare = prepare
        self._stats = stats

    def suits(self, block: QueryBlock) -> bool:
        """Return whether the device can find the candidates of a block (`FusedSearch`)."""
        # The device knows the sizes of one library, and no circular records.
        return (
            self._backend.hands_over
            and self._mapper.is_linear
            and not has_long_query(block, self._backend.sizes.long_query)
            and self._sizes.libraries_of(cast("ReadBlock", block)).size == 1
        )

    def prepared(self, block: QueryBlock) -> tuple[Result] | None:
        """Return what is prepared of a block's alignments (`FusedSearch`)."""
        reads = cast("ReadBlock", block)
        found = self._backend.use_matches(
            block,
            self._backend.sizes.max_rows,
            lambda matches: self._finder.find(matches, reads, self._sizes),
        )
        if found is None:
            return None
        with self._stats.stage("mapping"):
            columns = self._mapper.map_found(reads, found, self._sizes)
        return (self._prepare(reads, columns),)
