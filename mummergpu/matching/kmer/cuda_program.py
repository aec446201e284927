"""The program that searches k-mer tables, and the constants of its kernels."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.program import WARP_LANES, ProgramSource
from mummergpu.sequence.bit_planes import BIT_PLANES_CONSTANTS
from mummergpu.sequence.codes import BREAK
from mummergpu.sequence.picked_kmers import RANK_FACTOR, RANK_SALT, SHORTEST_WORD
from mummergpu.sequence.seed_rule import NEAR, NEAR_EDITS, THINNING_BITS, THINNING_FACTOR

TILE_KMERS: Final = WARP_LANES
"""The query k-mers that a warp searches at a time."""

MOST_OCCURRENCES: Final = 64
"""The most occurrences of a k-mer that a warp works on."""

KEPT_MEMS_OF_TILE: Final = 128
"""The most MEMs of a tile that the counting kernel keeps for the writing kernel."""

KEPT_MEM_BYTES: Final = 8
TILE_BYTES: Final = 8
"""The bytes of a kept MEM, and of the data of a tile besides its counts."""

SEED_CHOICE_BYTES: Final = 16
PLACED_KMER_BYTES: Final = 16
"""The bytes of the seeds that are chosen of a query, and of a query k-mer of a window."""

COUNT_BYTES: Final = 8
"""The bytes of the number of MEMs of a tile."""

TILE_LINES: Final = WARP_LANES
"""The lines of text that a warp writes at a time."""

TEXT_KERNELS: Final = ("count_text", "write_text")
"""The kernels that make text of matches, whose times have a stage of their own."""

_CONSTANTS: Final = (
    ("BREAK", BREAK),
    *BIT_PLANES_CONSTANTS,
    ("TILE_KMERS", TILE_KMERS),
    ("MOST_OCCURRENCES", MOST_OCCURRENCES),
    ("KEPT_MEMS_OF_TILE", KEPT_MEMS_OF_TILE),
    ("KEPT_MEM_BYTES", KEPT_MEM_BYTES),
    ("TILE_BYTES", TILE_BYTES),
    ("PLACED_KMER_BYTES", PLACED_KMER_BYTES),
    ("THINNING_BITS", THINNING_BITS),
    ("THINNING_FACTOR", THINNING_FACTOR),
    ("SHORTEST_WORD", SHORTEST_WORD),
    ("RANK_SALT", RANK_SALT),
    ("RANK_FACTOR", RANK_FACTOR),
    ("SCAN_COUNT_BYTES", COUNT_BYTES),
    ("TILE_LINES", TILE_LINES),
)

KMER_PROGRAM: Final = ProgramSource(
    "kmer", "kmer/program.cu", (("FOR_MAPPING", 0),), constants=_CONSTANTS
)
"""Finds all matches; the k-mer search has no policies."""

SEED_PROGRAM: Final = ProgramSource(
    "kmer_seeds",
    "kmer/seed_program.cu",
    (("FOR_MAPPING", 1),),
    constants=(
        *_CONSTANTS,
        ("SEED_CHOICE_BYTES", SEED_CHOICE_BYTES),
        ("NEAR", NEAR),
        ("NEAR_EDITS", NEAR_EDITS),
    ),
)
"""Finds the matches that a mapper wants (`seed_search`)."""
