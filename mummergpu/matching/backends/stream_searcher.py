"""The common part of both searches on a GPU stream, of trees and of k-mer tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic, TypeVar

import numpy as np

from mummergpu.cuda.device import Device, DeviceMemoryError
from mummergpu.cuda.launcher import Launcher
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.workspace import Workspace
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.device_codes import PADDING_BYTES, WORD_BYTES
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns, new_rows

ContextType = TypeVar("ContextType")
PreparedType = TypeVar("PreparedType")

COUNTER_BYTES: Final = 32
"""The size of the buffer of counters that is copied back to the host."""

MAX_BASES: Final = 1 << 30
"""The most bases of a block; positions have 32 bits on the device, with some to spare."""


@frozen
class UploadedBlock:
    """A block of queries on the device, as it was copied there.

    `codes` is the address of the forward strand, `size` its bytes with the zero padding after them,
    and `offsets` the address of the array that says where each query begins and the last one ends.
    `continues` says whether queries go on behind their ends (`QueryBlock`).
    """

    query_count: int
    base_count: int
    codes: int
    size: int
    offsets: int
    continues: bool = False


@frozen
class DeviceMems:
    """The MEMs of a block on one strand, on the device.

    Attributes
    ----------
    query_offsets : int
        The address of the array that says where the rows of each query begin and end.
    columns : tuple of int
        The addresses of the query starts, the reference starts and the lengths.
    seeds : int
        The address of `MemColumns.seeds`; 0 if no match is left out.
    """

    query_offsets: int
    columns: tuple[int, int, int]
    count: int
    seeds: int = 0


class StreamSearcher(ABC, Generic[ContextType, PreparedType]):
    """Searches one block at a time, on its own stream and with at most `limit` bytes of memory.

    The device is current in the calling thread whenever a method is called.
    """

    stage = ""
    """The stage to which the times of the kernels are added."""

    stages: Mapping[str, str] = MappingProxyType({})
    """The stages of kernels whose times are added to another stage, by kernel name."""

    def __init__(self, device: Device, limit: int, stats: Stats) -> None:
        self._device = device
        self._stats = stats
        self._stream = device.new_stream()
        self._workspace = Workspace(device, limit)
        self._launcher = Launcher(
            device, self._stream, self._workspace, stats, self.stage, self.stages
        )
        self._staging = Staging(device, self._stream)
        self._total = device.pinned(1, np.int64)
        self._counters = device.pinned(COUNTER_BYTES // 8, np.int64)

    def find_mems(
        self, context: ContextType, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block, or None if too many (`interface.Backend.find_mems`).

        The block is copied to the device once, however many strands are searched. If the block or
        its MEMs do not fit, `DeviceMemoryError` is raised.
        """
        found: dict[Strand, MemColumns] = {}
        try:
            prepared = self._prepare(context, self._upload_block(block))
            for strand in strands:
                columns = self._search_strand(context, prepared, strand, max_rows)
                if columns is None:
                    break
                max_rows -= columns.count
                found[strand] = columns
        finally:
            self._stream.synchronize()
        self._launcher.report()
        return found if len(found) == len(strands) else None

    @abstractmethod
    def _prepare(self, context: ContextType, block: UploadedBlock) -> PreparedType:
        """Return a block in the form in which all strands are searched."""

    @abstractmethod
    def _search_strand(
        self, context: ContextType, block: PreparedType, strand: Strand, max_rows: int
    ) -> MemColumns | None:
        """Return the MEMs of a block on one strand, or None if there are too many."""

    def release(self) -> None:
        """Free the memory of a block that did not fit."""
        self._stream.synchronize()
        self._launcher.forget()
        self._workspace.free()

    def free(self) -> None:
        """Free all memory and the stream."""
        # Pinned memory must be freed before its CUDA context.
        self._total = self._counters = np.empty(0, dtype=np.int64)
        self._staging.free()
        self._workspace.free()
        self._stream.free()

    def _upload_block(self, block: QueryBlock) -> UploadedBlock:
        """Copy a block to the device."""
        codes, offsets = block.codes, block.offsets
        if block.base_count > MAX_BASES:
            raise DeviceMemoryError(f"{block.base_count} bases in one block")
        size = -(-codes.size // WORD_BYTES) * WORD_BYTES + PADDING_BYTES
        uploaded = UploadedBlock(
            block.query_count,
            block.base_count,
            self._workspace.buffer("codes", size),
            size,
            self._workspace.buffer("query offsets", offsets.nbytes),
            block.continues,
        )
        whole_words = codes.size // WORD_BYTES * WORD_BYTES
        self._stream.fill_zero(uploaded.codes + whole_words, size - whole_words)
        self._staging.copy_in(uploaded.codes, codes)
        self._staging.copy_in(uploaded.offsets, offsets)
        self._stats.add_bytes(to_device=codes.nbytes + offsets.nbytes)
        return uploaded

    def _columns(self, set_number: int, count: int) -> tuple[int, int, int]:
        """Return the addresses of the three buffers for the columns of a set of MEMs."""
        buffer = self._workspace.buffer
        return (
            buffer(f"query starts {set_number}", 8 * count),
            buffer(f"reference starts {set_number}", 8 * count),
            buffer(f"lengths {set_number}", 8 * count),
        )

    def _read_total(self, offsets: int, count: int) -> int:
        """Return the last of `count + 1` offsets, which is the total that they count."""
        self._stream.copy_out(self._total, offsets + 8 * count)
        self._stream.synchronize()
        return int(self._total[0])

    def _download(
        self, query_count: int, offsets: int, columns: tuple[int, int, int], count: int
    ) -> MemColumns:
        """Copy MEMs to the host."""
        host_offsets = np.empty(query_count + 1, dtype=np.int64)
        host_columns = new_rows(count)
        # The stage must not count the kernels that are still running.
        self._stream.synchronize()
        with self._stats.stage("matches_from_device"):
            self._staging.copy_out(host_offsets, offsets)
            for column, address in zip(host_columns, columns, strict=True):
                self._staging.copy_out(column, address)
            self._stream.synchronize()
        self._stats.add_bytes(from_device=host_offsets.nbytes + 24 * count)
        return MemColumns(host_offsets, *host_columns)
