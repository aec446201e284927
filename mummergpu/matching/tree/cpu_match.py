"""The match kernel: the longest match of every suffix of every query (paper, section 2.3).

Two numbers describe a match: the lowest node that it reaches, and the number of bases matched.
The match stops inside the edge to that node, or at its end. The next suffix of the query lacks
the first base. A suffix link leads to it, past all bases that are known to match.

Nearly every step reads a node that is in no cache. A GPU hides this delay by running other
threads. Here, one thread works on several queries in turn: it prefetches the next node of a
query, then goes on with another query. These queries are called lanes, as in a warp.
"""

from __future__ import annotations

from mummergpu.index.tree.layout import NodeHalfArray
from mummergpu.matching.tree.cpu_access import parent_depth_of
from mummergpu.matching.tree.cpu_lanes import (
    END,
    LANE_NUMBERS,
    LANES,
    MATCHED,
    MOST_SKIPS_PER_BASE,
    NODE,
    QUERY,
    SKIPS,
    START,
    OffsetArray,
    advance,
    begin_query,
    follow_suffix_link,
    is_candidate,
)
from mummergpu.runtime.arrays import ByteArray, Int32Array
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.sequence.codes import CodeArray


@jit_without_refcounts
def match_kernel(
    nodes: NodeHalfArray,
    children: NodeHalfArray,
    stride: int,
    reference: ByteArray,
    strip_bits: int,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    lanes: OffsetArray,
    positions: Int32Array,
    lowest_nodes: Int32Array,
    edge_lengths: Int32Array,
    candidate_offsets: OffsetArray,
    candidate_counts: OffsetArray,
) -> bool:
    """Write the candidate matches of a block of queries; return whether the tree is sound.

    It is not if a match ends at an address outside the tree, in an edge that begins below its end,
    or in a circle of nodes; the output is then invalid. The kernel does not compare the addresses
    on the way to a match with the size of the tree, because that would cost a twentieth of the run
    time. A tree from a file lies in memory where every address can be read (`mapped_file`).

    If the print kernel's node P of a match is a leaf, the match is one MEM or none. If the base
    before it matches too, it is no MEM and is not written.
    """
    upcoming = 0
    active = 0
    while active < LANES:
        upcoming = begin_query(offsets, minimum_length, candidate_counts, lanes, active, upcoming)
        if lanes[active, QUERY] < 0:
            break
        active += 1
    slots = nodes.size // stride
    most_skips = MOST_SKIPS_PER_BASE * (codes.size + offsets.size)
    for number in range(LANES):
        lanes[number, SKIPS] = 0
    lane = 0
    while active > 0:
        lane = lane + 1 if lane + 1 < active else 0
        ended = advance(
            nodes, children, stride, reference, strip_bits, codes, lanes, lane, most_skips
        )
        if not ended:
            continue
        query = lanes[lane, QUERY]
        if is_candidate(
            nodes, children, stride, codes, offsets[query], minimum_length, lanes, lane
        ):
            place = candidate_offsets[query] + candidate_counts[query]
            candidate_counts[query] += 1
            node = lanes[lane, NODE]
            depth_above = parent_depth_of(nodes, stride, node)
            # What is kept of a candidate has 32 bits.
            if node >= slots or depth_above < 0 or depth_above > lanes[lane, MATCHED]:
                return False
            positions[place] = lanes[lane, START] - offsets[query]
            lowest_nodes[place] = node
            edge_lengths[place] = lanes[lane, MATCHED] - depth_above
        lanes[lane, START] += 1
        if lanes[lane, START] + minimum_length <= lanes[lane, END]:
            follow_suffix_link(nodes, stride, lanes, lane)
            continue
        if lanes[lane, SKIPS] > most_skips:
            return False
        upcoming = begin_query(offsets, minimum_length, candidate_counts, lanes, lane, upcoming)
        if lanes[lane, QUERY] < 0:
            active -= 1
            for number in range(LANE_NUMBERS):
                lanes[lane, number] = lanes[active, number]
    return True


@jit_without_refcounts
def close_ranks(
    positions: Int32Array,
    lowest_nodes: Int32Array,
    edge_lengths: Int32Array,
    candidate_offsets: OffsetArray,
    candidate_counts: OffsetArray,
) -> None:
    """Close the gaps between the candidates of different queries.

    The offsets, which were those of the room for each query, become those of its candidates.
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
