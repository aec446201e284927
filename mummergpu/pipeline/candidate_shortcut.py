"""Maps reads whose candidates a device finds, where their matches are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.mapping.seeding.device_candidates import DeviceCandidates
from mummergpu.matching.backends.interface import ResidentBackend
from mummergpu.matching.long_queries import has_long_query
from mummergpu.runtime.stats import Stats

Result = TypeVar("Result")


class CandidateShortcut(Generic[Result]):
    """Has candidates found on a device, and maps the reads to them (`shortcut.Shortcut`)."""

    def __init__(
        self,
        backend: ResidentBackend,
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
        """Return whether the device can find the candidates of a block (`Shortcut`)."""
        # The device knows the sizes of one library, and no circular records.
        return (
            self._backend.hands_over
            and self._mapper.is_linear
            and not has_long_query(block, self._backend.sizes.long_query)
            and self._sizes.libraries_of(cast(ReadBlock, block)).size == 1
        )

    def prepared(self, block: QueryBlock) -> tuple[Result] | None:
        """Return what is prepared of a block's alignments (`Shortcut`)."""
        reads = cast(ReadBlock, block)
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
