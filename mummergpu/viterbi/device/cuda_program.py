"""The program that aligns on a device, the constants of its kernels, and the stream for them."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.cuda.device import Device, Program
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.stream_worker import StreamWorker
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.device.tile_set import CORNER_OF_TWO
from mummergpu.viterbi.recurrence.cuda_source import recurrence_source
from mummergpu.viterbi.recurrence.model import PAIRWISE, STATE_BITS, Costs, bit_count, source_table

WHOLE_TILE: Final = np.dtype(
    [
        *(("query_at", np.int64), ("reference_at", np.int64)),
        *(("directions_at", np.int64), ("operations_end", np.int64)),
        *(("length", np.uint32), ("reference_length", np.uint32)),
        *(("max_operations", np.uint32), ("unused", np.uint32)),
    ]
)
"""A tile that is aligned from corner to corner: see ``kernels/viterbi/whole_tiles.cu``."""

WHOLE_MATRIX: Final = np.dtype(
    [
        *((name, np.uint64) for name in ("query", "reference")),
        *((name, np.uint64) for name in ("column_edges", "row_edges", "corners")),
        *((name, np.int64) for name in ("length", "reference_length", "block_columns")),
    ]
)
"""A matrix that is computed in rounds: see ``kernels/viterbi/rounds.cu``."""

LANE_ROWS: Final = 8
"""The rows of a whole matrix that a thread computes."""

SMALL_GROUP: Final = 8
MIDDLE_GROUP: Final = 16
"""The lanes that compute a tile of few rows, `LANE_ROWS` each; others have a whole warp."""

_STATES: Final = PAIRWISE.states

VITERBI_PROGRAM: Final = ProgramSource(
    "viterbi",
    "viterbi/program.cu",
    constants=(
        ("WHOLE_TILE_BYTES", WHOLE_TILE.itemsize),
        ("WHOLE_MATRIX_BYTES", WHOLE_MATRIX.itemsize),
        ("LANE_ROWS", LANE_ROWS),
        ("SMALL_GROUP", SMALL_GROUP),
        ("MIDDLE_GROUP", MIDDLE_GROUP),
        ("CORNER_OF_TWO", CORNER_OF_TWO),
        ("BREAK", BREAK),
        ("STATES", len(_STATES)),
        ("STATE_BITS", STATE_BITS),
        ("DIRECTION_BITS", bit_count(PAIRWISE)),
        ("OPERATIONS", sum(state.operation << 4 * n for n, state in enumerate(_STATES))),
        ("READ_BASES", sum(state.read_bases << n for n, state in enumerate(_STATES))),
        ("REFERENCE_BASES", sum(state.reference_bases << n for n, state in enumerate(_STATES))),
        *(
            (f"INTO_{state.name.upper()}", source_table(PAIRWISE, state))
            for state in PAIRWISE.states
        ),
    ),
    generated=recurrence_source(PAIRWISE),
)
"""The same program for every run; scores and penalties are arguments of the kernels."""


class DeviceWork(StreamWorker):
    """A stream that aligns sequences."""

    def __init__(
        self, device: Device, program: Program, costs: Costs, memory: int, stats: Stats
    ) -> None:
        super().__init__(device, memory, stats, "mapping")
        self.program = program
        self.costs = np.array(costs, dtype=np.int32)
