"""The match kernel: the longest match of every suffix of every query (paper, section 2.3).

Two numbers describe a match: the lowest node that it reaches, and the number of bases matched.
The match stops inside the edge to that node, or at its end. The next suffix of the query lacks
the first base. A suffix link leads to it, past all bases that are known to match.

Nearly every step reads a node that is in no cache. A GPU hides this delay by running other
threads. Here, one thread works on several queries in turn: it prefetches the next node of a
query, then goes on with another query. These queries are called lanes, as in a warp.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.index.tree.layout import NO_NODE, ROOT
from mummergpu.matching.backends.interface import QueryCodes
from mummergpu.matching.tree.cpu_access import (
    TreeArrays,
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
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, CodeArray

LANES: Final = 16
"""The number of queries matched at once: enough to hide a memory access, few enough for the
registers and buffers of one core."""

# The numbers of a lane: its query, the start of the match and the end of the query as positions in
# the block, the address of a node, the bases matched, the leaf before the node or `NO_LEAF`, and
# the edges skipped.
QUERY: Final = 0
START: Final = 1
END: Final = 2
NODE: Final = 3
MATCHED: Final = 4
LEAF_BEFORE: Final = 5
SKIPS: Final = 6
LANE_NUMBERS: Final = 8

NO_LEAF: Final = -1

MAX_SKIPS_PER_BASE: Final = 16
"""The most edges skipped for each base of the queries; a sound tree needs fewer than five.

A damaged tree can have circles of skipped edges, which would never end. In a sound tree, each
skip passes an edge whose bases are known to match, and leads one edge down. A suffix link leads
at most one edge up. At most two steps to a parent come with it, each one edge up. So each base
of a query allows fewer than five skips."""


class Candidates(NamedTuple):
    """The candidate matches of a block in a page."""

    # Where each begins in its query. There is one element for every position of a query from which
    # a match can be long enough.
    positions: Int32Array
    # The lowest node that it reaches, and its length along the edge to it.
    lowest_nodes: Int32Array
    edge_lengths: Int32Array
    # Where the elements of each query begin, and where those of the last query end: in the match
    # kernel with room for all that it may find, and without gaps afterwards (`compact_lanes`);
    # (n_queries + 1,).
    offsets: Int64Array


@jit
def match_kernel(
    tree: TreeArrays,
    queries: QueryCodes,
    min_length: int,
    lanes: Int64Array,
    candidates: Candidates,
    counts: Int64Array,
) -> bool:
    """Write the candidate matches of a block of queries; return whether the tree is sound.

    It is not if a match ends at an address outside the tree, in an edge that begins below its end,
    or in a circle of nodes; the output is then invalid. The kernel does not compare the addresses
    on the way to a match with the size of the tree, because that would cost a twentieth of the run
    time. A tree from a file lies in memory where every address can be read (`mapped_file`).

    If the print kernel's node P of a match is a leaf, the match is one MEM or none. If the base
    before it matches too, it is no MEM and is not written.

    `counts` becomes the number of candidates of each query.
    """
    upcoming = 0
    active = 0
    while active < LANES:
        upcoming = begin_query(queries, min_length, counts, lanes, active, upcoming)
        if lanes[active, QUERY] < 0:
            break
        active += 1
    max_skips = MAX_SKIPS_PER_BASE * (queries.codes.size + queries.offsets.size)
    for number in range(LANES):
        lanes[number, SKIPS] = 0
    lane = 0
    # The lanes before `active` have a query each; the one whose turn it is prefetched its node when
    # it had its last turn, so that the node arrives while the others work.
    while active > 0:
        lane = lane + 1 if lane + 1 < active else 0
        ended = advance(tree, queries.codes, lanes, lane, max_skips)
        if not ended:
            continue
        query = lanes[lane, QUERY]
        if is_candidate(tree, queries.codes, queries.offsets[query], min_length, lanes, lane):
            place = candidates.offsets[query] + counts[query]
            counts[query] += 1
            node = lanes[lane, NODE]
            depth_above = parent_depth_of(tree, node)
            # The numbers of a candidate have 32 bits.
            if node >= tree.slots or depth_above < 0 or depth_above > lanes[lane, MATCHED]:
                return False
            candidates.positions[place] = lanes[lane, START] - queries.offsets[query]
            candidates.lowest_nodes[place] = node
            candidates.edge_lengths[place] = lanes[lane, MATCHED] - depth_above
        lanes[lane, START] += 1
        if lanes[lane, START] + min_length <= lanes[lane, END]:
            follow_suffix_link(tree, lanes, lane)
            continue
        if lanes[lane, SKIPS] > max_skips:
            return False
        upcoming = begin_query(queries, min_length, counts, lanes, lane, upcoming)
        if lanes[lane, QUERY] < 0:
            # The last lane takes the place of this one, so that active lanes stay side by side.
            active -= 1
            for number in range(LANE_NUMBERS):
                lanes[lane, number] = lanes[active, number]
    return True


@jit
def compact_lanes(candidates: Candidates, counts: Int64Array) -> None:
    """Close the gaps between the candidates of different queries."""
    positions, lowest_nodes = candidates.positions, candidates.lowest_nodes
    edge_lengths, offsets = candidates.edge_lengths, candidates.offsets
    # Candidates only move towards the front, so none is overwritten before it has moved.
    filled = 0
    for query in range(counts.size):
        first = offsets[query]
        offsets[query] = filled
        for place in range(first, first + counts[query]):
            positions[filled] = positions[place]
            lowest_nodes[filled] = lowest_nodes[place]
            edge_lengths[filled] = edge_lengths[place]
            filled += 1
    offsets[counts.size] = filled


@inline
def begin_query(
    queries: QueryCodes,
    min_length: int,
    counts: Int64Array,
    lanes: Int64Array,
    lane: int,
    upcoming: int,
) -> int:
    """Give a lane the next query that is long enough, or -1; return the first that none has had.

    The candidate counts of this query and of those that are skipped become 0.
    """
    offsets = queries.offsets
    lanes[lane, QUERY] = -1
    while upcoming < offsets.size - 1 and lanes[lane, QUERY] < 0:
        counts[upcoming] = 0
        if offsets[upcoming + 1] - offsets[upcoming] >= min_length:
            lanes[lane, QUERY] = upcoming
            lanes[lane, START] = offsets[upcoming]
            lanes[lane, END] = offsets[upcoming + 1]
            lanes[lane, NODE] = ROOT
            lanes[lane, MATCHED] = 0
            lanes[lane, LEAF_BEFORE] = NO_LEAF
        upcoming += 1
    return upcoming


@inline
def advance(
    tree: TreeArrays, codes: CodeArray, lanes: Int64Array, lane: int, max_skips: int
) -> bool:
    """Continue a lane's match at its prefetched node; return whether the match has ended.

    As long as the bases are known to match, the function compares only the first base of each
    edge (skip and count); after that, it compares every base. A match also ends when its lane has
    skipped more than `max_skips` edges: the tree has a circle.
    """
    node = lanes[lane, NODE]
    matched = lanes[lane, MATCHED]
    start = lanes[lane, START]
    if lanes[lane, LEAF_BEFORE] != NO_LEAF:
        if parent_depth_of(tree, node) >= matched:
            # The match ends above this leaf's edge: come down from the parent's suffix link.
            node = suffix_link_of(tree, parent_of(tree, lanes[lane, LEAF_BEFORE]))
        lanes[lane, LEAF_BEFORE] = NO_LEAF
    depth = string_depth_of(tree, node)
    if depth >= matched:
        path_start = path_start_of(tree, node)
        end = lanes[lane, END]
        while (
            matched < depth
            and start + matched < end
            and codes[as_index(start + matched)] != BREAK
            and codes[as_index(start + matched)] == reference_base(tree, path_start + matched)
        ):
            matched += 1
        lanes[lane, NODE] = node
        lanes[lane, MATCHED] = matched
        if matched < depth or start + matched == end or is_leaf(tree, node):
            return True
    else:
        lanes[lane, SKIPS] += 1
        if lanes[lane, SKIPS] > max_skips:
            return True
    code = as_int64(codes[as_index(start + depth)])
    child = child_of(tree, node, code) if code != BREAK else NO_NODE
    if child == NO_NODE:
        return True
    prefetch_node(tree, child)
    lanes[lane, NODE] = child
    # The child is the one with this base, so at least that base of its edge matches.
    lanes[lane, MATCHED] = max(matched, depth + 1)
    return False


@inline
def is_candidate(
    tree: TreeArrays, codes: CodeArray, begin: int, min_length: int, lanes: Int64Array, lane: int
) -> bool:
    """Return whether an ended match is long enough and may be a MEM; its query is at `begin`."""
    if lanes[lane, MATCHED] < min_length:
        return False
    node = lanes[lane, NODE]
    start = lanes[lane, START]
    # Only below a leaf whose edge begins above the minimum length is there a single occurrence, and
    # only then does one base before it decide whether the match is maximal to the left.
    return (
        start == begin
        or codes[as_index(start - 1)] == BREAK
        or not is_leaf(tree, node)
        or parent_depth_of(tree, node) >= min_length
        or codes[as_index(start - 1)] != preceding_base_of(tree, node)
    )


@inline
def follow_suffix_link(tree: TreeArrays, lanes: Int64Array, lane: int) -> None:
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
    link = suffix_link_of(tree, node)
    if is_leaf(tree, node) and link != ROOT:
        lanes[lane, LEAF_BEFORE] = node
    elif string_depth_of(tree, node) > matched + 1:
        # The match ended inside the edge: the node's own link could lead below its new end.
        link = suffix_link_of(tree, parent_of(tree, node))
    prefetch_node(tree, link)
    lanes[lane, NODE] = link
