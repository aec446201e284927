"""The programs that search trees: one for each policy and node format."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.program import ProgramSource
from mummergpu.index.tree import layout
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import LETTERS, NO_POLICY, Policy
from mummergpu.matching.backends.stream_searcher import WORD_BYTES
from mummergpu.sequence.codes import BREAK

ENTRY: Final = "tree/program.cu"

COUNT_BYTES: Final = 4
"""The bytes of the number of a query's candidate matches, or of a candidate's MEMs."""

CANDIDATE_BYTES: Final = 16
"""The bytes of a candidate match."""

FOUND_MEM_BYTES: Final = 16
"""The bytes of a MEM between the kernels that find and place it."""

CHUNK_MEMS: Final = 160
"""The places for MEMs that a warp takes at once: the most that its lanes find at once."""

WAITING_NODES: Final = 512
"""The nodes of a tree that can wait for a warp to visit them."""

FEW_ROWS: Final = 32
"""One thread sorts at most this many MEMs of a candidate; a thread block sorts longer lists."""

SHARED_ROWS: Final = 4096
"""A thread block sorts at most this many MEMs of a candidate in shared memory."""

TEXTURE_PART_BITS: Final = 27
"""Binary logarithm of the most texels of a one-dimensional texture; larger trees take several."""

PAPER_TEXTURE_PARTS: Final = 1
WIDE_TEXTURE_PARTS: Final = 64
"""The most one-dimensional textures of a tree, in the two node formats."""

_NAMES_OF_LAYOUT: Final = (
    *("EDGE_START", "EDGE_END", "STRING_DEPTH", "PARENT", "SUFFIX_LINK", "IS_LEAF"),
    *("LEAF_ID", "NEXT_LEAF", "FLAGS", "LEAF_FLAG", "PRECEDING_BASE_MASK", "ROOT", "NO_NODE"),
    *("REFERENCE_WIDTH_BITS", "REFERENCE_STRIP_BITS"),
)
"""The constants of the node and reference layout that the kernels use."""


def texture_parts(wide: bool) -> int:
    """Return the most one-dimensional textures of a tree in a node format."""
    return WIDE_TEXTURE_PARTS if wide else PAPER_TEXTURE_PARTS


def tree_program(policy: Policy, wide: bool, profile: bool) -> ProgramSource:
    """Return the program that searches trees of a given policy and node format.

    Six of the seven flags change the program. Node reordering does not: it moves nodes, but the
    kernels follow addresses in any order. The name of the program holds the letters of the policy,
    ``W`` for wide and ``P`` for profile.
    """
    flags = {flag: getattr(policy, flag) for flag in LETTERS if flag != "node_reordering"}
    letters = [LETTERS[flag] for flag, is_set in flags.items() if is_set]
    letters += ["W"] * wide + ["P"] * profile
    macros = {**flags, "wide": wide, "profile": profile}
    return ProgramSource(
        f"tree-{''.join(letters) or NO_POLICY}",
        ENTRY,
        tuple((name.upper(), int(value)) for name, value in macros.items()),
        _constants(Layout.of(policy, wide)),
    )


def _constants(ours: Layout) -> tuple[tuple[str, int], ...]:
    """Return the constants that the kernels share with the package."""
    return (
        *((name, getattr(layout, name)) for name in _NAMES_OF_LAYOUT),
        ("NODE_HALF_BYTES", ours.half_bytes),
        ("NODE_STRIDE_BYTES", ours.node_stride_bytes),
        ("TREE_WIDTH_BITS", ours.tree_width_bits),
        ("BREAK", BREAK),
        ("CODES_IN_WORD", WORD_BYTES),
        ("CANDIDATE_BYTES", CANDIDATE_BYTES),
        ("FOUND_MEM_BYTES", FOUND_MEM_BYTES),
        ("CHUNK_MEMS", CHUNK_MEMS),
        ("WAITING_NODES", WAITING_NODES),
        ("FEW_ROWS", FEW_ROWS),
        ("SHARED_ROWS", SHARED_ROWS),
        ("TEXTURE_PART_BITS", TEXTURE_PART_BITS),
        ("TEXTURE_PARTS", texture_parts(ours.wide)),
        ("SCAN_COUNT_BYTES", COUNT_BYTES),
    )
