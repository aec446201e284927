"""From P-values to the scores from which on sequences pass a filter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mummergpu.hmm.tables import (
    BYTE_BASE,
    BYTE_LEAVE,
    BYTE_SCALE,
    LN2,
    ByteTables,
    LengthTables,
)
from mummergpu.runtime.arrays import Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit

_SMALL = 5e-9
"""Up to here HMMER takes 1 - exp(-x) for x."""

_NEAR = 1e-5
"""How far a float32 of a score may be from the exact one, as a share of it."""


def gumbel_tail(score: float, mu: float, rate: float) -> float:
    """Return the chance of a score in bits or a higher one among random sequences."""
    try:
        events = math.exp(-rate * (score - mu))
    except OverflowError:
        return 1.0
    return events if events < _SMALL else 1 - math.exp(-events)


def lowest_passing_score(limit: float, mu: float, rate: float) -> np.float32:
    """Return the least float32 whose tail is not above a limit; -inf if all pass."""
    if limit >= 1 or not rate > 0:
        return np.float32(-np.inf)

    def passes(bits: int) -> bool:
        return not gumbel_tail(float(_float_of(bits)), mu, rate) > limit

    low, high = _order_of(np.float32(-1e30)), _order_of(np.float32(1e30))
    if limit > 0:
        # Near where the tail is exactly the limit, which saves most of a search among all floats.
        near = mu - math.log(-math.log1p(-limit)) / rate
        below, above = (
            _order_of(np.float32(near + sign * (_NEAR + _NEAR * abs(near)))) for sign in (-1, 1)
        )
        low, high = (below if not passes(below) else low), (above if passes(above) else high)
    return _float_of(_first_where(passes, low, high))


def _first_where(truth: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first integer after `low`, up to `high`, from which on something is true."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if truth(middle) else (middle, high)
    return high


def _order_of(number: np.float32) -> int:
    """Return an integer that orders as float32 does."""
    bits = int(number.view(np.int32))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _float_of(order: int) -> np.float32:
    return np.float32(
        np.array(abs(order), dtype=np.int32).view(np.float32) * math.copysign(1, order)
    )


def minimal_cells(tables: ByteTables, lengths: LengthTables, score: np.float32) -> Int64Array:
    """Return for each length the least cell of SSV with which a sequence may pass MSV.

    A cell is the highest sum on a diagonal, in bytes, at least 0. Below it MSV, which SSV stands
    for, drops the sequence for certain; from it on the sequence passes, or MSV has to decide.
    """
    cells = np.empty(lengths.move.size, dtype=np.int64)
    numbers = np.array([score, BYTE_SCALE], dtype=np.float32)
    _fill_minimal_cells(tables.bias, tables.entry, lengths.null, lengths.move, numbers, cells)
    return cells


@inline
def bits_of_bytes(left: int, move: int, against: float, scale: float) -> float:
    """Return in bits what the best cell that left the profile scores against another model.

    All divisions and differences are HMMER's, and in float32.
    """
    nats = np.float32(np.float32(left - move - BYTE_BASE) / scale) - np.float32(3)
    return np.float32(np.float64(np.float32(nats - against)) / LN2)  # type: ignore[return-value]


@jit
def _fill_minimal_cells(
    bias: int,
    entry: int,
    null: Float32Array,
    move: Int64Array,
    numbers: Float32Array,
    cells: Int64Array,
) -> None:
    least, scale = numbers[0], numbers[1]
    cell = 0
    for length in range(cells.size):
        costs = move[length] + entry
        # What follows does not decide in these cases: see `byte_filters`.
        if costs + BYTE_LEAVE + bias >= 127:
            cells[length] = 0
            continue
        begin = BYTE_BASE - costs
        doubtful = min(127 - bias, BYTE_LEAVE + 1 + costs, 255 - bias - begin)
        cell = min(cell, doubtful)
        # Neighbours differ little: begin at the last length's cell, and go where the score leads.
        while cell > 0 and (
            bits_of_bytes(cell - 1 + begin - BYTE_LEAVE, move[length], null[length], scale) >= least
        ):
            cell -= 1
        while cell < doubtful and not (
            bits_of_bytes(cell + begin - BYTE_LEAVE, move[length], null[length], scale) >= least
        ):
            cell += 1
        cells[length] = max(cell, 0)
