"""Checks that a container of reads ends with its end mark, to detect truncated files.

A container is the file that text or alignments are packed into. BAM and bgzf end with an empty
bgzf block. CRAM has ended with an empty container of its own since version 2.1. Plain gzip has
no mark after its last member and needs none: a truncated member lacks its own trailer. A file
that is cut between two blocks or containers has no other fault; only the mark is missing.
"""

from __future__ import annotations

import os
from typing import BinaryIO, Final

BGZF_END: Final = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""The empty block that a bgzf file ends with."""

_CRAM_2_END: Final = bytes.fromhex(
    "0b000000ffffffff0fe0454f4600000000010000010006060100010001" + "00"
)
_CRAM_3_END: Final = bytes.fromhex(
    "0f000000ffffffff0fe0454f46000000000100" + "05bdd94f0001000606010001000100ee63014b"
)
_CRAM_ENDS: Final = {(2, 1): _CRAM_2_END, (3, 0): _CRAM_3_END, (3, 1): _CRAM_3_END}
"""The empty container that CRAM of each version ends with; version 2.0 has none."""

_LOOSE_BYTE: Final = 8
"""The byte of CRAM's last container whose upper half old writers filled with zeros."""

BGZF_HEAD: Final = 18
"""The bytes that tell bgzf from plain gzip."""

_LAST_SIZE: Final = 1 << 16
"""The bytes in which the end mark of a file is looked for."""

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


def check_end(first: bytes, last: bytes) -> None:
    """Check that a file ends as its kind of container must; see `check_end_of_file`.

    Files that are no containers, plain gzip and CRAM versions without a mark always pass.

    Parameters
    ----------
    first, last : bytes
        The first 18 and the last bytes of the file, or all bytes if it has fewer.
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
    """Return the last container of CRAM without the bits in which writers differ."""
    loose = mark[_LOOSE_BYTE : _LOOSE_BYTE + 1]
    return mark[:_LOOSE_BYTE] + bytes(byte & 0x0F for byte in loose) + mark[_LOOSE_BYTE + 1 :]


def check_end_of_file(file: BinaryIO) -> None:
    """Check that a regular file ends as its kind of container must; the file position stays.

    Something may follow the mark of bgzf: who decompresses the file finds the end of the data, and
    whether the mark is there.

    Raises
    ------
    MissingEndError
        If its mark is missing.
    OSError
        If it cannot be read.
    """
    descriptor = file.fileno()
    size = os.fstat(descriptor).st_size
    last = os.pread(descriptor, _LAST_SIZE, max(0, size - _LAST_SIZE))
    check_end(os.pread(descriptor, BGZF_HEAD, 0), last)
