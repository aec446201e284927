"""Compresses output into blocks of bgzf on a device."""

from __future__ import annotations

import gzip
import queue
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from mummergpu.cuda.device import Device, DeviceMemoryError, Program
from mummergpu.cuda.nvcomp import Deflater, nvcomp_error
from mummergpu.errors import BackendError
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, BGZF_END, Compressor, Piece
from mummergpu.output.bytes.deflate_slot import DeflateSlot
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.stats import Stats

BLOCKS_AT_ONCE: Final = 256
"""The blocks of a chunk. They take some six milliseconds, as a single block does."""

SLOTS: Final = 4
"""The chunks that are compressed at the same time."""


class DeviceBgzfCompressor(Compressor):
    """Compresses into the blocks of bgzf on a device; several threads share one.

    What a block becomes does not depend on the other blocks, nor on the device.

    Parameters
    ----------
    device : Device
        The device; the compressor does not close it.
    stats : Stats
        Collects the times of the kernels, and the bytes moved.

    Raises
    ------
    LibraryError
        If what the library deflates does not inflate to the same.
    BackendError
        If the device has too little memory, or fails.
    """

    chunk_bytes = BLOCKS_AT_ONCE * BGZF_BLOCK_BYTES
    most_threads = SLOTS

    def __init__(self, device: Device, program: Program, deflater: Deflater, stats: Stats) -> None:
        super().__init__()
        self._device = device
        self._program = program
        self._deflater = deflater
        self._stats = stats
        self._idle: queue.SimpleQueue[DeflateSlot] = queue.SimpleQueue()
        self._slots: list[DeflateSlot] = []
        self._most_slots = SLOTS
        self._opening = threading.Lock()
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def compress(self, piece: Piece) -> bytes:
        """Return the blocks of a piece (`Compressor.compress`).

        Raises
        ------
        BackendError
            If the device fails.
        """
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
            if len(self._slots) < self._most_slots:
                try:
                    slot = self._new_slot()
                except DeviceMemoryError as error:
                    if not self._slots:
                        message = f"too little memory is left for compression: {error}"
                        raise BackendError("cuda", message) from error
                    self._most_slots = len(self._slots)
                else:
                    self._slots.append(slot)
                    return slot
        return self._idle.get()
