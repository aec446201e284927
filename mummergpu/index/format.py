"""The format of an index file: its start, its sections and its header.

A file has a start of fixed size, then sections that each begin at a multiple of `ALIGNMENT`,
and then a header. The header is JSON that says what was built and where the sections lie. The
start gives the position of the header, the length of the file, and a hash of the start and the
header. The start is written last, so an unfinished file does not begin as an index does.
Numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.input.bytes.files import reading
from mummergpu.input.reference import Reference
from mummergpu.runtime.frozen import frozen

MAGIC: Final = b"\x89MGI\r\n\x1a\n"
"""The first bytes of an index file. As in PNG, no text begins like this, and a transfer that
changes line ends changes these bytes as well."""

FORMAT_VERSION: Final = 6
"""The version of the format; it rises with every change, and no other version is read."""

ALIGNMENT: Final = 4096
"""Sections begin at multiples of this number of bytes, the size of a page of memory."""

START_BYTES: Final = ALIGNMENT

_MAGIC_BEFORE_LINE_END: Final = MAGIC[:4]
_BYTE_ORDER_MARK: Final = 0x01020304
_BYTE_ORDER_MARK_SWAPPED: Final = 0x04030201
_FIELDS: Final = struct.Struct("<8sIIQQQ")
_HASH_BYTES: Final = 32
_MAX_HEADER_BYTES: Final = 1 << 28
_TYPES: Final = {"int": int, "str": str, "bool": bool}
ITEM_BYTES: Final = {"<u1": 1, "<u4": 4, "<i8": 8}
"""The bytes of an element, for each type that a section can have, by numpy's type names."""


CIRCULAR_SECTION: Final = "circular"
"""The numbers of the circular records, if there are any. The tables and the bases are then those of
an `UnrolledReference`, and all other facts about records are those of its original."""


@frozen
class Section:
    """The description of one array in the file."""

    name: str
    dtype: str  # The type of its elements: a key of `ITEM_BYTES`.
    offset: int  # The position in the file at which the array begins, in bytes.
    count: int
    checksum: int  # The CRC-32 of its bytes.

    @property
    def byte_count(self) -> int:
        """The size of the array in bytes."""
        return self.count * ITEM_BYTES[self.dtype]


@frozen
class PageEntry:
    """A page of the reference (`pages.Page`), with the node counts of its tree."""

    # The positions of the page, as in `pages.Page`.
    begin: int
    end: int
    owned_end: int
    # The nodes and the leaves of its tree; 0 for a page with a table.
    node_count: int = 0
    leaf_count: int = 0


@frozen
class IndexHeader:
    """The header of an index file.

    Attributes
    ----------
    reference_path : str
        The path of the reference, as the user gave it.
    digest : str
        The hash that identifies the reference, in hexadecimal (`digest_of`).
    search : str
        ``kmer`` or ``tree``.
    page_size : int
        The most bases that a page has.
    search_length : int
        The match length for which pages overlap: every match of this many bases lies inside
        one page. 0 with tables, which need no overlap.
    kmer_length : int
        The bases of a k-mer; 0 with trees.
    reference_step : int
        The bases from one listed k-mer to the next; 0 with trees.
    is_picked : bool
        Whether picked k-mers are listed instead (`KmerSampling`).
    policy, address_bits : str, int
        The data policies, and the bits of a number in a node; ``""`` and 0 with tables.
    """

    program: str
    reference_path: str
    digest: str
    records: int
    bases: int
    search: str
    minimum_length: int
    page_size: int
    search_length: int
    kmer_length: int
    reference_step: int
    is_picked: bool
    policy: str
    address_bits: int
    pages: tuple[PageEntry, ...]
    sections: tuple[Section, ...]

    @property
    def sampling(self) -> KmerSampling:
        """Which k-mers are listed."""
        return KmerSampling(self.kmer_length, self.reference_step, self.is_picked)

    def as_json(self) -> bytes:
        """Return the header as JSON text, as the file contains it."""
        return json.dumps(asdict(self), separators=(",", ":")).encode("ascii")

    @classmethod
    def from_json(cls, text: bytes) -> IndexHeader:
        """Return the header that `as_json` turned into this text, or raise `ValueError`."""
        try:
            fields: dict[str, Any] = json.loads(text)
            pages = tuple(_record(PageEntry, entry) for entry in fields.pop("pages"))
            sections = tuple(_record(Section, entry) for entry in fields.pop("sections"))
            header: IndexHeader = _record(cls, {**fields, "pages": pages, "sections": sections})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a header: {error}") from error
        return header


def _record(kind: type[Any], fields: Mapping[str, Any]) -> Any:
    """Make an instance of a class; raise `ValueError` if a field has a wrong type."""
    for name, annotation in kind.__annotations__.items():
        value = fields[name]
        negative = isinstance(value, int) and value < 0
        if type(value) is not _TYPES.get(annotation, tuple) or negative:
            raise ValueError(f"{name} is {value!r}")
    return kind(**fields)


def is_index(path: str) -> bool:
    """Return whether a regular file begins as an index does, regardless of its name.

    The index may be damaged after its first bytes. Pipes are not read, because data read from a
    pipe is gone. A file that cannot be opened is no index; one that cannot be read raises
    `InputError`.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        file = open(path, "rb", buffering=0)
    except (OSError, ValueError):
        return False
    with reading(path), file:
        return file.read(len(_MAGIC_BEFORE_LINE_END)) == _MAGIC_BEFORE_LINE_END


def read_header(file: BinaryIO, path: str) -> IndexHeader:
    """Read and check the start and the header of an index file.

    `InputError` is raised if the file is not an index, has another version, has become shorter or
    longer, or has a damaged start or header.
    """
    file.seek(0)
    # The hash only shows that something is wrong; the checks that can name the fault come first.
    start = _read(file, _FIELDS.size + _HASH_BYTES)
    if not start.startswith(_MAGIC_BEFORE_LINE_END):
        raise InputError("not an index of mummergpu", path)
    if not start.startswith(MAGIC[: len(start)]):
        raise InputError("the index has been changed, as by a transfer as text", path)
    actual = os.fstat(file.fileno()).st_size
    if actual < START_BYTES or len(start) < _FIELDS.size + _HASH_BYTES:
        raise InputError(f"the index is truncated: it has just {actual} bytes", path)
    _, mark, version, size, header_offset, header_bytes = _FIELDS.unpack_from(start)
    if mark == _BYTE_ORDER_MARK_SWAPPED:
        raise InputError("the index is of a machine of the other byte order", path)
    if mark != _BYTE_ORDER_MARK:
        raise InputError("the header of the index is damaged", path)
    if version != FORMAT_VERSION:
        raise InputError(
            f"the index has format version {version}, and this program reads version "
            f"{FORMAT_VERSION}; make it anew with 'mummergpu index'",
            path,
        )
    if size != actual:
        what = "truncated" if actual < size else "damaged"
        raise InputError(f"the index is {what}: it has {actual} bytes, not {size}", path)
    if header_bytes > _MAX_HEADER_BYTES or header_offset + header_bytes != size:
        raise InputError("the header of the index is damaged", path)
    file.seek(header_offset)
    text = _read(file, header_bytes)
    if _hash_of(start[: _FIELDS.size], text) != start[_FIELDS.size :]:
        raise InputError("the header of the index is damaged", path)
    try:
        header = IndexHeader.from_json(text)
        _check_sections(header, header_offset)
    except ValueError as error:
        raise InputError(f"the header of the index makes no sense ({error})", path) from error
    return header


def start_of(header: bytes, header_offset: int) -> bytes:
    """Return the `START_BYTES` bytes that begin an index file whose last part is the header."""
    size = header_offset + len(header)
    fields = _FIELDS.pack(MAGIC, _BYTE_ORDER_MARK, FORMAT_VERSION, size, header_offset, len(header))
    return (fields + _hash_of(fields, header)).ljust(START_BYTES, b"\0")


def _check_sections(header: IndexHeader, end: int) -> None:
    """Raise `ValueError` if sections overlap, or lie outside the space between start and header."""
    behind = START_BYTES
    for section in header.sections:
        if section.dtype not in ITEM_BYTES or section.offset % ALIGNMENT or section.offset < behind:
            raise ValueError(f"section '{section.name}'")
        behind = section.offset + section.byte_count
    if behind > end:
        raise ValueError("the last section")


def _hash_of(fields: bytes, header: bytes) -> bytes:
    return hashlib.blake2b(fields + header, digest_size=_HASH_BYTES).digest()


def _read(file: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end of the file."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


PIECE_BYTES: Final = 1 << 24
"""The bytes of an array that are hashed at a time."""


def checksum_of(array: npt.NDArray[Any], checksum: int = 0) -> int:
    """Return the CRC-32 of a contiguous array's bytes, continuing that of the bytes before."""
    # This CRC-32 is five times as fast as that of the standard library.
    from isal import isal_zlib

    data = array.view(np.uint8)
    for begin in range(0, data.size, PIECE_BYTES):
        checksum = isal_zlib.crc32(data[begin : begin + PIECE_BYTES], checksum)
    return checksum


def digest_of(reference: Reference, map_function: Callable[..., Iterable[bytes]] = map) -> str:
    """Return a hash of the parts of a reference that matches depend on, in hexadecimal.

    It is BLAKE2b of 256 bits over the lengths of the records (int64 each), the lengths of their
    names (int64 each), the names, and the BLAKE2b hash of every piece of `PIECE_BYTES` codes.
    """

    def hash_piece(begin: int) -> bytes:
        piece = memoryview(cast(bytes, reference.codes[begin : begin + PIECE_BYTES]))
        return hashlib.blake2b(piece, digest_size=_HASH_BYTES).digest()

    whole = hashlib.blake2b(reference.record_lengths.tobytes(), digest_size=_HASH_BYTES)
    whole.update(np.array([len(name) for name in reference.names], dtype="<i8").tobytes())
    whole.update(b"".join(reference.names))
    for piece in map_function(hash_piece, range(0, reference.codes.size, PIECE_BYTES)):
        whole.update(piece)
    return whole.hexdigest()
