"""From a grown tree to the flat node arrays that the kernels read (paper, section 2.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.compiled import compiled, inlined, prefetch_bytes, unsigned, widened
from mummergpu.layout import (
    HALF_BYTES,
    LEAF_FLAG,
    MAXIMUM_PAGE_BASES,
    REFERENCE_WIDTH_BITS,
    ROOT,
    TREE_WIDTH_BITS,
    Layout,
    length_in_strips,
    place_in_strips,
    zeros_aligned,
)
from mummergpu.sequence import BREAK, CodeArray
from mummergpu.tree.ukkonen import (
    FIRST_CHILD,
    FIRST_SUFFIX,
    RECORD_BYTES,
    STRING_DEPTH,
    SUFFIX_LINK,
    GrownTree,
    NumberArray,
)

ByteArray = npt.NDArray[np.uint8]
WordArray = npt.NDArray[np.int64]

FIELD_MASK: Final = (1 << 24) - 1
LEAF_BIT: Final = 1 << 56
FACT_BYTES: Final = 8
ADDRESS_BYTES: Final = 4
FAR_AHEAD: Final = 32
NEAR_AHEAD: Final = 16
"""How many nodes ahead memory is asked for."""


@dataclass(frozen=True)
class FlatTree:
    """The suffix tree of a page as the kernels read it.

    Attributes
    ----------
    layout : Layout
        How the arrays are laid out.
    nodes : ndarray, dtype=uint8, shape=(n_bytes,)
        First halves: the half of address a begins at ``a * layout.node_stride``.
    children : ndarray, dtype=uint8, shape=(n_bytes,)
        Second halves, at the same offsets. In a merged tree both are views of one array.
    reference : ndarray, dtype=uint8
        The codes of the page, with a break behind the last, in the layout's dimensions.
    base_count : int
        The bases of the page, breaks within it included.
    node_count, leaf_count : int
        The nodes, and how many of them are leaves.
    """

    layout: Layout
    nodes: ByteArray
    children: ByteArray
    reference: ByteArray
    base_count: int
    node_count: int
    leaf_count: int

    @property
    def byte_count(self) -> int:
        """The bytes of the nodes and of the reference."""
        arrays = (self.nodes,) if self.layout.merged_tree else (self.nodes, self.children)
        return self.reference.size + sum(array.size for array in arrays)


def flatten_tree(tree: GrownTree, order: NumberArray, layout: Layout, base_before: int) -> FlatTree:
    """Write the nodes of a grown tree in their order and layout.

    Parameters
    ----------
    tree : GrownTree
        The tree.
    order : ndarray, dtype=int32, shape=(n_nodes,)
        The names of its nodes, as `order.order_nodes` gives them.
    layout : Layout
        The layout to write.
    base_before : int
        The code of the base before the page, `sequence.BREAK` where there is none.

    Returns
    -------
    FlatTree
        32 bytes a node (`layout`), and the reference.

    Raises
    ------
    ValueError
        If the page has more than `layout.MAXIMUM_PAGE_BASES` bases.
    """
    base_count = tree.codes.size - 1
    if base_count > MAXIMUM_PAGE_BASES:
        raise ValueError(f"{base_count} bases do not fit 24-bit addresses")
    facts = leaf_facts(tree.codes, base_before)
    addresses = np.zeros(len(tree.inner_nodes), dtype=np.int32)
    place_nodes(order, facts, addresses, layout.tree_strip_bits)
    slots = length_in_strips(order.size, TREE_WIDTH_BITS, layout.tree_strip_bits)
    nodes, children = empty_halves(slots, layout)
    write_nodes(
        order,
        tree.inner_nodes,
        tree.next_leaves,
        facts,
        addresses,
        nodes.view(np.int64),
        children.view(np.int64),
        layout.node_stride // 8,
    )
    reference = lay_out_reference(tree.codes, layout)
    return FlatTree(layout, nodes, children, reference, base_count, order.size, tree.leaf_count)


def empty_halves(slots: int, layout: Layout) -> tuple[ByteArray, ByteArray]:
    """Return zeroed arrays for the first and the second halves of `slots` nodes."""
    if not layout.merged_tree:
        return zeros_aligned(slots * HALF_BYTES), zeros_aligned(slots * HALF_BYTES)
    both = zeros_aligned(slots * layout.node_stride)
    return both, both[HALF_BYTES:]


def lay_out_reference(codes: CodeArray, layout: Layout) -> ByteArray:
    """Return the codes of a page in the layout's dimensions; new memory only in two."""
    strip_bits = layout.reference_strip_bits
    if strip_bits == 0:
        return codes
    reference = zeros_aligned(length_in_strips(codes.size, REFERENCE_WIDTH_BITS, strip_bits))
    place_bases(codes, reference, strip_bits)
    return reference


@compiled
def place_bases(codes: CodeArray, reference: ByteArray, strip_bits: int) -> None:
    """Write each base to its place in strips."""
    for position in range(codes.size):
        place = place_in_strips(position, REFERENCE_WIDTH_BITS, strip_bits)
        reference[place] = codes[position]


@compiled
def leaf_facts(codes: CodeArray, base_before: int) -> WordArray:
    """Return what is known of each leaf without the tree, in one number for one access.

    Bits 24 to 47: where its path ends, at the next break; bits 48 to 50: the base before
    its suffix. Bits 0 to 23 are for its address.
    """
    facts = np.zeros(codes.size, dtype=np.int64)
    path_end = codes.size - 1
    for position in range(codes.size - 1, -1, -1):
        if codes[position] == BREAK:
            path_end = position
        before = widened(codes[position - 1]) if position > 0 else widened(base_before)
        facts[position] = (path_end << 24) | (before << 48)
    return facts


@compiled
def place_nodes(
    order: NumberArray, facts: WordArray, addresses: NumberArray, strip_bits: int
) -> None:
    """Give each node the address of its place: leaves in `facts`, others in `addresses`."""
    for place in range(order.size):
        name = order[unsigned(place)]
        address = place_in_strips(place, TREE_WIDTH_BITS, strip_bits)
        if name < 0:
            facts[~name] |= address
        else:
            addresses[name] = address


@inlined
def write_half(
    words: WordArray, place: int, first: int, second: int, third: int, fourth: int, fifth: int
) -> None:
    """Add five 24-bit fields to the half that begins at a 64-bit word."""
    words[unsigned(place)] += first | (second << 24) | ((third & 0xFFFF) << 48)
    words[unsigned(place + 1)] += (third >> 16) | (fourth << 8) | (fifth << 32)


@compiled
def write_nodes(
    order: NumberArray,
    inner_nodes: NumberArray,
    next_leaves: NumberArray,
    facts: WordArray,
    addresses: NumberArray,
    nodes: WordArray,
    children: WordArray,
    stride: int,
) -> None:
    """Write every node: an inner node at its turn, a leaf at the turn of its parent.

    What only the parent knows of an inner node (its own address, where the edge starts)
    it adds at its own turn, in whichever order: an edge starts its parent's depth behind
    the first suffix. The other fields of a half are disjoint bits of zeroed memory.
    """
    for place in range(order.size):
        foresee(order, inner_nodes, facts, addresses, place)
        name = order[unsigned(place)]
        if name < 0:
            continue
        word = widened(addresses[unsigned(name)]) * stride
        depth = widened(inner_nodes[name, STRING_DEPTH])
        first_suffix = widened(inner_nodes[name, FIRST_SUFFIX])
        link = widened(addresses[inner_nodes[name, SUFFIX_LINK]])
        # The parent adds its own depth, at its turn, before or after this.
        nodes[unsigned(word)] += first_suffix if name > 0 else 0
        write_half(nodes, word, 0, first_suffix + depth, depth, 0, link)
        address = widened(addresses[unsigned(name)])
        for code in range(BREAK + 1):
            child = widened(inner_nodes[unsigned(name), unsigned(FIRST_CHILD + code)])
            if child == 0:
                continue
            if child > 0:
                child_address = widened(addresses[unsigned(child)])
                write_half(nodes, child_address * stride, depth, 0, 0, address, 0)
            else:
                child_address = facts[unsigned(~child)] & FIELD_MASK
                write_leaves(~child, depth, address, next_leaves, facts, nodes, children, stride)
            bit = 24 * code
            if code < 2:
                children[unsigned(word)] |= child_address << bit
            elif code == 2:
                write_half(children, word, 0, 0, child_address, 0, 0)
            else:
                children[unsigned(word + 1)] |= child_address << (bit - 64)


@inlined
def foresee(
    order: NumberArray,
    inner_nodes: NumberArray,
    facts: WordArray,
    addresses: NumberArray,
    place: int,
) -> None:
    """Ask for the record of an inner node some turns ahead, later for what it points at."""
    if place + FAR_AHEAD >= order.size:
        return
    name = order[place + FAR_AHEAD]
    if name > 0:
        prefetch_bytes(inner_nodes, RECORD_BYTES * name)
    name = order[place + NEAR_AHEAD]
    if name > 0:
        prefetch_bytes(addresses, ADDRESS_BYTES * inner_nodes[name, SUFFIX_LINK])
        for code in range(BREAK + 1):
            child = inner_nodes[unsigned(name), unsigned(FIRST_CHILD + code)]
            if child > 0:
                prefetch_bytes(addresses, ADDRESS_BYTES * child)
            elif child < 0:
                prefetch_bytes(facts, FACT_BYTES * ~child)


@inlined
def write_leaves(
    suffix: int,
    parent_depth: int,
    parent: int,
    next_leaves: NumberArray,
    facts: WordArray,
    nodes: WordArray,
    children: WordArray,
    stride: int,
) -> None:
    """Write a leaf and those chained to it.

    The suffix link of a leaf is the leaf of the suffix that begins one base later, or the
    root if none does. Construction has no use for it, but matching has.
    """
    while True:
        fact = facts[unsigned(suffix)]
        word = (fact & FIELD_MASK) * stride
        path_end = (fact >> 24) & FIELD_MASK
        link = ROOT if suffix + 1 == path_end else facts[unsigned(suffix + 1)] & FIELD_MASK
        write_half(nodes, word, suffix + parent_depth, path_end, path_end - suffix, parent, link)
        nodes[unsigned(word + 1)] |= LEAF_BIT
        following = widened(next_leaves[unsigned(suffix)])
        next_address = facts[~following] & FIELD_MASK if following < 0 else 0
        write_half(children, word, suffix, 0, 0, 0, next_address)
        # The flag byte is the sign byte of its word.
        flags = (LEAF_FLAG | (fact >> 48)) - 256
        children[unsigned(word + 1)] |= widened(flags) << 56
        if following == 0:
            return
        suffix = ~following
