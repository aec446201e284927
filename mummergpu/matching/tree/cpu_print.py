"""The print kernel: it turns candidate matches into MEMs (paper, section 2.4).

L is the lowest node of a candidate. P is the highest ancestor of L whose string depth is at
least the minimum length. A depth-first search visits the leaves below P; it needs no stack,
only parent pointers. Each leaf is an occurrence. The length of its match is the string depth
of the lowest common ancestor of the leaf and L. The match is a MEM if the base before it
differs.
"""

from __future__ import annotations

from typing import Final

from mummergpu.index.tree.layout import NodeHalfArray
from mummergpu.matching.row_order import sort_rows
from mummergpu.matching.tree.cpu_access import (
    child_of,
    is_leaf,
    parent_depth_of,
    parent_of,
    prefetch_node,
    string_depth_of,
)
from mummergpu.matching.tree.cpu_frequent import (
    GATHERED_NODES,
    gather_leaves,
    kept_leaves,
    take_gathered,
)
from mummergpu.matching.tree.cpu_lanes import OffsetArray
from mummergpu.matching.tree.cpu_leaves import search_below
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import extend_match

RING: Final = 32
TURNS_AHEAD: Final = 24
TURNS_TO_PARENT: Final = 8
TURNS_TO_TOP: Final = 16
"""How many candidates ahead memory is prefetched. `RING` is a power of two that is larger than the
number of turns between finding P and using it."""


@jit_without_refcounts
def print_kernel(
    nodes: NodeHalfArray,
    children: NodeHalfArray,
    stride: int,
    base_count: int,
    page_begin: int,
    owned_count: int,
    joined_reference: CodeArray,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    tops: OffsetArray,
    most_visits: int,
    leaves: Int32Array,
    gathered: OffsetArray,
    positions: Int32Array,
    lowest_nodes: Int32Array,
    edge_lengths: Int32Array,
    candidate_offsets: OffsetArray,
    mem_offsets: OffsetArray,
    query_starts: OffsetArray,
    reference_starts: OffsetArray,
    lengths: OffsetArray,
) -> bool:
    """Count the MEMs of each query, or write them; return whether the tree is sound.

    With empty rows, the run only counts. The writing run takes what the counting run keeps of
    leaves, and computes the offsets again. The rows of a query ascend by query start, then by
    reference start. A circle of nodes, or a match that is longer than its candidate, shows that the
    tree is damaged; the output is then invalid.
    """
    slots = nodes.size // stride
    counting = lengths.size == 0
    candidate_count = candidate_offsets[offsets.size - 1]
    filled = 0
    query = 0
    kept = kept_leaves(gathered)
    for step in range(candidate_count + TURNS_AHEAD):
        if not foresee(
            nodes,
            children,
            stride,
            minimum_length,
            lowest_nodes,
            candidate_count,
            tops,
            step,
        ):
            return False
        candidate = step - TURNS_AHEAD
        if candidate < 0:
            continue
        while candidate >= candidate_offsets[query + 1]:
            query += 1
            mem_offsets[query] = filled
        start = offsets[query] + positions[candidate]
        before = filled
        top = tops[candidate & (RING - 1)]
        number = top & (GATHERED_NODES - 1)
        if kept > 0 and gathered[number, 0] == top:
            filled = take_gathered(
                page_begin,
                joined_reference,
                codes,
                offsets[query],
                start,
                offsets[query + 1],
                minimum_length,
                leaves,
                gathered,
                number,
                reference_starts,
                lengths,
                filled,
            )
        else:
            filled, visits = search_below(
                nodes,
                children,
                stride,
                slots,
                owned_count,
                codes,
                offsets[query],
                start,
                top,
                lowest_nodes[candidate],
                edge_lengths[candidate],
                reference_starts,
                lengths,
                filled,
            )
            if filled < 0:
                return False
            if visits > most_visits:
                kept = gather_leaves(
                    nodes,
                    children,
                    stride,
                    slots,
                    owned_count,
                    page_begin,
                    joined_reference,
                    top,
                    leaves,
                    gathered,
                    kept,
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
    return True


@inline_without_refcounts
def foresee(
    nodes: NodeHalfArray,
    children: NodeHalfArray,
    stride: int,
    minimum_length: int,
    lowest_nodes: Int32Array,
    candidate_count: int,
    tops: OffsetArray,
    step: int,
) -> bool:
    """Find P of a candidate some turns before its own turn, and prefetch the nodes around it.

    The function prefetches L first, then the parent of L, then the children of P. Each address is
    known only after the node before it has arrived. The tree is damaged if the string depth does
    not decrease from a node to its parent, or if that of P is less than the minimum length.
    """
    if step < candidate_count:
        prefetch_node(nodes, stride, lowest_nodes[step])
    candidate = step - TURNS_TO_PARENT
    if 0 <= candidate < candidate_count:
        prefetch_node(nodes, stride, parent_of(nodes, stride, lowest_nodes[candidate]))
    candidate = step - TURNS_TO_TOP
    if 0 <= candidate < candidate_count:
        top = as_int64(lowest_nodes[candidate])
        depth_above = parent_depth_of(nodes, stride, top)
        while depth_above >= minimum_length:
            depth_below = depth_above
            top = parent_of(nodes, stride, top)
            depth_above = parent_depth_of(nodes, stride, top)
            if depth_above >= depth_below:
                return False
        if string_depth_of(nodes, stride, top) < minimum_length:
            return False
        tops[candidate & (RING - 1)] = top
        if not is_leaf(nodes, stride, top):
            for slot in range(BREAK + 1):
                prefetch_node(nodes, stride, child_of(children, stride, top, slot))
    return True
