"""Builds the suffix tree of one page by Ukkonen's algorithm (paper, section 2.1).

While the tree grows, only inner nodes have records, and a leaf is just its suffix. The record
of an inner node is eight numbers::

    first suffix | string depth | suffix link | child A | C | G | T | $

The path of a node is the `string depth` bases from `first suffix` on. The label of its edge
is that path without the first bases, as many as the string depth of the parent. Splitting an
edge therefore changes no record below it. A child is the number of an inner node, ``~s`` for
the leaf of suffix s, or 0 if there is none.

Breaks (characters other than A, C, G, T and U, borders of records, the end of the page) end
every suffix that reaches them. A suffix is inserted from its first base to the next break, and
a suffix that begins with a break is not inserted at all. The leaves of suffixes that end after
the same bases form a chain at one ``$`` child, the last suffix first.

References
----------
E. Ukkonen, On-line construction of suffix trees, Algorithmica 14 (1995), 249-260.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.index.tree.layout import zeros_aligned
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import inline, jit, prefetch
from mummergpu.sequence.codes import BREAK, CodeArray

FIRST_SUFFIX: Final = 0
STRING_DEPTH: Final = 1
SUFFIX_LINK: Final = 2
FIRST_CHILD: Final = 3
RECORD_NUMBERS: Final = 8

WORD_BASES: Final = 10
"""The number of bases that predict which node a coming suffix will pass."""
FAR_AHEAD: Final = 24
NEAR_AHEAD: Final = 12
RING: Final = 32
"""A power of two larger than `FAR_AHEAD`."""


@frozen
class GrownTree:
    """A suffix tree as its construction returns it."""

    codes: CodeArray  # The page, with a break after its last base; (n_bases + 1,).
    # The records of inner nodes in the order of their creation; the root is the first; (n_inner,
    # 8).
    inner_nodes: Int32Array
    # For the suffix of each leaf in a ``$`` chain, ``~s`` of the next leaf, or 0; (n_bases + 1,).
    next_leaves: Int32Array
    leaf_count: int  # The number of leaves: the bases of the page that are not breaks.


def grow_tree(codes: CodeArray) -> GrownTree:
    """Build the suffix tree of a page, whose last code must be a break, in linear time.

    The tree takes 32 bytes for each inner node (about 0.63 nodes per base in random sequence, at
    most 1), and 4 bytes for each base whose leaf is in a chain.
    """
    leaf_count = int(np.count_nonzero(codes != BREAK))
    capacity = max(leaf_count, 1) + 1
    inner_nodes = zeros_aligned(4 * RECORD_NUMBERS * capacity).view(np.int32)
    inner_nodes = inner_nodes.reshape(-1, RECORD_NUMBERS)
    next_leaves = np.zeros(codes.size, dtype=np.int32)
    word_nodes = np.zeros(4**WORD_BASES, dtype=np.int32)
    ring = np.zeros(RING, dtype=np.int32)
    count = insert_suffixes(codes, inner_nodes, next_leaves, word_nodes, ring)
    return GrownTree(codes, inner_nodes[:count], next_leaves, leaf_count)


@jit
def insert_suffixes(
    codes: CodeArray,
    inner_nodes: Int32Array,
    next_leaves: Int32Array,
    word_nodes: Int32Array,
    ring: Int32Array,
) -> int:
    """Insert every suffix, longest first, and return the number of inner nodes made.

    The active point is (`node`, `depth`): the `depth` bases from `suffix` on are in the tree, and
    `node` is the deepest inner node on their path. Each suffix first extends the match as far as
    possible (Ukkonen's phases that only move the active point). It then becomes a leaf where the
    match ends (the phases that insert), and a suffix link leads to the next suffix.

    Each step waits for memory, because the target of a suffix link and its child can be anywhere.
    `word_nodes` holds, for each word of ten bases, the first node at or below its end. It serves
    only to prefetch the nodes on a suffix's path some steps ahead, and so does `ring`, of `RING`
    numbers; this halves the time. All arrays but the codes begin as zeros.
    """
    word = 0
    count = 1
    node = 0
    node_depth = 0
    depth = 0
    unlinked = 0
    for suffix in range(codes.size):
        word = prefetch_paths(codes, inner_nodes, word_nodes, ring, suffix, word)
        if depth == 0 and codes[suffix] == BREAK:
            continue
        node, node_depth, below = descend(codes, inner_nodes, suffix, node, node_depth, depth)
        # The node that the last suffix made gets its link now: to a node that is there already, or
        # to the one that this suffix makes below.
        if unlinked > 0 and node_depth == depth:
            inner_nodes[unlinked, SUFFIX_LINK] = node
            unlinked = 0
        node, node_depth, depth, below = extend(
            codes, inner_nodes, suffix, node, node_depth, depth, below
        )
        if node_depth == depth:
            # The match ends at a node: `below` is the chain of the leaves that end there too, or 0.
            code = codes[suffix + depth]
            next_leaves[suffix] = below
            inner_nodes[node, FIRST_CHILD + code] = ~suffix
            node_depth = max(depth - 1, 0)
            node = inner_nodes[node, SUFFIX_LINK]
        else:
            made = count
            count += 1
            inner_nodes[node, FIRST_CHILD + codes[suffix + node_depth]] = made
            split(codes, inner_nodes, next_leaves, suffix, depth, below, made)
            if node_depth < WORD_BASES <= depth:
                word_nodes[word_at(codes, suffix)] = made
            if unlinked > 0:
                inner_nodes[unlinked, SUFFIX_LINK] = made
            unlinked = made if depth > 1 else 0
            node_depth = max(node_depth - 1, 0)
            node = inner_nodes[node, SUFFIX_LINK]
        depth = max(depth - 1, 0)
    return count


@inline
def first_suffix_below(inner_nodes: Int32Array, child: int) -> int:
    """Return a suffix whose path passes a child, either an inner node or a leaf."""
    return ~child if child < 0 else inner_nodes[child, FIRST_SUFFIX]


@inline
def descend(
    codes: CodeArray, inner_nodes: Int32Array, suffix: int, node: int, node_depth: int, depth: int
) -> tuple[int, int, int]:
    """Descend `depth` bases along an existing path, reading only the first base of each edge.

    Return the deepest inner node, its string depth, and the child in whose edge the path ends. The
    child has no meaning if the path ends at the node. This is the skip/count trick of Ukkonen's
    algorithm.
    """
    below = 0
    while node_depth < depth:
        below = inner_nodes[node, FIRST_CHILD + codes[suffix + node_depth]]
        if below < 0:
            break
        below_depth = inner_nodes[below, STRING_DEPTH]
        # The path ends inside this edge. All its bases are known to match, so none is compared.
        if below_depth > depth:
            break
        node = below
        node_depth = below_depth
    return node, node_depth, below


@inline
def extend(
    codes: CodeArray,
    inner_nodes: Int32Array,
    suffix: int,
    node: int,
    node_depth: int,
    depth: int,
    below: int,
) -> tuple[int, int, int, int]:
    """Extend the match until a base differs or a break is reached; take and return its state.

    The state is the deepest inner node, its string depth, the number of matched bases, and the
    child in whose edge the match ends. If it ends at a node: its child for the next code, or 0.
    """
    # Inside an edge, bases are compared with those of any suffix below it.
    occurrence = first_suffix_below(inner_nodes, below)
    while True:
        code = codes[suffix + depth]
        if node_depth == depth:
            below = inner_nodes[node, FIRST_CHILD + code]
            if below == 0 or code == BREAK:
                break
            occurrence = first_suffix_below(inner_nodes, below)
        elif code == BREAK or codes[occurrence + depth] != code:
            break
        depth += 1
        if below > 0 and inner_nodes[below, STRING_DEPTH] == depth:
            node = below
            node_depth = depth
    return node, node_depth, depth, below


@inline
def split(
    codes: CodeArray,
    inner_nodes: Int32Array,
    next_leaves: Int32Array,
    suffix: int,
    depth: int,
    below: int,
    made: int,
) -> None:
    """Fill the record of a new node that splits the edge to `below`, and add the new leaf."""
    inner_nodes[made, FIRST_SUFFIX] = suffix
    inner_nodes[made, STRING_DEPTH] = depth
    old_code = codes[first_suffix_below(inner_nodes, below) + depth]
    new_code = codes[suffix + depth]
    inner_nodes[made, FIRST_CHILD + old_code] = below
    # Equal codes that do not match are two breaks, so both leaves end here.
    next_leaves[suffix] = below if old_code == new_code else 0
    inner_nodes[made, FIRST_CHILD + new_code] = ~suffix


@inline
def word_at(codes: CodeArray, begin: int) -> int:
    """Return the ten bases from `begin` on as a number, the first base in the highest bits."""
    word = 0
    for position in range(begin, begin + WORD_BASES):
        word = (word << 2) | codes[position]
    return word


@inline
def prefetch_paths(
    codes: CodeArray,
    inner_nodes: Int32Array,
    word_nodes: Int32Array,
    ring: Int32Array,
    suffix: int,
    word: int,
) -> int:
    """Prefetch the nodes that the suffixes 24 and 12 steps ahead will pass; return the word.

    The word has the ten bases that begin 24 bases after the suffix. Breaks produce wrong words;
    these prefetch useless nodes and do no other harm. `ring` has the nodes prefetched for the
    latest suffixes.
    """
    last = suffix + FAR_AHEAD + WORD_BASES - 1
    if last >= codes.size:
        return word
    word = ((word << 2) | (codes[last] & 3)) & (word_nodes.size - 1)
    node = word_nodes[word]
    prefetch(inner_nodes, RECORD_NUMBERS * node)
    ring[(suffix + FAR_AHEAD) & (RING - 1)] = node
    node = ring[(suffix + NEAR_AHEAD) & (RING - 1)]
    next_base = suffix + NEAR_AHEAD + inner_nodes[node, STRING_DEPTH]
    if node > 0 and next_base < codes.size:
        child = inner_nodes[node, FIRST_CHILD + codes[next_base]]
        if child > 0:
            prefetch(inner_nodes, RECORD_NUMBERS * child)
    return word
