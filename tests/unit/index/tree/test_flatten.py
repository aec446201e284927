"""Suffix trees: constructed, numbered and flattened; and that the checks of trees see errors."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
from helpers.decoded_trees import decode_nodes
from helpers.pairwise import layouts_to_try
from helpers.trees import (
    AS_CONSTRUCTED,
    LAYOUTS,
    PLAIN,
    TEXTS,
    WIDE,
    WIDE_IN_STRIPS,
    WIDE_LAYOUTS,
    breadth_then_depth_first,
    check_tree,
    flat_tree_of,
    layout_id,
    naive_names,
    naive_tree,
    names_in_order,
    numbered,
    page_codes_of,
)

from mummergpu.index.tree import flatten
from mummergpu.index.tree.layout import FIELDS, MAX_PAGE_BASES, MAX_WIDE_PAGE_BASES, place_in_strips
from mummergpu.index.tree.ukkonen import GrownTree, grow_tree
from mummergpu.input.reference import read_reference
from mummergpu.sequence.codes import BREAK

TEXT = "ACGTACGGANACGTNNACGTAAAAACNACGTA"
TWO_DIMENSIONAL = replace(WIDE_IN_STRIPS, merged_tree=False, node_reordering=True, wide=False)
IN_STRIPS = [
    layout
    for layout in LAYOUTS + WIDE_LAYOUTS
    if layout.two_dimensional_tree or layout.two_dimensional_reference
]


@pytest.mark.parametrize("layout", layouts_to_try(IN_STRIPS))
def test_a_tree_of_several_strips_in_each_layout(layout):
    codes = np.random.default_rng(5).integers(0, 4, 350_001).astype(np.uint8)
    codes[::5_000] = BREAK
    codes[-1] = BREAK
    tree = flat_tree_of(codes, layout, 2)
    assert tree.node_count > 524_288 > 2 * 131_072, "strips of both formats"
    check_tree(tree, codes, 2)
    positions = np.arange(codes.size)
    if layout.two_dimensional_reference:
        positions = np.array([place_in_strips(position, 16, 2) for position in range(codes.size)])
    assert np.array_equal(tree.reference[positions], codes)


@pytest.mark.parametrize("layout", LAYOUTS + WIDE_LAYOUTS, ids=layout_id)
def test_the_bytes_of_a_node_are_where_the_layout_says(layout):
    tree = flat_tree_of(page_codes_of(TEXT), layout)
    assert tree.nodes.dtype == tree.children.dtype == (np.uint32 if layout.wide else np.uint8)
    columns = decode_nodes(tree)
    size = 4 if layout.wide else 3

    def fields_at(array, address):
        half = array.view(np.uint8)[address * layout.node_stride_bytes :]
        ends = [size * field for field in range(1, FIELDS)]
        numbers = [half[end - size : end].tobytes() for end in ends]
        last = half[ends[-1] :][: 4 if layout.wide else 1].tobytes()
        return [int.from_bytes(field, "little") for field in (*numbers, last)]

    for number, address in enumerate(columns.addresses.tolist()):
        assert fields_at(tree.nodes, address) == [
            columns.edge_starts[number],
            columns.edge_ends[number],
            columns.string_depths[number],
            columns.parents[number],
            columns.suffix_links[number],
            columns.is_leaf[number],
        ]
        *second, flags = fields_at(tree.children, address)
        assert flags == columns.flags[number]
        of_leaf = [columns.leaf_ids[number], 0, 0, 0, columns.next_leaves[number]]
        is_leaf = columns.is_leaf[number]
        assert second == (of_leaf if is_leaf else columns.children[:, number].tolist())


def test_a_merged_tree_is_one_array():
    for layout, node_bytes in ((PLAIN, 32), (WIDE, 48)):
        merged = flat_tree_of(page_codes_of(TEXT), layout)
        assert np.shares_memory(merged.nodes, merged.children)
        split = flat_tree_of(page_codes_of(TEXT), replace(layout, merged_tree=False))
        assert not np.shares_memory(split.nodes, split.children)
        expected = node_bytes * merged.node_count + len(TEXT) + 1
        assert merged.byte_count == split.byte_count == expected


def test_facts_of_leaves_have_room_for_the_largest_page():
    parts = [
        flatten.ADDRESS_MASK,
        flatten.LENGTH_MASK << flatten.LENGTH_SHIFT,
        flatten.BASE_MASK << flatten.BASE_SHIFT,
    ]
    assert sum(parts) == (1 << 64) - 1, "they overlap, or leave bits unused"
    assert flatten.ADDRESS_MASK >= 2 * MAX_WIDE_PAGE_BASES - 1
    assert flatten.LENGTH_MASK >= MAX_WIDE_PAGE_BASES - 1 and flatten.BASE_MASK >= BREAK


@pytest.mark.parametrize(
    ("layout", "most", "message"),
    [
        (PLAIN, MAX_PAGE_BASES, "8388609 bases do not fit 24-bit addresses"),
        (WIDE, MAX_WIDE_PAGE_BASES, "1073741825 bases do not fit 32-bit addresses"),
    ],
)
def test_a_page_too_large_for_the_format_is_refused(layout, most, message):
    codes = np.broadcast_to(np.uint8(BREAK), most + 2)
    grown = GrownTree(codes, np.zeros((1, 8), np.int32), np.zeros(1, np.int32), 0)
    with pytest.raises(ValueError, match=message):
        flatten.flatten_tree(grown, np.zeros(1, np.int32), layout, BREAK)


@pytest.mark.parametrize("layout", [PLAIN, AS_CONSTRUCTED, TWO_DIMENSIONAL, WIDE], ids=layout_id)
def test_positions_reach_the_end_of_the_largest_page(layout):
    codes = np.full(MAX_PAGE_BASES + 1, BREAK, dtype=np.uint8)
    codes[:4] = codes[MAX_PAGE_BASES - 5 : MAX_PAGE_BASES - 1] = [0, 1, 0, 1]
    codes[MAX_PAGE_BASES - 1] = 3
    tree = flat_tree_of(codes, layout, 3)
    check_tree(tree, codes, 3)
    assert decode_nodes(tree).edge_ends.max() == MAX_PAGE_BASES


@pytest.mark.slow
def test_the_largest_tree_fills_24_bits_to_the_last_address():
    """A page of one repeated base has two nodes a base, each below the one before."""
    codes = np.zeros(MAX_PAGE_BASES + 1, dtype=np.uint8)
    codes[-1] = BREAK
    tree = flat_tree_of(codes, PLAIN, 1)
    assert tree.node_count == 1 << 24
    times_seen = np.zeros((2, MAX_PAGE_BASES + 1), dtype=np.int8)
    for begin in range(0, 1 << 24, 1 << 20):
        columns = decode_nodes(tree, begin, begin + (1 << 20))
        leaf, depths = columns.is_leaf, columns.string_depths
        assert np.array_equal(columns.addresses, begin + np.arange(1 << 20))
        assert (columns.edge_ends[leaf] == MAX_PAGE_BASES).all()
        assert np.array_equal(columns.leaf_ids[leaf], MAX_PAGE_BASES - depths[leaf])
        assert (columns.edge_ends - columns.edge_starts <= 1).all()
        times_seen[0, depths[~leaf]] += 1
        times_seen[1, depths[leaf]] += 1
    assert (times_seen[0, :-1] == 1).all(), "an inner node of each depth but the largest"
    assert (times_seen[1, 1:] == 1).all(), "a leaf of each depth but 0"


@pytest.mark.parametrize("layout", [PLAIN, TWO_DIMENSIONAL, WIDE], ids=layout_id)
def test_no_byte_of_a_node_can_be_wrong_unseen(layout):
    """What the checks of this suite are worth: they find each single wrong byte."""
    codes = page_codes_of("ACGTACGGANACGTNACA")
    tree = flat_tree_of(codes, layout, 2)
    columns = decode_nodes(tree)
    unseen = []
    size = 4 if layout.wide else 3
    for number, address in enumerate(columns.addresses.tolist()):
        for half, array in enumerate((tree.nodes, tree.children)):
            octets = array.view(np.uint8)
            # Between leaf id and next leaf a leaf has nothing.
            unused = {*range(size, 4 * size)} if half and columns.is_leaf[number] else set()
            # Whether a node is a leaf is told by one byte, whatever the size of the field.
            unused |= set() if half else {*range(5 * size + 1, layout.half_bytes)}
            for byte in sorted({*range(layout.half_bytes)} - unused):
                place = address * layout.node_stride_bytes + byte
                right = int(octets[place])
                is_leaf_byte = half == 0 and byte == 5 * size
                octets[place] = int(right == 0) if is_leaf_byte else right ^ 1
                try:
                    check_tree(tree, codes, 2)
                    unseen.append((number, half, byte))
                except (AssertionError, IndexError):
                    pass
                octets[place] = right
    check_tree(tree, codes, 2)
    assert unseen == []


def genome(shared_data, name):
    return np.append(read_reference(str(shared_data / "references" / name)).codes, np.uint8(BREAK))


@pytest.mark.parametrize("layout", layouts_to_try(LAYOUTS))
def test_the_tree_of_phage_lambda(shared_data, layout):
    codes = genome(shared_data, "lambda_virus.fasta")
    assert codes.size == 48_503
    check_tree(flat_tree_of(codes, layout), codes)


@pytest.mark.parametrize(
    "name",
    ["portiera.GCF_000292685.fna", "H_pylori26695_Eslice.fasta", "B_anthracis_contigs.fasta"],
)
def test_trees_of_bacteria(shared_data, name):
    codes = genome(shared_data, name)
    check_tree(flat_tree_of(codes, PLAIN), codes)
    check_tree(flat_tree_of(codes, TWO_DIMENSIONAL), codes)


def test_the_tree_of_human_bases_with_long_runs_of_n(shared_data):
    path = shared_data / "references" / "human_grch38.chr20_and_21_first10M.fa.gz"
    with gzip.open(path) as file:
        text = file.read(300_000)
    codes = page_codes_of(text.decode().split("\n", 1)[1].replace("\n", ""))
    assert 50_000 < np.count_nonzero(codes == BREAK) < codes.size
    check_tree(flat_tree_of(codes, PLAIN), codes)


def test_grown_trees_can_be_flattened_more_than_once():
    grown = grow_tree(page_codes_of(TEXT))
    order = flatten.order_nodes(grown, True)
    trees = [numbered(decode_nodes(flatten.flatten_tree(grown, order, PLAIN, 1))) for _ in range(2)]
    for name, column in trees[0].items():
        assert np.array_equal(column, trees[1][name])


ALL_TEXTS = TEXTS | {
    "shallow": "GATTACAGATTACC",
    "many records": "N".join("AC ACG A C CA AC ACG G".split()),
    "just as deep as the border": "A" * 16,
    "one deeper": "A" * 17,
    "two deeper": "A" * 18,
    "far deeper": "A" * 40,
    "branches below the border": "A" * 30 + "C" + "A" * 25 + "G" + "A" * 33,
    "chains below the border": "A" * 30 + "N" + "A" * 30 + "N" + "A" * 22,
    "tandem repeat": "ACG" * 20 + "T" + "ACG" * 19,
}


@pytest.mark.parametrize("text", ALL_TEXTS.values(), ids=ALL_TEXTS.keys())
def test_nodes_are_numbered_breadth_first_and_then_depth_first(text):
    """Or in the order of their making."""
    root, constructed = naive_tree(text)
    codes = page_codes_of(text)
    for one, order in ((PLAIN, breadth_then_depth_first(root)), (AS_CONSTRUCTED, constructed)):
        for layout in (one, replace(one, wide=True)):
            tree = flat_tree_of(codes, layout)
            assert names_in_order(tree, text) == naive_names(order)
            check_tree(tree, codes)


def test_the_naive_order_itself_on_a_tree_drawn_by_hand():
    # Root: A -> (A$, $), the leaf of suffix 1 behind the empty edge.
    root, constructed = naive_tree("AA")
    nodes = [("", None), ("AA", 0), ("A", None), ("A", 1)]
    assert naive_names(constructed) == nodes
    assert naive_names(breadth_then_depth_first(root)) == [nodes[at] for at in (0, 2, 1, 3)]


def test_suffixes_with_the_same_bases_are_chained_the_last_first():
    tree = grow_tree(page_codes_of("ACNACNAC"))
    chain = [6]
    while tree.next_leaves[chain[-1]] != 0:
        chain.append(int(~tree.next_leaves[chain[-1]]))
    assert chain == [6, 3, 0]


@pytest.mark.parametrize("letters", [4, 2, 1], ids=["random", "two letters", "homopolymer"])
@pytest.mark.parametrize("break_every", [0, 7, 1000])
def test_the_tree_of_a_long_text_is_a_suffix_tree(letters, break_every):
    codes = np.random.default_rng(letters).integers(0, letters, 60_001).astype(np.uint8)
    if break_every:
        codes[::break_every] = BREAK
    codes[-1] = BREAK
    check_tree(flat_tree_of(codes, PLAIN), codes)


def test_the_tree_of_diverged_long_repeats_is_a_suffix_tree():
    random = np.random.default_rng(3)
    codes = np.append(np.tile(random.integers(0, 4, 171).astype(np.uint8), 300), np.uint8(BREAK))
    changed = random.integers(0, codes.size - 1, codes.size // 50)
    codes[changed] = random.integers(0, 5, changed.size)
    check_tree(flat_tree_of(codes, PLAIN), codes)


def test_a_fibonacci_word_is_a_suffix_tree():
    one, other = "A", "AC"
    while len(other) < 40_000:
        one, other = other, other + one
    codes = page_codes_of(other)
    check_tree(flat_tree_of(codes, PLAIN), codes)
