"""The order in which nodes are numbered (paper, section 2.1; policy ``n``).

The name of a node is the one in the children of an inner node: the number of an inner node,
or ``~s`` for the leaf of suffix s. An order is the list of all names. The index of a name in
the list is the number that the node gets.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.index.tree.ukkonen import FIRST_CHILD, FIRST_SUFFIX, RECORD_NUMBERS, GrownTree
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.jit import inline, jit, prefetch
from mummergpu.sequence.codes import BREAK, CodeArray

BREADTH_FIRST_DEPTH: Final = 16
"""Nodes fewer than this many edges below the root are numbered breadth first."""

LOOK_AHEAD: Final = 16
"""The number of nodes by which prefetching runs ahead."""


def order_nodes(tree: GrownTree, reordered: bool) -> Int32Array:
    """Return the names of all nodes in the order of their numbers; the root is the first.

    Reordered nodes are numbered breadth first near the root and depth first below. Others keep the
    order of construction: by the suffix whose insertion made the node, an inner node before the
    leaf below it.
    """
    order = np.empty(len(tree.inner_nodes) + tree.leaf_count, dtype=np.int32)
    if reordered:
        waiting = np.empty_like(order)
        order_breadth_then_depth_first(tree.inner_nodes, tree.next_leaves, order, waiting)
    else:
        order_as_constructed(tree.codes, tree.inner_nodes, order)
    return order


@jit
def order_breadth_then_depth_first(
    inner_nodes: Int32Array, next_leaves: Int32Array, order: Int32Array, waiting: Int32Array
) -> None:
    """Fill `order` level by level down to depth 15 in edges, and subtree by subtree below.

    `waiting` is scratch memory for as many names as `order` has.
    """
    order[0] = 0
    filled = 1
    level_begin = 0
    for _ in range(1, BREADTH_FIRST_DEPTH):
        level_end = filled
        for place in range(level_begin, level_end):
            if place + LOOK_AHEAD < filled and order[place + LOOK_AHEAD] > 0:
                prefetch(inner_nodes, RECORD_NUMBERS * order[place + LOOK_AHEAD])
            if order[place] < 0:
                continue
            for code in range(BREAK + 1):
                child = inner_nodes[order[place], FIRST_CHILD + code]
                while child != 0:
                    order[filled] = child
                    filled += 1
                    child = next_leaves[~child] if child < 0 else 0
        level_begin = level_end
    for place in range(level_begin, filled):
        if order[place] > 0:
            filled = order_subtree(inner_nodes, next_leaves, order[place], waiting, order, filled)


@inline
def order_subtree(
    inner_nodes: Int32Array,
    next_leaves: Int32Array,
    top: int,
    waiting: Int32Array,
    order: Int32Array,
    filled: int,
) -> int:
    """Append all nodes below `top` depth first, in the order A, C, G, T, $; return the count.

    `waiting` is scratch memory for as many names as `order` has.
    """
    # `waiting` is a stack of `count` names; children are pushed from the last to the first.
    count = 0
    node = top
    while True:
        for code in range(BREAK, -1, -1):
            child = inner_nodes[node, FIRST_CHILD + code]
            if child != 0:
                waiting[count] = child
                count += 1
                if child > 0:
                    prefetch(inner_nodes, RECORD_NUMBERS * child)
        node = 0
        while node == 0:
            if count == 0:
                return filled
            count -= 1
            child = waiting[count]
            if child > 0:
                node = child
            # A leaf of a chain is followed by the rest of the chain.
            while child != 0:
                order[filled] = child
                filled += 1
                child = next_leaves[~child] if child < 0 else 0


@jit
def order_as_constructed(codes: CodeArray, inner_nodes: Int32Array, order: Int32Array) -> None:
    """Fill `order` suffix by suffix: the inner node that its insertion made, then its leaf."""
    order[0] = 0
    filled = 1
    # Inner nodes are numbered in the order of their first suffixes, so one pass meets all of them.
    made = 1
    for suffix in range(codes.size):
        if codes[suffix] == BREAK:
            continue
        if made < len(inner_nodes) and inner_nodes[made, FIRST_SUFFIX] == suffix:
            order[filled] = made
            filled += 1
            made += 1
        order[filled] = ~suffix
        filled += 1
