"""A temporary file with the alignments of a run that maps reads to one group of pages by one."""

from __future__ import annotations

from collections.abc import Iterator

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.candidates.candidates import Candidates
from mummergpu.mapping.placing.second_pass import DoubtfulReads
from mummergpu.pipeline.spill import SpilledQueries


class SpilledAlignments(SpilledQueries):
    """A temporary file with blocks of reads, their alignments, and which reads are mapped again."""

    def write_alignments(
        self, block: ReadBlock, columns: AlignmentColumns, doubtful: DoubtfulReads
    ) -> None:
        """Append a block with its alignments, and the reads to be mapped again."""
        self.write_block(block)
        self.write(*columns, doubtful.numbers)
        self.write(*doubtful.candidates)

    def read_alignments(self) -> Iterator[tuple[ReadBlock, AlignmentColumns, DoubtfulReads]]:
        """Yield what has been written, starting with the first block."""
        self.rewind()
        for index in range(self.block_count):
            block = self._read_block(index)
            assert isinstance(block, ReadBlock)
            columns = AlignmentColumns(*(self.read() for _ in AlignmentColumns._fields))
            numbers = self.read()
            candidates = Candidates(*(self.read() for _ in Candidates._fields))
            yield block, columns, DoubtfulReads(numbers, candidates)
