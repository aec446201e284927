"""Data that are compressed in each way that input files may be."""

import bz2
import gzip
import lzma
import struct
from functools import partial
from io import BytesIO

from helpers.requirements import do_without
from mummergpu.errors import InputError
from mummergpu.input.bytes.files import CountedInput, reading
from mummergpu.input.bytes.formats import Compression


def zstd_of(data):
    """Return data as a frame of zstd with a checksum; skip the test without a library for it."""
    try:
        from compression import zstd
    except ImportError:
        return _zstandard().ZstdCompressor(write_checksum=True).compress(data)
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


def _zstandard():
    try:
        import zstandard
    except ImportError:
        do_without("zstandard is not installed (pip install zstandard)", "ZSTD")
    return zstandard


def skippable_frame(data=b"not text"):
    """Return a frame of zstd that holds no text."""
    return struct.pack("<II", 0x184D2A57, len(data)) + data


PACKERS = {
    Compression.GZIP: partial(gzip.compress, mtime=0),
    Compression.BZIP2: bz2.compress,
    Compression.XZ: lzma.compress,
    Compression.ZSTD: zstd_of,
}
"""What compresses data as one stream."""

OTHERS = tuple(kind for kind in Compression if kind is not Compression.GZIP)


def outcome(open_file, packed, size=1000):
    """Read a compressed file to its end; return the text, and the error that ends it."""
    source = CountedInput(BytesIO(packed))
    parts, buffer = [], bytearray(size)
    try:
        with reading("reads"):
            file = open_file(source)
            while count := file.readinto(buffer):
                parts.append(bytes(buffer[:count]))
            assert file.readinto(buffer) == 0
    except InputError as error:
        return b"".join(parts), error.message
    assert source.bytes_read == len(packed)
    return b"".join(parts), ""
