"""The print kernel: it turns candidate matches into MEMs (paper, section 2.4).

L is the lowest node of a candidate. P is the highest ancestor of L whose string depth is at
least the minimum length. A depth-first search visits the leaves below P; it needs no stack,
only parent pointers. Each leaf is an occurrence. The length of its match is the string depth
of the lowest common ancestor of the leaf and L. The match is a MEM if the base before it
differs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.index.tree.layout import NO_NODE
from mummergpu.matching.backends.interface import QueryCodes
from mummergpu.matching.tree.cpu_access import (
    TreeArrays,
    child_of,
    is_leaf,
    leaf_id_of,
    next_child,
    next_leaf_of,
    parent_depth_of,
    parent_of,
    preceding_base_of,
    prefetch_node,
    slot_behind,
    string_depth_of,
)
from mummergpu.matching.tree.cpu_match import Candidates
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.runtime.row_sort import sort_rows
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import extend_match
from mummergpu.sequence.mems import MemRows

RING: Final = 32
TURNS_AHEAD: Final = 24
TURNS_TO_PARENT: Final = 8
TURNS_TO_TOP: Final = 16
"""How many candidates ahead memory is prefetched. `RING` is a power of two that is larger than the
number of turns between finding P and using it."""

DAMAGED: Final = -1
"""Returned in place of a number of rows."""


class PageText(NamedTuple):
    """What a page reports, and the reference in which its matches are extended."""

    begin: int  # Where the page begins in the joined reference.
    base_count: int  # Its bases.
    owned_count: int  # It reports the suffixes that begin before this position.
    joined_reference: CodeArray  # The codes of all pages.


class Candidate(NamedTuple):
    """One candidate match."""

    # Where in the codes its query begins, and it begins itself.
    query_begin: int
    start: int
    # The addresses of P and L.
    top: int
    lowest: int
    edge_length: int  # The bases matched along the edge to L.


@jit
def print_kernel(
    tree: TreeArrays,
    page: PageText,
    queries: QueryCodes,
    min_length: int,
    candidates: Candidates,
    tops: Int64Array,
    mem_offsets: Int64Array,
    rows: MemRows,
) -> bool:
    """Count the MEMs of each query, or write them; return whether the tree is sound.

    With empty rows, the run only counts. The writing run computes the offsets again. The rows of a
    query ascend by query start, then by reference start. `tops` is scratch memory for `RING`
    numbers. A circle of nodes, or a match that is longer than its candidate, shows that the tree is
    damaged; the output is then invalid. For each candidate (the print kernel of the paper):

        P = the highest node above it whose string depth is at least the minimum length
        for each leaf below P: a match, as long as the path that the query shares with the leaf
        sort the matches by reference start

    Nodes lie anywhere in memory, so each is prefetched some candidates before it is read.
    """
    offsets = queries.offsets
    reference_starts, lengths = rows.reference_starts, rows.lengths
    counting = lengths.size == 0
    candidate_count = candidates.offsets[offsets.size - 1]
    filled = 0
    query = 0
    for step in range(candidate_count + TURNS_AHEAD):
        if not prefetch_candidate(tree, min_length, candidates, candidate_count, tops, step):
            return False
        number = step - TURNS_AHEAD
        if number < 0:
            continue
        while number >= candidates.offsets[query + 1]:
            query += 1
            mem_offsets[query] = filled
        start = offsets[query] + candidates.positions[number]
        before = filled
        candidate = Candidate(
            offsets[query],
            start,
            tops[number & (RING - 1)],
            as_int64(candidates.lowest_nodes[number]),
            as_int64(candidates.edge_lengths[number]),
        )
        filled = search_below(tree, page.owned_count, queries.codes, candidate, rows, filled)
        if filled < 0:
            return False
        if counting:
            continue
        for row in range(before, filled):
            rows.query_starts[row] = candidates.positions[number]
            reference_starts[row] += page.begin
            # The tree ends with the page, and the match may not.
            if reference_starts[row] + lengths[row] == page.begin + page.base_count:
                lengths[row] = extend_match(
                    page.joined_reference,
                    queries.codes,
                    start,
                    offsets[query + 1],
                    reference_starts[row],
                    lengths[row],
                )
        sort_rows(reference_starts, lengths, before, filled)
    for rest in range(query + 1, offsets.size):
        mem_offsets[rest] = filled
    return True


@inline
def prefetch_candidate(
    tree: TreeArrays,
    min_length: int,
    candidates: Candidates,
    candidate_count: int,
    tops: Int64Array,
    step: int,
) -> bool:
    """Find P of a candidate some turns before its own turn, and prefetch the nodes around it.

    The function prefetches L first, then the parent of L, then the children of P. Each address
    is known only after the node before it has arrived. It returns False if the string depth does
    not decrease from a node to its parent, or if that of P is less than the minimum length: the
    tree is damaged.
    """
    lowest_nodes = candidates.lowest_nodes
    if step < candidate_count:
        prefetch_node(tree, lowest_nodes[step])
    candidate = step - TURNS_TO_PARENT
    if 0 <= candidate < candidate_count:
        prefetch_node(tree, parent_of(tree, lowest_nodes[candidate]))
    candidate = step - TURNS_TO_TOP
    if 0 <= candidate < candidate_count:
        top = as_int64(lowest_nodes[candidate])
        depth_above = parent_depth_of(tree, top)
        while depth_above >= min_length:
            depth_below = depth_above
            top = parent_of(tree, top)
            depth_above = parent_depth_of(tree, top)
            if depth_above >= depth_below:
                return False
        if string_depth_of(tree, top) < min_length:
            return False
        tops[candidate & (RING - 1)] = top
        if not is_leaf(tree, top):
            for slot in range(BREAK + 1):
                prefetch_node(tree, child_of(tree, top, slot))
    return True


@inline
def search_below(
    tree: TreeArrays,
    owned_count: int,
    codes: CodeArray,
    candidate: Candidate,
    rows: MemRows,
    filled: int,
) -> int:
    """Search the leaves below P; count the MEMs, and write them unless the rows are empty.

    It returns where the rows end, or `DAMAGED` if the search visits more nodes than there are, or
    if a match is longer than the candidate.

    The query path leads from P to L. `distance` counts the edges between the current node and
    the path; `length` is the length of the match at the last node of the path that was
    visited. When all children of a node are visited, the search goes back to the parent. It
    compares addresses to see which child it came from. It follows a ``$`` chain from leaf to
    leaf. `level` counts the edges below P, so that the search ends even if a parent pointer is
    wrong.
    """
    start, lowest = candidate.start, candidate.lowest
    match_length = parent_depth_of(tree, lowest) + candidate.edge_length
    preceding = as_int64(codes[as_index(start - 1)]) if start > candidate.query_begin else BREAK
    node = candidate.top
    level = 0
    nodes_left = tree.slots
    distance = 0
    length = match_length if node == lowest else string_depth_of(tree, node)
    while True:
        slot = 0
        if is_leaf(tree, node):
            if length > match_length:
                return DAMAGED
            filled, nodes_left = take_leaves(
                tree, node, owned_count, preceding, length, rows, filled, nodes_left
            )
            slot = BREAK + 1
        child, slot = next_child(tree, node, slot)
        while child == NO_NODE:
            if level == 0:
                return filled if nodes_left >= 0 else DAMAGED
            level -= 1
            came_from = node
            node = parent_of(tree, node)
            if distance > 0:
                distance -= 1
            else:
                # Back on a node of the query path: its leaves share less with the query than L.
                length = string_depth_of(tree, node)
            slot = slot_behind(tree, node, came_from)
            child, slot = next_child(tree, node, slot)
        level += 1
        nodes_left -= 1
        if nodes_left < 0:
            return DAMAGED
        if (
            distance == 0
            and node != lowest
            and slot - 1 == query_code(tree, codes, start, match_length, node)
        ):
            length = match_length if child == lowest else string_depth_of(tree, child)
        else:
            distance += 1
        node = child


@inline
def take_leaves(
    tree: TreeArrays,
    leaf: int,
    owned_count: int,
    preceding: int,
    length: int,
    rows: MemRows,
    filled: int,
    nodes_left: int,
) -> tuple[int, int]:
    """Count the MEMs at a leaf and its chain; write them unless the rows are empty.

    It returns where the rows end, and how many nodes may still be visited: -1 if the chain is a
    circle. `preceding` is the base before the match in the query.
    """
    while nodes_left >= 0:
        suffix = leaf_id_of(tree, leaf)
        base_before = preceding_base_of(tree, leaf)
        # A break matches nothing, not even another break.
        if suffix < owned_count and (base_before != preceding or preceding == BREAK):
            if rows.lengths.size > 0:
                rows.reference_starts[filled] = suffix
                rows.lengths[filled] = length
            filled += 1
        leaf = next_leaf_of(tree, leaf)
        if leaf == NO_NODE:
            return filled, nodes_left
        nodes_left -= 1
    return filled, nodes_left


@inline
def query_code(tree: TreeArrays, codes: CodeArray, start: int, match_length: int, node: int) -> int:
    """Return the code by which the query path leaves a node above L, or -1 if it ends there."""
    depth = string_depth_of(tree, node)
    return as_int64(codes[as_index(start + depth)]) if depth < match_length else -1
