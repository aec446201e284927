"""A part of a plain file, which is read like a whole file, by any thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mummergpu.input.bytes.files import TextStream
from mummergpu.input.bytes.positioned_read import read_into
from mummergpu.input.bytes.source import Source

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class FilePart:
    """A range of bytes of a regular file that is open and not compressed.

    It can be read beside other parts of the same file, because it leaves the position of the file
    as it is.

    Parameters
    ----------
    file_number : int
        The descriptor of the open file; the caller closes it.
    path : str
        The file as the user named it.
    begin : int
        The first byte of the part.
    end : int or None
        The byte that follows the part; None for all that the file has.

    Attributes
    ----------
    path : str
        The file as the user named it.
    source : Source
        The bytes of the part.
    text : TextStream
        The same as text; it raises `InputError` if the file cannot be read.
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
