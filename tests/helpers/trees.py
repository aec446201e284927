"""Suffix trees for tests: made from text, held against their definition, built naively."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, replace
from itertools import product

import numpy as np

from helpers.decoded_trees import decode_nodes
from mummergpu.index.tree.flatten import flatten_tree, order_nodes
from mummergpu.index.tree.layout import LEAF_FLAG, NO_NODE, ROOT, Layout
from mummergpu.index.tree.ukkonen import grow_tree
from mummergpu.sequence.codes import BREAK, encode

LAYOUTS = [Layout(*flags) for flags in product((False, True), repeat=4)]
WIDE_LAYOUTS = [replace(layout, wide=True) for layout in LAYOUTS]
NONE = Layout(False, False, False, False)
AS_CONSTRUCTED = replace(NONE, merged_tree=True)
PLAIN = replace(AS_CONSTRUCTED, node_reordering=True)
WIDE = replace(PLAIN, wide=True)
WIDE_IN_STRIPS = replace(NONE, two_dimensional_reference=True, two_dimensional_tree=True, wide=True)
BREADTH_FIRST_EDGES = 16
"""The paper's number, not imported on purpose."""

TEXTS = {
    "nothing": "",
    "one base": "A",
    "two equal bases": "CC",
    "only breaks": "NNNNN",
    "breaks at both ends": "NNACGTNN",
    "repeats": "ACGTACGGACGTACG",
    "homopolymer": "T" * 30,
    "tandem repeat": "ACT" * 12,
    "satellite": "ACGTTACGATACGTTACGTTGCGTT",
    "palindromes": "ACCGGTTTACCGGTAACCGGTT",
    "equal records": "GATTACA" + "NGATTACA" * 3,
    "equal tiny records": "N".join("A C AC A C CA AC G".split()),
    "one base between breaks": "NANANANAN",
    "suffix of one record begins another": "ACGTANTACGNACGTANGTA",
    "break in a repeat": "ACGTNACGACGTACGTN",
    "long runs of breaks": "ACG" + "N" * 20 + "ACGT" + "N" * 40 + "CGT",
}


def flags_of(layout):
    """The flags of the policies that make a layout."""
    return astuple(layout)[:4]


def layout_id(layout):
    flags = zip("mrtn", flags_of(layout), strict=True)
    letters = "".join(letter for letter, on in flags if on) or "none"
    return f"{letters}-wide" if layout.wide else letters


def page_codes_of(text):
    return np.append(encode(text.encode()), np.uint8(BREAK))


def flat_tree_of(codes, layout, base_before=BREAK):
    grown = grow_tree(codes)
    return flatten_tree(grown, order_nodes(grown, layout.node_reordering), layout, base_before)


def path_ends(codes):
    """For each position, that of the next break, its own if it is one."""
    positions = np.where(codes == BREAK, np.arange(codes.size), codes.size)
    return np.minimum.accumulate(positions[::-1])[::-1]


class Fingerprints:
    """Tells whether two pieces of a text are equal, for many pairs at once."""

    def __init__(self, codes):
        random = np.random.default_rng(7)
        values = random.integers(1, 1 << 63, 8, dtype=np.uint64)
        factors = np.full(codes.size + 1, random.integers(1 << 62, dtype=np.uint64) * 2 + 1)
        factors[0] = 1
        # Arithmetic modulo 2 ** 64; the factors are odd, so nothing is lost.
        self.powers = np.multiply.accumulate(factors)
        terms = values[codes] * self.powers[:-1]
        self.sums = np.concatenate((np.zeros(1, np.uint64), np.add.accumulate(terms)))

    def equal(self, one, other, lengths):
        one_sum = self.sums[one + lengths] - self.sums[one]
        other_sum = self.sums[other + lengths] - self.sums[other]
        return one_sum * self.powers[other] == other_sum * self.powers[one]


def numbered(columns):
    """The columns with addresses replaced by numbers in the tree's order; -1 for no node."""
    number_of = np.full(int(columns.addresses.max()) + 1, -2, dtype=np.int64)
    number_of[columns.addresses] = np.arange(columns.addresses.size)
    assert number_of[ROOT] == 0

    def optional(addresses):
        return np.where(addresses == NO_NODE, -1, number_of[addresses])

    numbers = {
        name: number_of[getattr(columns, name)] for name in ("addresses", "parents", "suffix_links")
    }
    numbers |= {name: optional(getattr(columns, name)) for name in ("children", "next_leaves")}
    return columns._asdict() | numbers


def check_tree(tree, codes, base_before=BREAK):
    """Hold a flat tree against what a suffix tree is; vectorised, for any size."""
    columns = decode_nodes(tree)
    assert np.unique(columns.addresses).size == tree.node_count
    nodes = numbered(columns)
    for name in ("parents", "suffix_links"):
        assert nodes[name].min() >= 0, f"{name} lead to no node"
    assert nodes["children"].min() >= -1 and nodes["next_leaves"].min() >= -1
    assert tree.base_count == codes.size - 1 and tree.leaf_count == nodes["is_leaf"].sum()
    check_leaves(nodes, codes, base_before)
    check_edges(nodes, codes)
    check_children(nodes, codes)
    check_suffix_links(nodes, codes)


def check_leaves(nodes, codes, base_before):
    """Each suffix that begins with a base is one leaf, and its path ends at the next break."""
    leaf = nodes["is_leaf"]
    suffixes = nodes["leaf_ids"][leaf]
    assert np.array_equal(np.sort(suffixes), np.flatnonzero(codes != BREAK))
    ends = path_ends(codes)[suffixes]
    assert np.array_equal(nodes["edge_ends"][leaf], ends)
    assert np.array_equal(nodes["string_depths"][leaf], ends - suffixes)
    before = np.concatenate(([base_before], codes))[suffixes]
    assert np.array_equal(nodes["flags"][leaf], LEAF_FLAG | before)
    assert not nodes["flags"][~leaf].any()


def check_edges(nodes, codes):
    """Each path is that of the parent and the label of the edge; the root is the start."""
    depths, parents = nodes["string_depths"].astype(np.int64), nodes["parents"]
    starts, ends = nodes["edge_starts"].astype(np.int64), nodes["edge_ends"].astype(np.int64)
    for name in ("string_depths", "parents", "suffix_links", "edge_starts", "edge_ends"):
        assert nodes[name][0] == 0, f"the root has {name}"
    assert not nodes["is_leaf"][0] and not nodes["is_leaf"][parents].any()
    assert np.array_equal(ends - starts, depths - depths[parents])
    empty = ends == starts
    empty[0] = False
    assert (ends >= starts).all() and nodes["is_leaf"][empty].all()
    path_starts = ends - depths
    path_starts[0] = 0
    assert path_starts.min() >= 0
    assert (ends[1:] <= path_ends(codes)[path_starts[1:]]).all(), "a path leads over a break"
    same = Fingerprints(codes).equal(path_starts, path_starts[parents], depths[parents])
    assert same.all(), "a path does not begin with that of its parent"


def check_children(nodes, codes):
    """Children and parents name each other; chains hold what ends at the same node."""
    children, next_leaves = nodes["children"], nodes["next_leaves"]
    node_count = next_leaves.size
    slots, owners = np.nonzero(children >= 0)
    named = children[slots, owners]
    assert np.array_equal(nodes["parents"][named], owners)
    first_codes = np.where(
        nodes["edge_starts"] == nodes["edge_ends"], BREAK, codes[nodes["edge_starts"]]
    )
    assert np.array_equal(first_codes[named], slots)
    chained = np.flatnonzero(next_leaves >= 0)
    following = next_leaves[chained]
    assert (first_codes[chained] == BREAK).all() and (first_codes[following] == BREAK).all()
    assert np.array_equal(nodes["parents"][chained], nodes["parents"][following])
    everyone = np.sort(np.concatenate((named, following)))
    assert np.array_equal(everyone, np.arange(1, node_count)), "nodes are lost or found twice"
    branches = np.bincount(nodes["parents"][1:], minlength=node_count)
    inner = ~nodes["is_leaf"]
    inner[0] = False
    assert (branches[inner] >= 2).all(), "an inner node does not branch"


def check_suffix_links(nodes, codes):
    """A suffix link leads to the node whose path lacks the first base."""
    links, depths = nodes["suffix_links"], nodes["string_depths"].astype(np.int64)
    starts = nodes["edge_ends"].astype(np.int64) - depths
    leaf = nodes["is_leaf"]
    inner = ~leaf
    inner[0] = False
    targets = links[inner]
    assert np.array_equal(depths[targets], depths[inner] - 1) and not leaf[targets].any()
    equal = Fingerprints(codes).equal(starts[inner] + 1, starts[targets], depths[inner] - 1)
    assert equal[targets > 0].all(), "a suffix link leads to another path"
    leaf_of_suffix = np.zeros(codes.size, dtype=np.int64)
    leaf_of_suffix[nodes["leaf_ids"][leaf]] = np.flatnonzero(leaf)
    assert np.array_equal(links[leaf], leaf_of_suffix[nodes["leaf_ids"][leaf] + 1])


@dataclass
class NaiveNode:
    """A node of a tree built by the definition."""

    path: str
    suffix: int | None = None
    children: list[NaiveNode] = field(default_factory=list)


def naive_tree(text):
    """Build a suffix tree from the set of all paths.

    Returns the root, and all nodes in the order of their construction: suffix by suffix,
    the inner node that its insertion makes before its leaf. Children are in the order A,
    C, G, T, and then the leaves that end there, the last suffix first.
    """
    suffixes = {
        start: text[start:].split("N")[0] for start in range(len(text)) if text[start] != "N"
    }
    root = NaiveNode("")
    constructed = [root]
    inner = {"": root}
    leaves = []
    for start, suffix in suffixes.items():
        shared = max((common_prefix(suffix, leaf.path) for leaf in leaves), key=len, default="")
        if shared not in inner:
            inner[shared] = NaiveNode(shared)
            constructed.append(inner[shared])
        leaves.append(NaiveNode(suffix, start))
        constructed.append(leaves[-1])
    for node in constructed[1:]:
        lengths = range(len(node.path) if node.suffix is None else len(node.path) + 1)
        above = max(length for length in lengths if node.path[:length] in inner)
        inner[node.path[:above]].children.append(node)
    for node in inner.values():
        depth = len(node.path)
        node.children.sort(key=lambda child: (child.path[depth:][:1] or "Z", -(child.suffix or 0)))
    return root, constructed


def common_prefix(one, other):
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


def breadth_then_depth_first(root):
    """Level by level while fewer than 16 edges below the root, then subtree by subtree."""
    order = []
    level = [root]
    for _ in range(BREADTH_FIRST_EDGES):
        order += level
        last, level = level, [child for node in level for child in node.children]

    def descend(node):
        for child in node.children:
            order.append(child)
            descend(child)

    for node in last:
        descend(node)
    return order


def names_in_order(tree, text):
    """The path of each node of a flat tree, and the suffix of a leaf, in the tree's order."""
    columns = decode_nodes(tree)
    names = []
    for number in range(tree.node_count):
        end, depth = int(columns.edge_ends[number]), int(columns.string_depths[number])
        suffix = int(columns.leaf_ids[number]) if columns.is_leaf[number] else None
        names.append((text[end - depth : end], suffix))
    return names


def naive_names(nodes):
    return [(node.path, node.suffix) for node in nodes]
