"""The memory in which tiles are computed."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.arrays import Int16Array, UInt16Array
from mummergpu.sequence.codes import STEP, CodeArray
from mummergpu.viterbi.recurrence.lane_arithmetic import LANES
from mummergpu.viterbi.recurrence.lanes import (
    DIRECTION_WORDS,
    MOST_LANES,
    MOST_REGISTERS,
    RESULTS,
    STATE_WORDS,
)

LaneArray = Int16Array
DirectionArray = UInt16Array


class Scratch(NamedTuple):
    """What compiled functions write while they work, one for each thread."""

    codes: CodeArray
    """The copies of the two sequences (`band`)."""
    state: LaneArray
    """The cells of a wide band."""
    results: LaneArray
    """Of all lanes (`lanes.RESULTS`)."""
    directions: DirectionArray
    """For each anti-diagonal, from 0 on, and each register, `lanes.DIRECTION_WORDS` words with a
    bit for each lane: what leaves the cell (`departures`)."""


MOST_BASES: Final = 1500
"""The longest tile, in bases of the read: its scores fit 16 bits."""

PAD: Final = LANES * (MOST_REGISTERS + 1)
"""The codes before each copy, at most: half of the widest band outside of the matrix."""

_LINE_BYTES: Final = 64


def new_scratch(max_bases: int, max_gap: int) -> Scratch:
    """Return the memory that one thread needs for tiles of so many bases of the read.

    There are `MOST_BASES` of them at most; `max_gap` is that of `Costs`.
    """
    if max_bases > MOST_BASES:
        raise ValueError(f"a tile of {max_bases} bases is longer than {MOST_BASES}")
    registers = max_gap // LANES + 1
    diagonals = 2 * LANES * registers
    steps = 2 * max_bases + diagonals
    return Scratch(
        _empty_lines(2 * (max_bases + 2 * PAD + diagonals + STEP), np.uint8),
        _empty_lines(STATE_WORDS, np.int16),
        _empty_lines(2 * len(RESULTS) * MOST_LANES, np.int16),
        _empty_lines(steps * registers * DIRECTION_WORDS, np.uint16),
    )


def _empty_lines(count: int, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return an unfilled array that begins at a cache line, so that no register lies in two."""
    size = count * np.dtype(dtype).itemsize
    memory = np.empty(size + _LINE_BYTES, dtype=np.uint8)
    first = -memory.ctypes.data % _LINE_BYTES
    return memory[first : first + size].view(dtype)
