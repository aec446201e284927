"""A range of the text of a regular file, plain or in blocks of bgzf, that is read by itself."""

from __future__ import annotations

import os
from io import BytesIO
from typing import Any, Final, NamedTuple, cast

from mummergpu.errors import InputError
from mummergpu.input.bytes.containers import is_bgzf
from mummergpu.input.bytes.file_part import FilePart
from mummergpu.input.bytes.files import TextStream, reading
from mummergpu.input.bytes.source import Source

BLOCK_HEAD: Final = 18
"""The bytes of a block of bgzf that tell its length."""

LONGEST_BLOCK: Final = 1 << 16


class TextPlace(NamedTuple):
    """A place in the text of a file.

    Attributes
    ----------
    at : int
        The byte of a plain file; of bgzf, where the block begins that has the place.
    skipped : int
        The bytes of the text of this block that come before the place.
    """

    at: int
    skipped: int = 0


class FileRange(NamedTuple):
    """The records of a FASTA or FASTQ file from one place to another, where records begin."""

    begin: TextPlace
    end: TextPlace
    is_bgzf: bool
    is_fastq: bool


class InflatedRange:
    """The text of a range of bgzf, in memory (`record_reader.ParsedFile`)."""

    def __init__(self, text: bytes, path: str) -> None:
        self.path = path
        self.source = Source(BytesIO(text))
        self.source.commit()
        self.text = TextStream(self.source, path)


def open_range(file_number: int, path: str, part: FileRange) -> FilePart | InflatedRange:
    """Return what reads a range of an open file.

    Raises
    ------
    InputError
        If a range of bgzf does not consist of whole blocks, or they are corrupt.
    """
    if not part.is_bgzf:
        return FilePart(file_number, path, part.begin.at, part.end.at)
    with reading(path):
        return InflatedRange(_text_of(file_number, path, part.begin, part.end), path)


def block_bytes(head: bytes) -> int:
    """Return the length of a block of bgzf, from its first bytes; 0 if they begin none."""
    return int.from_bytes(head[16:18], "little") + 1 if is_bgzf(head) else 0


def inflated(blocks: bytes) -> bytes:
    """Return the text of whole blocks."""
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
        length = block_bytes(data[at : at + BLOCK_HEAD])
        if not length:
            break
        at += length
    if at != size:
        raise InputError("a part of it has other bytes between blocks of bgzf", path)
    if not end.skipped:
        return inflated(data[:size])[begin.skipped :]
    last = inflated(data[size : size + block_bytes(data[size:])])[: end.skipped]
    return (inflated(data[:size]) + last)[begin.skipped :]
