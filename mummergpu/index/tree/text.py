"""Suffix trees as readable text: Graphviz (``--dot``) and a table (``--dump-tree``).

Both texts show the data that the kernels read. So positions are 0-based and count from the
first base of the page, as in the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.index.tree.decode import NodeColumns, decode_nodes
from mummergpu.index.tree.layout import NO_NODE, PRECEDING_BASE_MASK, ROOT
from mummergpu.index.tree.page import TreePage
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import ByteArray, Int32Array
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import BASES, BREAK, decode

TextArray = ByteArray

MAX_DOT_BASES: Final = 10_000
"""The largest reference to draw; beyond it Graphviz needs minutes and nobody can read the graph."""

LONGEST_LABEL: Final = 24
"""The most bases of an edge label that is written without a gap in the middle."""
SHOWN_AT_ENDS: Final = 10

NODES_AT_ONCE: Final = 1 << 15
NUMBER_BYTES: Final = 11
"""The most digits of a 32-bit number, and the tab or line end after it."""

COLUMNS: Final = (
    b"page",
    b"address",
    b"edge_start",
    b"edge_end",
    b"string_depth",
    b"parent",
    b"suffix_link",
    b"is_leaf",
    b"A",
    b"C",
    b"G",
    b"T",
    b"$",
    b"leaf_id",
    b"next_leaf",
    b"preceding_base",
)
ABSENT: Final = -ord("-")
"""The number for a "-"; negative numbers in a table stand for characters."""

TABLE_HEADER: Final = (
    b"# Positions count from 0, from the first base of the page; addresses name nodes.\n"
    + b"\t".join(COLUMNS)
    + b"\n"
)
"""The first two lines of a table."""


def check_dot_size(reference: Reference) -> None:
    """Refuse to draw the tree of a reference of more than `MAX_DOT_BASES` bases and breaks."""
    base_count = reference.codes.size
    if base_count > MAX_DOT_BASES:
        raise OptionError(
            "dot",
            f"a reference of {base_count:,} bases is too large to draw; "
            f"at most {MAX_DOT_BASES:,} bases can be",
        )


def table_text(pages: Iterable[TreePage]) -> Iterator[bytes | TextArray]:
    """Yield the nodes of trees as a tab-separated table, in pieces.

    `TABLE_HEADER` comes before the first page of the reference, so several calls may make one
    table, each for one group of pages.
    """
    for indexed in pages:
        if indexed.page.index == 0:
            yield TABLE_HEADER
        yield from page_rows(indexed)


def page_rows(indexed: TreePage) -> Iterator[bytes | TextArray]:
    """Yield the nodes of one tree as rows of a table, one line for each node.

    A comment line says where the page lies in the joined reference. Rows of `COLUMNS` are in the
    order of the nodes: by address in one dimension, by strip and column in two. A "-" stands for a
    value that a node does not have. This takes about 10 MiB of memory, independent of the size of
    the tree.
    """
    page = indexed.page
    yield b"# page %d: bases %d to %d of the joined reference, counted from 0\n" % (
        page.index,
        page.begin,
        page.end,
    )
    for begin in range(0, indexed.tree.node_count, NODES_AT_ONCE):
        columns = decode_nodes(indexed.tree, begin, begin + NODES_AT_ONCE)
        numbers = table_numbers(page.index, columns)
        text = np.empty(numbers.size * NUMBER_BYTES, dtype=np.uint8)
        yield text[: write_numbers(numbers, text)]


def table_numbers(page: int, columns: NodeColumns) -> Int32Array:
    """Return a row of numbers for each node, with characters as negative numbers."""
    is_root = columns.addresses == ROOT
    letters = -np.frombuffer(BASES, dtype=np.uint8).astype(np.int32)
    preceding = letters[np.minimum(columns.flags & PRECEDING_BASE_MASK, BREAK)]
    return np.column_stack(
        (
            np.full_like(columns.addresses, page),
            columns.addresses,
            columns.edge_starts,
            columns.edge_ends,
            columns.string_depths,
            np.where(is_root, ABSENT, columns.parents),
            np.where(is_root, ABSENT, columns.suffix_links),
            columns.is_leaf,
            *np.where(columns.children == NO_NODE, ABSENT, columns.children),
            np.where(columns.is_leaf, columns.leaf_ids, ABSENT),
            np.where(columns.next_leaves == NO_NODE, ABSENT, columns.next_leaves),
            np.where(columns.is_leaf, preceding, ABSENT),
        )
    ).astype(np.int32, copy=False)


@jit
def write_numbers(numbers: Int32Array, text: TextArray) -> int:
    """Write rows of numbers, separated by tabs; return the number of bytes.

    A negative number is written as a character; its code is the number without the sign. Each
    number has room for `NUMBER_BYTES`.
    """
    at = 0
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1]):
            number = numbers[row, column]
            if number < 0:
                text[at] = -number
                at += 1
            else:
                digits = 1
                rest = number // 10
                while rest > 0:
                    digits += 1
                    rest //= 10
                for place in range(at + digits - 1, at - 1, -1):
                    text[place] = 48 + number % 10
                    number //= 10
                at += digits
            text[at] = 9
            at += 1
        text[at - 1] = 10
    return at


def dot_text(pages: Iterable[TreePage]) -> Iterator[bytes]:
    """Yield the suffix trees of a small reference (`check_dot_size`) as one Graphviz graph.

    Inner nodes show their address and string depth, leaves their address and leaf id. Edges show
    their bases, with a ``$`` at the end of the edge to a leaf. Suffix links are dashed; the links
    from leaf to leaf of a ``$`` chain are dotted.
    """
    yield b'digraph "suffix tree" {\n  node [shape=ellipse];\n'
    for indexed in pages:
        page = indexed.page
        yield b"  subgraph cluster_%d {\n" % page.index
        yield b'    label="page %d, bases %d to %d";\n' % (page.index, page.begin, page.end)
        columns = decode_nodes(indexed.tree)
        for number in range(indexed.tree.node_count):
            yield _dot_lines(indexed, columns, number)
        yield b"  }\n"
    yield b"}\n"


def _dot_lines(indexed: TreePage, columns: NodeColumns, number: int) -> bytes:
    """Return the lines of one node: the node, the edge to it, and its links."""
    address = columns.addresses[number]
    node = b"p%d_n%d" % (indexed.page.index, address)
    other = b"p%d_n%%d" % indexed.page.index
    if columns.is_leaf[number]:
        label = b'label="%d\\nleaf %d", shape=box' % (address, columns.leaf_ids[number])
    else:
        label = b'label="%d\\ndepth %d"' % (address, columns.string_depths[number])
    lines = [b"%s [%s];" % (node, label)]
    if address != ROOT:
        bases = edge_label(indexed, columns, number)
        parent = other % columns.parents[number]
        lines.append(b'%s -> %s [label="%s"];' % (parent, node, bases))
        link = other % columns.suffix_links[number]
        lines.append(b"%s -> %s [style=dashed, constraint=false];" % (node, link))
    if columns.next_leaves[number] != NO_NODE:
        following = other % columns.next_leaves[number]
        lines.append(b"%s -> %s [style=dotted, constraint=false];" % (node, following))
    return b"".join(b"    %s\n" % line for line in lines)


def edge_label(indexed: TreePage, columns: NodeColumns, number: int) -> bytes:
    """Return the bases of the edge to a node, shortened in the middle if they are many.

    For example ``ACG``, ``ACG$`` on the edge to a leaf, ``ACGTACGTAC..980..TTGACCGATA``.
    """
    begin = indexed.page.begin + int(columns.edge_starts[number])
    end = indexed.page.begin + int(columns.edge_ends[number])
    bases = decode(indexed.joined_reference[begin:end])
    if len(bases) > LONGEST_LABEL:
        hidden = len(bases) - 2 * SHOWN_AT_ENDS
        bases = b"%s..%d..%s" % (bases[:SHOWN_AT_ENDS], hidden, bases[-SHOWN_AT_ENDS:])
    return bases + (b"$" if columns.is_leaf[number] else b"")
