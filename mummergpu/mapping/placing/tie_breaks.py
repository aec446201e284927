"""Choices among equal placements that look random, but depend on nothing but the read's name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline


class Names(NamedTuple):
    """The bytes of the names of reads, and where each name begins."""

    letters: ByteArray
    offsets: Int64Array


@inline
def hash_of_name(names: Names, read: int) -> np.uint64:
    """Return the hash of a read's name (FNV-1a)."""
    value = np.uint64(14695981039346656037)
    for place in range(names.offsets[read], names.offsets[read + 1]):
        value = (value ^ np.uint64(names.letters[place])) * np.uint64(1099511628211)
    return value


@inline
def mix(name_hash: np.uint64, one: int, other: int) -> np.uint64:
    """Return a number that looks random, for a choice among equals."""
    number = name_hash ^ (np.uint64(one) * np.uint64(0x9E3779B97F4A7C15))
    number ^= np.uint64(other) * np.uint64(0xC2B2AE3D27D4EB4F)
    number ^= number >> np.uint64(29)
    number *= np.uint64(0xBF58476D1CE4E5B9)
    number ^= number >> np.uint64(32)
    return number
