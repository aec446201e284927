"""Random bits that are the same on every machine and with every version of every library.

This is SplitMix64 (Steele, Lea and Flood 2014): a fixed function scrambles ``key + n * GAMMA``
into the n-th number of a stream, so any number of any stream can be computed directly. Rates
become 32-bit thresholds, so later steps need no floating-point numbers.
"""

from __future__ import annotations

import hashlib
from copy import copy
from typing import Any, Final

import numpy as np

from mummergpu.runtime.arrays import UInt64Array
from mummergpu.runtime.jit import inline

GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
LOW_HALF: Final = np.uint64(0xFFFFFFFF)
HALF: Final = np.uint64(32)

_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def scramble(state: Any) -> Any:
    """Return the random bits of a state; both are uint64, as arrays or as compiled scalars."""
    state = (state ^ (state >> _SHIFTS[0])) * _FACTORS[0]
    state = (state ^ (state >> _SHIFTS[1])) * _FACTORS[1]
    return state ^ (state >> _SHIFTS[2])


scramble_compiled: Final = inline(scramble)
"""The compiled form of `scramble`, for compiled callers."""


def stream_key(seed: int, *labels: str) -> int:
    """Return the key, of 64 bits, of the stream for a seed and labels that name its purpose."""
    text = "/".join([str(seed), *labels])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def threshold(rate: float) -> int:
    """Return a rate in units of 2**-32: 32 random bits are below it with that probability."""
    return round(rate * 2**32)


class RandomStream:
    """Draws random numbers from one stream (`stream_key`), one after the other."""

    def __init__(self, seed: int, *labels: str) -> None:
        self.state = stream_key(seed, *labels)

    def bits(self, count: int) -> UInt64Array:
        """Return the next random words: dtype=uint64, shape=(count,)."""
        states = np.arange(1, count + 1, dtype=np.uint64) * GAMMA + np.uint64(self.state)
        self._pass_over(count)
        return scramble(states)  # type: ignore[no-any-return]

    def _pass_over(self, count: int) -> None:
        self.state = (self.state + count * int(GAMMA)) % 2**64

    def taken(self, count: int) -> RandomStream:
        """Return a stream that begins with the next words, and pass over `count` of them."""
        stream = copy(self)
        self._pass_over(count)
        return stream

    def between(self, low: int, high: int) -> int:
        """Return the next whole number from `low` to `high`, which are less than 2**32 apart.

        Both are included. All numbers have the same probability, to within 2**-32.
        """
        upper_half = int(self.bits(1)[0]) >> 32
        return low + (upper_half * (high - low + 1) >> 32)
