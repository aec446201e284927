"""The part of the print kernel that visits the leaves below a node, without a stack."""

from __future__ import annotations

from typing import Final

from mummergpu.index.tree.layout import NO_NODE, NodeHalfArray
from mummergpu.matching.tree.cpu_access import (
    child_of,
    is_leaf,
    leaf_id_of,
    next_leaf_of,
    parent_depth_of,
    parent_of,
    preceding_base_of,
    string_depth_of,
)
from mummergpu.matching.tree.cpu_lanes import OffsetArray
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.sequence.codes import BREAK, CodeArray

DAMAGED: Final = -1
"""Returned in place of a number of rows."""


@inline_without_refcounts
def search_below(
    nodes: NodeHalfArray,
    children: NodeHalfArray,
    stride: int,
    slots: int,
    owned_count: int,
    codes: CodeArray,
    begin: int,
    start: int,
    top: int,
    lowest: int,
    edge_length: int,
    reference_starts: OffsetArray,
    lengths: OffsetArray,
    filled: int,
) -> tuple[int, int]:
    """Search the leaves below P; count the MEMs, and write them unless the arrays are empty.

    Return where the rows end, and the number of nodes visited; `DAMAGED` in place of the former if
    the search visits more nodes than there are, or if a match is longer than the candidate.

    The query path leads from P to L. `distance` counts the edges between the current node and the
    path; `length` is the length of the match at the last node of the path that was visited. When
    all children of a node are visited, the search goes back to the parent. It compares addresses to
    see which child it came from. It follows a ``$`` chain from leaf to leaf. `level` counts the
    edges below P, so that the search ends even if a parent pointer is wrong.
    """
    match_length = parent_depth_of(nodes, stride, lowest) + edge_length
    preceding = codes[as_index(start - 1)] if start > begin else BREAK
    node = top
    level = 0
    visits_left = slots
    distance = 0
    length = match_length if node == lowest else string_depth_of(nodes, stride, node)
    while True:
        slot = 0
        if is_leaf(nodes, stride, node):
            if length > match_length:
                return DAMAGED, 0
            filled, visits_left = take_leaves(
                children,
                stride,
                node,
                owned_count,
                preceding,
                length,
                reference_starts,
                lengths,
                filled,
                visits_left,
            )
            slot = BREAK + 1
        child, slot = next_child(children, stride, node, slot)
        while child == NO_NODE:
            if level == 0:
                return filled if visits_left >= 0 else DAMAGED, slots - visits_left
            level -= 1
            came_from = node
            node = parent_of(nodes, stride, node)
            if distance > 0:
                distance -= 1
            else:
                length = string_depth_of(nodes, stride, node)
            slot = slot_behind(children, stride, node, came_from)
            child, slot = next_child(children, stride, node, slot)
        level += 1
        visits_left -= 1
        if visits_left < 0:
            return DAMAGED, 0
        if (
            distance == 0
            and node != lowest
            and slot - 1 == query_code(nodes, stride, codes, start, match_length, node)
        ):
            length = match_length if child == lowest else string_depth_of(nodes, stride, child)
        else:
            distance += 1
        node = child


@inline_without_refcounts
def take_leaves(
    children: NodeHalfArray,
    stride: int,
    leaf: int,
    owned_count: int,
    preceding: int,
    length: int,
    reference_starts: OffsetArray,
    lengths: OffsetArray,
    filled: int,
    visits_left: int,
) -> tuple[int, int]:
    """Count the MEMs at a leaf and its chain; write them unless the arrays are empty.

    Return where the rows end, and how many nodes may still be visited: -1 if the chain is a circle.
    """
    while visits_left >= 0:
        suffix = leaf_id_of(children, stride, leaf)
        base_before = preceding_base_of(children, stride, leaf)
        if suffix < owned_count and (base_before != preceding or preceding == BREAK):
            if lengths.size > 0:
                reference_starts[filled] = suffix
                lengths[filled] = length
            filled += 1
        leaf = next_leaf_of(children, stride, leaf)
        if leaf == NO_NODE:
            return filled, visits_left
        visits_left -= 1
    return filled, visits_left


@inline_without_refcounts
def next_child(children: NodeHalfArray, stride: int, node: int, slot: int) -> tuple[int, int]:
    """Return the first child of a node at or after a slot, and the slot after that child.

    Slots 0 to 3 are the bases, 4 is ``$``, and 5 is behind them.
    """
    child = NO_NODE
    while slot <= BREAK and child == NO_NODE:
        child = child_of(children, stride, node, slot)
        slot += 1
    return child, slot


@inline_without_refcounts
def slot_behind(children: NodeHalfArray, stride: int, node: int, child: int) -> int:
    """Return the slot after that of a child; leaves further down a ``$`` chain count as last."""
    slot = 0
    while slot <= BREAK and child_of(children, stride, node, slot) != child:
        slot += 1
    return slot + 1


@inline_without_refcounts
def query_code(
    nodes: NodeHalfArray, stride: int, codes: CodeArray, start: int, match_length: int, node: int
) -> int:
    """Return the code by which the query path leaves a node above L, or -1 if it ends there."""
    depth = string_depth_of(nodes, stride, node)
    return as_int64(codes[as_index(start + depth)]) if depth < match_length else -1
