"""Opens input files and detects compression and format from their first bytes."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, TypeAlias, cast

from mummergpu.errors import InputError
from mummergpu.input.bytes.formats import (
    BGZF_HEAD,
    BY_CONTENT,
    BYTE_ORDER_MARK,
    FASTA_WORD,
    LONGEST_MAGIC,
    SYMBOLS,
    ZIP_MAGIC,
    Compression,
    Format,
    MissingEndError,
    compression_of,
    easel_format_of_text,
    format_of_text,
    is_bgzf,
    is_binary,
)
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.runtime.closing import Closing
from mummergpu.runtime.words import pluralize

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from mummergpu.input.bytes.inflated_blocks import InflatedAhead, InflatedBlocks
    from mummergpu.input.bytes.stream_decoders import DecodedStreams

    _Decompressor: TypeAlias = DecodedStreams | InflatedAhead | InflatedBlocks

STANDARD_INPUT: Final = "-"

PLACE: Final = "<memory>"
"""The name in errors in place of a file if the records are in memory."""

_HEAD_SIZE: Final = 1 << 16
_LONGEST_BLANK_HEAD: Final = 1 << 20

_NEVER_EMPTY: Final = (".gz", ".bgz", ".bgzf", ".bz2", ".xz", ".zst", ".bam", ".cram")
"""The name endings of files that are never empty, even without reads."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raise errors from reading a file as `InputError`."""
    try:
        yield
    except MissingEndError as error:
        raise InputError(str(error), path) from None
    except EOFError:
        raise InputError("the compressed data end too early (truncated?)", path) from None
    except OSError as error:
        if error.errno is None:  # Faults of compressed data have no number.
            raise InputError(f"the compressed data are corrupt ({error})", path) from None
        reason = os.strerror(error.errno)
        raise InputError(reason[:1].lower() + reason[1:], path) from None


class EmptyInputError(InputError):
    """A valid file that holds no data, although it has some bytes if it is compressed."""

    def __init__(self, message: str, path: str, bytes_read: int) -> None:
        super().__init__(message, path)
        self.bytes_read = bytes_read


class Readable(Protocol):
    """The one method of a binary file that the readers need."""

    def readinto(self, buffer: Any, /) -> int | None:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        ...


class CountedInput(RawIOBase):
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


class TextStream(RawIOBase):
    """A decompressed text whose beginning can be inspected before it is read.

    `watch`, if set, receives everything that is read from then on, in parts.
    """

    def __init__(self, file: Readable, path: str) -> None:
        super().__init__()
        self.watch: Callable[[memoryview], None] | None = None
        self._file = file
        self._path = path
        self._head = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of a buffer of bytes; return how many, 0 at the end (see `reading`)."""
        if self._head:
            view = memoryview(buffer)
            count = min(len(self._head), len(view))
            view[:count] = self._head[:count]
            self._head = self._head[count:]
        else:
            with reading(self._path):
                count = self._file.readinto(buffer) or 0
        if self.watch is not None and count:
            self.watch(memoryview(buffer)[:count])
        return count

    def peek(self) -> bytes:
        """Return the text up to the end of its first line that is not blank, or a part of it."""
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
        """Skip the first bytes of the text that `peek` returned."""
        self._head = self._head[count:]


def _is_enough(head: bytes) -> bool:
    rest = head.lstrip()
    return b"\n" in rest or len(rest) >= _HEAD_SIZE or len(head) >= _LONGEST_BLANK_HEAD


class Input(Closing):
    """An open input file, "-" being standard input, whose format is known.

    Threads, if there are any, decompress a large file ahead.

    Attributes
    ----------
    path : str
        The file as the user named it.
    file : file
        The open file.
    source : CountedInput
        The bytes of the file; for CRAM they start at the first byte.
    text : TextStream
        The content of the file from its first byte, decompressed, unless it is CRAM.
    compression : Compression or None
        How the file is compressed, BAM with gzip; `text` is then decompressed.
    easel_format : str or None
        Which of `EASEL_FORMATS` the text has, if its format is `Format.EASEL`.
    ignored_bytes : int
        The number of bytes after the compressed data, once `text` has been read.

    Parameters
    ----------
    path : str
        The file as the user named it.
    threads : ReadingThreads, optional
        Decompress a large file ahead.
    word : str, optional
        The format of a file of proteins: `FASTA_WORD`, one of `EASEL_FORMATS`, or `BY_CONTENT`; or
        `SYMBOLS`.

    Raises
    ------
    InputError
        If the file cannot be read, or its format is unknown.
    EmptyInputError
        If the file is valid but holds no data.
    """

    def __init__(
        self, path: str, threads: ReadingThreads | None = None, word: str | None = None
    ) -> None:
        self.path = path
        self.ignored_bytes = 0
        self.easel_format: str | None = None
        self._word = word
        self._decompressor: _Decompressor | None = None
        self.file = open_binary(path)
        try:
            self.source = CountedInput(cast(Readable, self.file))
            magic = self._magic()
            self.compression = compression_of(magic)
            if self.compression is not None:
                self._decompressor = self._open_compressed(magic, self.compression, threads)
            self.text = TextStream(self._decompressor or self.source, path)
            self.format = Format.CRAM if magic.startswith(b"CRAM") else self._detect()
            if self.format is Format.CRAM:
                self.source.rewind()
            self.source.commit()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self._decompressor is not None:
            self._decompressor.stop()
        if self.path != STANDARD_INPUT:
            with reading(self.path):
                self.file.close()

    @property
    def size(self) -> int | None:
        """The size of the file in bytes, None if it is not a regular file."""
        return file_size(self.file)

    def _magic(self) -> bytes:
        """Return the first bytes of the file, and rewind it."""
        magic = b""
        with reading(self.path):
            for size in (LONGEST_MAGIC, BGZF_HEAD):
                while len(magic) < size and (more := self.source.read(size)):
                    magic += more
                if compression_of(magic) is not Compression.GZIP:
                    break
        if not magic:
            if self.path.endswith(_NEVER_EMPTY):  # Probably a failed download.
                raise InputError("the file is empty", self.path)
            raise EmptyInputError("the file is empty", self.path, 0)
        if magic.startswith(ZIP_MAGIC):
            known = "gzip, bzip2, xz and zstd are"
            raise InputError(f"compressed with zip; only {known} understood", self.path)
        self.source.rewind()
        return magic

    def _open_compressed(
        self, magic: bytes, compression: Compression, threads: ReadingThreads | None
    ) -> _Decompressor:
        # Imported here: a plain file need not wait for them.
        if threads is not None and threads.has_many and is_bgzf(magic):
            from mummergpu.input.bytes import inflated_blocks

            return inflated_blocks.InflatedBlocks(
                self.source, threads, self._ignore, self._is_ready
            )
        from mummergpu.input.bytes.stream_decoders import DecodedStreams

        inflated = DecodedStreams(
            *(self.source, compression, self.path), is_bgzf=is_bgzf(magic), ignore=self._ignore
        )
        if threads is None or self.size is None or is_bgzf(magic):
            return inflated
        from mummergpu.input.bytes.inflated_blocks import InflatedAhead

        return InflatedAhead(inflated, threads)

    def _ignore(self, count: int) -> None:
        self.ignored_bytes += count

    def tell_of_ignored(self, warn: Callable[[str], None]) -> None:
        """Warn of bytes after the compressed data, once the text has been read."""
        if self.ignored_bytes:
            count = pluralize(self.ignored_bytes, "byte")
            warn(f"{self.path}: {count} after the end of the compressed data are ignored")

    def _is_ready(self) -> bool:
        """Return whether a read would not have to wait for a pipe."""
        if self.size is not None:
            return True
        try:
            poll = select.poll()
            poll.register(self.file.fileno(), select.POLLIN)
        except OSError:  # In memory.
            return True
        return bool(poll.poll(0))

    def _detect(self) -> Format:
        """Return the format of a text, or BAM, from its first bytes."""
        head = self.text.peek()
        if not head:
            raise self._empty("the compressed file holds nothing")
        if head.startswith(b"BAM\x01") and self.compression is not None:
            return Format.BAM
        at_end = len(head) < _LONGEST_BLANK_HEAD
        if head.startswith(BYTE_ORDER_MARK):
            self.text.skip(len(BYTE_ORDER_MARK))
            head = head[len(BYTE_ORDER_MARK) :]
        rest = head.lstrip()
        if not rest:
            message = "the file holds blank lines only"
            raise self._empty(message) if at_end else InputError(message, self.path)
        found = self._format_of(head)
        if found is None:
            line = head[: len(head) - len(rest)].count(b"\n") + 1
            what = "binary data" if is_binary(rest.split(b"\n")[0]) else "text"
            what = "profile HMMs" if rest.startswith(b"HMMER") else what
            raise InputError(f"{what}, but not FASTA, FASTQ, SAM, BAM or CRAM", self.path, line)
        return found

    def _format_of(self, head: bytes) -> Format | None:
        word = self._word
        if word == FASTA_WORD:
            return Format.FASTA
        if word == SYMBOLS:
            is_text = not is_binary(head.lstrip().split(b"\n")[0])
            return format_of_text(head) or (Format.LINES if is_text else None)
        if word is not None:
            self.easel_format = easel_format_of_text(head) if word == BY_CONTENT else word
        return format_of_text(head) if self.easel_format is None else Format.EASEL

    def _empty(self, message: str) -> EmptyInputError:
        return EmptyInputError(message, self.path, self.source.bytes_read)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading without a buffer; "-" is standard input, with a buffer."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise InputError("standard input is closed", path)
        return sys.stdin.buffer
    with reading(path):
        return open(path, "rb", buffering=0)


def check_compression(file: BinaryIO, path: str) -> None:
    """Refuse a regular file, open at its beginning, that cannot be decompressed here."""
    with reading(path):
        compression = compression_of(file.read(LONGEST_MAGIC))
    if compression is not None and compression is not Compression.GZIP:
        from mummergpu.input.bytes.stream_decoders import check_decoder

        check_decoder(compression, path)


def file_size(file: BinaryIO) -> int | None:
    """Return the size of an open file in bytes, None if it is not a regular file."""
    try:
        status = os.fstat(file.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def bytes_of_files(paths: Sequence[str]) -> int | None:
    """Return the total size of files in bytes, after a check that they can be read here.

    None if one of them is not a regular file; a pipe is not opened.

    Raises
    ------
    LibraryError
        If the library for the compression of a regular file is missing.
    InputError
        If one of them cannot be opened, or its compression is not supported.
    """
    sizes = [_size_of(path) for path in paths]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _size_of(path: str) -> int | None:
    """Return the size of a file, after a check that it can be read; a pipe is not opened."""
    if path in (STANDARD_INPUT, PLACE):
        return None
    with reading(path):
        mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return None
    with reading(path), open_binary(path) as file:
        check_compression(file, path)
        return file_size(file)
