"""The match kernel: the longest match of every suffix of every query (paper, section 2.3).

Where a match stands is told by two numbers: the lowest node reached, in whose edge or at
whose end it stops, and the bases matched. From one suffix of the query to the next, shorter
by its first base, a suffix link leads past everything that is known to match.

Nearly every step goes to a node that is not in any cache. A GPU hides that time behind other
threads; here one thread goes through several queries in turn, and leaves each as soon as it
has asked for the next node. The queries under way are the lanes, as in a warp.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.index.tree.flatten import ByteArray
from mummergpu.index.tree.layout import NO_NODE, ROOT, HalfArray
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
from mummergpu.runtime.jit import compiled_borrower, inlined_borrower, unsigned, widened
from mummergpu.sequence.codes import BREAK, CodeArray

NumberArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]


LANES: Final = 16
"""Queries under way at once: enough to hide a memory access, few enough for the registers
and buffers of one core."""

# What is known of a lane.
QUERY: Final = 0
START: Final = 1
END: Final = 2
NODE: Final = 3
MATCHED: Final = 4
LEAF_BEFORE: Final = 5
LANE_NUMBERS: Final = 8

NO_LEAF: Final = -1


@compiled_borrower
def match_kernel(
    nodes: HalfArray,
    children: HalfArray,
    stride: int,
    reference: ByteArray,
    strip_bits: int,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    lanes: OffsetArray,
    positions: NumberArray,
    lowest_nodes: NumberArray,
    edge_lengths: NumberArray,
    candidate_offsets: OffsetArray,
    candidate_counts: OffsetArray,
) -> None:
    """Write the candidate matches of a block of queries.

    Parameters
    ----------
    nodes, children, stride, reference, strip_bits
        The tree, as `flatten.FlatTree` and its layout describe it.
    codes, offsets
        The queries, as in `queries.QueryBlock`.
    minimum_length : int
        The fewest bases of a candidate match.
    lanes : ndarray, dtype=int64, shape=(LANES, LANE_NUMBERS)
        Room to work in.
    positions, lowest_nodes, edge_lengths : ndarray, dtype=int32, shape=(n_capacity,)
        Output: where in its query each candidate begins, the lowest node reached, and the
        bases matched along the edge to it. There is room for every position of a query
        that has `minimum_length` bases behind it.
    candidate_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where the room for the candidates of each query begins.
    candidate_counts : ndarray, dtype=int64, shape=(n_queries,)
        Output: how many candidates each query has.

    Notes
    -----
    A match whose node P of the print kernel is a leaf is one MEM or none. Where the base
    before it matches too it is none, and not written.
    """
    upcoming = 0
    active = 0
    while active < LANES:
        upcoming = begin_query(offsets, minimum_length, candidate_counts, lanes, active, upcoming)
        if lanes[active, QUERY] < 0:
            break
        active += 1
    lane = 0
    while active > 0:
        lane = lane + 1 if lane + 1 < active else 0
        ended = advance(nodes, children, stride, reference, strip_bits, codes, lanes, lane)
        if not ended:
            continue
        query = lanes[lane, QUERY]
        if is_candidate(
            nodes, children, stride, codes, offsets[query], minimum_length, lanes, lane
        ):
            place = candidate_offsets[query] + candidate_counts[query]
            candidate_counts[query] += 1
            node = lanes[lane, NODE]
            positions[place] = lanes[lane, START] - offsets[query]
            lowest_nodes[place] = node
            edge_lengths[place] = lanes[lane, MATCHED] - parent_depth_of(nodes, stride, node)
        lanes[lane, START] += 1
        if lanes[lane, START] + minimum_length <= lanes[lane, END]:
            follow_suffix_link(nodes, stride, lanes, lane)
            continue
        upcoming = begin_query(offsets, minimum_length, candidate_counts, lanes, lane, upcoming)
        if lanes[lane, QUERY] < 0:
            active -= 1
            for number in range(LANE_NUMBERS):
                lanes[lane, number] = lanes[active, number]


@compiled_borrower
def close_ranks(
    positions: NumberArray,
    lowest_nodes: NumberArray,
    edge_lengths: NumberArray,
    candidate_offsets: OffsetArray,
    candidate_counts: OffsetArray,
) -> None:
    """Move the candidates of all queries together, to the front of their arrays.

    Parameters
    ----------
    positions, lowest_nodes, edge_lengths, candidate_offsets, candidate_counts
        As `match_kernel` leaves them. Afterwards the candidates of a query end where those
        of the next begin, as `candidate_offsets` tells.
    """
    filled = 0
    for query in range(candidate_counts.size):
        first = candidate_offsets[query]
        candidate_offsets[query] = filled
        for place in range(first, first + candidate_counts[query]):
            positions[filled] = positions[place]
            lowest_nodes[filled] = lowest_nodes[place]
            edge_lengths[filled] = edge_lengths[place]
            filled += 1
    candidate_offsets[candidate_counts.size] = filled


@inlined_borrower
def begin_query(
    offsets: OffsetArray,
    minimum_length: int,
    candidate_counts: OffsetArray,
    lanes: OffsetArray,
    lane: int,
    upcoming: int,
) -> int:
    """Give a lane the next query that is long enough, or -1; return the one behind it."""
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


@inlined_borrower
def advance(
    nodes: HalfArray,
    children: HalfArray,
    stride: int,
    reference: ByteArray,
    strip_bits: int,
    codes: CodeArray,
    lanes: OffsetArray,
    lane: int,
) -> bool:
    """Go on from the node that the lane has waited for; return whether its match has ended.

    Above the end of what is known to match, only the first base of each edge is looked at
    (skip and count); from there on every base.
    """
    node = lanes[lane, NODE]
    matched = lanes[lane, MATCHED]
    start = lanes[lane, START]
    if lanes[lane, LEAF_BEFORE] != NO_LEAF:
        if parent_depth_of(nodes, stride, node) >= matched:
            # The match is shorter than this leaf's edge begins: to it from above.
            node = suffix_link_of(nodes, stride, parent_of(nodes, stride, lanes[lane, LEAF_BEFORE]))
        lanes[lane, LEAF_BEFORE] = NO_LEAF
    depth = string_depth_of(nodes, stride, node)
    if depth >= matched:
        path_start = path_start_of(nodes, stride, node)
        end = lanes[lane, END]
        while (
            matched < depth
            and start + matched < end
            and codes[unsigned(start + matched)] != BREAK
            and codes[unsigned(start + matched)]
            == reference_base(reference, strip_bits, path_start + matched)
        ):
            matched += 1
        lanes[lane, NODE] = node
        lanes[lane, MATCHED] = matched
        if matched < depth or start + matched == end or is_leaf(nodes, stride, node):
            return True
    code = widened(codes[unsigned(start + depth)])
    child = child_of(children, stride, node, code) if code != BREAK else NO_NODE
    if child == NO_NODE:
        return True
    prefetch_node(nodes, stride, child)
    lanes[lane, NODE] = child
    lanes[lane, MATCHED] = max(matched, depth + 1)
    return False


@inlined_borrower
def is_candidate(
    nodes: HalfArray,
    children: HalfArray,
    stride: int,
    codes: CodeArray,
    begin: int,
    minimum_length: int,
    lanes: OffsetArray,
    lane: int,
) -> bool:
    """Return whether a match that has ended is long enough, and may be left maximal."""
    if lanes[lane, MATCHED] < minimum_length:
        return False
    node = lanes[lane, NODE]
    start = lanes[lane, START]
    return (
        start == begin
        or codes[unsigned(start - 1)] == BREAK
        or not is_leaf(nodes, stride, node)
        or parent_depth_of(nodes, stride, node) >= minimum_length
        or codes[unsigned(start - 1)] != preceding_base_of(children, stride, node)
    )


@inlined_borrower
def follow_suffix_link(nodes: HalfArray, stride: int, lanes: OffsetArray, lane: int) -> None:
    """Move a lane to a node from which the match of its new start, one base shorter, is found.

    From a leaf its own suffix link is tried first: the next leaf continues the same
    occurrence, and as long as that is the only one the match stands in its edge. Otherwise
    the suffix link of the parent is the way.
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
