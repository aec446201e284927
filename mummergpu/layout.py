"""How nodes and references lie in memory, written once.

A node is 32 bytes in two halves of 16 (paper, section 2.1). Every number in it is 24 bits
wide, little-endian; the last byte of each half holds flags::

    byte   0            3           6             9         12            15
    node   edge start   edge end    string depth  parent    suffix link   is leaf
    children  A         C           G             T         $             flags
    a leaf's  leaf id   -           -             -         next leaf     flags

Positions count from the first base of the page; addresses name nodes, and address 0 is
the root, which is nobody's child, so that 0 also says "none". In the children half the
flag byte of a leaf is `LEAF_FLAG` plus the code of the base before its suffix (`BREAK`
where there is none); in an inner node it is 0.

A node has one ``$`` child although many suffixes can end behind the same bases, one at
each break of the page: they are a chain, each leaf naming the next in its own ``$`` slot.

Split trees keep the halves in two arrays, merged ones side by side in one. In two
dimensions an address is a row (high 12 bits) and a column (low 12 bits) of an array that
is 4,096 nodes wide, and consecutive nodes fill strips of 32 rows, column by column; a
two-dimensional reference is 65,536 bases wide, in strips of 4 rows. Both are stored row
after row, so an address is at the same time the index of its record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.compiled import inlined_borrower
from mummergpu.policy import Policy

HALF_BYTES: Final = 16
NODE_BYTES: Final = 2 * HALF_BYTES
MAXIMUM_NODES: Final = 1 << 24
MAXIMUM_PAGE_BASES: Final = MAXIMUM_NODES // 2
"""8,388,608 bases: a tree has at most two nodes a base."""

# Byte offsets in the first half.
EDGE_START: Final = 0
EDGE_END: Final = 3
STRING_DEPTH: Final = 6
PARENT: Final = 9
SUFFIX_LINK: Final = 12
IS_LEAF: Final = 15

# Byte offsets in the second half. The child of a base code is at CHILD_BYTES * code.
CHILD_BYTES: Final = 3
LEAF_ID: Final = 0
NEXT_LEAF: Final = 12
FLAGS: Final = 15

LEAF_FLAG: Final = 0x80
PRECEDING_BASE_MASK: Final = 0x07

NO_NODE: Final = 0
ROOT: Final = 0

TREE_WIDTH_BITS: Final = 12
TREE_STRIP_BITS: Final = 5
REFERENCE_WIDTH_BITS: Final = 16
REFERENCE_STRIP_BITS: Final = 2

CACHE_LINE: Final = 64
HUGE_PAGE: Final = 1 << 21


@dataclass(frozen=True)
class Layout:
    """What a policy makes of the arrays in memory, whatever they are read through.

    Attributes
    ----------
    merged_tree : bool
        The halves of a node lie side by side.
    two_dimensional_reference : bool
        The reference lies in strips of rows.
    two_dimensional_tree : bool
        The nodes lie in strips of rows.
    node_reordering : bool
        Nodes are numbered breadth first, then depth first.
    """

    merged_tree: bool
    two_dimensional_reference: bool
    two_dimensional_tree: bool
    node_reordering: bool

    @classmethod
    def of(cls, policy: Policy) -> Layout:
        """Return the layout of a policy.

        Parameters
        ----------
        policy : Policy
            Its four flags that are not textures are taken over.

        Returns
        -------
        Layout
            The layout.
        """
        return cls(
            policy.merged_tree,
            policy.two_dimensional_reference,
            policy.two_dimensional_tree,
            policy.node_reordering,
        )

    @property
    def node_stride(self) -> int:
        """Bytes from one node's half to the next node's: 32 merged, 16 split."""
        return NODE_BYTES if self.merged_tree else HALF_BYTES

    @property
    def tree_strip_bits(self) -> int:
        """Binary logarithm of the rows in a strip of nodes; 0 in one dimension."""
        return TREE_STRIP_BITS if self.two_dimensional_tree else 0

    @property
    def reference_strip_bits(self) -> int:
        """Binary logarithm of the rows in a strip of bases; 0 in one dimension."""
        return REFERENCE_STRIP_BITS if self.two_dimensional_reference else 0


@inlined_borrower
def place_in_strips(number: int, width_bits: int, strip_bits: int) -> int:
    """Return where the `number`-th item lies in a two-dimensional array stored by rows.

    Items fill strips of ``1 << strip_bits`` rows, each ``1 << width_bits`` items wide,
    column by column. With `strip_bits` 0 the item stays where it is.
    """
    if strip_bits == 0:
        return number
    strip = number >> (width_bits + strip_bits)
    inside = number & ((1 << (width_bits + strip_bits)) - 1)
    row = (strip << strip_bits) + (inside & ((1 << strip_bits) - 1))
    return (row << width_bits) + (inside >> strip_bits)


def length_in_strips(count: int, width_bits: int, strip_bits: int) -> int:
    """Return the length of the array that holds `count` items laid out in strips.

    Parameters
    ----------
    count : int
        The number of items.
    width_bits, strip_bits : int
        As in `place_in_strips`.

    Returns
    -------
    int
        `count` itself in one dimension, else whole rows of whole strips.
    """
    if strip_bits == 0:
        return count
    strip = 1 << (width_bits + strip_bits)
    return -(-count // strip) * strip


def zeros_aligned(size: int) -> npt.NDArray[np.uint8]:
    """Return zeroed bytes that begin on a cache line, or on a huge page if they fill one.

    Parameters
    ----------
    size : int
        The number of bytes.

    Returns
    -------
    ndarray, dtype=uint8, shape=(size,)
        Memory that is taken when it is first touched.

    Notes
    -----
    A node that straddled two cache lines would cost two accesses.
    """
    alignment = HUGE_PAGE if size >= HUGE_PAGE else CACHE_LINE
    raw = np.zeros(size + alignment, dtype=np.uint8)
    skip = -raw.ctypes.data % alignment
    return raw[skip : skip + size]
