"""The memory in which tiles are computed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.sequence.codes import STEP, CodeArray
from mummergpu.viterbi.recurrence.lane_arithmetic import LANES
from mummergpu.viterbi.recurrence.lanes import (
    DIRECTION_WORDS,
    MOST_LANES,
    MOST_REGISTERS,
    RESULTS,
    STATE_WORDS,
)
from mummergpu.viterbi.tiles.tile_matrix import DirectionArray, LaneArray

Scratch = tuple[CodeArray, LaneArray, LaneArray, DirectionArray]
"""What compiled functions write while they work: the copies of the two sequences, the state of
a wide band, the results of all lanes, and the directions."""

MOST_BASES: Final = 1500
"""The longest tile, in bases of the read: its scores fit 16 bits."""

PAD: Final = LANES * (MOST_REGISTERS + 1)
"""The codes before each copy, at most: half of the widest band outside of the matrix."""

_LINE_BYTES: Final = 64


def new_scratch(most_bases: int, most_gap: int) -> Scratch:
    """Return the arrays that one thread needs.

    Parameters
    ----------
    most_bases : int
        The longest tile, in bases of the read, up to `MOST_BASES`.
    most_gap : int
        `Costs.most_gap`.

    Returns
    -------
    tuple of ndarray
        What the compiled functions of this room take as `scratch`.

    Raises
    ------
    ValueError
        If the tiles are longer than `MOST_BASES`.
    """
    if most_bases > MOST_BASES:
        raise ValueError(f"a tile of {most_bases} bases is longer than {MOST_BASES}")
    registers = most_gap // LANES + 1
    diagonals = 2 * LANES * registers
    steps = 2 * most_bases + diagonals
    return (
        _empty_lines(2 * (most_bases + 2 * PAD + diagonals + STEP), np.uint8),
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
