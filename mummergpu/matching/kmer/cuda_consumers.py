"""What becomes of the matches of a k-mer search on the device that finds them, besides text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mummergpu.cuda.device import Argument, DeviceMemoryError, Program
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.resident_matches import DeviceMems, ResidentMatches
from mummergpu.errors import BackendError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.stream_searcher import Consumer, Result
from mummergpu.matching.device_columns import (
    COLUMN_TYPES,
    ColumnParts,
    DeviceColumns,
    new_columns_on,
)
from mummergpu.matching.kmer.cuda_search import KmerStreamSearcher
from mummergpu.matching.kmer.device_text import strand_arguments
from mummergpu.matching.search import UNBOUNDED
from mummergpu.sequence.codes import Strand


class ResidentColumns(Consumer[KmerStreamSearcher, ColumnParts]):
    """Leaves the columns of the matches on some strands on the device.

    `records` are the kernel arguments that say where the records of the reference are.
    """

    def __init__(
        self, records: Sequence[int], strands: Sequence[Strand], parts: ColumnParts
    ) -> None:
        self._records = records
        self._strands = strands
        self._parts = parts

    def take(self, searcher: KmerStreamSearcher, block: QueryBlock, max_rows: int) -> ColumnParts:
        """Add the columns of a block to those of the blocks before (`Consumer`)."""
        found = searcher.find_strands(self._strands, UNBOUNDED)
        assert found is not None
        self._parts.add(self.write(searcher, block, found))
        return self._parts

    def refuse(self, block: QueryBlock, error: DeviceMemoryError) -> None:
        """Raise `BackendError` (`Consumer`)."""
        raise BackendError(
            "cuda",
            f"a query of {block.base_count:,} bases, or its matches, do not fit the "
            f"device's memory ({error}); 'match' searches long queries in pieces",
        ) from error

    def write(
        self, searcher: KmerStreamSearcher, block: QueryBlock, found: dict[Strand, DeviceMems]
    ) -> DeviceColumns:
        """Turn the MEMs of a block into columns of its own, numbered after those before."""
        parts, queries = self._parts, searcher.queries
        rows = sum(mems.count for mems in found.values())
        columns = new_columns_on(searcher.device, rows, block.query_count)
        mems: tuple[Argument, ...] = (
            *strand_arguments(found),
            *(queries.offsets, queries.count),
            *(np.uint32(len(found)), np.uint32(Strand.FORWARD not in found)),
        )
        addresses = [getattr(columns, name).address for name in COLUMN_TYPES]
        searcher.launch_on(
            "write_match_columns", rows, (*mems, *self._records, parts.queries, rows, *addresses)
        )
        searcher.launch_on(
            "write_row_offsets",
            block.query_count + 1,
            (*mems, parts.rows, columns.offsets.address),
        )
        return columns


class HandedOver(Consumer[KmerStreamSearcher, Result]):
    """Hands the matches on both strands to a function that goes on with them on the device."""

    may_be_cut = False

    def __init__(
        self,
        load_program: Callable[[ProgramSource], Program],
        use: Callable[[ResidentMatches], Result],
        notice: Callable[[str], None],
    ) -> None:
        self._load_program = load_program
        self._use = use
        self._notice = notice

    def take(self, searcher: KmerStreamSearcher, block: QueryBlock, max_rows: int) -> Result | None:
        """Return what the function makes of a block (`Consumer`)."""
        found = searcher.find_strands(tuple(Strand), max_rows)
        if found is None:
            return None
        queries = searcher.queries
        return self._use(
            ResidentMatches(
                *(searcher, self._load_program),
                *(queries.count, queries.offsets, queries.bit_planes),
                *(searcher.reverse_planes(), searcher.context.reference),
                *(found[Strand.FORWARD], found[Strand.REVERSE]),
            )
        )

    def refuse(self, block: QueryBlock, error: DeviceMemoryError) -> None:
        """Leave it to the caller to cut the block (`Consumer`)."""
        self._notice(f"{block.query_count:,} queries do not fit the device: {error}")
