"""Sequences as bit planes on a device: the constants of ``kernels/common/bit_planes.cuh``."""

from __future__ import annotations

from typing import Final

WORD_BASES: Final = 32
"""The bases of a word of bit planes."""

BIT_PLANES_BYTES: Final = 16
"""The bytes of a word of bit planes."""

PADDING_WORDS: Final = 2
"""The words of breaks before a sequence of bit planes, and the words after it."""

BIT_PLANES_CONSTANTS: Final = (
    ("WORD_BASES", WORD_BASES),
    ("BIT_PLANES_BYTES", BIT_PLANES_BYTES),
    ("PADDING_WORDS", PADDING_WORDS),
)
"""The constants that a program with bit planes shares with the host (`program.ProgramSource`)."""

PADDING_BYTES: Final = BIT_PLANES_BYTES * PADDING_WORDS
"""The bytes of the padding on each side of a sequence of bit planes."""


def bit_planes_bytes(bases: int) -> int:
    """Return the bytes of the bit planes of `bases` bases on the device, padding included."""
    return BIT_PLANES_BYTES * (-(-bases // WORD_BASES) + 2 * PADDING_WORDS)
