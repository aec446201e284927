"""From a block of reads and its matches to alignments that are counted and written."""

from __future__ import annotations

from typing import Any

from mummergpu.input.queries import QueryBlock
from mummergpu.input.read_block import ReadBlock
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.pair_sizes import PairSizes
from mummergpu.mapping.summary import MappingSummary, empty_summary, summary_of
from mummergpu.matching.block_text import BlockText
from mummergpu.matching.search import BlockMems
from mummergpu.output.alignment_sink import AlignmentSink
from mummergpu.runtime.stats import Stats


class MappedReads:
    """Maps blocks, counts what became of their reads, and writes the alignments.

    Parameters
    ----------
    mapper : BlockMapper
        Maps a block.
    sizes : PairSizes
        The sizes of the templates of pairs.
    sink : AlignmentSink
        Makes the output.
    stats : Stats
        Collects the times, and receives the counts.
    """

    def __init__(
        self, mapper: BlockMapper, sizes: PairSizes, sink: AlignmentSink[Any], stats: Stats
    ) -> None:
        self._mapper = mapper
        self._sizes = sizes
        self._sink = sink
        self._stats = stats
        self._summary = empty_summary()

    def prepare(self, block: QueryBlock, mems: BlockMems) -> tuple[Any, MappingSummary]:
        """Map a block, and prepare its alignments for `write`; any thread may call this."""
        assert isinstance(block, ReadBlock)
        with self._stats.stage("mapping"):
            columns = self._mapper.map_block(block, mems, self._sizes)
        with self._stats.stage("summary"):
            summary = summary_of(columns)
        return self._sink.prepare(block, columns), summary

    def refuse_text(self, block: QueryBlock, text: BlockText) -> tuple[Any, MappingSummary]:
        """Take no text of matches, which no search makes without a format of rows."""
        raise AssertionError("columns were asked for")

    def write(self, prepared: tuple[Any, MappingSummary]) -> None:
        """Write prepared alignments; one thread calls this, block after block."""
        alignments, summary = prepared
        self._sink.write(alignments)
        self._summary += summary

    def finish(self) -> None:
        """Write what follows the last block, and report the counts."""
        self._sink.finish()
        self._stats.set_mapping(self._summary)
        self._stats.add(
            mapped_reads=self._summary.mapped, properly_paired_reads=self._summary.proper
        )
