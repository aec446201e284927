"""The header of BAM: the text of SAM, and the records of the reference in binary form."""

from __future__ import annotations

import struct
from typing import Final

from mummergpu.input.reference import Reference
from mummergpu.output.records.sam_header import SamHeader

_MAGIC: Final = b"BAM\x01"
_NUMBER: Final = struct.Struct("<i")


def binary_header(header: SamHeader, reference: Reference) -> bytes:
    """Return the text of the header and the records of the reference with their lengths."""
    records = [
        _NUMBER.pack(len(name) + 1) + name + b"\0" + _NUMBER.pack(length)
        for name, length, number in zip(
            reference.names,
            reference.record_lengths.tolist(),
            header.record_ids.tolist(),
            strict=True,
        )
        if number >= 0
    ]
    text = _MAGIC + _NUMBER.pack(len(header.text)) + header.text
    return text + _NUMBER.pack(len(records)) + b"".join(records)
