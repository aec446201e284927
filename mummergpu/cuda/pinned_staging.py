"""Copies arrays of any size to and from a device through a little pinned memory.

The system needs as long to pin memory as a device needs to fill it many times, and pinning
blocks all other threads. A stream therefore pins little memory and reuses it: the host copies
one piece while the device transfers another. A processor copies more slowly than a device takes;
with a pool, several threads copy pieces to the device side by side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import AnyArray, Device, Mark, Stream

PIECE_BYTES: Final = 1 << 22
PIECES: Final = 2
COPIED_PIECES: Final = 8
"""With a pool that copies."""


class _Copied(NamedTuple):
    """A piece of pinned memory that is full when it is `done`, and where on the device it goes."""

    number: int
    piece: AnyArray
    address: int
    done: Future[None] | None


class Staging:
    """The pinned memory of one stream, for copies to and from the device.

    The device must be current in the thread that calls any method. The copies follow the work that
    is already queued. Each of its `PIECES` pieces of memory has so many bytes; there are
    `COPIED_PIECES` with `copiers`, whose threads copy to the device.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        piece_bytes: int | None = None,
        copiers: ThreadPoolExecutor | None = None,
    ) -> None:
        self._stream = stream
        self._copiers = copiers
        self._piece_bytes = PIECE_BYTES if piece_bytes is None else piece_bytes
        count = PIECES if copiers is None else COPIED_PIECES
        self._pieces = [device.pinned(self._piece_bytes, np.uint8) for _ in range(count)]
        self._marks: list[Mark | None] = [None] * count
        self._next = 0

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy a contiguous array to the device; it may be changed as soon as this returns."""
        data = array.reshape(-1).view(np.uint8)
        # Pieces on their way into pinned memory; the device gets them in their order.
        copied: deque[_Copied] = deque()
        for begin in range(0, data.size, self._piece_bytes):
            if len(copied) == len(self._pieces):
                self._send(copied.popleft())
            number = self._take_piece()
            part = data[begin : begin + self._piece_bytes]
            piece = self._pieces[number][: part.size]
            if self._copiers is None or part.size == data.size:
                piece[:] = part
                self._send(_Copied(number, piece, address + begin, None))
            else:
                done = self._copiers.submit(np.copyto, piece, part)
                copied.append(_Copied(number, piece, address + begin, done))
        for one in copied:
            self._send(one)

    def copy_out(self, array: AnyArray, address: int) -> None:
        """Fill a contiguous array from the device, and wait until that is done."""
        self.copy_out_all((array,), address)

    def copy_out_all(self, arrays: Iterable[AnyArray], address: int) -> None:
        """Fill contiguous arrays from consecutive bytes of the device, and wait until that is done.

        Each array is drawn when the copy into it begins.
        """
        on_its_way: tuple[AnyArray, int] | None = None
        for array in arrays:
            data = array.reshape(-1).view(np.uint8)
            for begin in range(0, data.size, self._piece_bytes):
                number = self._take_piece()
                part = data[begin : begin + self._piece_bytes]
                self._stream.copy_out(self._pieces[number][: part.size], address)
                self._marks[number] = self._stream.mark()
                address += part.size
                if on_its_way is not None:
                    self._take_over(*on_its_way)
                on_its_way = part, number
        if on_its_way is not None:
            self._take_over(*on_its_way)

    def free(self) -> None:
        """Free the memory, when all copies are done."""
        # The pinned memory must be freed before its context is destroyed.
        self._pieces.clear()
        self._marks.clear()

    def _send(self, copied: _Copied) -> None:
        if copied.done is not None:
            copied.done.result()
        self._stream.copy_in(copied.address, copied.piece)
        self._marks[copied.number] = self._stream.mark()

    def _take_piece(self) -> int:
        """Wait for the least recently used piece to become free, and return its number."""
        number = self._next
        self._next = (number + 1) % len(self._pieces)
        mark = self._marks[number]
        if mark is not None:
            mark.wait()
        return number

    def _take_over(self, part: AnyArray, number: int) -> None:
        mark = self._marks[number]
        assert mark is not None
        mark.wait()
        part[:] = self._pieces[number][: part.size]
