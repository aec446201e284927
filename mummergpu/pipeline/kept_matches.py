"""Keeps the matches of the first reads, of which sizes of templates are measured, until they map.

Most inputs of a test or a small genome are searched twice without that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import BlockMems, MemColumns, MemRows, match_count

Result = TypeVar("Result")

MOST_KEPT: Final = 1 << 22
"""So many matches are kept, those of the first reads: 32 MiB, or 48 if the reference is longer than
`SHORT_REFERENCE`."""

SHORT_REFERENCE: Final = 1 << 32


class PackedMems(NamedTuple):
    """The matches of reads on one strand, whose places in the reads take two bytes."""

    offsets: Int64Array
    query_starts: npt.NDArray[np.uint16]
    reference_starts: npt.NDArray[np.int64] | npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.uint16]
    seeds: ByteArray

    @classmethod
    def of(cls, columns: MemColumns) -> PackedMems:
        """Return the same matches in copies that are smaller."""
        starts: npt.NDArray[np.int64] | npt.NDArray[np.uint32] = columns.reference_starts
        if starts.max(initial=0) < SHORT_REFERENCE:
            starts = starts.astype(np.uint32)
        query_starts = columns.query_starts.astype(np.uint16)
        lengths = columns.lengths.astype(np.uint16)
        return cls(columns.offsets, query_starts, starts, lengths, columns.seeds)

    def columns(self) -> MemColumns:
        """Return the matches as they were."""
        rows = MemRows(*(one.astype(np.int64) for one in self[1:4]))
        return MemColumns(self.offsets, *rows, self.seeds)


class KeptMatches(Generic[Result]):
    """The matches of the first reads of an input, which its blocks are cut to (`FusedSearch`)."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, dict[Strand, PackedMems]]] = []
        self._count = 0
        self._is_full = False
        self._of_blocks: dict[int, tuple[QueryBlock, dict[Strand, PackedMems]]] = {}
        self._prepare: Callable[[QueryBlock, BlockMems], Result]

    def add(self, reads: int, mems: BlockMems) -> None:
        """Keep the matches of the reads behind those before, unless all together are too many."""
        self._count += match_count(mems)
        self._is_full |= self._count > MOST_KEPT
        if not self._is_full:
            packed = {strand: PackedMems.of(columns) for strand, columns in mems.items()}
            self._parts.append((reads, packed))

    def cut(
        self, blocks: Iterator[ReadBlock], prepare: Callable[[QueryBlock, BlockMems], Result]
    ) -> Iterator[ReadBlock]:
        """Yield all reads of the input in blocks, the first ones in the parts that are kept."""
        self._prepare = prepare
        parts, self._parts = self._parts[::-1], []
        for block in blocks:
            begin = 0
            while parts and begin < block.query_count:
                reads, mems = parts.pop()
                part = block.part(begin, begin + reads)
                begin += reads
                self._of_blocks[id(part)] = part, mems
                yield part
            if begin < block.query_count:
                yield block if begin == 0 else block.part(begin, block.query_count)

    def suits(self, block: QueryBlock) -> bool:
        """Return whether the matches of a block are kept (`FusedSearch`)."""
        return id(block) in self._of_blocks

    def prepared(self, block: QueryBlock) -> tuple[Result]:
        """Return what is prepared of a block with the matches that are kept (`FusedSearch`)."""
        _, mems = self._of_blocks.pop(id(block))
        unpacked = {strand: packed.columns() for strand, packed in mems.items()}
        return (self._prepare(cast(ReadBlock, block), unpacked),)
