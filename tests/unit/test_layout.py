"""Where fields and records lie in memory."""

from __future__ import annotations

import numpy as np
import pytest
from trees import LAYOUTS, layout_id

from mummergpu.compiled import compiled, load_24_bits
from mummergpu.layout import (
    CACHE_LINE,
    CHILD_BYTES,
    EDGE_END,
    EDGE_START,
    FLAGS,
    HALF_BYTES,
    HUGE_PAGE,
    IS_LEAF,
    LEAF_FLAG,
    LEAF_ID,
    MAXIMUM_NODES,
    MAXIMUM_PAGE_BASES,
    NEXT_LEAF,
    NODE_BYTES,
    PARENT,
    PRECEDING_BASE_MASK,
    STRING_DEPTH,
    SUFFIX_LINK,
    Layout,
    length_in_strips,
    place_in_strips,
    zeros_aligned,
)
from mummergpu.sequence import BREAK

TREE_STRIPS = (12, 5)
REFERENCE_STRIPS = (16, 2)


@compiled
def read_field(array: np.ndarray, offset: int) -> int:
    return load_24_bits(array, offset)


@compiled
def places(count: int, width_bits: int, strip_bits: int) -> np.ndarray:
    result = np.empty(count, dtype=np.int64)
    for number in range(count):
        result[number] = place_in_strips(number, width_bits, strip_bits)
    return result


def test_numbers_of_the_first_half_fill_it_without_overlap() -> None:
    offsets = [EDGE_START, EDGE_END, STRING_DEPTH, PARENT, SUFFIX_LINK, IS_LEAF]
    assert offsets == [0, 3, 6, 9, 12, 15]
    assert HALF_BYTES == 16
    assert NODE_BYTES == 32


def test_children_fill_the_second_half_up_to_the_flags() -> None:
    assert [CHILD_BYTES * code for code in range(BREAK + 2)] == [0, 3, 6, 9, 12, FLAGS]
    assert LEAF_ID == 0
    assert NEXT_LEAF == CHILD_BYTES * BREAK


def test_the_flag_byte_holds_the_mark_of_a_leaf_and_any_code() -> None:
    assert LEAF_FLAG & PRECEDING_BASE_MASK == 0
    assert all(code & PRECEDING_BASE_MASK == code for code in range(BREAK + 1))


def test_the_largest_page_is_the_papers() -> None:
    assert MAXIMUM_PAGE_BASES == 8_388_608
    assert MAXIMUM_NODES == 16_777_216


@pytest.mark.parametrize("number", [0, 1, 0xFF, 0x100, 0x7FFFFF, 0x800000, 0xFFFF00, 0xFFFFFF])
@pytest.mark.parametrize("offset", [0, 3, 9, 12, 28])
def test_24_bits_are_read_from_any_offset_whatever_lies_around(number: int, offset: int) -> None:
    for around in (0, 0xFF):
        array = np.full(NODE_BYTES, around, dtype=np.uint8)
        array[offset : offset + 3] = list(number.to_bytes(3, "little"))
        assert read_field(array, offset) == number


def test_24_bits_are_read_at_the_end_of_a_large_array() -> None:
    array = np.zeros(MAXIMUM_NODES * 4, dtype=np.uint8)
    array[-4:-1] = [1, 2, 3]
    assert read_field(array, array.size - 4) == 0x030201


@pytest.mark.parametrize(("width_bits", "strip_bits"), [TREE_STRIPS, REFERENCE_STRIPS, (3, 2)])
def test_strips_are_filled_without_gap_or_overlap(width_bits: int, strip_bits: int) -> None:
    strip = 1 << (width_bits + strip_bits)
    found = places(3 * strip, width_bits, strip_bits)
    for number in range(3):
        inside = found[number * strip : (number + 1) * strip]
        assert np.array_equal(np.sort(inside), np.arange(number * strip, (number + 1) * strip))


@pytest.mark.parametrize(("width_bits", "strip_bits"), [TREE_STRIPS, REFERENCE_STRIPS])
def test_strips_are_filled_column_by_column(width_bits: int, strip_bits: int) -> None:
    rows, width = 1 << strip_bits, 1 << width_bits
    found = places(2 * rows * width, width_bits, strip_bits)
    numbers = np.arange(found.size)
    assert np.array_equal(found % width, numbers // rows % width)
    assert np.array_equal(found // width, numbers // (rows * width) * rows + numbers % rows)


def test_the_first_item_stays_first_in_every_layout() -> None:
    for layout in LAYOUTS:
        assert place_in_strips(0, 12, layout.tree_strip_bits) == 0


def test_a_full_tree_in_strips_needs_no_more_than_24_bits() -> None:
    assert length_in_strips(MAXIMUM_NODES, 12, 5) == MAXIMUM_NODES
    assert place_in_strips(MAXIMUM_NODES - 1, 12, 5) == MAXIMUM_NODES - 1


def test_nothing_moves_in_one_dimension() -> None:
    assert np.array_equal(places(1000, 12, 0), np.arange(1000))
    assert length_in_strips(1000, 12, 0) == 1000


@pytest.mark.parametrize(
    ("count", "length"),
    [(0, 0), (1, 131_072), (131_072, 131_072), (131_073, 262_144), (262_144, 262_144)],
)
def test_arrays_in_strips_hold_whole_strips(count: int, length: int) -> None:
    assert length_in_strips(count, 12, 5) == length


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
def test_strides_and_strips_of_a_layout(layout: Layout) -> None:
    assert layout.node_stride == (32 if layout.merged_tree else 16)
    assert layout.tree_strip_bits == (5 if layout.two_dimensional_tree else 0)
    assert layout.reference_strip_bits == (2 if layout.two_dimensional_reference else 0)


@pytest.mark.parametrize("size", [1, 64, 1000, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 5])
def test_memory_is_zero_and_begins_on_a_line(size: int) -> None:
    array = zeros_aligned(size)
    assert array.size == size
    assert array.dtype == np.uint8
    assert array.ctypes.data % (HUGE_PAGE if size >= HUGE_PAGE else CACHE_LINE) == 0
    assert not array.any()
