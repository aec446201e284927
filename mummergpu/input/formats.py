"""Detects the format of an input file from its first bytes."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final


class Format(Enum):
    """The format of an input file."""

    FASTA = "FASTA"
    FASTQ = "FASTQ"
    SAM = "SAM"
    BAM = "BAM"
    CRAM = "CRAM"

    @property
    def is_alignment(self) -> bool:
        """Whether htslib reads this format."""
        return self in (Format.SAM, Format.BAM, Format.CRAM)


OTHER_COMPRESSIONS: Final = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
"""The first bytes of files in other compression formats, and the names of the formats."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAM_HEADER: Final = re.compile(rb"@(?:HD|SQ|RG|PG)\t[A-Za-z][A-Za-z0-9]:")
_SAM_RECORD: Final = re.compile(
    rb"[^@\t\n][^\t\n]*\t\d+\t[^\t\n]+\t\d+\t\d+\t[^\t\n]+(?:\t[^\t\n]+){5}"
)
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f-\xff]")


def format_of_text(head: bytes) -> Format | None:
    """Return the format of a text from its first bytes.

    Parameters
    ----------
    head : bytes
        The first bytes of the text: its first line that is not blank, or a part of that line.

    Returns
    -------
    Format or None
        None if it is not FASTA, FASTQ or SAM.
    """
    if _SAM_HEADER.match(head) or _SAM_RECORD.match(head):
        return Format.SAM
    rest = head.lstrip()
    if rest.startswith(b">"):
        return Format.FASTA
    return Format.FASTQ if rest.startswith(b"@") else None


def is_binary(line: bytes) -> bool:
    """Return whether a line holds bytes that plain ASCII text does not have.

    Parameters
    ----------
    line : bytes
        Any line.

    Returns
    -------
    bool
        True if there is a control byte other than white space, or a byte above 126.
    """
    return _BINARY.search(line) is not None
