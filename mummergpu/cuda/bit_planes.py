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
"""What a program with bit planes shares with the host (`program.ProgramSource`)."""
