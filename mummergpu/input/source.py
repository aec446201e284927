"""The bytes of an input file: counted, read again from the first, and watched for their end."""

from __future__ import annotations

from io import RawIOBase
from typing import TYPE_CHECKING, Any, Protocol

from mummergpu.input.containers import EndWatch

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Readable(Protocol):
    """The part of a binary file that is used here."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill some of the buffer; return how many bytes, 0 at the end."""
        ...


class Source(RawIOBase):
    """A binary file that counts what is read, and can begin again at first.

    Parameters
    ----------
    file : Readable
        Where the bytes come from.

    Attributes
    ----------
    bytes_read : int
        What has been read from `file`.
    """

    def __init__(self, file: Readable) -> None:
        super().__init__()
        # A buffered reader would rather wait for all the bytes; `readinto1` takes what is there.
        self._fill = getattr(file, "readinto1", file.readinto)
        self._again = b""
        self._kept: bytearray | None = bytearray()
        self._ends = EndWatch()
        self.bytes_read = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill some of the buffer; return how many bytes, 0 at the end."""
        view = memoryview(buffer)
        if self._again:
            count = min(len(self._again), len(view))
            view[:count] = self._again[:count]
            self._again = self._again[count:]
        else:
            count = self._fill(view) or 0
            self.bytes_read += count
            self._ends.see(view[:count])
        if self._kept is not None:
            self._kept += view[:count]
        return count

    def check_end(self) -> None:
        """Check that a container whose bytes have all been read is whole.

        Raises
        ------
        MissingEndError
            If the mark that it must end with is missing.
        """
        self._ends.check()

    def rewind(self) -> None:
        """Begin again with the first byte; possible until `commit` is called."""
        if self._kept is None:
            raise ValueError("the first bytes are gone")
        self._again = bytes(self._kept) + self._again
        self._kept = bytearray()

    def commit(self) -> None:
        """Stop keeping what has been read."""
        self._kept = None
