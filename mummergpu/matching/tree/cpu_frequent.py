"""The leaves below a node with many, kept by the base before each for all matches that end there.

In a tandem repeat, every position of a query has a candidate match, and the leaves below its P are
all copies. A leaf with the same base before it as the query is no MEM, and nearly all copies have
the same. So the leaves below such a P are gathered once in a block of queries, in a range for each
base before them, and later candidates with the same P take the other ranges. The nodes P of all
candidates have no leaves in common, so the leaves of the page bound the memory.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.tree.layout import NO_NODE
from mummergpu.matching.tree.cpu_access import (
    TreeArrays,
    is_leaf,
    leaf_id_of,
    next_child,
    next_leaf_of,
    parent_of,
    slot_behind,
)
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import extend_match
from mummergpu.sequence.mems import MemRows

GATHERED_NODES: Final = 1 << 10
"""The nodes whose leaves are kept at once; a power of two."""

GATHERED_NUMBERS: Final = BREAK + 3
"""The numbers of a node whose leaves are kept: its address, and the bounds of its ranges."""

MAX_GATHERED: Final = 1 << 24
"""The most leaves that are kept."""


class PageText(NamedTuple):
    """What a page reports, and the reference in which its matches are extended.

    Attributes
    ----------
    begin : int
        Where the page begins in the joined reference.
    base_count : int
        Its bases.
    owned_count : int
        It reports the suffixes that begin before this position.
    joined_reference : ndarray, dtype=uint8, shape=(n_reference_bases,)
        The codes of all pages.
    """

    begin: int
    base_count: int
    owned_count: int
    joined_reference: CodeArray


class Candidate(NamedTuple):
    """One candidate match.

    Attributes
    ----------
    query_begin, start, query_end : int
        Where in the codes its query begins, it begins itself, and the query ends.
    top, lowest : int
        The addresses of P and L (`cpu_print`).
    edge_length : int
        The bases matched along the edge to L.
    """

    query_begin: int
    start: int
    query_end: int
    top: int
    lowest: int
    edge_length: int


class KeptLeaves(NamedTuple):
    """The leaves that are kept of nodes with many.

    Attributes
    ----------
    leaves : ndarray, dtype=int32, shape=(n_leaves,)
        Where the kept suffixes begin in the page.
    gathered : ndarray, dtype=int64, shape=(GATHERED_NODES, GATHERED_NUMBERS)
        By the lowest bits of a node's address: the address, where in `leaves` the range for each
        base before them begins, and where the last one ends. Negative where no node is kept.
    max_visits : int
        The leaves below a node are kept if a search for them visits more nodes than this.
    """

    leaves: Int32Array
    gathered: Int64Array
    max_visits: int


def no_kept_leaves(owned_count: int, max_visits: int) -> KeptLeaves:
    """Return room for the leaves of a page that reports so many suffixes."""
    leaves = np.empty(min(owned_count, MAX_GATHERED), dtype=np.int32)
    gathered = np.full((GATHERED_NODES, GATHERED_NUMBERS), -1, dtype=np.int64)
    return KeptLeaves(leaves, gathered, max_visits)


@inline_without_refcounts
def gather_leaves(tree: TreeArrays, page: PageText, kept: KeptLeaves, top: int, filled: int) -> int:
    """Keep the leaves below a node; return where the kept leaves of all nodes end.

    If there is not room enough, nothing is kept of this node, and `filled` is returned.
    """
    leaves = kept.leaves
    end = filled
    visits_left = tree.slots
    level = slot = 0
    node = top
    searching = True
    # A depth-first walk without a stack: `slot` is the node's first slot that is not visited yet,
    # and `level` counts the edges below `top`.
    while searching:
        if is_leaf(tree, node):
            leaf = node
            while leaf != NO_NODE:
                suffix = leaf_id_of(tree, leaf)
                if suffix < page.owned_count:
                    if end == leaves.size:
                        return filled
                    leaves[end] = suffix
                    end += 1
                leaf = next_leaf_of(tree, leaf)
                visits_left -= 1
                if visits_left < 0:
                    return filled
            slot = BREAK + 1
        child, slot = next_child(tree, node, slot)
        while child == NO_NODE and level > 0:
            level -= 1
            came_from = node
            node = parent_of(tree, node)
            slot = slot_behind(tree, node, came_from)
            child, slot = next_child(tree, node, slot)
        searching = child != NO_NODE
        if searching:
            level += 1
            visits_left -= 1
            if visits_left < 0:
                return filled
            node = child
            slot = 0
    number = top & (GATHERED_NODES - 1)
    kept.gathered[number, 0] = top
    divide_leaves(page, kept, filled, end, number)
    return end


@inline_without_refcounts
def divide_leaves(page: PageText, kept: KeptLeaves, first: int, end: int, number: int) -> None:
    """Divide the leaves of a node, which is the row `number`, by the base before each."""
    leaves = kept.leaves
    # All leaves before `place` are in their ranges: each base takes its leaves from those behind.
    place = first
    for base in range(BREAK + 1):
        kept.gathered[number, 1 + base] = place
        for other in range(place, end):
            suffix = leaves[other]
            position = page.begin + suffix
            before = as_int64(page.joined_reference[position - 1]) if position > 0 else BREAK
            if before == base:
                leaves[other] = leaves[place]
                leaves[place] = suffix
                place += 1
    kept.gathered[number, BREAK + 2] = place


@inline_without_refcounts
def kept_count(kept: KeptLeaves) -> int:
    """Return how many leaves are kept of all nodes."""
    end = 0
    for number in range(GATHERED_NODES):
        end = max(end, kept.gathered[number, GATHERED_NUMBERS - 1])
    return end


@inline_without_refcounts
def take_gathered(
    page: PageText,
    kept: KeptLeaves,
    codes: CodeArray,
    candidate: Candidate,
    min_length: int,
    rows: MemRows,
    filled: int,
) -> int:
    """Count the MEMs among the kept leaves below P, and write them unless the rows are empty.

    So many bases as a MEM needs match at every kept leaf.
    """
    start = candidate.start
    number = candidate.top & (GATHERED_NODES - 1)
    preceding = as_int64(codes[as_index(start - 1)]) if start > candidate.query_begin else BREAK
    for base in range(BREAK + 1):
        # A break matches nothing, not even another break.
        if base == preceding and base != BREAK:
            continue
        first, behind = kept.gathered[number, 1 + base], kept.gathered[number, 2 + base]
        if rows.lengths.size > 0:
            for place in range(first, behind):
                suffix = as_int64(kept.leaves[as_index(place)])
                row = filled + place - first
                rows.reference_starts[row] = suffix
                rows.lengths[row] = extend_match(
                    page.joined_reference,
                    codes,
                    start,
                    candidate.query_end,
                    page.begin + suffix,
                    min_length,
                )
        filled += behind - first
    return filled
