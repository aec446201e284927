"""The header of BAM: the text of SAM, and the records of the reference in binary form."""

from __future__ import annotations

from typing import Final

from mummergpu.input.reference import Reference
from mummergpu.output.records.sam_header import SamHeader

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
