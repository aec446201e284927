"""The match kernel: the longest match of every suffix of every query (paper, section 2.3).

Where a match stands is told by two numbers: the lowest node reached, in whose edge or at
whose end it stops, and the bases matched. From one suffix of the query to the next, shorter
by its first base, a suffix link leads past everything that is known to match.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mummergpu.backends.cpu.tree_access import (
    child_of,
    is_leaf,
    parent_depth_of,
    parent_of,
    path_start_of,
    preceding_base_of,
    reference_base,
    string_depth_of,
    suffix_link_of,
)
from mummergpu.compiled import compiled_borrower as compiled, inlined_borrower as inlined, unsigned
from mummergpu.layout import NO_NODE, ROOT
from mummergpu.sequence import BREAK, CodeArray
from mummergpu.tree.flatten import ByteArray

NumberArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]


@compiled
def match_kernel(
    nodes: ByteArray,
    children: ByteArray,
    stride: int,
    reference: ByteArray,
    strip_bits: int,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    positions: NumberArray,
    lowest_nodes: NumberArray,
    edge_lengths: NumberArray,
    candidate_offsets: OffsetArray,
) -> int:
    """Write the candidate matches of a block of queries; return how many there are.

    Parameters
    ----------
    nodes, children, stride, reference, strip_bits
        The tree, as `flatten.FlatTree` and its layout describe it.
    codes, offsets
        The queries, as in `reads.QueryBlock`.
    minimum_length : int
        The fewest bases of a candidate match.
    positions, lowest_nodes, edge_lengths : ndarray, dtype=int32, shape=(n_capacity,)
        Output: where in its query each candidate begins, the lowest node reached, and the
        bases matched along the edge to it. There is room for every position of a query
        that has `minimum_length` bases behind it.
    candidate_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Output: where the candidates of each query begin, and where the last end.

    Notes
    -----
    A match whose node P of the print kernel is a leaf is one MEM or none. Where the base
    before it matches too it is none, and not written.
    """
    found = 0
    candidate_offsets[0] = 0
    for query in range(offsets.size - 1):
        begin = offsets[query]
        end = offsets[query + 1]
        node = ROOT
        matched = 0
        for start in range(begin, end - minimum_length + 1):
            node, matched = match_along_edges(
                nodes, children, stride, reference, strip_bits, codes, start, end, node, matched
            )
            if matched >= minimum_length:
                parent_depth = parent_depth_of(nodes, stride, node)
                if (
                    start == begin
                    or parent_depth >= minimum_length
                    or not is_leaf(nodes, stride, node)
                    or codes[unsigned(start - 1)] == BREAK
                    or codes[unsigned(start - 1)] != preceding_base_of(children, stride, node)
                ):
                    positions[found] = start - begin
                    lowest_nodes[found] = node
                    edge_lengths[found] = matched - parent_depth
                    found += 1
            node, matched = follow_suffix_link(
                nodes, children, stride, codes, start, node, matched
            )
        candidate_offsets[query + 1] = found
    return found


@inlined
def match_along_edges(
    nodes: ByteArray,
    children: ByteArray,
    stride: int,
    reference: ByteArray,
    strip_bits: int,
    codes: CodeArray,
    start: int,
    end: int,
    node: int,
    matched: int,
) -> tuple[int, int]:
    """Go down the tree as far as the query matches; return the lowest node and the length."""
    depth = string_depth_of(nodes, stride, node)
    path_start = path_start_of(nodes, stride, node)
    while start + matched < end:
        code = codes[unsigned(start + matched)]
        if matched == depth and not is_leaf(nodes, stride, node):
            if code == BREAK:
                break
            child = child_of(children, stride, node, code)
            if child == NO_NODE:
                break
            node = child
            depth = string_depth_of(nodes, stride, node)
            path_start = path_start_of(nodes, stride, node)
        elif code == BREAK or reference_base(reference, strip_bits, path_start + matched) != code:
            break
        matched += 1
    return node, matched


@inlined
def follow_suffix_link(
    nodes: ByteArray,
    children: ByteArray,
    stride: int,
    codes: CodeArray,
    start: int,
    node: int,
    matched: int,
) -> tuple[int, int]:
    """Return where the match of ``start + 1`` is known to stand, one base shorter.

    From a leaf its own suffix link is tried first: the next leaf continues the same
    occurrence, and as long as that is the only one the match stands in its edge. Otherwise
    the suffix link of the parent is followed and the bases between are skipped, looking
    only at the first of each edge.
    """
    if matched <= 1:
        return ROOT, 0
    matched -= 1
    if is_leaf(nodes, stride, node):
        leaf = suffix_link_of(nodes, stride, node)
        if leaf != ROOT and parent_depth_of(nodes, stride, leaf) < matched:
            return leaf, matched
    elif string_depth_of(nodes, stride, node) == matched + 1:
        return suffix_link_of(nodes, stride, node), matched
    node = suffix_link_of(nodes, stride, parent_of(nodes, stride, node))
    depth = string_depth_of(nodes, stride, node)
    while depth < matched:
        node = child_of(children, stride, node, codes[unsigned(start + 1 + depth)])
        depth = string_depth_of(nodes, stride, node)
    return node, matched
