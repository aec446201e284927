"""The lanes of the match kernel: the queries that one thread matches in turn, step by step."""

from __future__ import annotations

from typing import Final

from mummergpu.index.tree.layout import NO_NODE, ROOT, NodeHalfArray
from mummergpu.matching.tree.cpu_access import (
    child_of,
    is_leaf,
    parent_depth_of,
    parent_of,
    path_start_of,
    preceding_base_of,
    prefetch_node,
    reference_base,
    string_depth_of,
    suffix_link_of,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.sequence.codes import BREAK, CodeArray

OffsetArray = Int64Array


LANES: Final = 16
"""The number of queries matched at once: enough to hide a memory access, few enough for the
registers and buffers of one core."""

# The indices of a lane's numbers, and how many there are.
QUERY: Final = 0
START: Final = 1
END: Final = 2
NODE: Final = 3
MATCHED: Final = 4
LEAF_BEFORE: Final = 5
SKIPS: Final = 6
LANE_NUMBERS: Final = 8

NO_LEAF: Final = -1

MOST_SKIPS_PER_BASE: Final = 16
"""The most edges skipped for each base of the queries; a sound tree needs fewer than five.

A damaged tree can have circles of skipped edges, which would never end. In a sound tree, each
skip passes an edge whose bases are known to match, and leads one edge down. A suffix link leads
at most one edge up. At most two steps to a parent come with it, each one edge up. So each base
of a query allows fewer than five skips."""


@inline_without_refcounts
def begin_query(
    offsets: OffsetArray,
    minimum_length: int,
    candidate_counts: OffsetArray,
    lanes: OffsetArray,
    lane: int,
    upcoming: int,
) -> int:
    """Give a lane the next query that is long enough, or -1; return the first that none has had.

    The candidate counts of this query and of those that are skipped become 0.
    """
    lanes[lane, QUERY] = -1
    while upcoming < offsets.size - 1 and lanes[lane, QUERY] < 0:
        candidate_counts[upcoming] = 0
        if offsets[upcoming + 1] - offsets[upcoming] >= minimum_length:
            lanes[lane, QUERY] = upcoming
            lanes[lane, START] = offsets[upcoming]
            lanes[lane, END] = offsets[upcoming + 1]
            lanes[lane, NODE] = ROOT
            lanes[lane, MATCHED] = 0
            lanes[lane, LEAF_BEFORE] = NO_LEAF
        upcoming += 1
    return upcoming


@inline_without_refcounts
def advance(
    nodes: NodeHalfArray,
    children: NodeHalfArray,
    stride: int,
    reference: ByteArray,
    strip_bits: int,
    codes: CodeArray,
    lanes: OffsetArray,
    lane: int,
    most_skips: int,
) -> bool:
    """Continue a lane's match at its prefetched node; return whether the match has ended.

    As long as the bases are known to match, the function compares only the first base of each edge
    (skip and count); after that, it compares every base. A match also ends when its lane has
    skipped more than `most_skips` edges: the tree has a circle.
    """
    node = lanes[lane, NODE]
    matched = lanes[lane, MATCHED]
    start = lanes[lane, START]
    if lanes[lane, LEAF_BEFORE] != NO_LEAF:
        if parent_depth_of(nodes, stride, node) >= matched:
            # The match ends above this leaf's edge: come down from the parent's suffix link.
            node = suffix_link_of(nodes, stride, parent_of(nodes, stride, lanes[lane, LEAF_BEFORE]))
        lanes[lane, LEAF_BEFORE] = NO_LEAF
    depth = string_depth_of(nodes, stride, node)
    if depth >= matched:
        path_start = path_start_of(nodes, stride, node)
        end = lanes[lane, END]
        while (
            matched < depth
            and start + matched < end
            and codes[as_index(start + matched)] != BREAK
            and codes[as_index(start + matched)]
            == reference_base(reference, strip_bits, path_start + matched)
        ):
            matched += 1
        lanes[lane, NODE] = node
        lanes[lane, MATCHED] = matched
        if matched < depth or start + matched == end or is_leaf(nodes, stride, node):
            return True
    else:
        lanes[lane, SKIPS] += 1
        if lanes[lane, SKIPS] > most_skips:
            return True
    code = as_int64(codes[as_index(start + depth)])
    child = child_of(children, stride, node, code) if code != BREAK else NO_NODE
    if child == NO_NODE:
        return True
    prefetch_node(nodes, stride, child)
    lanes[lane, NODE] = child
    lanes[lane, MATCHED] = max(matched, depth + 1)
    return False


@inline_without_refcounts
def is_candidate(
    nodes: NodeHalfArray,
    children: NodeHalfArray,
    stride: int,
    codes: CodeArray,
    begin: int,
    minimum_length: int,
    lanes: OffsetArray,
    lane: int,
) -> bool:
    """Return whether an ended match is long enough and may be maximal to the left."""
    if lanes[lane, MATCHED] < minimum_length:
        return False
    node = lanes[lane, NODE]
    start = lanes[lane, START]
    return (
        start == begin
        or codes[as_index(start - 1)] == BREAK
        or not is_leaf(nodes, stride, node)
        or parent_depth_of(nodes, stride, node) >= minimum_length
        or codes[as_index(start - 1)] != preceding_base_of(children, stride, node)
    )


@inline_without_refcounts
def follow_suffix_link(nodes: NodeHalfArray, stride: int, lanes: OffsetArray, lane: int) -> None:
    """Move a lane to a node from which it can find the match of its new start, one base later.

    At a leaf, the lane first tries the leaf's own suffix link. It leads to the leaf of the same
    occurrence, and while there is only one occurrence, the match ends in that leaf's edge.
    Otherwise the lane follows the suffix link of the parent.
    """
    node = lanes[lane, NODE]
    matched = lanes[lane, MATCHED] - 1
    if matched <= 0:
        lanes[lane, NODE] = ROOT
        lanes[lane, MATCHED] = 0
        return
    lanes[lane, MATCHED] = matched
    link = suffix_link_of(nodes, stride, node)
    if is_leaf(nodes, stride, node) and link != ROOT:
        lanes[lane, LEAF_BEFORE] = node
    elif string_depth_of(nodes, stride, node) > matched + 1:
        link = suffix_link_of(nodes, stride, parent_of(nodes, stride, node))
    prefetch_node(nodes, stride, link)
    lanes[lane, NODE] = link
