"""Target: any bytes as an input file.

They are of a known format or refused, from a file as from a pipe; and text is the same text
when it is compressed.
"""

import bz2
import gzip
import lzma
import zlib
from typing import Final

from fuzz.memory_file import file_of, pipe_of
from fuzz.visible import instrument_module
from mummergpu.errors import InputError
from mummergpu.input.bytes import files, formats, stream_decoders
from mummergpu.input.bytes.files import Input
from mummergpu.input.bytes.formats import Format

MOST_BYTES: Final = 1 << 15
"""What surely fits into a pipe."""

EXAMPLES: Final = (
    b"\xef\xbb\xbf\n >a\nACGT\n",
    b"@a\nACGT\n+\nIIII\n",
    b"@HD\tVN:1.6\n",
    b"a\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tIIII\n",
    b"CRAM\x03\x00",
    b"BZh91AY",
    bz2.compress(b">a\nACGT\n") + bz2.compress(b">b\nA\n"),
    lzma.compress(b"@a\nACGT\n+\nIIII\n") + bytes(4) + lzma.compress(b""),
    gzip.compress(b">a\nACGT\n", mtime=0) + gzip.compress(b">b\nA\n", mtime=0),
    gzip.compress(b"BAM\x01", mtime=0),
)

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_DECOMPRESS: Final = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\0": lzma.decompress,
}
"""What decompresses data that begin with some bytes."""


def instrument(function):
    """Show the branches of the modules to a fuzzer."""
    for module in (files, formats, stream_decoders):
        instrument_module(module, function)


def _outcome(path):
    text = bytearray()
    buffer = bytearray(1 << 12)
    try:
        with Input(path) as file:
            assert isinstance(file.format, Format)
            if not file.format.is_alignment:
                while count := file.text.readinto(buffer):
                    text += buffer[:count]
            return file.format, bytes(text)
    except InputError as error:
        message = str(error)
        assert "\n" not in message and path in message
        return message.replace(path, "FILE")


def _decompressed(data):
    """What Python's own modules make of it, None if they refuse."""
    for magic, decompress in _DECOMPRESS.items():
        if data.startswith(magic):
            try:
                return decompress(data)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
                return None
    return data


def one_input(data):
    """Open any bytes as an input."""
    data = data[:MOST_BYTES]
    with file_of(data) as path:
        found = _outcome(path)
    with pipe_of(data) as path:
        piped = _outcome(path)
    assert piped == found, f"{found!r} from a file, {piped!r} from a pipe"
    if isinstance(found, str) or found[0].is_alignment:
        return
    text = found[1]
    expected = _decompressed(data)
    if expected is not None:
        assert text == expected.removeprefix(_BYTE_ORDER_MARK), f"{text!r}, not {expected!r}"
    for packed in (gzip.compress(text, 1, mtime=0), bz2.compress(text, 1), lzma.compress(text)):
        with file_of(packed) as path:
            again = _outcome(path)
        assert again == found, f"{found!r} plain, {again!r} compressed"
