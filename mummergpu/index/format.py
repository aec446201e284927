"""The format of an index file: how it begins, and the table of what it holds.

A file is a start of fixed size, sections that each begin at a multiple of `ALIGNMENT`, and a
header: JSON that says what was built and where the sections lie. The start says where the
header is, how long the file is, and what both hash to. It is written last, so a file whose
writing was cut short does not even begin as an index. Numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Final

from mummergpu.errors import InputError
from mummergpu.input.files import reading

MAGIC: Final = b"\x89MGI\r\n\x1a\n"
"""How an index file begins. As in PNG: no text begins like this, and whatever changes line
ends on the way changes this as well."""

FORMAT_VERSION: Final = 1
"""Raised with every change after which a file cannot be read as before."""

ALIGNMENT: Final = 4096
"""Sections begin at multiples of this, the size of a page of memory."""

START_BYTES: Final = ALIGNMENT

_MAGIC_BEFORE_LINE_END: Final = MAGIC[:4]
_BYTE_ORDER_MARK: Final = 0x01020304
_BYTE_ORDER_MARK_SWAPPED: Final = 0x04030201
_FIELDS: Final = struct.Struct("<8sIIQQQ")
_HASH_BYTES: Final = 32
_MOST_HEADER_BYTES: Final = 1 << 28
ITEM_BYTES: Final = {"<u1": 1, "<u4": 4, "<i8": 8}
"""The bytes of an element of each type that sections can have, as numpy writes the types."""


@dataclass(frozen=True)
class Section:
    """An array in the file.

    Attributes
    ----------
    name : str
        What it is.
    dtype : str
        The type of its elements: a key of `ITEM_BYTES`.
    offset : int
        Where in the file it begins.
    count : int
        Its elements.
    checksum : int
        The CRC-32 of its bytes.
    """

    name: str
    dtype: str
    offset: int
    count: int
    checksum: int

    @property
    def byte_count(self) -> int:
        """Its bytes."""
        return self.count * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class PageEntry:
    """A page of the reference: `pages.Page`, and the numbers of its tree.

    Attributes
    ----------
    begin, end, owned_end : int
        As in `pages.Page`.
    node_count, leaf_count : int
        Of its tree; 0 for a page with a table.
    """

    begin: int
    end: int
    owned_end: int
    node_count: int = 0
    leaf_count: int = 0


@dataclass(frozen=True)
class IndexHeader:
    """What an index file holds.

    Attributes
    ----------
    program : str
        What wrote the file.
    reference_path : str
        The reference as the user named it then.
    digest : str
        Tells references apart, in hexadecimal (`checksums.digest_of`).
    records, bases : int
        The records of the reference and their bases.
    search : str
        ``kmer`` or ``tree``.
    minimum_length : int
        The least match length that the index was made for.
    page_size : int
        The most bases of a page.
    search_length : int
        Pages overlap so that each match of so many bases lies in one; 0 with tables, which
        need no overlap.
    kmer_length : int
        The bases of a k-mer; 0 with trees.
    policy, address_bits, builder : str, int, str
        The data policies, the bits of a number in a node, and how trees were built; ``""``
        and 0 with tables.
    pages : tuple of PageEntry
        The pages, in the order of the reference.
    sections : tuple of Section
        The arrays, in the order of the file.
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
    policy: str
    address_bits: int
    builder: str
    pages: tuple[PageEntry, ...]
    sections: tuple[Section, ...]

    def as_json(self) -> bytes:
        """Return the header as it stands in the file."""
        return json.dumps(asdict(self), separators=(",", ":")).encode("ascii")

    @classmethod
    def from_json(cls, text: bytes) -> IndexHeader:
        """Return the header that `as_json` has made this of.

        Raises
        ------
        ValueError
            If it is anything else.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            # The first files were written before the k-mer search had its name.
            if fields.get("search") == "sampled":
                fields["search"] = "kmer"
            pages = tuple(_record(PageEntry, entry) for entry in fields.pop("pages"))
            sections = tuple(_record(Section, entry) for entry in fields.pop("sections"))
            header: IndexHeader = _record(cls, {**fields, "pages": pages, "sections": sections})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a header: {error}") from error
        return header


def _record(kind: type[Any], fields: Mapping[str, Any]) -> Any:
    """Make a record of fields whose names and types are just those of the class."""
    for name, annotation in kind.__annotations__.items():
        value = fields[name]
        negative = isinstance(value, int) and value < 0
        if type(value) is not {"int": int, "str": str}.get(annotation, tuple) or negative:
            raise ValueError(f"{name} is {value!r}")
    return kind(**fields)


def is_index(path: str) -> bool:
    """Tell whether a file begins as an index does, whatever its name.

    Parameters
    ----------
    path : str
        Any path. Pipes are not touched, as what is read from them is gone.

    Returns
    -------
    bool
        True also for an index that is damaged after its first bytes; False for what cannot
        be opened.

    Raises
    ------
    InputError
        If it can be opened but not read: nobody knows what it is then.
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

    Parameters
    ----------
    file : file
        The open file.
    path : str
        The file as the user named it.

    Returns
    -------
    IndexHeader
        All sections lie inside the file, in the order of their offsets.

    Raises
    ------
    InputError
        If the file is no index, of another version, shorter or longer than it was, or its
        start or header is not as it was written.
    OSError
        If the file cannot be read.
    """
    file.seek(0)
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
    if header_bytes > _MOST_HEADER_BYTES or header_offset + header_bytes != size:
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
    """Return the start of a file.

    Parameters
    ----------
    header : bytes
        The header.
    header_offset : int
        Where in the file it lies; it ends the file.

    Returns
    -------
    bytes
        `START_BYTES` of them.
    """
    size = header_offset + len(header)
    fields = _FIELDS.pack(MAGIC, _BYTE_ORDER_MARK, FORMAT_VERSION, size, header_offset, len(header))
    return (fields + _hash_of(fields, header)).ljust(START_BYTES, b"\0")


def _check_sections(header: IndexHeader, end: int) -> None:
    """Refuse sections that overlap, or reach outside the part of the file that is theirs."""
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
    """Read so many bytes, or up to the end of the file."""
    data = b""
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data
