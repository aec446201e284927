"""Opening input files: plain or gzipped, and of which format, told from their bytes."""

from __future__ import annotations

import gzip
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from io import RawIOBase
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, cast

from mummergpu.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STANDARD_INPUT: Final = "-"

_HEAD_SIZE: Final = 1 << 16
_LONGEST_BLANK_HEAD: Final = 1 << 20


class Format(Enum):
    """What a file holds."""

    FASTA = "FASTA"
    FASTQ = "FASTQ"
    SAM = "SAM"
    BAM = "BAM"
    CRAM = "CRAM"

    @property
    def is_alignment(self) -> bool:
        """True of what htslib reads."""
        return self in (Format.SAM, Format.BAM, Format.CRAM)


_GZIP: Final = b"\x1f\x8b"
_OTHER_COMPRESSIONS: Final = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
_LONGEST_MAGIC: Final = 6
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAM_HEADER: Final = re.compile(rb"@(?:HD|SQ|RG|PG)\t[A-Za-z][A-Za-z0-9]:")
_SAM_RECORD: Final = re.compile(
    rb"[^@\t\n][^\t\n]*\t\d+\t[^\t\n]+\t\d+\t\d+\t[^\t\n]+(?:\t[^\t\n]+){5}"
)
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f-\xff]")


class Readable(Protocol):
    """The part of a binary file that is used here."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill some of the buffer; return how many bytes, 0 at the end."""
        ...


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what can go wrong with reading a file into an `InputError`.

    Parameters
    ----------
    path : str
        The file as the user named it.
    """
    try:
        yield
    except EOFError:
        raise InputError("the compressed data end too early (truncated?)", path) from None
    except OSError as error:
        if error.errno is None:  # gzip's own complaints come without a number.
            raise InputError(_gzip_fault(str(error)), path) from None
        reason = os.strerror(error.errno)
        raise InputError(reason[:1].lower() + reason[1:], path) from None


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
        if self._kept is not None:
            self._kept += view[:count]
        return count

    def rewind(self) -> None:
        """Begin again with the first byte; possible until `commit` is called."""
        if self._kept is None:
            raise ValueError("the first bytes are gone")
        self._again = bytes(self._kept) + self._again
        self._kept = bytearray()

    def commit(self) -> None:
        """Stop keeping what has been read."""
        self._kept = None


class TextStream(RawIOBase):
    """Text that can be looked at before it is read.

    Parameters
    ----------
    file : Readable
        Where the text comes from, decompressed.
    path : str
        The file as the user named it, for error messages.
    """

    def __init__(self, file: Readable, path: str) -> None:
        super().__init__()
        self._file = file
        self._path = path
        self._head = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill some of a buffer of bytes.

        Parameters
        ----------
        buffer : bytes-like
            Bytes to fill from the front.

        Returns
        -------
        int
            How many were filled, 0 at the end.

        Raises
        ------
        InputError
            If the file cannot be read, or its compressed data are truncated or corrupt.
        """
        if self._head:
            view = memoryview(buffer)
            count = min(len(self._head), len(view))
            view[:count] = self._head[:count]
            self._head = self._head[count:]
            return count
        with reading(self._path):
            return self._file.readinto(buffer) or 0

    def peek(self) -> bytes:
        """Return the text up to the end of the first line that is not blank, or a good part."""
        head = b""
        buffer = bytearray(_HEAD_SIZE)
        while not _is_enough(head):
            count = self.readinto(memoryview(buffer))
            if count == 0:
                break
            head += buffer[:count]
        self._head = head + self._head
        return head

    def skip(self, count: int) -> None:
        """Leave out the first bytes of what `peek` has returned."""
        self._head = self._head[count:]


def _is_enough(head: bytes) -> bool:
    rest = head.lstrip()
    return b"\n" in rest or len(rest) >= _HEAD_SIZE or len(head) >= _LONGEST_BLANK_HEAD


class Input:
    """An open input file whose format is known.

    Parameters
    ----------
    path : str
        The file, "-" being standard input.

    Attributes
    ----------
    path : str
        The file as the user named it.
    format : Format
        What it holds.
    file : file
        What was opened.
    source : Source
        The bytes of the file; from the first one on, if it is BAM or CRAM.
    text : TextStream
        The text of the file from its first byte on, if it is FASTA, FASTQ or SAM.
    is_compressed : bool
        Whether `text` is more than the file.

    Raises
    ------
    InputError
        If the file cannot be read, is empty, or is of no known format.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = open_binary(path)
        try:
            self.source = Source(cast(Readable, self.file))
            magic = self._magic()
            self.is_compressed = magic.startswith(_GZIP)
            self.text = TextStream(self._text(), path)
            self.format = Format.CRAM if magic.startswith(b"CRAM") else self._detect()
            if self.format in (Format.BAM, Format.CRAM):
                self.source.rewind()
            self.source.commit()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Input:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self.path != STANDARD_INPUT:
            with reading(self.path):
                self.file.close()

    @property
    def size(self) -> int | None:
        """The bytes of the file, None if it is not a regular one."""
        return file_size(self.file)

    def _magic(self) -> bytes:
        """Return the first bytes of the file, and rewind it."""
        magic = b""
        with reading(self.path):
            while len(magic) < _LONGEST_MAGIC and (more := self.source.read(_LONGEST_MAGIC)):
                magic += more
        if not magic:
            raise InputError("the file is empty", self.path)
        for start, name in _OTHER_COMPRESSIONS.items():
            if magic.startswith(start):
                raise InputError(f"compressed with {name}; only gzip is understood", self.path)
        self.source.rewind()
        return magic

    def _text(self) -> Readable:
        return _Inflated(self.source) if self.is_compressed else self.source

    def _detect(self) -> Format:
        """Tell the format of a text, or BAM, by how it begins."""
        head = self.text.peek()
        if not head:
            raise InputError("the compressed file holds nothing", self.path)
        if head.startswith(b"BAM\x01") and self.is_compressed:
            return Format.BAM
        if head.startswith(_BYTE_ORDER_MARK):
            self.text.skip(len(_BYTE_ORDER_MARK))
            head = head[len(_BYTE_ORDER_MARK) :]
        rest = head.lstrip()
        line = head[: len(head) - len(rest)].count(b"\n") + 1
        if not rest:
            raise InputError("the file holds blank lines only", self.path)
        if _SAM_HEADER.match(head) or _SAM_RECORD.match(head):
            return Format.SAM
        if rest.startswith(b">"):
            return Format.FASTA
        if rest.startswith(b"@"):
            return Format.FASTQ
        what = "binary data" if _BINARY.search(rest.split(b"\n")[0]) else "text"
        raise InputError(f"{what}, but not FASTA, FASTQ, SAM, BAM or CRAM", self.path, line)


class _Inflated:
    """Reads gzip, one or many members, without waiting for more than one call can give."""

    def __init__(self, file: Readable) -> None:
        from isal import igzip, igzip_lib

        open_gzip: Any = igzip.IGzipFile
        self._file: Any = open_gzip(fileobj=file, mode="rb")
        self._error = cast("type[Exception]", igzip_lib.IsalError)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        try:
            data = self._file.read1(len(view))
        except self._error as error:
            raise gzip.BadGzipFile(str(error)) from None
        view[: len(data)] = data
        return len(data)


def _gzip_fault(message: str) -> str:
    if message.startswith("Not a gzipped file"):  # The first member was one.
        return "the compressed data are followed by something else"
    return f"the compressed data are corrupt ({message})"


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading, without a buffer.

    Parameters
    ----------
    path : str
        The file, "-" being standard input.

    Returns
    -------
    file
        Unbuffered, unless it is standard input.

    Raises
    ------
    InputError
        If there is no such file, it may not be read, or it is a directory.
    """
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise InputError("standard input is closed", path)
        return sys.stdin.buffer
    with reading(path):
        return open(path, "rb", buffering=0)


def file_size(file: BinaryIO) -> int | None:
    """Return the size of an open file in bytes.

    Parameters
    ----------
    file : file
        Any open file.

    Returns
    -------
    int or None
        None if it is not a regular file.
    """
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
