"""The programs that filter sequences on a device, one a row length, and the tables they read."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import BlockShape
from mummergpu.cuda.program import WARP_LANES, ProgramSource
from mummergpu.hmm import byte_filters, word_filter
from mummergpu.hmm.proteins import CODES, MARKS, SYMBOLS
from mummergpu.hmm.tables import (
    BYTE_BASE,
    BYTE_LEAVE,
    BYTE_SCALE,
    LN2,
    STEP_ROWS,
    WORD_BASE,
    WORD_LEAVE,
    ByteTables,
    WordTables,
)
from mummergpu.runtime.arrays import ByteArray, Int16Array, UInt16Array, UInt32Array
from mummergpu.runtime.jit import as_int64, inline, jit

TABLE_ROWS: Final = CODES + 1
"""The rows of a table: one for each code, and one for the padding after sequences."""

WORD_RESIDUES: Final = 8
"""The residues of a word of packed sequences."""

ITEM: Final = np.dtype([(name, np.uint32) for name in ("profile", "first", "last", "unused")])
"""Comparisons of a block of threads: see ``kernels/hmm/residues.cuh``."""

LIMITS: Final = np.dtype(
    [("entry", np.uint32), ("bias", np.uint32), ("score", np.float32), ("unused", np.uint32)]
)
"""The limits of SSV's cells: see ``kernels/hmm/sequences.cu``."""

ODDS_OF_PROFILE: Final = 32
"""The numbers of a profile for `sum_compositions`: its odds by code, ..., two chances."""

CODE_CONSTANTS: Final = (("PADDING_CODE", CODES), ("ITEM_BYTES", ITEM.itemsize))
_BYTES: Final = (("BYTE_BASE", BYTE_BASE), ("BYTE_LEAVE", BYTE_LEAVE))

_FEW_REGISTERS: Final = 10
"""Up to here a block has 256 threads, and Viterbi's transitions stay in registers."""

_WORD_THREADS: Final = ((_FEW_REGISTERS, 256), (13, 512), (21, 384))
"""The most registers of a row of Viterbi, and the threads of a block: as many as a
multiprocessor has registers for; longer rows have 256."""

_BYTE_LANES: Final = ((400, 8), (928, 16))
"""The most nodes of a profile, and the lanes of SSV and MSV with which an H100 was fastest."""

_SPILLING: Final = (17, 21)
"""The registers of a row of fewer lanes than a warp that the compiler does not keep in registers;
with one more it does."""

MAX_WORD_REGISTERS: Final = 38
"""Viterbi's row of more registers does not fit those of a thread (these last two nearly do)."""


class RowShape(NamedTuple):
    """The layout of a row: each lane has some registers, of two nodes each.

    The nodes of a register are those of two half-lanes. Four registers of a lane are adjacent, then
    the remaining ones.
    """

    lanes: int
    registers: int

    @property
    def nodes(self) -> int:
        """The nodes of a row."""
        return 2 * self.lanes * self.registers

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of a table: four registers at once, then the rest."""
        rest = self.registers % 4
        return self.lanes * (16 * (self.registers // 4) + (16 if rest == 3 else 4 * rest))


def byte_shape(nodes: int) -> RowShape:
    """Return the shape of a profile's row for SSV and MSV.

    With fewer lanes, fewer instructions of a row are repeated in all lanes.
    """
    lanes = next((lanes for most, lanes in _BYTE_LANES if nodes <= most), WARP_LANES)
    registers = -(-nodes // (2 * lanes))
    if lanes < WARP_LANES and registers in _SPILLING:
        registers += 1
    return RowShape(lanes, registers)


def word_shape(nodes: int) -> RowShape:
    """Return the shape of a profile's row for Viterbi."""
    return RowShape(WARP_LANES, -(-nodes // (2 * WARP_LANES)))


class RowVariant(NamedTuple):
    """Where a row and its table lie; in searches, the row is compiled for registers."""

    # The row's cells: ``r`` in registers, ``s`` in shared memory, ``l`` local to threads, ``b`` in
    # registers, four bytes each (CUDAMPF's fourth tier; SSV only).
    scores: str = "r"
    rows: str = "c"  # Whether the length of a row is compiled (``c``) or known at run time (``t``)
    # Whether emissions and transitions lie in shared memory (``s``) or are read through the read-
    # only cache (``c``).
    tables: str = "s"


class RowProgram(NamedTuple):
    """A program for rows of one shape, and the threads and memory of its blocks."""

    source: ProgramSource
    shape: BlockShape


_SEARCHED: Final = RowVariant()


@cache
def byte_program(row: RowShape, variant: RowVariant = _SEARCHED, memory: int = 0) -> RowProgram:
    """Return the program of SSV and MSV for a shape of rows.

    `memory` is the bytes of a block for cells and a table in shared memory.
    """
    threads = 256 if row.registers <= _FEW_REGISTERS else 512
    # After the rows there are the highest scores of the codes: 32 of 16 bits.
    shape = BlockShape(threads, TABLE_ROWS * row.row_bytes + 64)
    constants = (*CODE_CONSTANTS, *_BYTES, ("MSV_OVERFLOW", byte_filters.OVERFLOW))
    return _row_program("bytes", row, shape, 1, constants, variant, memory)


@cache
def word_program(row: RowShape, variant: RowVariant = _SEARCHED, memory: int = 0) -> RowProgram:
    """Return the program of Viterbi for a shape of rows, as `byte_program` does."""
    threads = next((count for most, count in _WORD_THREADS if row.registers <= most), 256)
    # After the rows there are eight transitions of each node.
    size = TABLE_ROWS * row.row_bytes + 8 * 4 * row.lanes * row.registers
    constants = (
        *CODE_CONSTANTS,
        *(("WORD_BASE", WORD_BASE), ("WORD_LEAVE", WORD_LEAVE)),
        ("WORD_OVERFLOW", word_filter.OVERFLOW),
        *(("GAP_CODE", SYMBOLS.index("-")), ("FIRST_MARK", SYMBOLS.index("*"))),
    )
    shape = BlockShape(threads, size)
    return _row_program("words", row, shape, 4, constants, variant, memory)


def _row_program(
    kind: str,
    row: RowShape,
    shape: BlockShape,
    states: int,
    constants: tuple[tuple[str, int], ...],
    variant: RowVariant,
    memory: int,
) -> RowProgram:
    """Return a program; `shape` has room for a table, and none for the cells of the states."""
    warps, size = shape.threads // WARP_LANES, shape.shared_bytes * (variant.tables == "s")
    cells = 4 * WARP_LANES * states * row.registers * (variant.scores == "s")
    while warps > 1 and size + warps * cells > memory > 0:
        warps //= 2
    size += warps * cells
    keeps_steps = variant.scores == "r" and row.registers <= _FEW_REGISTERS
    macros = {
        "GROUP_LANES": row.lanes,
        "ROW_REGISTERS": row.registers * (variant.rows == "c"),
        "ROW_THREADS": WARP_LANES * warps,
        "SCORES": "rslb".index(variant.scores) % 3,
        "CACHED": int(variant.tables == "c"),
        **({"KEEPS_STEPS": int(keeps_steps)} if kind == "words" else {}),
        **({"LOCAL_REGISTERS": row.registers} if variant.scores == "l" else {}),
        **({"IN_BYTES": 1} if variant.scores == "b" else {}),
    }
    name = f"hmm-{kind}-{row.lanes}x{row.registers}"
    if variant != _SEARCHED:
        name += f"-{''.join(variant)}-{warps}"
    entry = "hmm/byte_filters.cu" if kind == "bytes" else "hmm/word_filter.cu"
    source = ProgramSource(name, entry, tuple(macros.items()), constants)
    return RowProgram(source, BlockShape(WARP_LANES * warps, size))


SEQUENCE_PROGRAM: Final = ProgramSource(
    "hmm-sequences",
    "hmm/sequences.cu",
    constants=(
        *CODE_CONSTANTS,
        *_BYTES,
        ("LIMITS_BYTES", LIMITS.itemsize),
        ("ODDS_OF_PROFILE", ODDS_OF_PROFILE),
        ("BYTE_SCALE_BITS", int(BYTE_SCALE.view(np.uint32))),
        ("LN2_BITS", int(np.float64(LN2).view(np.uint64))),
    ),
)
"""The program that packs sequences, bounds cells and compares compositions, for any row."""


_FAR_BELOW: Final = -30_000
"""The score of nodes beyond the last one, in thirds of a bit: no path reaches them."""

NEVER: Final = -20_000
"""The score of an impossible step: no sum of 16 bits with it wraps around."""

LOWEST_FLOOR: Final = -12_000
"""Down to here no sum with `NEVER` wraps around."""


def byte_table(tables: ByteTables, row: RowShape) -> UInt32Array:
    """Return a profile's table for SSV and MSV: rows of halves, then each code's best score."""
    size = TABLE_ROWS * (row.row_bytes // 2)
    table = np.zeros(size + 32, dtype=np.uint16)
    rows, best = table[:size].reshape(TABLE_ROWS, -1), table[size:].view(np.int16)
    best.fill(_FAR_BELOW)
    _fill_bytes(tables.costs, tables.bias, _half_floats(), row.lanes, row.registers, rows, best)
    return table.view(np.uint32)


@cache
def _half_floats() -> UInt16Array:
    """Return the halves from -255 to 255, and `_FAR_BELOW`."""
    numbers = np.append(np.arange(-255, 256), _FAR_BELOW)
    return numbers.astype(np.float16).view(np.uint16)


@jit
def _fill_bytes(
    costs: ByteArray,
    bias: int,
    halves: UInt16Array,
    lanes: int,
    registers: int,
    rows: UInt16Array,
    best: Int16Array,
) -> None:
    """Fill `byte_table`."""
    codes, nodes = costs.shape
    for line in range(len(rows)):
        is_code = line < codes
        least = 255
        for node in range(2 * lanes * registers):
            half = halves[-1]
            if is_code and node < nodes:
                cost = as_int64(costs[line, node])
                least = min(least, cost)
                half = halves[bias - cost + 255]
            rows[line, _place(node, lanes, registers)] = half
        if is_code:
            best[line] = bias - least


def quad_table(tables: ByteTables, row: RowShape) -> UInt32Array:
    """Return a profile's table for SSV with four cells a register: rows of costs, then the bias.

    A register has nodes of four quarter-lanes, which follow each other as half-lanes do.
    """
    costs = np.full((TABLE_ROWS, 2 * row.nodes), 255, dtype=np.uint8)
    costs[:CODES, : tables.costs.shape[1]] = tables.costs
    quarters = costs.reshape(TABLE_ROWS, 4, row.nodes // 2)
    low, high = (quarters[:, at] | quarters[:, at + 1].astype(np.uint16) << 8 for at in (0, 2))
    rows = _striped(np.concatenate([low, high], axis=1), row)
    return np.concatenate([rows, np.full(16, tables.bias * 0x01010101, dtype=np.uint32)])


def word_table(tables: WordTables, row: RowShape) -> UInt32Array:
    """Return a profile's table for Viterbi: rows of integers, then transitions by register."""
    size = TABLE_ROWS * (row.row_bytes // 2)
    table = np.zeros(size + STEP_ROWS * row.nodes, dtype=np.int16)
    rows, steps = table[:size].reshape(TABLE_ROWS, -1), table[size:]
    own = tables.emissions, tables.transitions
    _fill_words(*own, row.lanes, row.registers, rows, steps)
    return table.view(np.uint32)


@jit
def _fill_words(
    emissions: Int16Array,
    transitions: Int16Array,
    lanes: int,
    registers: int,
    rows: Int16Array,
    steps: Int16Array,
) -> None:
    """Fill `word_table`."""
    codes, nodes = emissions.shape
    for line in range(len(rows)):
        for node in range(2 * lanes * registers):
            word = NEVER
            if line < codes and node < nodes:
                word = max(as_int64(emissions[line, node]), NEVER)
            rows[line, _place(node, lanes, registers)] = word
    for row in range(len(transitions)):
        for node in range(2 * lanes * registers):
            # By register: a quad of each lane for steps into matches, then one for the others.
            half, lane = node // (lanes * registers), node // registers % lanes
            quad = (node % registers * 2 + row // 4) * lanes + lane
            word = max(as_int64(transitions[row, node]), NEVER) if node < nodes else NEVER
            steps[(quad * 4 + row % 4) * 2 + half] = word


def _striped(rows: UInt16Array, row: RowShape) -> UInt32Array:
    """Return rows of a table, of whose nodes each has a word of 16 bits."""
    table = np.zeros((len(rows), row.row_bytes // 2), dtype=np.uint16)
    _stripe(rows, row.lanes, row.registers, table)
    return table.reshape(-1).view(np.uint32)


@jit
def _stripe(rows: UInt16Array, lanes: int, registers: int, table: UInt16Array) -> None:
    """Fill `_striped`."""
    for line in range(len(rows)):
        for node in range(2 * lanes * registers):
            table[line, _place(node, lanes, registers)] = rows[line, node]


@inline
def _place(node: int, lanes: int, registers: int) -> int:
    """Return where a node lies in a row of words of half-lanes, as `RowShape` describes it."""
    half, lane, register = node // (lanes * registers), node // registers % lanes, node % registers
    rest = registers % 4
    width = 4 if register < registers - rest or rest == 3 else rest
    return 2 * (register // 4 * 4 * lanes + lane * width + register % 4) + half


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
    """Return a score below any new entry into a profile, if the step to its begin were free."""
    return WORD_BASE + int(tables.transitions[0].min()) - 1


def word_overflow(tables: WordTables) -> int:
    """Return the highest match whose successor fits 16 bits for any residue."""
    return 32767 - int(tables.emissions.max())
