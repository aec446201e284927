"""SSV, MSV and Viterbi with lanes for a sequence, by the choices of CUDAMPF: programs and tables.

H. Jiang, N. Ganesan, Y.-D. Yao, CUDAMPF: a multi-tiered parallel framework for accelerating protein
sequence search in HMMER on CUDA-enabled GPU, BMC Bioinformatics 17, 2016; see ``kernels/hmm``.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import numpy as np

from mummergpu.cuda.device import BlockShape
from mummergpu.cuda.program import WARP_LANES, ProgramSource
from mummergpu.errors import OptionError
from mummergpu.hmm import byte_filters, word_filter
from mummergpu.hmm.cuda_program import CODE_CONSTANTS, TABLE_ROWS
from mummergpu.hmm.device_tables import NEVER, word_floor, word_overflow
from mummergpu.hmm.tables import (
    BYTE_BASE,
    BYTE_LEAVE,
    WORD_BASE,
    WORD_LEAVE,
    ByteTables,
    WordTables,
)
from mummergpu.runtime.arrays import Int32Array, UInt32Array
from mummergpu.runtime.frozen import frozen

FILTERS: Final = "SMV"
"""SSV, MSV, Viterbi."""

LANE_COUNTS: Final = (8, 16, 32)

MAX_COMPILED: Final = {"S": 64, "M": 64, "V": 40}
"""The registers of a row up to which it is compiled for registers: longer ones do not fit."""

SSV_ENOUGH: Final = 16_000
"""A cell so high is as good as any higher one, and no sum with it overflows 16 bits."""

_FAR_BELOW: Final = -30_000
_MAX_WARPS: Final = 8
_LIMITS_BYTES: Final = 16
_LOCAL_UNIT: Final = 16


@frozen
class RowPolicy:
    """How a filter with a group of lanes for a sequence works.

    Attributes
    ----------
    filter : str
        ``S`` for SSV, ``M`` for MSV, ``V`` for Viterbi.
    scores : str
        Where a row lies: ``r`` in registers, ``s`` in shared memory, ``l`` local to threads.
    rows : str
        Whether the length of a row is compiled (``c``) or known at run time (``t``).
    tables : str
        Whether emissions and transitions lie in shared memory (``s``) or are read through the
        read-only cache (``c``).
    lanes : int
        For a sequence: 8, 16 or 32.
    """

    filter: str = "V"
    scores: str = "r"
    rows: str = "c"
    tables: str = "s"
    lanes: int = WARP_LANES

    @classmethod
    def from_code(cls, code: str) -> RowPolicy:
        """Return the policy of a code such as ``Vrcs32``; raise `OptionError` if it is none."""
        found = next((one for one in every_row_policy() if one.code == code), None)
        if found is None:
            raise OptionError("policy", f"'{code}' is no policy of rows, such as 'Vrcs32'")
        return found

    @property
    def code(self) -> str:
        """The letters of all choices, and the lanes."""
        return f"{self.filter}{self.scores}{self.rows}{self.tables}{self.lanes}"

    def registers(self, nodes: int) -> int:
        """Return the registers of a row, two nodes each."""
        registers = -(-nodes // (2 * self.lanes))
        return registers if self.rows == "c" else -(-registers // 4) * 4


def every_row_policy() -> list[RowPolicy]:
    """Return all policies: registers cannot hold a row whose length is not compiled."""
    every = (RowPolicy(*one) for one in product(FILTERS, "rsl", "ct", "sc", LANE_COUNTS))
    return [one for one in every if one.scores != "r" or one.rows == "c"]


def row_program(policy: RowPolicy, nodes: int, threads: int) -> ProgramSource:
    """Return the program of a policy for a profile of so many nodes."""
    registers = policy.registers(nodes)
    macros = {
        "FILTER": FILTERS.index(policy.filter),
        "SCORES": "rsl".index(policy.scores),
        "ROW_REGISTERS": registers if policy.rows == "c" else 0,
        "CACHED": int(policy.tables == "c"),
        "GROUP_LANES": policy.lanes,
        "ROW_THREADS": threads,
    }
    if policy.scores == "l":
        macros["LOCAL_REGISTERS"] = -(-registers // _LOCAL_UNIT) * _LOCAL_UNIT
    parts = (macros[one] for one in ("ROW_REGISTERS", "LOCAL_REGISTERS") if one in macros)
    name = f"hmm-rows-{policy.code}-{threads}-" + "-".join(map(str, parts))
    constants = (
        *CODE_CONSTANTS,
        *(("BYTE_BASE", BYTE_BASE), ("BYTE_LEAVE", BYTE_LEAVE)),
        *(("WORD_BASE", WORD_BASE), ("WORD_LEAVE", WORD_LEAVE)),
        *(("MSV_OVERFLOW", byte_filters.OVERFLOW), ("WORD_OVERFLOW", word_filter.OVERFLOW)),
        *(("SSV_ENOUGH", SSV_ENOUGH), ("FILTER_LIMITS_BYTES", _LIMITS_BYTES)),
    )
    return ProgramSource(name, "hmm/row_policies.cu", tuple(macros.items()), constants)


def row_shape(policy: RowPolicy, nodes: int, shared_bytes: int) -> BlockShape | None:
    """Return what a launch gives a block, or None if a device has too little shared memory.

    The more warps a block has, the more of them share a table.
    """
    registers = policy.registers(nodes)
    table = table_quads(policy, nodes) * 16 if policy.tables == "s" else 0
    states = 3 if policy.filter == "V" else 1
    cells = 4 * WARP_LANES * states * registers if policy.scores == "s" else 0
    warps = _MAX_WARPS
    while warps and table + warps * cells > shared_bytes:
        warps //= 2
    if policy.scores == "r" and registers > MAX_COMPILED[policy.filter]:
        return None
    return BlockShape(WARP_LANES * warps, table + warps * cells) if warps else None


def table_quads(policy: RowPolicy, nodes: int) -> int:
    """Return the units of 16 bytes of a profile's table."""
    registers = policy.registers(nodes)
    emissions = TABLE_ROWS * -(-registers // 4) * policy.lanes
    return emissions + (2 * registers * policy.lanes if policy.filter == "V" else 0)


def row_table(policy: RowPolicy, byte_tables: ByteTables, words: WordTables) -> UInt32Array:
    """Return a profile's table."""
    nodes = words.emissions.shape[1]
    registers = policy.registers(nodes)
    is_viterbi = policy.filter == "V"
    low = NEVER if is_viterbi else _FAR_BELOW
    scores = np.full((TABLE_ROWS, 2 * policy.lanes * registers), low, dtype=np.int16)
    if is_viterbi:
        scores[: len(words.emissions), :nodes] = np.maximum(words.emissions, NEVER)
    else:
        costs = byte_tables.costs.astype(np.int16)
        # 255 is never.
        own = np.where(costs == 255, _FAR_BELOW, byte_tables.bias - costs)
        scores[: len(costs), :nodes] = own
    pairs = _pairs(scores, policy.lanes, registers)
    quads = np.zeros((TABLE_ROWS, policy.lanes, -(-registers // 4) * 4), dtype=np.uint32)
    quads[:, :, :registers] = pairs
    parts = [quads.reshape(TABLE_ROWS, policy.lanes, -1, 4).swapaxes(1, 2).ravel()]
    if is_viterbi:
        steps = np.full((8, 2 * policy.lanes * registers), NEVER, dtype=np.int16)
        steps[:, :nodes] = np.maximum(words.transitions, NEVER)
        by_half = _pairs(steps, policy.lanes, registers)
        own = by_half.reshape(2, 4, policy.lanes, registers).transpose(3, 0, 2, 1)
        parts.append(own.ravel())
    return np.concatenate(parts)


def _pairs(rows: Any, lanes: int, registers: int) -> UInt32Array:
    """Return for each row, lane and register the words of both half-lanes."""
    halves = rows.view(np.uint16).astype(np.uint32).reshape(len(rows), 2, lanes, registers)
    pairs: UInt32Array = halves[:, 0] | halves[:, 1] << np.uint32(16)
    return pairs


def row_limits(byte_tables: ByteTables, words: WordTables, lowest_move: int) -> Int32Array:
    """Return the kernels' ``FilterLimits``; `lowest_move` is that of the longest sequence."""
    floor = word_floor(words) + lowest_move
    return np.array([byte_tables.entry, byte_tables.bias, floor, word_overflow(words)], np.int32)
