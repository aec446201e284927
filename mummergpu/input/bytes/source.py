"""Counts the bytes of an input file, and can rewind it."""

from __future__ import annotations

from io import RawIOBase
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Readable(Protocol):
    """The one method of a binary file that the readers need."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        ...


class Source(RawIOBase):
    """A binary file that counts the bytes read, and can be rewound until `commit` is called."""

    def __init__(self, file: Readable) -> None:
        super().__init__()
        # A buffered reader's `readinto` waits until the buffer is full; `readinto1` does not.
        self._fill = getattr(file, "readinto1", file.readinto)
        self._again = b""
        self._kept: bytearray | None = bytearray()
        self.bytes_read = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        view = memoryview(buffer)
        if self._again:
            count = min(len(self._again), len(view))
            view[:count] = self._again[:count]
            self._again = self._again[count:]
        else:
            count = self._fill(view) or 0
            self.bytes_read += count
        if self._kept is not None:
            self._kept += view[:count]
        return count

    def rewind(self) -> None:
        """Return to the first byte; possible until `commit` is called."""
        if self._kept is None:
            raise ValueError("the first bytes are gone")
        self._again = bytes(self._kept) + self._again
        self._kept = bytearray()

    def commit(self) -> None:
        """Stop keeping the bytes that have been read; no rewind is possible after this."""
        self._kept = None
