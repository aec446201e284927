"""The header of SAM, BAM and CRAM, and the names that these formats allow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.output.records.sam_options import ReadGroup
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_int64, jit, writable
from mummergpu.sequence.codes import longest_of
from mummergpu.version import __version__

MOST_RECORD_BASES: Final = (1 << 31) - 1
"""The most bases of a record of the reference (SAM format specification, section 1.3)."""

MOST_NAME_BYTES: Final = 254
"""The most bytes of the name of a query (section 1.4)."""

MOST_QUERY_BASES: Final = (1 << 28) - 1
"""The most bases of a query: the length of an operation of a CIGAR has 28 bits in BAM (section
4.2), and htslib refuses more in SAM too."""

_RECORD_NAME: Final = re.compile(rb"[^\x00- *=\x7f][^\x00- \x7f]*+")
_RECORD_NAMES: Final = re.compile(rb"(?:%b\n)*+" % _RECORD_NAME.pattern)
"""The names of records that samtools reads; and many, one a line."""

_ALLOWED_BYTES: Final = bytes(sorted({*range(ord("!"), ord("~") + 1)} - {*b"\"'(),<>[\\]`{}"}))
"""The bytes that the specification allows in names of records (section 1.2.1)."""

_NOT_IN_VCF: Final = re.compile(rb"[,<>]")
"""What ends the name of a record in the header of VCF: bcftools reads none of the rows."""

_FIRST_PRINTED: Final = ord("!")
_LAST_PRINTED: Final = ord("~")
_AT_SIGN: Final = ord("@")
"""The bytes of names (section 1.4)."""

_PROGRAM: Final = "mummergpu"

UNSORTED: Final = "SO:unsorted\tGO:query"
"""The order of alignments that are written read by read."""

BY_COORDINATE: Final = "SO:coordinate"
"""The order of alignments that are sorted by their places."""


class NamedSequences(Protocol):
    """Sequences with names, such as a `QueryBlock`."""

    @property
    def offsets(self) -> Int64Array:
        """Where each sequence begins, and where the last one ends: shape=(n_sequences + 1,)."""

    @property
    def names(self) -> ByteArray:
        """The names, one after the other: shape=(n_name_bytes,)."""

    @property
    def name_offsets(self) -> Int64Array:
        """Where each name begins, and where the last one ends: shape=(n_sequences + 1,)."""


@frozen
class AlignmentHead:
    """What the header of a file of alignments tells besides the records of the reference.

    Attributes
    ----------
    read_group : ReadGroup or None
        The read group of all reads.
    command : str
        The command line of the run; empty if there is none.
    order : str
        `UNSORTED` or `BY_COORDINATE`.
    checksums : sequence of str
        The MD5 of each record of the reference, of all its letters (M5): a reference keeps no other
        letters than A, C, G and T. Empty to leave them out.
    input_groups : sequence of bytes
        The lines of the read groups of reads whose tags tell them (`rows.WrittenRows.has_groups`).
    circular : sequence of int
        The circular records of the reference.
    """

    read_group: ReadGroup | None = None
    command: str = ""
    order: str = UNSORTED
    checksums: Sequence[str] = ()
    input_groups: Sequence[bytes] = ()
    circular: Sequence[int] = ()


@frozen
class SamHeader:
    """The header of a file of alignments.

    Attributes
    ----------
    text : bytes
        Its lines, each with a line end.
    record_ids : ndarray, dtype=int32, shape=(n_records,)
        The number of each record of the reference among the @SQ lines, counted from 0; -1 for a
        record without bases, which SAM cannot describe.
    """

    text: bytes
    record_ids: Int32Array


def sam_header(reference: Reference, head: AlignmentHead) -> SamHeader:
    """Return the header for alignments with a reference."""
    check_records(reference, "SAM")
    lengths = reference.record_lengths
    lines = [f"@HD\tVN:1.6\t{head.order}\n".encode()]
    marks = [b""] * len(reference.names)
    if head.checksums:
        marks = [b"\tM5:" + one for one in "\n".join(head.checksums).encode().split(b"\n")]
    for record in head.circular:
        marks[record] += b"\tTP:circular"
    columns = zip(reference.names, lengths.tolist(), marks, strict=True)
    lines += [b"@SQ\tSN:%b\tLN:%d%b\n" % line for line in columns if line[1]]
    if head.read_group is not None:
        lines.append(head.read_group.line.encode() + b"\n")
    lines.extend(line + b"\n" for line in head.input_groups)
    lines.append(_program_line(head.command) + b"\n")
    has_bases = lengths > 0
    ids = np.where(has_bases, np.cumsum(has_bases) - 1, -1).astype(np.int32)
    return SamHeader(b"".join(lines), ids)


def check_records(reference: Reference, format_name: str) -> None:
    """Refuse a reference that SAM cannot describe, or VCF, which has the same rules."""
    lengths, names = reference.record_lengths, reference.names
    text = b"\n".join((*names, b""))
    if (
        lengths.min(initial=1) > 0
        and lengths.max(initial=0) <= MOST_RECORD_BASES
        and len(set(names)) == len(names)
        and text.count(b"\n") == len(names)
        and _RECORD_NAMES.fullmatch(text)
        and not (format_name == "VCF" and _NOT_IN_VCF.search(text))
    ):
        return  # Nearly always: it takes a tenth of the time of a look at each record.
    seen: set[bytes] = set()
    for name, length in zip(reference.names, reference.record_lengths.tolist(), strict=True):
        if length == 0:
            continue
        is_refused = format_name == "VCF" and _NOT_IN_VCF.search(name)
        if is_refused or not _RECORD_NAME.fullmatch(name):
            raise _refused(reference, name, f"{format_name} allows no such name in a reference")
        if name in seen:
            raise _refused(reference, name, f"{format_name} needs records of different names")
        if length > MOST_RECORD_BASES:
            message = f"{format_name} allows no record of more than 2,147,483,647 bases"
            raise _refused(reference, name, message)
        seen.add(name)


def unusual_names(reference: Reference) -> str:
    """Return a warning of names that specifications do not allow; empty if there are none."""
    if not b"".join(reference.names).translate(None, _ALLOWED_BYTES):
        return ""
    first = next(name for name in reference.names if name.translate(None, _ALLOWED_BYTES))
    return (
        f"{reference.path}: Picard, GATK and IGV refuse names such as "
        f"'{first.decode(errors='backslashreplace')}', which SAM and VCF do not allow; samtools "
        "and bcftools read them"
    )


def check_queries(block: NamedSequences, path: str) -> None:
    """Refuse a block with a query that SAM cannot describe.

    Empty names are accepted: ``*`` stands for them.
    """
    if longest_of(writable(block.offsets)) > MOST_QUERY_BASES:
        lengths = np.diff(block.offsets)
        name = _name_of(block, int(np.argmax(lengths > MOST_QUERY_BASES)))
        raise InputError(f"SAM has queries of at most {MOST_QUERY_BASES:,} bases", path, None, name)
    if longest_of(writable(block.name_offsets)) > MOST_NAME_BYTES:
        sizes = np.diff(block.name_offsets)
        name = _name_of(block, int(np.argmax(sizes > MOST_NAME_BYTES)))
        raise InputError(f"SAM allows names of at most {MOST_NAME_BYTES} bytes", path, None, name)
    names = block.names
    place = find_forbidden(writable(names), writable(block.name_offsets))
    if place >= 0:
        query = int(np.searchsorted(block.name_offsets, place, side="right")) - 1
        name = _name_of(block, query)
        if names[place] == _AT_SIGN:
            raise InputError("SAM allows no name that begins with '@'", path, None, name)
        raise InputError(f"SAM allows no byte {int(names[place])} in a name", path, None, name)


@jit
def find_forbidden(names: ByteArray, name_offsets: Int64Array) -> int:
    """Return where a byte is that SAM does not allow there in a name; -1 if there is none."""
    for place in range(names.size):
        byte = names[place]
        if byte < _FIRST_PRINTED or byte > _LAST_PRINTED:
            return place
    for query in range(name_offsets.size - 1):
        begin = name_offsets[query]
        if begin < name_offsets[query + 1] and names[begin] == _AT_SIGN:
            return as_int64(begin)
    return -1


def _program_line(command: str) -> bytes:
    fields = ["@PG", f"ID:{_PROGRAM}", f"PN:{_PROGRAM}", f"VN:{__version__}"]
    if command:
        # A field ends with a tab, and a line of the header with a line end.
        fields.append("CL:" + re.sub(r"[\x00-\x1f\x7f]", " ", command))
    return "\t".join(fields).encode(errors="replace")


def _name_of(block: NamedSequences, query: int) -> str:
    begin, end = block.name_offsets[query : query + 2].tolist()
    return block.names[begin:end].tobytes().decode(errors="backslashreplace")


def _refused(reference: Reference, name: bytes, message: str) -> InputError:
    return InputError(message, reference.path, None, name.decode(errors="backslashreplace"))


_MAGIC: Final = b"BAM\x01"


def binary_header(header: SamHeader, reference: Reference) -> bytes:
    """Return the text of the header and the records of the reference with their lengths."""
    lengths = reference.record_lengths.tolist()
    records = [
        b"%b%b\0%b" % (_number(len(name) + 1), name, _number(length))
        for name, length in zip(reference.names, lengths, strict=True)
        if length
    ]
    text = _MAGIC + _number(len(header.text)) + header.text
    return text + _number(len(records)) + b"".join(records)


def _number(number: int) -> bytes:
    """Return a number of 32 bits."""
    return number.to_bytes(4, "little")
