"""The variants of the filters that studies measure: policies, programs and tables.

`ThreadPolicy` is Viterbi with a thread for a sequence, by the policies of S. Ferraz and N. Moreano,
Evaluating Optimization Strategies for HMMer Acceleration on GPU, ICPADS 2013, and register tiles.
`RowPolicy` is SSV, MSV or Viterbi with lanes for a sequence, by the choices of H. Jiang and
N. Ganesan, CUDAMPF, BMC Bioinformatics 17, 2016. See ``kernels/hmm``.
"""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from typing import Any, Final

import numpy as np

from mummergpu.cuda.device import BlockShape
from mummergpu.cuda.program import WARP_LANES, ProgramSource
from mummergpu.errors import OptionError
from mummergpu.hmm.filter_programs import (
    CODE_CONSTANTS,
    MAX_WORD_REGISTERS,
    NEVER,
    TABLE_ROWS,
    WORD_RESIDUES,
    RowProgram,
    RowShape,
    RowVariant,
    byte_program,
    word_program,
)
from mummergpu.hmm.tables import WORD_BASE, WORD_LEAVE, WordTables
from mummergpu.runtime.arrays import Int16Array, UInt32Array
from mummergpu.runtime.frozen import frozen

WORD_AGAIN: Final = 50_000
"""The result of tiles if a path might pass the profile once more: another filter decides."""

STEPS_OF_NODE: Final = 8
CODES_OF_NODE: Final = 32
SPECIAL_STEPS: Final = 8
TILE_NODES: Final = 8
CONSTANT_BYTES: Final = 1 << 16
"""The constant memory of a program."""

_ROW_UNIT: Final = 32
"""Private rows are compiled for multiples of this number of nodes."""

_ROW_THREADS: Final = 256
TILE_THREADS: Final = 32
"""Few, so that the multiprocessors have equally many sequences."""

TILE_BLOCKS: Final = 12
"""The blocks of tiles that a multiprocessor has registers for."""

SCHEDULERS: Final = 4
"""Of a multiprocessor."""

SCORES: Final = "gcplt"
"""Global, coalesced, padded, local to a thread, tiles."""
PLACES: Final = "gcsr"
"""Global, constant, shared, registers."""

CHOICES: Final = {
    "scores": SCORES,
    "unroll": "1248",
    "schedule": "ch",
    "sequences": "ris",
    "steps": PLACES,
    "special": PLACES,
    "emissions": "gts",
}
"""The letters of each policy, in the order in which a code has them; the first is the basic one."""


@frozen
class ThreadPolicy:
    """A policy of the Viterbi filter with a thread for each sequence."""

    # Where a row lies: ``g`` in global memory, sequence after sequence; ``c`` coalesced; ``p``
    # coalesced and padded to whole warps; ``l`` local to the thread (the paper's private); ``t`` in
    # register tiles of 8 nodes, two sequences a thread.
    scores: str = "g"
    unroll: str = "1"  # How often the inner loop is repeated: ``1``, ``2``, ``4`` or ``8``
    # Whether the source leaves the order of operations to the compiler (``c``) or has it by hand
    # (``h``).
    schedule: str = "c"
    # ``r`` as they were read, ``i`` interleaved by warps, ``s`` sorted by length as well.
    sequences: str = "r"
    # Where the transitions of nodes lie, and the special ones: ``g`` global memory, ``c``
    # constant, ``s`` shared, ``r`` registers (of nodes: in tiles only).
    steps: str = "g"
    special: str = "g"
    emissions: str = "g"  # ``g`` global memory by node, ``t`` transposed, ``s`` shared

    @classmethod
    def from_code(cls, code: str) -> ThreadPolicy:
        """Return the policy of a code such as ``l8hscsg``; raise `OptionError` if it is none."""
        if len(code) != len(CHOICES) or any(
            letter not in letters for letter, letters in zip(code, CHOICES.values(), strict=True)
        ):
            raise OptionError("policy", f"'{code}' is no policy of threads, such as '{BASIC.code}'")
        policy = cls(*code)
        if policy.steps == "r" and not policy.is_tiled:
            raise OptionError("policy", f"'{code}': only tiles have transitions in registers")
        if policy.is_tiled and policy.special != "r":
            raise OptionError("policy", f"'{code}': tiles have special transitions in registers")
        return policy

    @property
    def code(self) -> str:
        """The letters of all policies."""
        return "".join(getattr(self, field.name) for field in fields(self))

    @property
    def is_tiled(self) -> bool:
        """Whether a thread has two sequences, and a tile of nodes in registers."""
        return self.scores == "t"


BASIC: Final = ThreadPolicy()
"""The paper's basic accelerator."""

PAPERS_BEST: Final = ThreadPolicy("l", "8", "h", "s", "c", "s", "g")
"""The paper's final accelerator: optimisations 1 to 6."""

BEST: Final = ThreadPolicy("t", "8", "h", "s", "r", "r", "s")
"""Tiles as a search uses them."""


def every_thread_policy() -> list[ThreadPolicy]:
    """Return all policies; the basic one is the first."""
    every = (ThreadPolicy(*letters) for letters in product(*CHOICES.values()))
    return [one for one in every if (one.special == "r" if one.is_tiled else one.steps != "r")]


def thread_program(policy: ThreadPolicy, nodes: int) -> ProgramSource:
    """Return the program of a policy for a profile of some length."""
    place = dict(zip(PLACES, range(4), strict=True))
    macros: dict[str, int] = {
        "SCORES": SCORES.index(policy.scores),
        "STEPS": place[policy.steps],
        "SPECIAL": place[policy.special],
        "EMISSIONS": CHOICES["emissions"].index(policy.emissions),
        "UNROLL": int(policy.unroll),
        "BY_HAND": int(policy.schedule == "h"),
        "WORD_STRIDE": 1 if policy.sequences == "r" else WARP_LANES,
        "FILTER_THREADS": TILE_THREADS if policy.is_tiled else _ROW_THREADS,
    }
    if policy.scores == "l":
        macros["ROW_NODES"] = -(-(nodes + 1) // _ROW_UNIT) * _ROW_UNIT
    if policy.is_tiled:
        macros["TILE_BLOCKS"] = TILE_BLOCKS
    if "c" in (policy.steps, policy.special):
        macros["CONSTANT_WORDS"] = constant_words(nodes)
    name = f"hmm-threads-{policy.code}-" + "-".join(
        str(macros[one]) for one in ("ROW_NODES", "CONSTANT_WORDS") if one in macros
    )
    constants = (
        *CODE_CONSTANTS,
        *(("WORD_BASE", WORD_BASE), ("WORD_LEAVE", WORD_LEAVE)),
        ("WORD_AGAIN", WORD_AGAIN),
    )
    return ProgramSource(name, "hmm/thread_filter_variants.cu", tuple(macros.items()), constants)


def constant_words(nodes: int) -> int:
    """Return the words of a program's constant steps, rounded so that few programs differ."""
    tiles = -(-nodes // TILE_NODES)
    needed = STEPS_OF_NODE * (TILE_NODES * tiles + TILE_NODES) + SPECIAL_STEPS
    return -(-needed // 2048) * 2048


def block_shape(policy: ThreadPolicy, nodes: int) -> BlockShape:
    """Return the threads and the shared memory of a block."""
    if policy.is_tiled:
        return BlockShape(TILE_THREADS, 0)
    shared = 4 * STEPS_OF_NODE * nodes * (policy.steps == "s")
    shared += 2 * CODES_OF_NODE * nodes * (policy.emissions == "s")
    shared += 4 * SPECIAL_STEPS * (_ROW_THREADS // WARP_LANES) * (policy.special == "s")
    return BlockShape(_ROW_THREADS, shared)


def row_bytes(policy: ThreadPolicy, nodes: int, sequences: int) -> int:
    """Return the bytes for the rows of all sequences."""
    return 0 if policy.scores == "l" else 24 * (nodes + 1) * row_stride(policy, sequences)


def row_stride(policy: ThreadPolicy, sequences: int) -> int:
    """Return the number of sequences whose states are side by side."""
    return -(-sequences // WARP_LANES) * WARP_LANES if policy.scores == "p" else sequences


def special_steps() -> UInt32Array:
    """Return the special transitions, in the kernels' layout."""
    steps = np.zeros(SPECIAL_STEPS, dtype=np.int32)
    steps[3] = steps[4] = -WORD_LEAVE
    return steps.view(np.uint32)


def node_steps(tables: WordTables) -> UInt32Array:
    """Return the transitions by node, 32 bits each."""
    return np.ascontiguousarray(tables.transitions.T.astype(np.int32)).view(np.uint32).ravel()


def node_emissions(tables: WordTables, transposed: bool) -> Int16Array:
    """Return the emissions by node, or transposed by code."""
    by_code = np.full((CODES_OF_NODE, tables.emissions.shape[1]), NEVER, dtype=np.int16)
    by_code[: len(tables.emissions)] = tables.emissions
    return np.ascontiguousarray(by_code if transposed else by_code.T).ravel()


def tile_count(nodes: int) -> int:
    """Return the tiles of a profile."""
    return -(-nodes // TILE_NODES)


def tile_items(sequences: int) -> int:
    """Return the number of items: a warp works on two sequences a lane."""
    return -(-sequences // (2 * TILE_THREADS))


def tile_blocks(items: int, multiprocessors: int) -> int:
    """Return the number of blocks, each of a warp.

    A warp nearly keeps a scheduler busy. So all schedulers get equally many, and those that are
    done first take the remaining work: with one warp more, some schedulers would finish last.
    """
    schedulers = SCHEDULERS * max(multiprocessors, 1)
    warps = min(max(items // schedulers, 1), TILE_BLOCKS // SCHEDULERS)
    return max(min(items, warps * schedulers), 1)


def border_rows(longest: int) -> int:
    """Return the rows of borders for sequences of `longest` residues; a word is read ahead."""
    return WORD_RESIDUES * (-(-longest // WORD_RESIDUES) + 1)


def tile_steps(tables: WordTables, tiles: int) -> UInt32Array:
    """Return the transitions by node in both halves, up to the node after the last tile's."""
    count = tables.transitions.shape[1]
    steps = np.full((TILE_NODES * (tiles + 1), STEPS_OF_NODE), NEVER, dtype=np.int16)
    steps[:count] = np.maximum(tables.transitions.T, NEVER)
    return steps.view(np.uint16).astype(np.uint32).ravel() * np.uint32(0x10001)


def tile_table(tables: WordTables, tiles: int, transposed: bool) -> UInt32Array:
    """Return a profile's table for tiles: steps, those of the next node too, then emissions."""
    steps = tile_steps(tables, tiles)
    size, own = STEPS_OF_NODE * TILE_NODES, STEPS_OF_NODE * (TILE_NODES + 1)
    windows: Any = np.lib.stride_tricks.sliding_window_view(steps, own)[::size][:tiles]
    emissions = np.full((CODES_OF_NODE, TILE_NODES * tiles), NEVER, dtype=np.int16)
    emissions[: TABLE_ROWS - 1, : tables.emissions.shape[1]] = np.maximum(tables.emissions, NEVER)
    by_code = emissions.reshape(CODES_OF_NODE, tiles, TILE_NODES)
    ordered = by_code if transposed else by_code.swapaxes(0, 1)
    parts = windows.ravel(), np.ascontiguousarray(ordered).view(np.uint32).ravel()
    return np.concatenate(parts)


FILTERS: Final = "SMV"
"""SSV, MSV, Viterbi."""

LANE_COUNTS: Final = (8, 16, 32)

MAX_BYTE_REGISTERS: Final = 64
"""The row of SSV or MSV of more registers does not fit those of a thread."""


@frozen
class RowPolicy:
    """A policy of a filter with a group of lanes for each sequence."""

    filter: str = "V"  # ``S`` for SSV, ``M`` for MSV, ``V`` for Viterbi
    # As in `RowVariant`.
    scores: str = "r"
    rows: str = "c"
    tables: str = "s"
    lanes: int = WARP_LANES  # For a sequence: 8, 16 or 32

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

    def row(self, nodes: int) -> RowShape:
        """Return the shape of a profile's row."""
        registers = -(-nodes // ((4 if self.scores == "b" else 2) * self.lanes))
        return RowShape(self.lanes, registers if self.rows == "c" else -(-registers // 4) * 4)

    def program(self, nodes: int, shared_bytes: int) -> RowProgram | None:
        """Return the program for a profile; None if it does not fit the memory of a block."""
        row, variant = self.row(nodes), RowVariant(self.scores, self.rows, self.tables)
        most = MAX_WORD_REGISTERS if self.filter == "V" else MAX_BYTE_REGISTERS
        program_of = word_program if self.filter == "V" else byte_program
        found = program_of(row, variant, shared_bytes)
        fits = found.shape.shared_bytes <= shared_bytes
        return found if fits and (self.scores not in "rb" or row.registers <= most) else None


def every_row_policy() -> list[RowPolicy]:
    """Return all policies: registers cannot hold a row whose length is not compiled."""
    every = (RowPolicy(*one) for one in product(FILTERS, "rslb", "ct", "sc", LANE_COUNTS))
    return [
        one
        for one in every
        if (one.scores not in "rb" or one.rows == "c") and (one.scores != "b" or one.filter == "S")
    ]
