"""A part of a plain file, which is read like a whole file, by any thread."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mummergpu.input.bytes.files import TextStream
from mummergpu.input.bytes.source import Source

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class FilePart:
    """A range of bytes of a regular file that is open and not compressed.

    It has all bytes from `begin` on if `end` is None. It can be read beside other parts of the same
    file, because it leaves the position of the file as it is. The caller closes the file; `text`
    raises `InputError` if it cannot be read.
    """

    def __init__(self, file_number: int, path: str, begin: int, end: int | None) -> None:
        self.path = path
        self.source = Source(_Range(file_number, begin, end))
        self.source.commit()
        self.text = TextStream(self.source, path)


class _Range:
    """Reads the bytes of a part one after the other."""

    def __init__(self, file_number: int, begin: int, end: int | None) -> None:
        self._file_number = file_number
        self._at = begin
        self._end = end

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        view = memoryview(buffer)
        if self._end is not None:
            view = view[: self._end - self._at]
        count = read_into(self._file_number, view, self._at)
        self._at += count
        return count


def read_into(file_number: int, memory: memoryview[Any], at: int) -> int:
    """Read bytes of a file into memory that exists already; return how many, 0 at its end.

    They may be fewer than `memory` holds. The position of the open file stays as it is.
    """
    if hasattr(os, "preadv"):
        return os.preadv(file_number, [memory], at)
    # macOS has that call since version 11 only.
    piece = os.pread(file_number, memory.nbytes, at)
    memory[: len(piece)] = piece
    return len(piece)
