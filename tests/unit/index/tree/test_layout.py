"""The policies, and where fields and records lie in memory."""

from dataclasses import asdict
from itertools import combinations

import numpy as np
import pytest
from helpers.loops import each
from helpers.trees import LAYOUTS, WIDE_LAYOUTS

from mummergpu.errors import OptionError
from mummergpu.index.tree.layout import (
    CACHE_LINE,
    HUGE_PAGE,
    LEAF_FLAG,
    MAX_PAGE_BASES,
    MAX_WIDE_PAGE_BASES,
    PARENT,
    PRECEDING_BASE_MASK,
    SUFFIX_LINK,
    Layout,
    length_in_strips,
    place_in_strips,
    zeros_aligned,
)
from mummergpu.index.tree.node_fields import has_words, load_flags, load_number
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS, Policy
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import BREAK

ALL_CODES = [
    "".join(letters) or "none" for count in range(8) for letters in combinations("QRTmrtn", count)
]
FLAGS_OF_LETTERS = {
    "Q": "query_texture",
    "R": "reference_texture",
    "T": "tree_texture",
    "m": "merged_tree",
    "r": "two_dimensional_reference",
    "t": "two_dimensional_tree",
    "n": "node_reordering",
}


@each("code", ALL_CODES)
def test_a_code_comes_back_and_its_letters_are_the_papers(code):
    policy = Policy.from_code(code)
    assert policy.code == code
    letters = code.replace("none", "")
    told = {flag: letter in letters for letter, flag in FLAGS_OF_LETTERS.items()}
    assert asdict(policy) == told and policy == Policy(**told)
    # A layout takes over those that are no textures.
    assert Layout.of(policy) == Layout(*(letter in letters for letter in "mrtn"))


@pytest.mark.parametrize("code", ["nT", "nmT", "tnrmTRQ"])
def test_letters_may_stand_in_any_order(code):
    assert sorted(Policy.from_code(code).code) == sorted(code)


def test_there_are_128_policies():
    assert len(set(map(Policy.from_code, ALL_CODES))) == 128
    assert dict(LETTERS) == {flag: letter for letter, flag in FLAGS_OF_LETTERS.items()}
    assert Policy.from_code("none") == Policy()


@pytest.mark.parametrize("code", ["", "x", "TT", "Tnx", "TnT", "NONE", "q", "T n", "Tn\n", "nonen"])
def test_other_codes_are_refused(code):
    with pytest.raises(OptionError, match=r"^policy: ") as caught:
        Policy.from_code(code)
    assert caught.value.option == "policy" and caught.value.exit_code == 2


def test_by_default_the_halves_of_a_node_share_a_cache_line():
    assert DEFAULT_POLICY.merged_tree


TREE_STRIPS = (12, 5)
WIDE_TREE_STRIPS = (14, 5)
REFERENCE_STRIPS = (16, 2)
ALL_STRIPS = [TREE_STRIPS, WIDE_TREE_STRIPS, REFERENCE_STRIPS]
FULL_TREES = [(1 << 24, TREE_STRIPS), (1 << 31, WIDE_TREE_STRIPS)]


@jit
def read_field(halves, half, field):
    return load_number(halves, half, field)


@jit
def read_flags(halves, half):
    return load_flags(halves, half)


@jit
def are_words(halves):
    return has_words(halves)


@jit
def fill_places(width_bits, strip_bits, result):
    for number in range(result.size):
        result[number] = place_in_strips(number, width_bits, strip_bits)


def places(count, width_bits, strip_bits):
    result = np.empty(count, dtype=np.int64)
    fill_places(width_bits, strip_bits, result)
    return result


def test_flags_hold_the_mark_of_a_leaf_and_any_code():
    assert LEAF_FLAG & PRECEDING_BASE_MASK == 0
    assert all(code & PRECEDING_BASE_MASK == code for code in range(BREAK + 1))
    assert LEAF_FLAG | PRECEDING_BASE_MASK < 256


def test_the_largest_pages():
    assert MAX_PAGE_BASES == 8_388_608 and MAX_WIDE_PAGE_BASES == 1_073_741_824
    for wide in (False, True):
        layout = Layout.of(Policy(), wide)
        nodes = 2 * layout.max_bases
        assert nodes - 1 < 1 << min(layout.address_bits, 31)
        assert layout.max_bases < 1 << min(layout.address_bits, 31), "positions fit, too"


NUMBERS = [0, 1, 0xFF, 0x100, 0x7FFFFF, 0x800000, 0xFFFF00, 0xFFFFFF]
WIDE_NUMBERS = [*NUMBERS, 0x1000000, 0x7FFFFFFE, 0x7FFFFFFF, 0xFFFFFFFF]


@each("field", range(5))
@each("half", [0, 1])
def test_numbers_are_read_whatever_lies_around(half, field):
    for around in (0, 0xFF):
        for number in NUMBERS:
            octets = np.full(32, around, dtype=np.uint8)
            begin = 16 * half + 3 * field
            octets[begin : begin + 3] = list(number.to_bytes(3, "little"))
            assert read_field(octets, 16 * half, field) == number
        for number in WIDE_NUMBERS:
            words = np.full(12, around * 0x01010101, dtype=np.uint32)
            words[6 * half + field] = number
            assert read_field(words, 6 * half, field) == number


def test_flags_are_the_last_byte_or_word_of_a_half():
    octets, words = np.zeros(32, dtype=np.uint8), np.zeros(12, dtype=np.uint32)
    octets[15], octets[31], words[5], words[11] = 0x84, 1, 0x83, 2
    assert [read_flags(octets, half) for half in (0, 16)] == [0x84, 1]
    assert [read_flags(words, half) for half in (0, 6)] == [0x83, 2]


def test_arrays_tell_their_format():
    assert are_words(np.zeros(6, dtype=np.uint32)) and not are_words(np.zeros(16, dtype=np.uint8))
    assert not are_words(np.zeros(2, dtype=np.int64))


def test_numbers_are_read_at_the_end_of_a_large_array():
    array = np.zeros(1 << 26, dtype=np.uint8)
    array[-4:-1] = [1, 2, 3]
    assert read_field(array, array.size - 16, 4) == 0x030201


def test_numbers_are_read_beyond_32_bits_of_bytes():
    """Of such an array only the pages of memory that are touched exist."""
    words = np.zeros((1 << 30) + 24, dtype=np.uint32)
    assert words.nbytes > 1 << 32
    words[-6 + SUFFIX_LINK] = 0x7FFFFFFF
    assert read_field(words, words.size - 6, SUFFIX_LINK) == 0x7FFFFFFF
    octets = words.view(np.uint8)
    octets[-16:] = range(16)
    assert read_field(octets, octets.size - 16, PARENT) == 0x0B0A09


@pytest.mark.parametrize(("width_bits", "strip_bits"), [*ALL_STRIPS, (3, 2), (12, 0)])
def test_strips_are_filled_column_by_column(width_bits, strip_bits):
    rows, width = 1 << strip_bits, 1 << width_bits
    found = places(3 * rows * width, width_bits, strip_bits)
    numbers = np.arange(found.size)
    assert np.array_equal(found % width, numbers // rows % width)
    assert np.array_equal(found // width, numbers // (rows * width) * rows + numbers % rows)


@pytest.mark.parametrize(("nodes", "strips"), FULL_TREES)
def test_a_full_tree_in_strips_needs_no_larger_addresses(nodes, strips):
    assert length_in_strips(nodes, *strips) == nodes
    assert place_in_strips(nodes - 1, *strips) == nodes - 1


@each(
    "count, length",
    [(0, 0), (1, 131_072), (131_072, 131_072), (131_073, 262_144), (262_144, 262_144)],
)
def test_arrays_in_strips_hold_whole_strips(count, length):
    assert length_in_strips(count, 12, 5) == length and length_in_strips(count, 12, 0) == count


@each("layout", LAYOUTS + WIDE_LAYOUTS)
def test_strides_and_strips_of_a_layout(layout):
    strides = (12, 6) if layout.wide else (32, 16)
    assert layout.node_stride == strides[not layout.merged_tree]
    half = 24 if layout.wide else 16
    assert layout.half_bytes == layout.half_elements * layout.element_bytes == half
    assert layout.node_stride_bytes == (2 * half if layout.merged_tree else half)
    assert layout.max_bytes_per_base == (97 if layout.wide else 65)
    assert layout.tree_width_bits == (14 if layout.wide else 12)
    assert layout.tree_strip_bits == (5 if layout.two_dimensional_tree else 0)
    assert layout.reference_strip_bits == (2 if layout.two_dimensional_reference else 0)


@pytest.mark.parametrize("size", [1, 64, 1000, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 5])
def test_memory_is_zero_and_begins_on_a_line(size):
    array = zeros_aligned(size)
    assert array.size == size and array.dtype == np.uint8
    assert array.ctypes.data % (HUGE_PAGE if size >= HUGE_PAGE else CACHE_LINE) == 0
    assert not array.any()
