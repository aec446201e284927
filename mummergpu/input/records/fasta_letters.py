"""Which letters other than A, C, G and T a FASTA file has, told without keeping its bases."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Final

CHUNK_BYTES: Final = 1 << 20

_BASES: Final = b"ACGTacgt"
_WHITE_SPACE: Final = b" \t\n\r\v\f"
_HEADER: Final = b">"


def other_letters(path: str) -> frozenset[str] | None:
    """Return the letters in the sequences of a plain FASTA file that are not A, C, G or T.

    Returns
    -------
    frozenset of str or None
        Each letter in upper case, and ``>`` if one stands inside a line of bases; empty for a file
        of A, C, G and T alone. None for a file of another kind: one that does not begin with a
        header, that is no regular file, or that cannot be read.
    """
    with suppress(OSError, ValueError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        letters: set[int] = set()
        with open(path, "rb", buffering=0) as file:
            chunk = file.read(CHUNK_BYTES)
            if not chunk.lstrip(_WHITE_SPACE).startswith(_HEADER):
                return None
            lines = _Lines()
            while chunk:
                letters.update(lines.rest_of_bases(chunk))
                chunk = file.read(CHUNK_BYTES)
        return frozenset(bytes(letters).decode("latin-1").upper())
    return None


class _Lines:
    """Follows the lines of a file from piece to piece."""

    def __init__(self) -> None:
        self._at_start = True
        self._in_header = False

    def rest_of_bases(self, chunk: bytes) -> bytes:
        """Return what is neither a header nor a base nor white space in the next piece."""
        if not self._in_header and _HEADER not in chunk:
            # Most pieces of a genome: one call looks at all lines.
            self._at_start = chunk.endswith(b"\n")
            return chunk.translate(None, _BASES + _WHITE_SPACE)
        rest = []
        for number, line in enumerate(chunk.split(b"\n")):
            if number or self._at_start:
                self._in_header = line.startswith(_HEADER)
            if not self._in_header:
                rest.append(line.translate(None, _BASES + _WHITE_SPACE))
        self._at_start = chunk.endswith(b"\n")
        if self._at_start:
            self._in_header = False
        return b"".join(rest)
