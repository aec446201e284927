"""Pinned memory through which arrays of any size pass to and from a device.

Pinning memory takes the system as long as a device takes to fill it many times over, and no
other thread gets on meanwhile. So a stream pins little, and uses it again and again: one piece
is copied by the host while another is on its way.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.cuda.device import AnyArray, Device, Mark, Stream

PIECE_BYTES: Final = 1 << 22
PIECES: Final = 2


class Staging:
    """The way in and out of a device's memory, for one stream.

    Parameters
    ----------
    device : Device
        Gives the pinned memory; the calling thread's in all methods.
    stream : Stream
        Where the copies are made, after what has been asked of it before.
    """

    def __init__(self, device: Device, stream: Stream) -> None:
        self._stream = stream
        self._pieces = [device.pinned(PIECE_BYTES, np.uint8) for _ in range(PIECES)]
        self._marks: list[Mark | None] = [None] * PIECES
        self._next = 0

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy an array to the device; it may be changed as soon as this returns.

        Parameters
        ----------
        address : int
            Where it goes.
        array : ndarray
            Contiguous, of any type.
        """
        data = array.reshape(-1).view(np.uint8)
        for begin in range(0, data.size, PIECE_BYTES):
            number = self._take_piece()
            part = data[begin : begin + PIECE_BYTES]
            piece = self._pieces[number][: part.size]
            piece[:] = part
            self._stream.copy_in(address + begin, piece)
            self._marks[number] = self._stream.mark()

    def copy_out(self, array: AnyArray, address: int) -> None:
        """Fill an array from the device, and wait until that is done.

        Parameters
        ----------
        array : ndarray
            Contiguous, of any type.
        address : int
            Where its bytes are.
        """
        data = array.reshape(-1).view(np.uint8)
        on_its_way: tuple[AnyArray, int] | None = None
        for begin in range(0, data.size, PIECE_BYTES):
            number = self._take_piece()
            part = data[begin : begin + PIECE_BYTES]
            self._stream.copy_out(self._pieces[number][: part.size], address + begin)
            self._marks[number] = self._stream.mark()
            if on_its_way is not None:
                self._take_over(*on_its_way)
            on_its_way = part, number
        if on_its_way is not None:
            self._take_over(*on_its_way)

    def free(self) -> None:
        """Give the memory back, when nothing is under way any more."""
        # They must be gone before their context is.
        self._pieces.clear()
        self._marks.clear()

    def _take_piece(self) -> int:
        """Return the number of the piece that was used longest ago, when it is free."""
        number = self._next
        self._next = (number + 1) % PIECES
        mark = self._marks[number]
        if mark is not None:
            mark.wait()
        return number

    def _take_over(self, part: AnyArray, number: int) -> None:
        mark = self._marks[number]
        assert mark is not None
        mark.wait()
        part[:] = self._pieces[number][: part.size]
