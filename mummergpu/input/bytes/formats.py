"""Detects the compression and the format of an input file from its first bytes."""

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
    EASEL = "a format that Easel reads"
    LINES = "a sequence a line"

    @property
    def is_alignment(self) -> bool:
        """Whether htslib reads this format."""
        return self in (Format.SAM, Format.BAM, Format.CRAM)


class Compression(Enum):
    """How an input file is compressed, with the name that users know."""

    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTD = "zstd"

    def may_begin(self, first: bytes) -> bool:
        """Return whether more bytes can make some bytes the beginning of such data."""
        return any(magic.startswith(first) for magic in _MAGICS[self])


_SKIPPABLE_FRAMES: Final = tuple(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))
"""The first bytes of frames of zstd that hold no text: some programs begin a file with one."""

_MAGICS: Final = {
    Compression.GZIP: (b"\x1f\x8b",),
    Compression.BZIP2: (b"BZh",),
    Compression.XZ: (b"\xfd7zXZ\x00",),
    Compression.ZSTD: (b"\x28\xb5\x2f\xfd", *_SKIPPABLE_FRAMES),
}

LONGEST_MAGIC: Final = 6
"""The number of bytes that show whether a file is compressed, and how."""

ZIP_MAGIC: Final = b"PK\x03\x04"
"""The first bytes of a zip file, which holds files and is no compressed file."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAM_HEADER: Final = re.compile(rb"@(?:HD|SQ|RG|PG)\t[A-Za-z][A-Za-z0-9]:")
_SAM_RECORD: Final = re.compile(
    rb"[^@\t\n][^\t\n]*\t\d+\t[^\t\n]+\t\d+\t\d+\t[^\t\n]+(?:\t[^\t\n]+){5}"
)
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f-\xff]")


def compression_of(first: bytes) -> Compression | None:
    """Return how data are compressed, from their first `LONGEST_MAGIC` bytes or more.

    None if they are not compressed in a way that is known.
    """
    return next((kind for kind, magics in _MAGICS.items() if first.startswith(magics)), None)


_EASEL_HEADS: Final = {
    b"ID   ": "uniprot",
    b"LOCUS   ": "genbank",
    b"# STOCKHOLM 1.": "stockholm",
    b"CLUSTAL": "clustal",
}

EASEL_FORMATS: Final = (
    *("uniprot", "embl", "genbank", "ddbj", "stockholm", "pfam", "a2m", "afa", "psiblast"),
    *("selex", "clustal", "clustallike", "phylip", "phylips"),
)
"""The formats of proteins that Easel, HMMER's library, reads for this package, by its own words."""

BY_CONTENT: Final = "auto"
"""The word for the format that a file of proteins has by its content."""

FASTA_WORD: Final = "fasta"

SYMBOLS: Final = "symbols"
"""The word for files of any symbols: text of no other format has a sequence a line."""

PROTEIN_FORMATS: Final = (BY_CONTENT, FASTA_WORD, *EASEL_FORMATS)
"""The words for formats of proteins."""


def easel_format_of_text(head: bytes) -> str | None:
    """Return which of `EASEL_FORMATS` a text has, from its first line that is not blank, or None.

    EMBL's format and UniProt's are one to Easel.
    """
    rest = head.lstrip()
    return next((name for begin, name in _EASEL_HEADS.items() if rest.startswith(begin)), None)


def format_of_text(head: bytes) -> Format | None:
    """Return the format of a text, from its first line that is not blank or a part of that line.

    None if it is not FASTA, FASTQ or SAM.
    """
    if _SAM_HEADER.match(head) or _SAM_RECORD.match(head):
        return Format.SAM
    rest = head.lstrip()
    if rest.startswith(b">"):
        return Format.FASTA
    return Format.FASTQ if rest.startswith(b"@") else None


def is_binary(line: bytes) -> bool:
    """Return whether a line holds control bytes other than white space, or bytes above 126."""
    return _BINARY.search(line) is not None
