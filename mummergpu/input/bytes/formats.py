"""Detects the compression and the format of an input file from its first bytes, and its end mark.

BAM and bgzf end with an empty bgzf block. CRAM has ended with an empty container of its own since
version 2.1. Plain gzip has no mark after its last member and needs none: a truncated member lacks
its own trailer. In a file that is cut between two blocks or containers, only the missing mark shows
it.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import BinaryIO, Final


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
    """The compression of an input file, by its common name."""

    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZSTD = "zstd"

    def may_begin(self, first: bytes) -> bool:
        """Return whether `first` may be the beginning of data of this compression."""
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
"""The number of first bytes that determine the compression."""

ZIP_MAGIC: Final = b"PK\x03\x04"
"""The first bytes of a zip file, which is an archive, not a compressed file."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAM_HEADER: Final = re.compile(rb"@(?:HD|SQ|RG|PG)\t[A-Za-z][A-Za-z0-9]:")
_SAM_RECORD: Final = re.compile(
    rb"[^@\t\n][^\t\n]*\t\d+\t[^\t\n]+\t\d+\t\d+\t[^\t\n]+(?:\t[^\t\n]+){5}"
)
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f-\xff]")


def compression_of(first: bytes) -> Compression | None:
    """Return how data are compressed, from their first `LONGEST_MAGIC` bytes or more.

    None if they are not compressed in a known way.
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
    *("selex", "clustal", "clustallike", "phylip", "phylips", "ncbi"),
)
"""The protein formats that Easel, HMMER's library, reads for this package, by Easel's names."""

BLAST_WORD: Final = "ncbi"
"""The word for a database of BLAST (of version 4), which is named without endings."""

BLAST_RESIDUES: Final = ".psq"
"""The ending of the file with the residues of such a database."""

BY_CONTENT: Final = "auto"
"""The word for detecting the format of a file of proteins from its content."""

FASTA_WORD: Final = "fasta"

SYMBOLS: Final = "symbols"
"""The word for files of any symbols: text of no other format has one sequence per line."""

PROTEIN_FORMATS: Final = (BY_CONTENT, FASTA_WORD, *EASEL_FORMATS)
"""The words for formats of proteins."""


def easel_format_of_text(head: bytes) -> str | None:
    """Return which of `EASEL_FORMATS` a text has, from its first line that is not blank, or None.

    Easel treats EMBL's and UniProt's formats as one.
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


BGZF_END: Final = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""The empty block at the end of a bgzf file."""

_CRAM_2_END: Final = bytes.fromhex(
    "0b000000ffffffff0fe0454f4600000000010000010006060100010001" + "00"
)
_CRAM_3_END: Final = bytes.fromhex(
    "0f000000ffffffff0fe0454f46000000000100" + "05bdd94f0001000606010001000100ee63014b"
)
_CRAM_ENDS: Final = {(2, 1): _CRAM_2_END, (3, 0): _CRAM_3_END, (3, 1): _CRAM_3_END}
"""The empty container at the end of CRAM of each version; version 2.0 has none."""

_LOOSE_BYTE: Final = 8
"""The byte of CRAM's last container whose upper half old writers filled with zeros."""

BGZF_HEAD: Final = 18
"""The first bytes, which distinguish bgzf from plain gzip."""

_LAST_SIZE: Final = 1 << 16
"""The number of last bytes in which the end mark of a file is searched."""

_NO_BGZF_END: Final = (
    "the compressed data lack bgzf's empty block at their end (truncated? "
    "if not, let zcat decompress them)"
)


class MissingEndError(EOFError):
    """A container lacks the mark that it must end with."""

    def __init__(self, message: str = _NO_BGZF_END) -> None:
        super().__init__(message)


def is_bgzf(first: bytes) -> bool:
    """Return whether a file is bgzf rather than plain gzip, from its first 18 bytes or more.

    Every bgzf block begins a gzip member that states the length of the block.
    """
    return first.startswith(b"\x1f\x8b\x08") and first[3:4] == b"\4" and first[12:16] == b"BC\2\0"


def bgzf_block_bytes(head: bytes) -> int:
    """Return the length of a block of bgzf, from its first bytes; 0 if they begin none."""
    return int.from_bytes(head[16:18], "little") + 1 if is_bgzf(head) else 0


def check_end(first: bytes, last: bytes) -> None:
    """Check the end mark of a file's container format, from its first 18 and its last bytes.

    Files without a container format, plain gzip and CRAM versions without a mark always pass.
    """
    if is_bgzf(first) and BGZF_END not in last:
        raise MissingEndError
    if first.startswith(b"CRAM"):
        mark = _CRAM_ENDS.get((first[4], first[5])) if len(first) > 5 else None
        if mark is not None and _strict(last[-len(mark) :]) != _strict(mark):
            raise MissingEndError(
                "the CRAM data lack the empty container at their end (truncated?)"
            )


def _strict(mark: bytes) -> bytes:
    """Return the last container of CRAM without the bits that differ between writers."""
    loose = mark[_LOOSE_BYTE : _LOOSE_BYTE + 1]
    return mark[:_LOOSE_BYTE] + bytes(byte & 0x0F for byte in loose) + mark[_LOOSE_BYTE + 1 :]


def check_end_of_file(file: BinaryIO) -> None:
    """Check the end mark of a regular file's container format; keep the file position.

    Raise `MissingEndError` if it is missing. Bytes may follow the mark of bgzf: then the
    decompressor finds the end of the data and checks the mark.
    """
    descriptor = file.fileno()
    size = os.fstat(descriptor).st_size
    last = os.pread(descriptor, _LAST_SIZE, max(0, size - _LAST_SIZE))
    check_end(os.pread(descriptor, BGZF_HEAD, 0), last)
