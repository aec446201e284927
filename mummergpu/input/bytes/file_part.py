"""Parts of regular files, which any thread can read like whole files."""

from __future__ import annotations

import os
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import CountedInput, Readable, TextStream, reading
from mummergpu.input.bytes.formats import BGZF_HEAD, bgzf_block_bytes

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LONGEST_BLOCK: Final = 1 << 16


class TextPlace(NamedTuple):
    """A byte of a plain file; in bgzf, a block and an offset in its text."""

    at: int
    skipped: int = 0


class FileRange(NamedTuple):
    """The records of a FASTA or FASTQ file between two places at which records begin."""

    begin: TextPlace
    end: TextPlace
    is_bgzf: bool
    is_fastq: bool


class FilePart:
    """A part of a file, which parsers take in place of an `Input`."""

    def __init__(self, path: str, content: Readable) -> None:
        self.path = path
        self.source = CountedInput(content)
        self.source.commit()
        self.text = TextStream(self.source, path)


class _Range:
    """Reads a range of bytes of a file without changing its position."""

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


def plain_part(file_number: int, path: str, begin: int, end: int | None) -> FilePart:
    """Return some bytes of an open plain file; all from `begin` on if `end` is None.

    The caller closes the file. `text` raises `InputError` if it cannot be read.
    """
    return FilePart(path, _Range(file_number, begin, end))


def open_range(file_number: int, path: str, part: FileRange) -> FilePart:
    """Return a range of an open file; a range of bgzf is decompressed in memory."""
    if not part.is_bgzf:
        return plain_part(file_number, path, part.begin.at, part.end.at)
    with reading(path):
        return FilePart(path, BytesIO(_text_of(file_number, path, part.begin, part.end)))


def read_into(file_number: int, memory: memoryview[Any], at: int) -> int:
    """Read bytes of a file into existing memory; return their number, 0 at the end.

    They may be fewer than `memory` holds. The position of the open file does not change.
    """
    if hasattr(os, "preadv"):
        return os.preadv(file_number, [memory], at)
    # macOS has this call only since version 11.
    piece = os.pread(file_number, memory.nbytes, at)
    memory[: len(piece)] = piece
    return len(piece)


def inflated(blocks: bytes) -> bytes:
    """Return the text of whole bgzf blocks."""
    from isal import igzip

    decompress: Any = igzip.decompress
    return cast(bytes, decompress(blocks)) if blocks else b""


def read_bytes(file_number: int, begin: int, end: int) -> bytes:
    """Return some bytes of a file; fewer if it ends before."""
    pieces = []
    while begin < end and (piece := os.pread(file_number, end - begin, begin)):
        pieces.append(piece)
        begin += len(piece)
    return b"".join(pieces)


def _text_of(file_number: int, path: str, begin: TextPlace, end: TextPlace) -> bytes:
    data = read_bytes(file_number, begin.at, end.at + (LONGEST_BLOCK if end.skipped else 0))
    size = end.at - begin.at
    at = 0
    while at < size:
        length = bgzf_block_bytes(data[at : at + BGZF_HEAD])
        if not length:
            break
        at += length
    if at != size:
        raise InputError("a part of it has other bytes between blocks of bgzf", path)
    if not end.skipped:
        return inflated(data[:size])[begin.skipped :]
    last = inflated(data[size : size + bgzf_block_bytes(data[size:])])[: end.skipped]
    return (inflated(data[:size]) + last)[begin.skipped :]
