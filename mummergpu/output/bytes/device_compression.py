"""Compresses output into blocks of bgzf on a device."""

from __future__ import annotations

import gzip
import queue
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy as np

from mummergpu.cuda.device import AnyArray, Buffer, Device, DeviceMemoryError, Program
from mummergpu.cuda.nvcomp import DeflateWork, Nvcomp, nvcomp_error
from mummergpu.cuda.program import WARP_LANES, ProgramSource
from mummergpu.errors import BackendError
from mummergpu.output.bytes.bgzf_blocks import HEAD_BYTES, TAIL_BYTES
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, BGZF_END, Compressor
from mummergpu.output.bytes.texts import Piece
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.stats import Stats

STORED_HEAD_BYTES: Final = 5
"""What precedes a text that is stored in a deflated one as it is."""

_CRC32: Final = 0xEDB8_8320
"""The polynomial of the checksum of gzip, its bits reflected."""

_MAGIC, _TIME, _SYSTEM_AND_EXTRA, _SUBFIELD = struct.unpack_from("<4I", BGZF_END)

BGZF_PROGRAM: Final = ProgramSource(
    "bgzf",
    "bgzf/blocks.cu",
    constants=(
        ("BGZF_BLOCK_BYTES", BGZF_BLOCK_BYTES),
        ("BGZF_HEAD_BYTES", HEAD_BYTES),
        ("BGZF_TAIL_BYTES", TAIL_BYTES),
        ("STORED_HEAD_BYTES", STORED_HEAD_BYTES),
        ("BGZF_MAGIC", _MAGIC),
        ("BGZF_TIME", _TIME),
        ("BGZF_SYSTEM_AND_EXTRA", _SYSTEM_AND_EXTRA),
        ("BGZF_SUBFIELD", _SUBFIELD),
        ("CRC32_POLYNOMIAL", _CRC32),
    ),
)
"""The same program for every run; all blocks have the same head but for their size."""


STAGE: Final = "format"
"""The stage to which the times of the kernels are added."""

_MOST_OF_BLOCK: Final = HEAD_BYTES + STORED_HEAD_BYTES + BGZF_BLOCK_BYTES + TAIL_BYTES
_ALIGNMENT: Final = 256
"""More than the library asks for."""

_NOTHING: Final[AnyArray] = np.empty(0, dtype=np.uint8)


class DeflateSlot:
    """Compresses one chunk at a time; the device is current in the thread that calls any method."""

    def __init__(
        self, device: Device, program: Program, deflater: Nvcomp, stats: Stats, blocks: int
    ) -> None:
        self._device = device
        self._program = program
        self._deflater = deflater
        self._stats = stats
        self._buffers: list[Buffer] = []
        self._text = self._blocks = self._sizes = self._ends = self._states = _NOTHING
        self._stream = device.new_stream()
        try:
            self._place(blocks)
        except BaseException:
            self.free()
            raise

    def _place(self, blocks: int) -> None:
        """Allocate all memory, and have the addresses of the pieces on the device."""
        self._text = self._device.pinned(blocks * BGZF_BLOCK_BYTES, np.uint8)
        self._blocks = self._device.pinned(blocks * _MOST_OF_BLOCK, np.uint8)
        self._sizes = self._device.pinned(blocks, np.uint64)
        self._ends = self._device.pinned(blocks, np.uint64)
        self._states = self._device.pinned(blocks, np.int32)
        most = self._deflater.max_bytes(BGZF_BLOCK_BYTES)
        self._stride = -(-most // _ALIGNMENT) * _ALIGNMENT
        self._text_at = self._allocate(self._text.nbytes)
        self._pieces_at = self._allocate(blocks * self._stride)
        self._blocks_at = self._allocate(self._blocks.nbytes)
        self._ends_at = self._allocate(self._ends.nbytes)
        workspace_bytes = self._deflater.workspace_bytes(blocks, BGZF_BLOCK_BYTES)
        numbers = np.arange(blocks, dtype=np.uint64)
        self._work = DeflateWork(
            blocks,
            BGZF_BLOCK_BYTES,
            texts=self._copy(np.uint64(self._text_at) + numbers * np.uint64(BGZF_BLOCK_BYTES)),
            sizes=self._allocate(self._sizes.nbytes),
            workspace=self._allocate(max(1, workspace_bytes)),
            workspace_bytes=workspace_bytes,
            outputs=self._copy(np.uint64(self._pieces_at) + numbers * np.uint64(self._stride)),
            output_sizes=self._allocate(self._sizes.nbytes),
            states=self._allocate(self._states.nbytes),
        )

    def compress(self, parts: Sequence[ByteArray]) -> bytes:
        """Return the blocks of a chunk."""
        size = sum(part.size for part in parts)
        if size == 0:
            return b""
        np.concatenate(parts, out=self._text[:size])
        count = -(-size // BGZF_BLOCK_BYTES)
        self._sizes[:count] = BGZF_BLOCK_BYTES
        self._sizes[count - 1] = size - (count - 1) * BGZF_BLOCK_BYTES
        stream = self._stream
        stream.copy_in(self._text_at, self._text[:size])
        stream.copy_in(self._work.sizes, self._sizes[:count])
        begin = stream.mark()
        self._deflater.deflate(stream.handle, replace(self._work, count=count))
        deflated = stream.mark()
        stream.launch(
            self._program,
            "write_blocks",
            -(-count * WARP_LANES // self._device.block_threads),
            (
                *(self._text_at, size, self._pieces_at, self._work.output_sizes, self._stride),
                *(count, self._blocks_at, self._ends_at),
            ),
        )
        end = stream.mark()
        stream.copy_out(self._ends[:count], self._ends_at)
        stream.copy_out(self._states[:count], self._work.states)
        stream.sleep_until_done()
        if np.any(self._states[:count]):
            raise BackendError("cuda", f"nvCOMP: status {self._states[:count].max()} of a block")
        self._stats.add_kernel("nvcomp_deflate", STAGE, deflated.milliseconds_since(begin))
        self._stats.add_kernel("write_blocks", STAGE, end.milliseconds_since(deflated))
        packed_size = int(self._ends[count - 1])
        stream.copy_out(self._blocks[:packed_size], self._blocks_at)
        stream.sleep_until_done()
        self._stats.add_bytes(to_device=size, from_device=packed_size)
        return self._blocks[:packed_size].tobytes()

    def free(self) -> None:
        """Free all memory."""
        while self._buffers:
            self._buffers.pop().free()
        self._stream.free()
        # The pinned memory must be freed before its context is destroyed.
        self._text = self._blocks = self._sizes = self._ends = self._states = _NOTHING

    def _allocate(self, size: int) -> int:
        """Return the address of new memory on the device."""
        self._buffers.append(self._device.allocate(size))
        return self._buffers[-1].address

    def _copy(self, numbers: AnyArray) -> int:
        """Return the address of a copy on the device."""
        address = self._allocate(numbers.nbytes)
        self._stream.copy_in(address, numbers)
        self._stream.synchronize()
        return address


BLOCKS_AT_ONCE: Final = 256
"""The blocks of a chunk. They take some six milliseconds, as a single block does."""

SLOTS: Final = 4
"""The chunks that are compressed at the same time."""


class DeviceBgzfCompressor(Compressor):
    """Compresses into the blocks of bgzf on a device, which it does not close; threads share one.

    What a block becomes does not depend on the other blocks, nor on the device. `LibraryError` if
    what the library deflates does not inflate to the same, `BackendError` if the device fails.
    """

    chunk_bytes = BLOCKS_AT_ONCE * BGZF_BLOCK_BYTES
    max_threads = SLOTS

    def __init__(self, device: Device, program: Program, deflater: Nvcomp, stats: Stats) -> None:
        super().__init__()
        self._device = device
        self._program = program
        self._deflater = deflater
        self._stats = stats
        self._idle: queue.SimpleQueue[DeflateSlot] = queue.SimpleQueue()
        self._slots: list[DeflateSlot] = []
        self._max_slots = SLOTS
        self._opening = threading.Lock()
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def compress(self, piece: Piece) -> bytes:
        """Return the blocks of a piece (`Compressor.compress`)."""
        data = np.frombuffer(piece, dtype=np.uint8)
        step = self.chunk_bytes
        return b"".join(
            self.compress_parts([data[at : at + step]]) for at in range(0, data.size, step)
        )

    def compress_parts(self, parts: Sequence[ByteArray]) -> bytes:
        """Return the blocks of a piece of at most `chunk_bytes` (`Compressor.compress_parts`)."""
        with self._device.current(), self._idle_slot() as slot:
            return slot.compress(parts)

    def end(self) -> bytes:
        """Return the empty block that ends the file."""
        return BGZF_END

    def close(self) -> None:
        """Free the memory on the device; no thread may compress any more."""
        with self._device.current():
            while self._slots:
                self._slots.pop().free()

    def _check(self) -> None:
        """Raise `LibraryError` if a text does not come back."""
        text = np.arange(3 * BGZF_BLOCK_BYTES // 4, dtype=np.uint16).view(np.uint8)
        packed = self.compress(text)
        try:
            found = gzip.decompress(packed)
        except (OSError, EOFError, zlib.error) as error:
            raise nvcomp_error(f"what it deflates cannot be inflated: {error}") from error
        if found != text.tobytes():
            raise nvcomp_error("what it deflates does not inflate to the same")

    @contextmanager
    def _idle_slot(self) -> Iterator[DeflateSlot]:
        slot = self._take_slot()
        try:
            yield slot
        finally:
            self._idle.put(slot)

    def _new_slot(self) -> DeflateSlot:
        return DeflateSlot(self._device, self._program, self._deflater, self._stats, BLOCKS_AT_ONCE)

    def _take_slot(self) -> DeflateSlot:
        """Return an idle slot, a new one if there is none, or wait for one."""
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            pass
        with self._opening:
            if len(self._slots) < self._max_slots:
                try:
                    slot = self._new_slot()
                except DeviceMemoryError as error:
                    if not self._slots:
                        message = f"too little memory is left for compression: {error}"
                        raise BackendError("cuda", message) from error
                    self._max_slots = len(self._slots)
                else:
                    self._slots.append(slot)
                    return slot
        return self._idle.get()
