"""Arrays for the pieces of a text, which are used again."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import numpy as np

from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray

PIECE_BYTES: Final = 4 << 20
"""The text of a block is made in pieces of at most about this size."""


class PiecePool:
    """Gives arrays for pieces of text; several threads may share one.

    Without reuse, a text takes a third longer to make, because the system clears new memory.
    """

    def __init__(self, piece_bytes: int) -> None:
        self.piece_bytes = piece_bytes
        self._spare_bytes = piece_bytes + OVERSHOOT
        self._spare: list[TextArray] = []

    def room_for(self, size: int) -> TextArray:
        """Return an array for a text of `size` bytes and the overshoot of wide stores."""
        if size > self.piece_bytes:
            return np.empty(size + OVERSHOOT, dtype=np.uint8)
        # Another thread may take the last spare array between a test and the removal.
        with suppress(IndexError):
            return self._spare.pop()
        return np.empty(self._spare_bytes, dtype=np.uint8)

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece of text; nothing may read the piece afterwards.

        The caller calls this once after writing the piece, from any thread.
        """
        if isinstance(piece, bytes):
            return
        if isinstance(piece.base, np.ndarray) and piece.base.size == self._spare_bytes:
            self._spare.append(piece.base)
