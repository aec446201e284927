"""Reads a part of a file into memory that exists already, on all systems."""

from __future__ import annotations

import os
from typing import Any


def read_into(file_number: int, memory: memoryview[Any], at: int) -> int:
    """Read bytes of a file.

    Parameters
    ----------
    file_number : int
        The descriptor of the open file; its own position stays.
    memory : memoryview
        Receives the bytes; contiguous, with items of one byte.
    at : int
        The position of the first byte in the file.

    Returns
    -------
    int
        How many bytes were read: 0 at the end of the file, and perhaps fewer than `memory` holds.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    if hasattr(os, "preadv"):
        return os.preadv(file_number, [memory], at)
    # macOS has that call since version 11 only.
    piece = os.pread(file_number, memory.nbytes, at)
    memory[: len(piece)] = piece
    return len(piece)
