"""The layout of nodes and references in memory.

A node has two halves of six fields each: five numbers, and flags at the end. Positions are
counted from the first base of the page. Addresses identify nodes. Address 0 is the root; since
the root is never a child, 0 also means "none"::

    field     0           1         2             3       4             5
    node      edge start  edge end  string depth  parent  suffix link   is leaf
    children  A           C         G             T       $             flags
    a leaf's  leaf id     -         -             -       next leaf     flags

In the children half, the flags of a leaf are `LEAF_FLAG` plus the code of the base before
its suffix (`BREAK` if there is none). The flags of an inner node are 0.

There are two formats. In the paper's format (section 2.1) a number has 24 bits and flags have
8, so a half takes 16 bytes, and field k begins at byte 3 k. This is enough for the 16,777,216
nodes of a page of 8,388,608 bases. In the wide format every field is a word of 32 bits, and a
half takes 24 bytes. A page can have 2**30 bases, and its addresses stay below 2**31. Both
formats are little-endian. In memory, halves are arrays of bytes in the paper's format and
arrays of words in the wide format.

A node has one ``$`` child, although many suffixes can end after the same bases, one at each
break of the page. Their leaves form a chain: each leaf names the next in its own ``$`` slot.

A split tree keeps the halves in two arrays; a merged tree keeps them side by side in one. In
two dimensions an address is a row (high bits) and a column (low bits) of an array that is 4,096
nodes wide in the paper's format and 16,384 in the wide format. Consecutive nodes fill strips
of 32 rows, column by column. A two-dimensional reference is 65,536 bases wide and has strips
of 4 rows. Both arrays are stored row after row, so an address is also the index of its node.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.arrays import ByteArray, UInt32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import inline

NodeHalfArray = ByteArray | UInt32Array
"""Halves of nodes: bytes in the paper's format, words in the wide format."""

# The fields of the first half.
EDGE_START: Final = 0
EDGE_END: Final = 1
STRING_DEPTH: Final = 2
PARENT: Final = 3
SUFFIX_LINK: Final = 4
IS_LEAF: Final = 5

# The fields of the second half. Field k is the child for base code k.
LEAF_ID: Final = 0
NEXT_LEAF: Final = 4
FLAGS: Final = 5

FIELDS: Final = 6

LEAF_FLAG: Final = 0x80
PRECEDING_BASE_MASK: Final = 0x07

NO_NODE: Final = 0
ROOT: Final = 0

MAX_PAGE_BASES: Final = 1 << 23
"""The most bases of a page in the paper's format: 8,388,608."""
MAX_WIDE_PAGE_BASES: Final = 1 << 30
"""The most bases of a page in the wide format: 1,073,741,824."""

TREE_WIDTH_BITS: Final = 12
WIDE_TREE_WIDTH_BITS: Final = 14
TREE_STRIP_BITS: Final = 5
REFERENCE_WIDTH_BITS: Final = 16
REFERENCE_STRIP_BITS: Final = 2

CACHE_LINE: Final = 64
HUGE_PAGE: Final = 1 << 21


@frozen
class Layout:
    """The layout of the arrays in memory, which a policy and a format determine.

    Attributes
    ----------
    merged_tree : bool
        Whether the halves of a node lie side by side.
    two_dimensional_reference : bool
        Whether the reference lies in strips of rows.
    two_dimensional_tree : bool
        Whether the nodes lie in strips of rows.
    node_reordering : bool
        Whether nodes are numbered breadth first, then depth first.
    wide : bool
        Whether fields have 32 bits; if not, nodes have the paper's format.
    """

    merged_tree: bool
    two_dimensional_reference: bool
    two_dimensional_tree: bool
    node_reordering: bool
    wide: bool = False

    @classmethod
    def of(cls, policy: Policy, wide: bool = False) -> Layout:
        """Return the layout of a policy's four flags other than textures."""
        return cls(
            policy.merged_tree,
            policy.two_dimensional_reference,
            policy.two_dimensional_tree,
            policy.node_reordering,
            wide,
        )

    @property
    def address_bits(self) -> int:
        """The bits of a number: 24 in the paper's format, 32 in the wide format."""
        return 32 if self.wide else 24

    @property
    def half_bytes(self) -> int:
        """Bytes of half a node: 16 in the paper's format, 24 in the wide format."""
        return 4 * FIELDS if self.wide else 16

    @property
    def half_elements(self) -> int:
        """Elements of half a node in memory: 16 bytes or 6 words."""
        return self.half_bytes // self.element_bytes

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the arrays in memory: 1, or 4 in the wide format."""
        return 4 if self.wide else 1

    @property
    def node_stride(self) -> int:
        """Elements between the halves of two neighbours: 32 or 12 merged, 16 or 6 split."""
        return 2 * self.half_elements if self.merged_tree else self.half_elements

    @property
    def node_stride_bytes(self) -> int:
        """Bytes between the halves of two neighbours: 32 or 48 merged, 16 or 24 split."""
        return self.node_stride * self.element_bytes

    @property
    def max_bases(self) -> int:
        """The most bases of a page; a tree has at most two nodes per base."""
        return MAX_WIDE_PAGE_BASES if self.wide else MAX_PAGE_BASES

    @property
    def max_bytes_per_base(self) -> int:
        """The most bytes of a flat tree per base: two nodes and the base itself."""
        return 2 * 2 * self.half_bytes + 1

    @property
    def tree_width_bits(self) -> int:
        """Binary logarithm of the nodes in a row of a two-dimensional tree."""
        return WIDE_TREE_WIDTH_BITS if self.wide else TREE_WIDTH_BITS

    @property
    def tree_strip_bits(self) -> int:
        """Binary logarithm of the rows in a strip of nodes; 0 in one dimension."""
        return TREE_STRIP_BITS if self.two_dimensional_tree else 0

    @property
    def reference_strip_bits(self) -> int:
        """Binary logarithm of the rows in a strip of bases; 0 in one dimension."""
        return REFERENCE_STRIP_BITS if self.two_dimensional_reference else 0


@inline
def place_in_strips(number: int, width_bits: int, strip_bits: int) -> int:
    """Return the index of an item in a two-dimensional array that is stored by rows.

    Items fill strips of ``1 << strip_bits`` rows, each ``1 << width_bits`` items wide, column by
    column. If `strip_bits` is 0, the index is the number of the item.
    """
    if strip_bits == 0:
        return number
    strip = number >> (width_bits + strip_bits)
    inside = number & ((1 << (width_bits + strip_bits)) - 1)
    row = (strip << strip_bits) + (inside & ((1 << strip_bits) - 1))
    return (row << width_bits) + (inside >> strip_bits)


def length_in_strips(count: int, width_bits: int, strip_bits: int) -> int:
    """Return the length of the array that holds `count` items in whole strips."""
    if strip_bits == 0:
        return count
    strip = 1 << (width_bits + strip_bits)
    return -(-count // strip) * strip


def zeros_aligned(size: int) -> ByteArray:
    """Return zeroed bytes that begin on a cache line, or on a huge page if they fill it.

    Alignment keeps a node from crossing two cache lines, which would cost two accesses. The system
    assigns the memory at the first touch.
    """
    alignment = HUGE_PAGE if size >= HUGE_PAGE else CACHE_LINE
    raw = np.zeros(size + alignment, dtype=np.uint8)
    skip = -raw.ctypes.data % alignment
    return raw[skip : skip + size]
