"""The common part of both searches on a GPU stream, of trees and of k-mer tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import numpy as np

from mummergpu.cuda.device import Device, DeviceMemoryError
from mummergpu.cuda.resident_matches import DeviceMems
from mummergpu.cuda.stream_worker import StreamWorker
from mummergpu.errors import BackendError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.row_order import join_all
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import MemColumns, match_count, new_rows
from mummergpu.sequence.strand import Strand

ContextType = TypeVar("ContextType")
PreparedType = TypeVar("PreparedType")
SearcherType = TypeVar("SearcherType")
Result = TypeVar("Result")

COUNTER_BYTES: Final = 32
"""The size of the buffer of counters that is copied back to the host."""

MAX_BASES: Final = 1 << 30
"""The most bases of a block; positions have 32 bits on the device, with some to spare."""

WORD_BYTES: Final = 8
"""The bytes of a word; kernels read codes in whole words."""

PADDING_BYTES: Final = 2 * WORD_BYTES
"""The zero bytes after the last code; they let a kernel read two words from any position."""


@frozen
class UploadedBlock:
    """A block of queries on the device, as it was copied there.

    `codes` is the address of the forward strand, `size` its bytes with the zero padding after them,
    and `offsets` the address of the array that says where each query begins and the last one ends.
    `continues` says whether queries go on after their ends (`QueryBlock`).
    """

    query_count: int
    base_count: int
    codes: int
    size: int
    offsets: int
    continues: bool = False


class Consumer(ABC, Generic[SearcherType, Result]):
    """Makes a result of the matches of a block, on the stream that searches it."""

    may_be_cut = True
    """Whether a block that does not fit the device may be searched in halves."""

    @abstractmethod
    def take(self, searcher: SearcherType, block: QueryBlock, max_rows: int) -> Result | None:
        """Search a block, which the searcher has on the device, and return the result.

        None means that there are more than `max_rows` matches, or that the result is too large.
        `DeviceMemoryError` is raised if the work does not fit.
        """

    def count(self, result: Result) -> int:
        """Return how many matches count against the limit of the other half."""
        return 0

    def join(self, first: Result, second: Result) -> Result | None:
        """Return the result of a block from those of its halves; None if it is too large."""
        return first

    @abstractmethod
    def refuse(self, block: QueryBlock, error: DeviceMemoryError) -> None:
        """Raise `BackendError`, or return None: a block does not fit, and can't be cut."""


class StreamSearcher(StreamWorker, ABC, Generic[ContextType, PreparedType]):
    """Searches one block at a time (`StreamWorker`).

    During a search, `context` is the data that all searches of a run share, and `queries` the
    block on the device.
    """

    stage = ""
    """The stage to which the times of the kernels are added."""

    stages: Mapping[str, str] = MappingProxyType({})
    """The stages of kernels whose times are added to another stage, by kernel name."""

    context: ContextType
    queries: PreparedType

    def __init__(self, device: Device, memory: int, stats: Stats) -> None:
        super().__init__(device, memory, stats, self.stage, stages=self.stages)
        self._total = device.pinned(1, np.int64)
        self._counters = device.pinned(COUNTER_BYTES // 8, np.int64)

    def use_matches(
        self,
        context: ContextType,
        block: QueryBlock,
        max_rows: int,
        consumer: Consumer[Any, Result],
    ) -> Result | None:
        """Return a consumer's result for the matches of a block (`Consumer.take`).

        The block is copied to the device once, however many strands are searched.
        """
        self.context = context
        try:
            self.queries = self._prepare(self._upload_block(block))
            result = consumer.take(self, block, max_rows)
        finally:
            self.stream.synchronize()
        self.launcher.report()
        return result

    @abstractmethod
    def _prepare(self, block: UploadedBlock) -> PreparedType:
        """Return a block in the form in which all strands are searched."""

    @abstractmethod
    def search_strand(self, strand: Strand, max_rows: int) -> MemColumns | None:
        """Return the MEMs of the block on one strand, or None if there are too many."""

    def release(self) -> None:
        """Free the memory of a block that did not fit."""
        self.stream.synchronize()
        self.launcher.forget()
        self.workspace.free()

    def free(self) -> None:
        """Free all memory and the stream."""
        # Pinned memory must be freed before its CUDA context.
        self._total = self._counters = np.empty(0, dtype=np.int64)
        super().free()

    def _upload_block(self, block: QueryBlock) -> UploadedBlock:
        """Copy a block to the device."""
        codes, offsets = block.codes, block.offsets
        if block.base_count > MAX_BASES:
            raise DeviceMemoryError(f"{block.base_count} bases in one block")
        size = -(-codes.size // WORD_BYTES) * WORD_BYTES + PADDING_BYTES
        uploaded = UploadedBlock(
            block.query_count,
            block.base_count,
            self.buffer("codes", size),
            size,
            self.buffer("query offsets", offsets.nbytes),
            block.continues,
        )
        whole_words = codes.size // WORD_BYTES * WORD_BYTES
        self.stream.fill_zero(uploaded.codes + whole_words, size - whole_words)
        self.staging.copy_in(uploaded.codes, codes)
        self.staging.copy_in(uploaded.offsets, offsets)
        self.stats.add_bytes(to_device=codes.nbytes + offsets.nbytes)
        return uploaded

    def _columns(self, set_number: int, count: int) -> tuple[int, int, int]:
        """Return the addresses of the three buffers for the columns of a set of MEMs."""
        return (
            self.buffer(f"query starts {set_number}", 8 * count),
            self.buffer(f"reference starts {set_number}", 8 * count),
            self.buffer(f"lengths {set_number}", 8 * count),
        )

    def _read_total(self, offsets: int, count: int) -> int:
        """Return the last of `count + 1` offsets, which is the total that they count."""
        self.stream.copy_out(self._total, offsets + 8 * count)
        self.wait_for_kernels()
        return int(self._total[0])

    def wait_for_kernels(self) -> None:
        """Wait for work that takes long."""
        self.stream.synchronize()

    def download(self, query_count: int, mems: DeviceMems) -> MemColumns:
        """Copy MEMs to the host."""
        offsets = np.empty(query_count + 1, dtype=np.int64)
        columns = new_rows(mems.count)
        # The stage must not count the kernels that are still running.
        self.stream.synchronize()
        with self.stats.stage("matches_from_device"):
            self.staging.copy_out(offsets, mems.query_offsets)
            for column, address in zip(columns, mems.columns, strict=True):
                self.staging.copy_out(column, address)
            self.stream.synchronize()
        self.stats.add_bytes(from_device=offsets.nbytes + 24 * mems.count)
        return MemColumns(offsets, *columns)


class HostColumns(Consumer[StreamSearcher[Any, Any], dict[Strand, MemColumns]]):
    """Copies the matches on some strands to the host, as columns."""

    def __init__(self, strands: Sequence[Strand]) -> None:
        self._strands = strands

    def take(
        self, searcher: StreamSearcher[Any, Any], block: QueryBlock, max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Copy one strand after the other (`Consumer`)."""
        found: dict[Strand, MemColumns] = {}
        for strand in self._strands:
            columns = searcher.search_strand(strand, max_rows)
            if columns is None:
                return None
            max_rows -= columns.count
            found[strand] = columns
        return found

    def count(self, result: dict[Strand, MemColumns]) -> int:
        """Return the number of all matches (`Consumer`)."""
        return match_count(result)

    def join(
        self, first: dict[Strand, MemColumns], second: dict[Strand, MemColumns]
    ) -> dict[Strand, MemColumns]:
        """Append the columns of the second half (`Consumer`)."""
        return {strand: join_all((first[strand], second[strand])) for strand in first}

    def refuse(self, block: QueryBlock, error: DeviceMemoryError) -> None:
        """Raise `BackendError` (`Consumer`)."""
        raise BackendError(
            "cuda",
            f"the matches of one query do not fit the device's memory ({error}); "
            "use --backend cpu, or look for longer matches",
        ) from error
