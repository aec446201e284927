"""Flat trees: their fields at the extremes, and that the checks of trees see what is wrong."""

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
    WIDE,
    WIDE_IN_STRIPS,
    WIDE_LAYOUTS,
    check_tree,
    flat_tree_of,
    layout_id,
    numbered,
    page_codes_of,
)

from mummergpu.index.tree.flatten import (
    ADDRESS_MASK,
    BASE_MASK,
    BASE_SHIFT,
    LENGTH_MASK,
    LENGTH_SHIFT,
    flatten_tree,
    order_nodes,
)
from mummergpu.index.tree.layout import (
    FIELDS,
    MAX_PAGE_BASES,
    MAX_WIDE_PAGE_BASES,
    Layout,
    place_in_strips,
)
from mummergpu.index.tree.ukkonen import GrownTree, grow_tree
from mummergpu.input.reference import read_reference
from mummergpu.sequence.codes import BREAK

TEXT = "ACGTACGGANACGTNNACGTAAAAACNACGTA"
TWO_DIMENSIONAL = Layout(
    merged_tree=False,
    two_dimensional_reference=True,
    two_dimensional_tree=True,
    node_reordering=True,
)


@pytest.mark.parametrize("layout", LAYOUTS + WIDE_LAYOUTS, ids=layout_id)
def test_a_small_tree_in_each_layout(layout):
    codes = page_codes_of(TEXT)
    for base_before in range(BREAK + 1):
        check_tree(flat_tree_of(codes, layout, base_before), codes, base_before)


@pytest.mark.parametrize("layout", layouts_to_try(LAYOUTS + WIDE_LAYOUTS))
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
    columns = decode_nodes(tree)

    def fields_at(array, address):
        half = array.view(np.uint8)[address * layout.node_stride_bytes :]
        size = 4 if layout.wide else 3
        begins = [size * field for field in range(FIELDS)]
        numbers = [half[begin : begin + size].tobytes() for begin in begins[:-1]]
        last = half[begins[-1] :][: 4 if layout.wide else 1].tobytes()
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
        if columns.is_leaf[number]:
            assert second == [columns.leaf_ids[number], 0, 0, 0, columns.next_leaves[number]]
        else:
            assert second == columns.children[:, number].tolist()


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
def test_both_formats_hold_the_same_tree(layout):
    codes = page_codes_of(TEXT)
    trees = [flat_tree_of(codes, replace(layout, wide=wide), 2) for wide in (False, True)]
    narrow, wide = (numbered(decode_nodes(tree)) for tree in trees)
    for name, column in narrow.items():
        assert np.array_equal(column, wide[name]), name
    assert [tree.nodes.dtype for tree in trees] == [np.uint8, np.uint32]


def test_a_merged_tree_is_one_array():
    for layout, node_bytes in ((PLAIN, 32), (WIDE, 48)):
        merged = flat_tree_of(page_codes_of(TEXT), layout)
        assert np.shares_memory(merged.nodes, merged.children)
        split = flat_tree_of(page_codes_of(TEXT), replace(layout, merged_tree=False))
        assert not np.shares_memory(split.nodes, split.children)
        expected = node_bytes * merged.node_count + len(TEXT) + 1
        assert merged.byte_count == split.byte_count == expected


def test_some_nodes_can_be_decoded_without_the_others():
    for layout in (PLAIN, TWO_DIMENSIONAL, WIDE_IN_STRIPS):
        tree = flat_tree_of(page_codes_of(TEXT), layout)
        everything = decode_nodes(tree)
        part = decode_nodes(tree, 3, 9)
        assert np.array_equal(part.addresses, everything.addresses[3:9])
        assert np.array_equal(part.children, everything.children[:, 3:9])
        assert decode_nodes(tree, tree.node_count - 1, tree.node_count + 100).addresses.size == 1


def test_facts_of_leaves_have_room_for_the_largest_page():
    parts = [ADDRESS_MASK, LENGTH_MASK << LENGTH_SHIFT, BASE_MASK << BASE_SHIFT]
    assert sum(parts) == (1 << 64) - 1, "they overlap, or leave bits unused"
    assert ADDRESS_MASK >= 2 * MAX_WIDE_PAGE_BASES - 1
    assert LENGTH_MASK >= MAX_WIDE_PAGE_BASES - 1
    assert BASE_MASK >= BREAK


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
        flatten_tree(grown, np.zeros(1, np.int32), layout, BREAK)


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


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
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
    codes = page_codes_of(TEXT)
    grown = grow_tree(codes)
    order = order_nodes(grown, True)
    trees = [numbered(decode_nodes(flatten_tree(grown, order, PLAIN, 1))) for _ in range(2)]
    for name, column in trees[0].items():
        assert np.array_equal(column, trees[1][name])
