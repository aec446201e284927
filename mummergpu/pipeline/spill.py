"""Temporary files that keep queries and matches until the last group of pages is searched.

If all pages together do not fit into memory, all queries are searched on one group of pages
after the other. These files keep the queries, because standard input cannot be read twice, and
their matches on the earlier groups, in the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.records.record_arrays import Records, Spans
from mummergpu.runtime.closing import Closing
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data
from mummergpu.sequence.mems import BlockMems, MemColumns
from mummergpu.sequence.strand import Strand


class ArrayFile(Closing):
    """A temporary file without a name; arrays are written to it and read back in order.

    All methods raise `OutputError` if the disk is full or fails, or an array is cut short.
    """

    def __init__(self) -> None:
        with temporary_data():
            self._file = open_temporary_file()

    def close(self) -> None:
        """Close the file, which also deletes it."""
        # Closing may fail to write the last bytes, which nobody will read.
        with suppress(OSError):
            self._file.close()

    def write(self, *arrays: npt.NDArray[Any]) -> None:
        """Append arrays."""
        with temporary_data():
            for array in arrays:
                np.save(self._file, array, allow_pickle=False)

    def rewind(self) -> None:
        """Go back to the first array."""
        with temporary_data():
            self._file.flush()
            self._file.seek(0)

    def read(self) -> npt.NDArray[Any]:
        """Return the next array."""
        with temporary_data():
            try:
                array: npt.NDArray[Any] = np.load(self._file, allow_pickle=False)
            except (EOFError, ValueError) as error:
                # numpy raises these if the beginning or the end of an array is missing.
                raise OSError("the file is cut short") from error
        return array


class SpilledQueries(ArrayFile):
    """A temporary file with the blocks of queries of a run."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: list[_KindOfBlock] = []

    @property
    def block_count(self) -> int:
        """The number of blocks that have been written."""
        return len(self._kinds)

    def write_block(self, block: QueryBlock) -> None:
        """Append a block; blocks are numbered in the order in which they are written."""
        self.write(block.padded_codes, block.offsets, block.names, block.name_offsets)
        paired, has_written, has_groups = None, False, False
        if isinstance(block, ReadBlock):
            self.write(block.base_qualities)
            paired = block.paired
            if (written := block.written) is not None:
                self.write(written.padded_codes, written.offsets, written.qualities)
                has_written = True
            self.write(*block.tags)
            has_groups = block.has_groups
        self._kinds.append(_KindOfBlock(block.file_number, paired, has_written, has_groups))

    def read_blocks(self) -> Iterator[QueryBlock]:
        """Yield all blocks, starting with the first; blocks of reads with their qualities."""
        self.rewind()
        for index in range(self.block_count):
            yield self._read_block(index)

    def _read_block(self, index: int) -> QueryBlock:
        kind = self._kinds[index]
        arrays = self.read(), self.read(), self.read(), self.read()
        if kind.paired is None:
            return QueryBlock(index, *arrays, kind.file_number)
        qualities = self.read()
        written = None
        if kind.has_written:
            padded, offsets, written_qualities = self.read(), self.read(), self.read()
            written = Records(padded, offsets, *arrays[2:], written_qualities)
        return ReadBlock(
            *(index, *arrays, kind.file_number),
            base_qualities=qualities,
            paired=kind.paired,
            written=written,
            tags=Spans(self.read(), self.read()),
            has_groups=kind.has_groups,
        )


@frozen
class _KindOfBlock:
    """The attributes of a block besides arrays; `paired` is None for queries.

    `has_written` means that the output has other arrays than the search; `has_groups` that the tags
    of the reads include their read groups.
    """

    file_number: int
    paired: bool | None
    has_written: bool
    has_groups: bool


class SpilledMems(ArrayFile):
    """A temporary file with the matches of all blocks on one group of pages."""

    def __init__(self, strands: Sequence[Strand]) -> None:
        super().__init__()
        self._strands = strands
        self._left: BlockMems = {}

    def write_mems(self, mems: BlockMems) -> None:
        """Append the matches of a block."""
        for strand in self._strands:
            columns = mems[strand]
            self.write(columns.offsets, *columns.rows)

    def read_mems(self, query_count: int) -> BlockMems:
        """Return the matches of the next queries: a block as written, or a part of one."""
        left = self._left
        if not left or left[self._strands[0]].query_count == 0:
            left = {
                strand: MemColumns(*(self.read() for _ in range(4))) for strand in self._strands
            }
        self._left = {s: one.part(query_count, one.query_count) for s, one in left.items()}
        return {s: one.part(0, query_count) for s, one in left.items()}
