"""Builds the suffix tree of one page from its sorted suffixes.

The tree is the same as that of `ukkonen`, and is built faster. An inner node is a maximal run
of neighbouring suffixes that share some number of bases. Ukkonen's algorithm numbers nodes in
the order in which inserting the suffixes makes them, and that order can be computed. A node is
made when its second branch is. Take the smallest suffix of each branch, where a leaf that ends
at the node is a branch of its own: the second smallest of these suffixes makes the node. A
suffix makes at most one node.

1. Visit the runs from right to left, with a stack of those still open. This is the reverse of
   the order in which a depth-first walk of the tree (A, C, G, T) reaches the nodes.
2. Visit the suffixes from first to last. Each suffix that makes a node gives it its number.
3. Walk the tree by visiting the sorted suffixes from left to right, and set children and suffix
   links. The suffix link of a node made by suffix s leads to the node that lies on the path of
   suffix s + 1 and is one base less deep. The walk knows the whole path to each leaf.

libdivsufsort sorts the suffixes (through `pydivsufsort`, an optional library). Breaks sort after
all bases, so suffixes that begin with a break come last and are left out. The *shared bases* of two
neighbours are those up to the first difference or break. Codes after a break affect the order of
suffixes, but not the number of shared bases.

References
----------
T. Kasai et al., Linear-time longest-common-prefix computation in suffix arrays and its
applications, CPM 2001; J. Karkkainen, G. Manzini and S. J. Puglisi, Permuted
longest-common-prefix array, CPM 2009.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.index.tree.layout import zeros_aligned
from mummergpu.index.tree.ukkonen import (
    FIRST_CHILD,
    FIRST_SUFFIX,
    RECORD_NUMBERS,
    STRING_DEPTH,
    SUFFIX_LINK,
    GrownTree,
)
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, prefetch
from mummergpu.sequence.codes import BREAK, CodeArray

LOOK_AHEAD: Final = 16
"""The number of suffixes or nodes by which prefetching runs ahead."""


def sort_suffixes(codes: CodeArray) -> Int32Array:
    """Return the positions of a page's suffixes in the order of their codes, breaks last.

    `OptionError` is raised if the library is not installed.
    """
    try:
        from pydivsufsort import divsufsort
    except ImportError as error:
        message = f"'sa' needs pydivsufsort (pip install 'mummergpu[sa]'): {error}"
        raise OptionError("builder", message) from error
    suffixes: Int32Array = divsufsort(codes)
    return suffixes


@jit
def shared_bases(codes: CodeArray, suffixes: Int32Array) -> Int32Array:
    """Return the number of bases that each suffix shares with the one before it, and a final 0.

    Suffixes that begin with a break are left out.
    """
    # `before` has, for each suffix, the one before it in order, and then the bases that they share.
    shared = np.zeros(suffixes.size + 1, dtype=np.int32)
    before = np.full(codes.size, -1, dtype=np.int32)
    for place in range(1, suffixes.size):
        if place + LOOK_AHEAD < suffixes.size:
            prefetch(before, suffixes[place + LOOK_AHEAD])
        before[as_index(suffixes[place])] = suffixes[place - 1]
    # From one suffix of the page to the next, the shared bases become fewer by one at most, so that
    # nothing is compared twice: linear time (Kasai).
    length = 0
    for suffix in range(codes.size):
        if suffix + LOOK_AHEAD < codes.size:
            prefetch(codes, before[suffix + LOOK_AHEAD] + length)
        other = as_int64(before[suffix])
        if other < 0:
            length = 0
            continue
        code = codes[as_index(suffix + length)]
        while code != BREAK and code == codes[as_index(other + length)]:
            length += 1
            code = codes[as_index(suffix + length)]
        before[suffix] = length
        length = max(length - 1, 0)
    for place in range(1, suffixes.size):
        if place + LOOK_AHEAD < suffixes.size:
            prefetch(before, suffixes[place + LOOK_AHEAD])
        shared[place] = before[as_index(suffixes[place])]
    return shared


WordArray = Int64Array

DEPTH_SHIFT: Final = 31
NUMBER_MASK: Final = (1 << DEPTH_SHIFT) - 1
LINKED: Final = 1 << 62
"""The bits of a fact about the node that a suffix makes: the low bits are its number, the bits
from `DEPTH_SHIFT` on its string depth, and `LINKED` says that its suffix link is set. The fact
is 0 for a suffix that makes no node."""


def grow_sorted_tree(codes: CodeArray) -> GrownTree:
    """Build the tree of `ukkonen.grow_tree`, identical in every number, from sorted suffixes.

    Besides the tree, the construction takes 20 bytes per base, or 28 in highly repetitive pages.
    `OptionError` is raised if the library that sorts suffixes is not installed.
    """
    leaf_count = int(np.count_nonzero(codes != BREAK))
    suffixes = sort_suffixes(codes)[:leaf_count]
    shared = shared_bases(codes, suffixes)
    made_by = np.zeros(codes.size + 1, dtype=np.int64)
    makers = np.empty(leaf_count, dtype=np.int32)
    first = find_makers(suffixes, shared, made_by, makers)
    count = leaf_count - first + 1
    inner_nodes = zeros_aligned(4 * RECORD_NUMBERS * count).view(np.int32)
    inner_nodes = inner_nodes.reshape(-1, RECORD_NUMBERS)
    number_nodes(made_by, inner_nodes)
    next_leaves = np.zeros(codes.size, dtype=np.int32)
    walk(codes, suffixes, shared, makers[first:], made_by, inner_nodes, next_leaves)
    return GrownTree(codes, inner_nodes, next_leaves, leaf_count)


@inline
def add_branch(stack: Int32Array, top: int, smallest: int) -> None:
    """Add a branch to the top node, which keeps its branches' two smallest suffixes.

    A row of `stack` is the string depth and these two suffixes of an open node.
    """
    if smallest < stack[as_index(top), 1]:
        stack[as_index(top), 2] = stack[as_index(top), 1]
        stack[as_index(top), 1] = smallest
    elif smallest < stack[as_index(top), 2]:
        stack[as_index(top), 2] = smallest


@jit
def find_makers(
    suffixes: Int32Array, shared: Int32Array, made_by: WordArray, makers: Int32Array
) -> int:
    """Find the suffix that makes each inner node, and store the node's string depth for it.

    The makers of all nodes except the root are written to the end of `makers` in the order of the
    walk; the index of the first one is returned. `made_by` begins with zeros, and holds depths
    shifted by `DEPTH_SHIFT`.
    """
    nobody = made_by.size
    # Columns: string depth, smallest suffix, second smallest suffix.
    stack = np.empty((suffixes.size + 1, 3), dtype=np.int32)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, nobody, nobody
    top = 0
    first = makers.size
    # The stack holds the open nodes: those above both this suffix and the one to its right.
    for place in range(suffixes.size - 1, -1, -1):
        depth = shared[place]
        smallest = suffixes[place]
        while depth < stack[as_index(top), 0]:
            add_branch(stack, top, smallest)
            smallest = stack[as_index(top), 1]
            first -= 1
            makers[as_index(first)] = stack[as_index(top), 2]
            made_by[as_index(makers[as_index(first)])] = (
                as_int64(stack[as_index(top), 0]) << DEPTH_SHIFT
            )
            top -= 1
        if depth > stack[as_index(top), 0]:
            top += 1
            stack[as_index(top), 0], stack[as_index(top), 1], stack[as_index(top), 2] = (
                depth,
                smallest,
                nobody,
            )
        else:
            add_branch(stack, top, smallest)
    return first


@jit
def number_nodes(made_by: WordArray, inner_nodes: Int32Array) -> None:
    """Give each node its number, and fill its record except children and some suffix links.

    If the next suffix makes a node that is one base less deep, the suffix link leads to that node.
    The numbers and `LINKED` are added to `made_by`.
    """
    number = 0
    for suffix in range(made_by.size - 1):
        depth = made_by[suffix] >> DEPTH_SHIFT
        if depth == 0:
            continue
        number += 1
        inner_nodes[number, FIRST_SUFFIX] = suffix
        inner_nodes[number, STRING_DEPTH] = depth
        fact = made_by[suffix] | number
        if depth == 1:
            fact |= LINKED
        elif made_by[suffix + 1] >> DEPTH_SHIFT == depth - 1:
            inner_nodes[number, SUFFIX_LINK] = number + 1
            fact |= LINKED
        made_by[suffix] = fact


@inline
def ancestor_at(path: Int32Array, top: int, depth: int) -> int:
    """Return the node of a given string depth on a path; most such nodes are near its end.

    A row of `path` is the string depth and the number of a node, from the root downwards.
    """
    step = 1
    high = top + 1
    low = top
    while path[low, 0] > depth:
        high = low
        low = max(low - step, 0)
        step <<= 1
    # The node is `low`, or lies between `low` and `high`.
    while path[low, 0] != depth:
        middle = (low + high) >> 1
        if path[middle, 0] <= depth:
            low = middle
        else:
            high = middle
    node: int = path[low, 1]
    return node


@inline
def look_ahead(
    codes: CodeArray,
    suffixes: Int32Array,
    shared: Int32Array,
    made_by: WordArray,
    inner_nodes: Int32Array,
    place: int,
) -> None:
    """Prefetch the memory that the walk will read and change at a coming leaf."""
    if place + 2 * LOOK_AHEAD >= suffixes.size:
        return
    suffix = suffixes[as_index(place + 2 * LOOK_AHEAD)]
    prefetch(made_by, max(suffix - 1, 0))
    prefetch(codes, suffix + shared[as_index(place + 2 * LOOK_AHEAD)])
    fact = made_by[as_index(max(suffixes[as_index(place + LOOK_AHEAD)] - 1, 0))]
    if 0 < fact < LINKED:
        prefetch(inner_nodes, RECORD_NUMBERS * (fact & NUMBER_MASK))


@jit
def walk(
    codes: CodeArray,
    suffixes: Int32Array,
    shared: Int32Array,
    makers: Int32Array,
    made_by: WordArray,
    inner_nodes: Int32Array,
    next_leaves: Int32Array,
) -> None:
    """Set the children of each node, the chains of leaves, and the other suffix links.

    `shared` has the bases that each suffix shares with the one before it, and a final 0; `makers`
    the suffixes that make the inner nodes except the root, in the order of the walk.
    """
    # Columns: string depth, number.
    path = np.zeros((suffixes.size + 2, 2), dtype=np.int32)
    top = 0
    reached = 0
    # `path` holds the nodes from the root to this leaf's parent. Neighbours leave it where they
    # share fewer bases, and join it where they share more.
    for place in range(suffixes.size):
        look_ahead(codes, suffixes, shared, made_by, inner_nodes, place)
        suffix = suffixes[place]
        while path[as_index(top), 0] > shared[place]:
            top -= 1
        while path[as_index(top), 0] < shared[place + 1]:
            if reached + 2 * LOOK_AHEAD < makers.size:
                prefetch(made_by, makers[reached + 2 * LOOK_AHEAD])
                ahead = made_by[makers[reached + LOOK_AHEAD]] & NUMBER_MASK
                prefetch(inner_nodes, RECORD_NUMBERS * ahead)
            fact = made_by[as_index(makers[reached])]
            reached += 1
            number = fact & NUMBER_MASK
            code = codes[as_index(suffix + path[as_index(top), 0])]
            inner_nodes[as_index(path[as_index(top), 1]), as_index(FIRST_CHILD + code)] = number
            top += 1
            path[as_index(top), 0] = (fact & ~LINKED) >> DEPTH_SHIFT
            path[as_index(top), 1] = number
        node = path[as_index(top), 1]
        code = codes[as_index(suffix + path[as_index(top), 0])]
        if code == BREAK:
            # The last loop builds the chains; a node is never 0 here, as no leaf ends at the root.
            next_leaves[as_index(suffix)] = node
        else:
            inner_nodes[as_index(node), as_index(FIRST_CHILD + code)] = ~suffix
        fact = made_by[as_index(suffix - 1)] if suffix > 0 else LINKED
        if 0 < fact < LINKED:
            link = ancestor_at(path, top, (fact >> DEPTH_SHIFT) - 1)
            inner_nodes[as_index(fact & NUMBER_MASK), SUFFIX_LINK] = link
    for suffix in range(next_leaves.size):
        node = next_leaves[suffix]
        if node > 0:
            next_leaves[suffix] = inner_nodes[node, FIRST_CHILD + BREAK]
            inner_nodes[node, FIRST_CHILD + BREAK] = ~suffix
