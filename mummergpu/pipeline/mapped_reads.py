"""Alignments of blocks of reads are counted and written."""

from __future__ import annotations

from typing import Any

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.alignments.folded_columns import FoldedColumns, fold
from mummergpu.mapping.alignments.summary import MappingSummary, empty_summary, summary_of
from mummergpu.output.alignments.sink import AlignmentSink
from mummergpu.runtime.stats import Stats


class MappedReads:
    """Counts what became of reads, and writes their alignments.

    Parameters
    ----------
    sink : AlignmentSink
        Makes the output.
    stats : Stats
        Collects the times, and receives the counts.
    tells_alternatives : bool
        Whether secondary alignments become a tag of others (`folded_columns.fold`).
    """

    def __init__(
        self, sink: AlignmentSink[Any], stats: Stats, tells_alternatives: bool = False
    ) -> None:
        self._sink = sink
        self._stats = stats
        self._tells_alternatives = tells_alternatives
        self._summary = empty_summary()

    def prepare(self, block: ReadBlock, columns: AlignmentColumns) -> tuple[Any, MappingSummary]:
        """Prepare the alignments of a block for `write`; any thread may call this."""
        told = fold(columns) if self._tells_alternatives else columns
        with self._stats.stage("summary"):
            summary = summary_of(told.rows if isinstance(told, FoldedColumns) else told)
        return self._sink.prepare(block, told), summary

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
