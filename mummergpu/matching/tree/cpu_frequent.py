"""The leaves below a node with many, kept by the base before each for all matches that end there.

In a tandem repeat, every position of a query has a candidate match, and the leaves below its P are
all copies. A leaf with the same base before it as the query is no MEM, and nearly all copies have
the same. So the leaves below such a P are gathered once in a block of queries, in a range for each
base before them, and later candidates with the same P take the other ranges. The nodes P of all
candidates have no leaves in common, so the leaves of the page bound the memory.
"""

from __future__ import annotations

from typing import Final

from mummergpu.index.tree.layout import NO_NODE, NodeHalfArray
from mummergpu.matching.tree.cpu_access import is_leaf, leaf_id_of, next_leaf_of, parent_of
from mummergpu.matching.tree.cpu_lanes import OffsetArray
from mummergpu.matching.tree.cpu_leaves import next_child, slot_behind
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import extend_match

GATHERED_NODES: Final = 1 << 10
"""The nodes whose leaves are kept at once; a power of two."""

GATHERED_NUMBERS: Final = BREAK + 3
"""The numbers of a node whose leaves are kept: its address, and the bounds of its ranges."""

MOST_GATHERED: Final = 1 << 24
"""The most leaves that are kept."""


@inline_without_refcounts
def gather_leaves(
    nodes: NodeHalfArray,
    children: NodeHalfArray,
    stride: int,
    slots: int,
    owned_count: int,
    page_begin: int,
    joined_reference: CodeArray,
    top: int,
    leaves: Int32Array,
    gathered: OffsetArray,
    filled: int,
) -> int:
    """Keep the leaves below a node; return where the kept leaves of all nodes end.

    If there is not room enough, nothing is kept of this node, and `filled` is returned.
    """
    end = filled
    visits_left = slots
    level = slot = 0
    node = top
    searching = True
    while searching:
        if is_leaf(nodes, stride, node):
            leaf = node
            while leaf != NO_NODE:
                suffix = leaf_id_of(children, stride, leaf)
                if suffix < owned_count:
                    if end == leaves.size:
                        return filled
                    leaves[end] = suffix
                    end += 1
                leaf = next_leaf_of(children, stride, leaf)
                visits_left -= 1
                if visits_left < 0:
                    return filled
            slot = BREAK + 1
        child, slot = next_child(children, stride, node, slot)
        while child == NO_NODE and level > 0:
            level -= 1
            came_from = node
            node = parent_of(nodes, stride, node)
            slot = slot_behind(children, stride, node, came_from)
            child, slot = next_child(children, stride, node, slot)
        searching = child != NO_NODE
        if searching:
            level += 1
            visits_left -= 1
            if visits_left < 0:
                return filled
            node = child
            slot = 0
    number = top & (GATHERED_NODES - 1)
    gathered[number, 0] = top
    divide_leaves(page_begin, joined_reference, leaves, filled, end, gathered, number)
    return end


@inline_without_refcounts
def divide_leaves(
    page_begin: int,
    joined_reference: CodeArray,
    leaves: Int32Array,
    first: int,
    end: int,
    gathered: OffsetArray,
    number: int,
) -> None:
    """Divide the leaves below a node into a range for each base before them."""
    place = first
    for base in range(BREAK + 1):
        gathered[number, 1 + base] = place
        for other in range(place, end):
            suffix = leaves[other]
            position = page_begin + suffix
            before = as_int64(joined_reference[position - 1]) if position > 0 else BREAK
            if before == base:
                leaves[other] = leaves[place]
                leaves[place] = suffix
                place += 1
    gathered[number, BREAK + 2] = place


@inline_without_refcounts
def kept_leaves(gathered: OffsetArray) -> int:
    """Return how many leaves are kept of all nodes."""
    kept = 0
    for number in range(GATHERED_NODES):
        kept = max(kept, gathered[number, GATHERED_NUMBERS - 1])
    return kept


@inline_without_refcounts
def take_gathered(
    page_begin: int,
    joined_reference: CodeArray,
    codes: CodeArray,
    begin: int,
    start: int,
    end: int,
    minimum_length: int,
    leaves: Int32Array,
    gathered: OffsetArray,
    number: int,
    reference_starts: OffsetArray,
    lengths: OffsetArray,
    filled: int,
) -> int:
    """Count the MEMs among kept leaves, and write them unless the arrays are empty."""
    preceding = as_int64(codes[as_index(start - 1)]) if start > begin else BREAK
    for base in range(BREAK + 1):
        if base == preceding and base != BREAK:
            continue
        first, behind = gathered[number, 1 + base], gathered[number, 2 + base]
        if lengths.size > 0:
            for place in range(first, behind):
                suffix = as_int64(leaves[as_index(place)])
                row = filled + place - first
                reference_starts[row] = suffix
                lengths[row] = extend_match(
                    joined_reference, codes, start, end, page_begin + suffix, minimum_length
                )
        filled += behind - first
    return filled
