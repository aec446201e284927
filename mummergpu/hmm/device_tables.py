"""The tables of profiles as the kernels read them: striped over the halves of lanes' registers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mummergpu.hmm.filter_programs import (
    MAX_WORD_REGISTERS,
    TABLE_ROWS,
    RowShape,
    word_shape,
)
from mummergpu.hmm.proteins import CODES, MARKS
from mummergpu.hmm.tables import WORD_BASE, ByteTables, WordTables
from mummergpu.runtime.arrays import UInt32Array

_FAR_BELOW: Final = -30_000
"""What nodes beyond the last one score, in thirds of a bit: from no cell a way leads there."""

NEVER: Final = -20_000
"""What stands for a step that cannot be: no sum of 16 bits with it wraps around."""

LOWEST_FLOOR: Final = -12_000
"""Down to here no sum with `NEVER` wraps around."""


def byte_table(tables: ByteTables, row: RowShape) -> UInt32Array:
    """Return a profile's table for SSV and MSV: rows of halves, then each code's best score."""
    scores = np.full((TABLE_ROWS, row.nodes), _FAR_BELOW, dtype=np.int16)
    scores[:CODES, : tables.costs.shape[1]] = tables.bias - tables.costs.astype(np.int16)
    best = np.full(32, _FAR_BELOW, dtype=np.int16)
    best[:TABLE_ROWS] = scores.max(axis=1)
    rows = _striped(scores.astype(np.float16).view(np.uint16), row)
    return np.concatenate([rows, best.view(np.uint32)])


def word_table(tables: WordTables, row: RowShape) -> UInt32Array:
    """Return a profile's table for Viterbi: rows of integers, then transitions by register."""
    nodes = tables.emissions.shape[1]
    emissions = np.full((TABLE_ROWS, row.nodes), NEVER, dtype=np.int16)
    emissions[:CODES, :nodes] = np.maximum(tables.emissions, NEVER)
    steps = np.full((8, row.nodes), NEVER, dtype=np.int16)
    steps[:, :nodes] = np.maximum(tables.transitions, NEVER)
    pairs = _pairs(steps.view(np.uint16), row)
    # By register: a quad of each lane for steps into matches, then one for the others.
    quads = pairs.reshape(2, 4, row.lanes, row.registers).transpose(3, 0, 2, 1)
    return np.concatenate([_striped(emissions.view(np.uint16), row), quads.ravel()])


def _pairs(rows: Any, row: RowShape) -> UInt32Array:
    """Return for each row, lane and register the words of both half-lanes."""
    halves = rows.astype(np.uint32).reshape(len(rows), 2, row.lanes, row.registers)
    pairs: UInt32Array = halves[:, 0] | halves[:, 1] << np.uint32(16)
    return pairs


def _striped(rows: Any, row: RowShape) -> UInt32Array:
    """Return rows with four registers of a lane beside each other, and so the rest of them."""
    pairs = _pairs(rows, row)
    whole = row.registers // 4 * 4
    parts = [pairs[:, :, at : at + 4].reshape(len(rows), -1) for at in range(0, whole, 4)]
    rest = pairs[:, :, whole:]
    if rest.shape[2] == 3:
        rest = np.concatenate([rest, np.zeros_like(rest[:, :, :1])], axis=2)
    parts.append(rest.reshape(len(rows), -1))
    return np.concatenate(parts, axis=1).ravel()


def words_fit(tables: WordTables) -> bool:
    """Return whether sums of 16 bits are exact for a profile without `WORD_NEVER` inside."""
    emitted = np.delete(tables.emissions, MARKS, axis=0)
    steps = tables.transitions
    inside = [emitted.ravel(), steps[0], steps[1:4, 1:].ravel(), steps[4:, :-1].ravel()]
    registers = word_shape(tables.emissions.shape[1]).registers
    return (
        registers <= MAX_WORD_REGISTERS and min(int(one.min(initial=0)) for one in inside) >= NEVER
    )


def word_floor(tables: WordTables) -> int:
    """Return what is below any new entry into a profile, if the step to its begin were free."""
    return WORD_BASE + int(tables.transitions[0].min()) - 1


def word_overflow(tables: WordTables) -> int:
    """Return the highest match whose successor fits 16 bits whatever it emits."""
    return 32767 - int(tables.emissions.max())
