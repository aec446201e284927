"""Slow and obvious readers, and what the fast ones give, in comparable form."""

from __future__ import annotations

from collections.abc import Iterable

from mummergpu.input.queries import QueryBlock
from mummergpu.input.records import Records
from mummergpu.sequence.codes import decode

Pairs = list[tuple[bytes, bytes]]
"""Names and sequences, the latter in the letters ``ACGTN``."""

_LETTERS = bytes.maketrans(b"ACGTUacgtu", b"ACGTTACGTT")
_LETTERS = bytes(_LETTERS[byte] if byte in b"ACGTUacgtu" else ord("N") for byte in range(256))


def pairs_of(blocks: Iterable[QueryBlock | Records]) -> Pairs:
    """Return the names and sequences of blocks."""
    pairs = []
    for block in blocks:
        assert block.codes.size == block.offsets[-1]
        assert block.names.size == block.name_offsets[-1]
        for i in range(block.offsets.size - 1):
            name = block.names[block.name_offsets[i] : block.name_offsets[i + 1]].tobytes()
            pairs.append((name, decode(block.codes[block.offsets[i] : block.offsets[i + 1]])))
    return pairs


def fold(sequence: bytes) -> bytes:
    """Return the letters ``ACGTN`` of a sequence."""
    return sequence.translate(_LETTERS)


def parse_fasta(text: bytes) -> Pairs:
    """Parse valid FASTA."""
    pairs: Pairs = []
    for line in text.splitlines():
        if line.startswith(b">"):
            pairs.append((_cut(line[1:]), b""))
        elif pairs:
            name, sequence = pairs[-1]
            pairs[-1] = (name, sequence + fold(b"".join(line.split())))
    return pairs


def parse_fastq(text: bytes) -> Pairs:
    """Parse valid FASTQ, wrapped or not."""
    pairs: Pairs = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line:
            continue
        assert line.startswith(b"@")
        sequence = b""
        for part in lines:
            if part.startswith(b"+"):
                break
            sequence += part
        quality = b""
        while len(quality) < len(sequence):
            quality += next(lines)
        assert len(quality) == len(sequence)
        pairs.append((_cut(line[1:]), fold(sequence)))
    return pairs


def _cut(header: bytes) -> bytes:
    end = next((i for i, byte in enumerate(header) if byte in b" \t\v\f\r\n"), len(header))
    return header[:end]
