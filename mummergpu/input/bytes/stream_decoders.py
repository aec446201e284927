"""Decompresses gzip, bzip2, xz and zstd, of which a file may hold several streams.

Python has decoders of bzip2 and xz, and from version 3.14 on one of zstd; that of gzip is ISA-L's.
A decoder knows only one stream. This module decides what may follow a stream, and detects missing
data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from io import RawIOBase
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from mummergpu.errors import InputError, LibraryError
from mummergpu.input.bytes.formats import (
    LONGEST_MAGIC,
    Compression,
    MissingEndError,
    compression_of,
)
from mummergpu.runtime import optional_imports
from mummergpu.runtime.words import pluralize

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

COMPRESSED_BYTES: Final = 1 << 16
"""The most compressed bytes that are read at once."""

_TEXT_BYTES: Final = 1 << 16
"""The most bytes that a decoder returns at once: for more, it gets new memory from the system each
time, which adds half of the time of decompressing."""

_PADDING_UNIT: Final = 4
"""A multiple of this number of zeros may follow a stream of xz."""

_WINDOW_BITS: Final = 31
"""The largest window of zstd that is accepted: what ``zstd --ultra --long=31`` writes."""

_FEW_BYTES: Final = 1 << 12
"""The compressed bytes of zstd that are decompressed at once: at most 128 MiB of text."""


class Decoder(Protocol):
    """Decompresses one stream: the interface of Python's own decoders.

    `unused_data` are the bytes after the end of the stream (`eof`).
    """

    @property
    def eof(self) -> bool: ...  # noqa: D102

    @property
    def needs_input(self) -> bool: ...  # noqa: D102

    @property
    def unused_data(self) -> bytes: ...  # noqa: D102

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return at most `max_length` bytes of text; the rest comes with later calls."""
        ...


class DecodedStreams:
    """Reads the streams of one compression, and ignores bytes after the last one, as gzip does.

    Parameters
    ----------
    is_bgzf : bool
        Whether the last stream must hold no text, as the end mark of bgzf does.
    has_text : bool, optional
        Whether the stream before these has text; None at the beginning of a file.
    ignore : callable, optional
        Receives the number of bytes after the last stream; without it, they are an error.
    """

    def __init__(
        self,
        file: RawIOBase,
        compression: Compression,
        path: str,
        *,
        is_bgzf: bool = False,
        has_text: bool | None = None,
        ignore: Callable[[int], None] | None = None,
    ) -> None:
        self._file = file
        self._path = path
        self._compression = compression
        self._new_decoder, self._faults = _decoders_of(compression, path)
        self._decoder: Decoder | None = self._new_decoder() if has_text is None else None
        self._compressed = b""
        self._fault: Exception | None = None
        self._is_bgzf = is_bgzf
        self._has_text = bool(has_text)
        self._ignore = ignore

    def read_some(self, size: int) -> bytes:
        """Return at most `size` available bytes of text; none at the end."""
        return b"".join(self._parts(size))

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        view, filled = memoryview(buffer), 0
        for part in self._parts(len(view)):
            view[filled : filled + len(part)] = part
            filled += len(part)
        return filled

    def stop(self) -> None:
        """Do nothing: no thread uses the file."""

    def _parts(self, size: int) -> Iterator[bytes]:
        """Yield some of the text; text that needs no wait comes first."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        left = size
        while left > 0 and (left == size or self._has_more()):
            try:
                if self._decoder is None and not self._begin_stream():
                    return
                text = self._decode(min(left, _TEXT_BYTES))
            except Exception as error:
                if left == size:
                    raise
                # The text before the error comes first.
                self._fault = error
                return
            if text:
                left -= len(text)
                yield text

    def _has_more(self) -> bool:
        """Return whether decoding can go on without a read."""
        if self._decoder is None:
            return len(self._compressed) >= LONGEST_MAGIC
        return bool(self._compressed) or not self._decoder.needs_input

    def _decode(self, size: int) -> bytes:
        """Return text of the stream, or nothing if it needs more data or has ended."""
        assert self._decoder is not None
        data = b""
        if self._decoder.needs_input:
            data = self._compressed or self._read()
            self._compressed = b""
            if not data:
                raise EOFError
        try:
            text = self._decoder.decompress(data, size)
        except self._faults as error:
            raise OSError(str(error)) from None
        self._has_text |= len(text) > 0
        if self._decoder.eof:
            self._compressed = self._decoder.unused_data
            self._decoder = None
        return text

    def _begin_stream(self) -> bool:
        """Prepare for the next stream, after zeros or not; return False if there is none."""
        zeros = 0
        while True:
            if len(self._compressed) < LONGEST_MAGIC and (more := self._read()):
                self._compressed += more
                continue
            rest = self._compressed.lstrip(b"\0")
            if len(rest) == len(self._compressed):
                break
            zeros += len(self._compressed) - len(rest)
            self._compressed = rest
        if compression_of(self._compressed) is self._compression:
            self._decoder, self._has_text = self._new_decoder(), False
            return True
        if self._compressed and self._compression.may_begin(self._compressed):
            raise EOFError
        if self._is_bgzf and self._has_text:
            raise MissingEndError
        count = len(self._compressed)
        while self._compressed:
            self._compressed = self._read()
            count += len(self._compressed)
        is_padding = self._compression is Compression.XZ and zeros % _PADDING_UNIT == 0
        if count or not is_padding:
            count += zeros
        if count and self._ignore is None:
            raise InputError(f"{pluralize(count, 'byte')} follow the compressed data", self._path)
        if count and self._ignore is not None:
            self._ignore(count)
        return False

    def _read(self) -> bytes:
        return self._file.read(COMPRESSED_BYTES) or b""


class _ZstandardDecoder:
    """A stream of zstd, decompressed by the package zstandard.

    The package returns all text of its input at once, and a few bytes can stand for a gigabyte of
    text. So it gets few bytes at a time.
    """

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self._compressed = b""
        self._text = memoryview(b"")

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof) and not self._text

    @property
    def needs_input(self) -> bool:
        return not (self._text or self._compressed or self._decoder.eof)

    @property
    def unused_data(self) -> bytes:
        unused: bytes = self._decoder.unused_data
        return unused + self._compressed

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        self._compressed += data
        parts: list[memoryview] = []
        left = sys.maxsize if max_length < 0 else max_length
        while left > 0 and (self._text or self._advance()):
            parts.append(self._text[:left])
            self._text = self._text[left:]
            left -= len(parts[-1])
        return b"".join(parts)

    def _advance(self) -> bool:
        """Decompress some data; return False if there are none, or the stream has ended."""
        if not self._compressed or self._decoder.eof:
            return False
        piece = self._compressed[:_FEW_BYTES]
        self._compressed = self._compressed[_FEW_BYTES:]
        self._text = memoryview(self._decoder.decompress(piece))
        return True


def check_decoder(compression: Compression, path: str) -> None:
    """Refuse a file whose compression cannot be decoded here, as `DecodedStreams` would."""
    _decoders_of(compression, path)


_Decoders = tuple[Callable[[], Decoder], type[Exception]]
"""A function that returns a decoder, and the exception that it raises for corrupt data."""


def _decoders_of(compression: Compression, path: str) -> _Decoders:
    """Return how to decompress streams of a kind; the modules are imported when needed."""
    try:
        match compression:
            case Compression.GZIP:
                from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

                return partial(IgzipDecompressor, DECOMP_GZIP), cast("type[Exception]", IsalError)
            case Compression.BZIP2:
                from bz2 import BZ2Decompressor

                return BZ2Decompressor, OSError
            case Compression.XZ:
                from lzma import FORMAT_XZ, LZMADecompressor, LZMAError

                return partial(LZMADecompressor, FORMAT_XZ), LZMAError
            case Compression.ZSTD:
                return _zstd_decoders(path)
    except ModuleNotFoundError as error:
        # Python can be built without them.
        message = f"compressed with {compression.value}, and this Python has no module {error.name}"
        raise InputError(message, path) from error
    raise ValueError(compression)


def _zstd_decoders(path: str) -> _Decoders:
    try:
        from compression import zstd
    except ImportError:
        return _zstandard_decoders(path)
    options = {zstd.DecompressionParameter.window_log_max: _WINDOW_BITS}
    return partial(zstd.ZstdDecompressor, options=options), zstd.ZstdError


def _zstandard_decoders(path: str) -> _Decoders:
    library = optional_imports.find("zstandard", "zstandard")
    if library.problem is not None:
        raise LibraryError(f"{path}: zstd", library.name, "zstd", library.problem)
    from zstandard import ZstdDecompressor, ZstdError

    def new_decoder() -> Decoder:
        decompressor: Any = ZstdDecompressor(max_window_size=1 << _WINDOW_BITS)
        return _ZstandardDecoder(decompressor.decompressobj())

    return new_decoder, ZstdError
