"""The header of SAM, BAM and CRAM, and the names that these formats allow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.output.options import ReadGroup
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.version import __version__

MOST_RECORD_BASES: Final = (1 << 31) - 1
"""The most bases of a record of the reference (SAM format specification, section 1.3)."""

_RECORD_NAME: Final = re.compile(rb"[^\x00- *=\x7f][^\x00- \x7f]*+")
_RECORD_NAMES: Final = re.compile(rb"(?:%b\n)*+" % _RECORD_NAME.pattern)
"""The names of records that samtools reads; and many, one a line."""

_ALLOWED_BYTES: Final = bytes(sorted({*range(ord("!"), ord("~") + 1)} - {*b"\"'(),<>[\\]`{}"}))
"""The bytes that the specification allows in names of records (section 1.2.1)."""

_NOT_IN_VCF: Final = re.compile(rb"[,<>]")
"""What ends the name of a record in the header of VCF: bcftools reads none of the rows."""

_PROGRAM: Final = "mummergpu"

UNSORTED: Final = "SO:unsorted\tGO:query"
"""The order of alignments that are written read by read."""

BY_COORDINATE: Final = "SO:coordinate"
"""The order of alignments that are sorted by their places."""


@frozen
class AlignmentHead:
    """What the header of a file of alignments has besides the records of the reference.

    `command` is empty if there is none; `order` is `UNSORTED` or `BY_COORDINATE`. `checksums` are
    the MD5 of each record, of all its letters (M5), as a reference keeps no other letters than A,
    C, G and T; empty to leave them out. `input_groups` are the lines of the read groups of reads
    whose tags name them (`rows.WrittenRows.has_groups`), and `circular` the circular records.
    """

    read_group: ReadGroup | None = None
    command: str = ""
    order: str = UNSORTED
    checksums: Sequence[str] = ()
    input_groups: Sequence[bytes] = ()
    circular: Sequence[int] = ()


@frozen
class SamHeader:
    """The lines of the header of a file of alignments, and the number of each record among @SQ.

    A record without bases, which SAM cannot describe, has the number -1.
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


def _program_line(command: str) -> bytes:
    fields = ["@PG", f"ID:{_PROGRAM}", f"PN:{_PROGRAM}", f"VN:{__version__}"]
    if command:
        # A field ends with a tab, and a line of the header with a line end.
        fields.append("CL:" + re.sub(r"[\x00-\x1f\x7f]", " ", command))
    return "\t".join(fields).encode(errors="replace")


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
