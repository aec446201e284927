"""The program that makes candidates of matches on a device, and the constants of its kernels."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.program import ProgramSource
from mummergpu.mapping.candidates.candidates import CANDIDATE, FARTHEST, NOTHING_KNOWN, UNIT
from mummergpu.mapping.placing.secondary import MIN_CLIPPED
from mummergpu.mapping.seeding.pruning import BEST_KEPT
from mummergpu.sequence.bit_planes import BIT_PLANES_CONSTANTS
from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.recurrence.model import Costs

COUNT_BYTES: Final = 4
"""The bytes of the number of candidates of a read."""

MAPPING_PROGRAM: Final = ProgramSource(
    "mapping",
    "mapping/program.cu",
    constants=(
        ("BREAK", BREAK),
        *BIT_PLANES_CONSTANTS,
        ("SCAN_COUNT_BYTES", COUNT_BYTES),
        ("CANDIDATE_BYTES", CANDIDATE.itemsize),
        ("NO_MATCH_KNOWN", NOTHING_KNOWN[0]),
        ("UNIT", UNIT),
        ("FARTHEST", FARTHEST),
        ("MIN_CLIPPED", MIN_CLIPPED),
        ("BEST_KEPT", BEST_KEPT),
        *((name.upper(), place) for place, name in enumerate(Costs._fields)),
    ),
)
"""The same program for every run; scores and options are arguments of the kernels."""
