"""The print kernel: from candidate matches to MEMs (paper, section 2.4).

A depth-first search without a stack, by parent pointers alone, visits the leaves below P,
the highest ancestor of the lowest node L whose string depth is at least the minimum
length. Each leaf is an occurrence; its match is as long as the lowest common ancestor of
leaf and L is deep, and it is a MEM if the base before it differs.
"""

from __future__ import annotations

from typing import Final

from mummergpu.index.tree.layout import NO_NODE, HalfArray
from mummergpu.matching.row_order import sort_rows
from mummergpu.matching.tree.cpu_access import (
    child_of,
    is_leaf,
    leaf_id_of,
    next_leaf_of,
    parent_depth_of,
    parent_of,
    preceding_base_of,
    prefetch_node,
    string_depth_of,
)
from mummergpu.matching.tree.cpu_match import NumberArray, OffsetArray
from mummergpu.runtime.jit import compiled_borrower, inlined_borrower, unsigned, widened
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import extend_match

RING: Final = 32
TURNS_AHEAD: Final = 24
TURNS_TO_PARENT: Final = 8
TURNS_TO_TOP: Final = 16
"""How many candidates ahead memory is asked for; `RING` is a power of two that is larger
than the turns between finding P and using it."""


@compiled_borrower
def print_kernel(
    nodes: HalfArray,
    children: HalfArray,
    stride: int,
    base_count: int,
    page_begin: int,
    owned_count: int,
    joined_reference: CodeArray,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    tops: OffsetArray,
    positions: NumberArray,
    lowest_nodes: NumberArray,
    edge_lengths: NumberArray,
    candidate_offsets: OffsetArray,
    mem_offsets: OffsetArray,
    query_starts: OffsetArray,
    reference_starts: OffsetArray,
    lengths: OffsetArray,
) -> None:
    """Count the MEMs of each query, or write them where they have been counted.

    Parameters
    ----------
    nodes, children, stride
        The tree, as `flatten.FlatTree` and its layout describe it.
    base_count, page_begin, owned_count : int
        The bases of the page, where it begins in the joined reference, and how many of its
        suffixes it reports.
    joined_reference : ndarray, dtype=uint8
        The codes of all pages, to follow a match that reaches the end of this one.
    codes, offsets
        The queries, as in `queries.QueryBlock`.
    minimum_length : int
        The fewest bases of a MEM.
    tops : ndarray, dtype=int64, shape=(RING,)
        Room to work in.
    positions, lowest_nodes, edge_lengths, candidate_offsets
        The candidates, as `cpu_match.close_ranks` leaves them.
    mem_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Output: where the MEMs of each query
        begin; the writing run writes them again.
    query_starts, reference_starts, lengths : ndarray, dtype=int64, shape=(n_mems,)
        Output of the writing run; without room for any row, this run counts. Rows of a
        query ascend by query start, then by reference start.
    """
    counting = lengths.size == 0
    candidate_count = candidate_offsets[offsets.size - 1]
    filled = 0
    query = 0
    for step in range(candidate_count + TURNS_AHEAD):
        foresee(nodes, children, stride, minimum_length, lowest_nodes, candidate_count, tops, step)
        candidate = step - TURNS_AHEAD
        if candidate < 0:
            continue
        while candidate >= candidate_offsets[query + 1]:
            query += 1
            mem_offsets[query] = filled
        start = offsets[query] + positions[candidate]
        before = filled
        filled = search_below(
            nodes,
            children,
            stride,
            owned_count,
            codes,
            offsets[query],
            start,
            tops[candidate & (RING - 1)],
            lowest_nodes[candidate],
            edge_lengths[candidate],
            reference_starts,
            lengths,
            filled,
        )
        if counting:
            continue
        for row in range(before, filled):
            query_starts[row] = positions[candidate]
            reference_starts[row] += page_begin
            if reference_starts[row] + lengths[row] == page_begin + base_count:
                lengths[row] = extend_match(
                    joined_reference,
                    codes,
                    start,
                    offsets[query + 1],
                    reference_starts[row],
                    lengths[row],
                )
        sort_rows(reference_starts, lengths, before, filled)
    for rest in range(query + 1, offsets.size):
        mem_offsets[rest] = filled


@inlined_borrower
def foresee(
    nodes: HalfArray,
    children: HalfArray,
    stride: int,
    minimum_length: int,
    lowest_nodes: NumberArray,
    candidate_count: int,
    tops: OffsetArray,
    step: int,
) -> None:
    """Find P of a candidate some turns before its own, and ask for the nodes around it.

    L is asked for first, then the parent of L, then the children of P: each is known when
    the one before it has come.
    """
    if step < candidate_count:
        prefetch_node(nodes, stride, lowest_nodes[step])
    candidate = step - TURNS_TO_PARENT
    if 0 <= candidate < candidate_count:
        prefetch_node(nodes, stride, parent_of(nodes, stride, lowest_nodes[candidate]))
    candidate = step - TURNS_TO_TOP
    if 0 <= candidate < candidate_count:
        top = widened(lowest_nodes[candidate])
        while parent_depth_of(nodes, stride, top) >= minimum_length:
            top = parent_of(nodes, stride, top)
        tops[candidate & (RING - 1)] = top
        if not is_leaf(nodes, stride, top):
            for slot in range(BREAK + 1):
                prefetch_node(nodes, stride, child_of(children, stride, top, slot))


@inlined_borrower
def search_below(
    nodes: HalfArray,
    children: HalfArray,
    stride: int,
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
) -> int:
    """Search the leaves below P (`top`); write page positions and lengths if there is room.

    Returns `filled` plus the number of MEMs.

    Notes
    -----
    The query path leads from P to L. `distance` counts the edges between the current node
    and the path, `length` is the match at the last node of the path that was passed. A
    node is left upwards when all its children have been visited, and which child it was
    is known by comparing addresses; a ``$`` chain is passed from leaf to leaf.
    """
    match_length = parent_depth_of(nodes, stride, lowest) + edge_length
    preceding = codes[unsigned(start - 1)] if start > begin else BREAK
    node = top
    above = parent_of(nodes, stride, top)
    distance = 0
    length = match_length if node == lowest else string_depth_of(nodes, stride, node)
    while True:
        slot = 0
        if is_leaf(nodes, stride, node):
            filled = take_leaves(
                children,
                stride,
                node,
                owned_count,
                preceding,
                length,
                reference_starts,
                lengths,
                filled,
            )
            slot = BREAK + 1
        child, slot = next_child(children, stride, node, slot)
        while child == NO_NODE:
            came_from = node
            node = parent_of(nodes, stride, node)
            if node == above:
                return filled
            if distance > 0:
                distance -= 1
            else:
                length = string_depth_of(nodes, stride, node)
            slot = slot_behind(children, stride, node, came_from)
            child, slot = next_child(children, stride, node, slot)
        if (
            distance == 0
            and node != lowest
            and slot - 1 == query_code(nodes, stride, codes, start, match_length, node)
        ):
            length = match_length if child == lowest else string_depth_of(nodes, stride, child)
        else:
            distance += 1
        node = child


@inlined_borrower
def take_leaves(
    children: HalfArray,
    stride: int,
    leaf: int,
    owned_count: int,
    preceding: int,
    length: int,
    reference_starts: OffsetArray,
    lengths: OffsetArray,
    filled: int,
) -> int:
    """Count the MEMs at a leaf and those chained to it, write them if there is room."""
    while leaf != NO_NODE:
        suffix = leaf_id_of(children, stride, leaf)
        base_before = preceding_base_of(children, stride, leaf)
        if suffix < owned_count and (base_before != preceding or preceding == BREAK):
            if lengths.size > 0:
                reference_starts[filled] = suffix
                lengths[filled] = length
            filled += 1
        leaf = next_leaf_of(children, stride, leaf)
    return filled


@inlined_borrower
def next_child(children: HalfArray, stride: int, node: int, slot: int) -> tuple[int, int]:
    """Return the first child of a node from a slot on, or `NO_NODE`, and the slot behind it."""
    child = NO_NODE
    while slot <= BREAK and child == NO_NODE:
        child = child_of(children, stride, node, slot)
        slot += 1
    return child, slot


@inlined_borrower
def slot_behind(children: HalfArray, stride: int, node: int, child: int) -> int:
    """Return the slot behind that of a child; leaves far down a chain are in the last."""
    slot = 0
    while slot <= BREAK and child_of(children, stride, node, slot) != child:
        slot += 1
    return slot + 1


@inlined_borrower
def query_code(
    nodes: HalfArray, stride: int, codes: CodeArray, start: int, match_length: int, node: int
) -> int:
    """Return the code by which the query path leaves a node that lies on it above L."""
    depth = string_depth_of(nodes, stride, node)
    return widened(codes[unsigned(start + depth)]) if depth < match_length else -1
