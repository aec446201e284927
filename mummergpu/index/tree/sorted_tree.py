"""The suffix tree of one page from its sorted suffixes (`suffix_array`): the same tree, sooner.

Inner nodes are the maximal runs of neighbours that share some number of bases. What
`ukkonen` makes of them depends on the order in which it inserts suffixes, and so do the
numbers of its nodes; but that order is known. A node is made when its second branch is: by
the second smallest of the numbers, each the smallest of a branch's suffixes (leaves that
end at the node are branches of their own). A suffix makes at most one node.

1. The runs, from the right to the left, with a stack of those still open: the reverse of
   the order in which a walk down the tree, A before C before G before T, comes to them.
2. The suffixes, from the first to the last: those that make nodes give them their numbers.
3. The walk, which is one from the left to the right: children, and suffix links. The link
   of a node made by suffix s leads to where the path of suffix s + 1 is one base shorter;
   the walk has the whole path to each leaf at hand.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.index.tree.layout import zeros_aligned
from mummergpu.index.tree.suffix_array import LOOK_AHEAD, shared_bases, sort_suffixes
from mummergpu.index.tree.ukkonen import (
    FIRST_CHILD,
    FIRST_SUFFIX,
    RECORD_NUMBERS,
    STRING_DEPTH,
    SUFFIX_LINK,
    GrownTree,
    Int32Array,
)
from mummergpu.runtime.jit import inline, jit, prefetch, unsigned, widened
from mummergpu.sequence.codes import BREAK, CodeArray

WordArray = npt.NDArray[np.int64]

DEPTH_SHIFT: Final = 31
NUMBER_MASK: Final = (1 << DEPTH_SHIFT) - 1
LINKED: Final = 1 << 62
"""What is known of the node that a suffix makes: its number, its string depth after, and
whether it has its suffix link; 0 for suffixes that make none."""


def grow_sorted_tree(codes: CodeArray) -> GrownTree:
    """Build the suffix tree of a page from its sorted suffixes.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases + 1,)
        The page; the last code must be `codes.BREAK`.

    Returns
    -------
    GrownTree
        The tree as `ukkonen.grow_tree` builds it, number for number.

    Raises
    ------
    OptionError
        If the library that sorts is not installed.

    Notes
    -----
    Besides the tree, 20 bytes a base while it is built, in highly repetitive pages 28.
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
    """Count a branch of the node on top: the two smallest of its branches' smallest suffixes.

    Parameters
    ----------
    stack : ndarray, dtype=int32, shape=(n_leaves + 1, 3)
        Of each open node: the string depth, and the two smallest suffixes; changed.
    top : int
        The node on top.
    smallest : int
        The smallest suffix of the branch.
    """
    if smallest < stack[unsigned(top), 1]:
        stack[unsigned(top), 2] = stack[unsigned(top), 1]
        stack[unsigned(top), 1] = smallest
    elif smallest < stack[unsigned(top), 2]:
        stack[unsigned(top), 2] = smallest


@jit
def find_makers(
    suffixes: Int32Array, shared: Int32Array, made_by: WordArray, makers: Int32Array
) -> int:
    """Find the suffix that makes each inner node, and note the node's string depth by it.

    Parameters
    ----------
    suffixes : ndarray, dtype=int32, shape=(n_leaves,)
        The suffixes in the order of their codes, without those that begin with a break.
    shared : ndarray, dtype=int32, shape=(n_leaves + 1,)
        How many bases each suffix shares with the one before it in that order, and a 0.
    made_by : ndarray, dtype=int64, shape=(n_bases + 2,)
        Output: zeros that become the string depth of the node that each suffix makes, shifted by
        `DEPTH_SHIFT`.
    makers : ndarray, dtype=int32, shape=(n_leaves,)
        Output: the makers of all nodes but the root fill it from its end, in the order of the walk.

    Returns
    -------
    int
        Where in `makers` they begin.
    """
    nobody = made_by.size
    # String depth, smallest suffix, second smallest.
    stack = np.empty((suffixes.size + 1, 3), dtype=np.int32)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, nobody, nobody
    top = 0
    first = makers.size
    for place in range(suffixes.size - 1, -1, -1):
        depth = shared[place]
        smallest = suffixes[place]
        while depth < stack[unsigned(top), 0]:
            add_branch(stack, top, smallest)
            smallest = stack[unsigned(top), 1]
            first -= 1
            makers[unsigned(first)] = stack[unsigned(top), 2]
            made_by[unsigned(makers[unsigned(first)])] = (
                widened(stack[unsigned(top), 0]) << DEPTH_SHIFT
            )
            top -= 1
        if depth > stack[unsigned(top), 0]:
            top += 1
            stack[unsigned(top), 0], stack[unsigned(top), 1], stack[unsigned(top), 2] = (
                depth,
                smallest,
                nobody,
            )
        else:
            add_branch(stack, top, smallest)
    return first


@jit
def number_nodes(made_by: WordArray, inner_nodes: Int32Array) -> None:
    """Give each node its number, and its record all but children and some suffix links.

    Where the next suffix makes the node one base above, that is where the link leads.

    Parameters
    ----------
    made_by : ndarray, dtype=int64, shape=(n_bases + 2,)
        String depths, as `find_makers` leaves them; the numbers and `LINKED` are added.
    inner_nodes : ndarray, dtype=int32, shape=(n_inner, RECORD_NUMBERS)
        Output: zeros that become the records of the inner nodes.
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
    """Return the node of a string depth on a path of ascending depths; most are near its end.

    Parameters
    ----------
    path : ndarray, dtype=int32, shape=(n_leaves + 2, 2)
        The string depth and the number of each node, from the root on.
    top : int
        The last node of the path.
    depth : int
        A string depth of one of the nodes, in bases.

    Returns
    -------
    int
        The number of that node.
    """
    step = 1
    high = top + 1
    low = top
    while path[low, 0] > depth:
        high = low
        low = max(low - step, 0)
        step <<= 1
    # The depth is that of `low`, or lies between it and that of `high`.
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
    """Ask for what the walk will want to know of a coming leaf, and for what it will change.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases + 1,)
        The page, with a break after its last base.
    suffixes : ndarray, dtype=int32, shape=(n_leaves,)
        The suffixes in the order of their codes, without those that begin with a break.
    shared : ndarray, dtype=int32, shape=(n_leaves + 1,)
        How many bases each suffix shares with the one before it in that order, and a 0.
    made_by : ndarray, dtype=int64, shape=(n_bases + 2,)
        What is known of the node that each suffix makes (`NUMBER_MASK`, `DEPTH_SHIFT`, `LINKED`).
    inner_nodes : ndarray, dtype=int32, shape=(n_inner, RECORD_NUMBERS)
        The records of inner nodes, as in `ukkonen.GrownTree`.
    place : int
        Where in `suffixes` the walk is.
    """
    if place + 2 * LOOK_AHEAD >= suffixes.size:
        return
    suffix = suffixes[unsigned(place + 2 * LOOK_AHEAD)]
    prefetch(made_by, max(suffix - 1, 0))
    prefetch(codes, suffix + shared[unsigned(place + 2 * LOOK_AHEAD)])
    fact = made_by[unsigned(max(suffixes[unsigned(place + LOOK_AHEAD)] - 1, 0))]
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
    """Give each node its children and each leaf its place, and lay the other suffix links.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases + 1,)
        The page, with a break after its last base.
    suffixes : ndarray, dtype=int32, shape=(n_leaves,)
        The suffixes in the order of their codes, without those that begin with a break.
    shared : ndarray, dtype=int32, shape=(n_leaves + 1,)
        How many bases each suffix shares with the one before it in that order, and a 0.
    makers : ndarray, dtype=int32, shape=(n_inner - 1,)
        The suffixes that make the inner nodes, the root excepted, in the order of the walk.
    made_by : ndarray, dtype=int64, shape=(n_bases + 2,)
        What is known of the node that each suffix makes (`NUMBER_MASK`, `DEPTH_SHIFT`, `LINKED`).
    inner_nodes : ndarray, dtype=int32, shape=(n_inner, RECORD_NUMBERS)
        The records, as `number_nodes` leaves them; completed.
    next_leaves : ndarray, dtype=int32, shape=(n_bases + 1,)
        Output: zeros that become ``~s`` of the next leaf in a ``$`` chain, for each suffix.
    """
    # String depth, number.
    path = np.zeros((suffixes.size + 2, 2), dtype=np.int32)
    top = 0
    reached = 0
    for place in range(suffixes.size):
        look_ahead(codes, suffixes, shared, made_by, inner_nodes, place)
        suffix = suffixes[place]
        while path[unsigned(top), 0] > shared[place]:
            top -= 1
        while path[unsigned(top), 0] < shared[place + 1]:
            if reached + 2 * LOOK_AHEAD < makers.size:
                prefetch(made_by, makers[reached + 2 * LOOK_AHEAD])
                ahead = made_by[makers[reached + LOOK_AHEAD]] & NUMBER_MASK
                prefetch(inner_nodes, RECORD_NUMBERS * ahead)
            fact = made_by[unsigned(makers[reached])]
            reached += 1
            number = fact & NUMBER_MASK
            code = codes[unsigned(suffix + path[unsigned(top), 0])]
            inner_nodes[unsigned(path[unsigned(top), 1]), unsigned(FIRST_CHILD + code)] = number
            top += 1
            path[unsigned(top), 0] = (fact & ~LINKED) >> DEPTH_SHIFT
            path[unsigned(top), 1] = number
        node = path[unsigned(top), 1]
        code = codes[unsigned(suffix + path[unsigned(top), 0])]
        if code == BREAK:
            # Its turn in the chain comes below; no leaf ends at the root.
            next_leaves[unsigned(suffix)] = node
        else:
            inner_nodes[unsigned(node), unsigned(FIRST_CHILD + code)] = ~suffix
        fact = made_by[unsigned(suffix - 1)] if suffix > 0 else LINKED
        if 0 < fact < LINKED:
            link = ancestor_at(path, top, (fact >> DEPTH_SHIFT) - 1)
            inner_nodes[unsigned(fact & NUMBER_MASK), SUFFIX_LINK] = link
    for suffix in range(next_leaves.size):
        node = next_leaves[suffix]
        if node > 0:
            next_leaves[suffix] = inner_nodes[node, FIRST_CHILD + BREAK]
            inner_nodes[node, FIRST_CHILD + BREAK] = ~suffix
