"""What both sides of a launch must agree about: `kernels/` held against the package.

The kernels' headers are compiled for the host, and asked; the package is asked too.
"""

import ctypes
import importlib.util
import struct
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from helpers.decoded_trees import decode_fields
from helpers.host_device import HERE, HostDevice, HostStream, folders_for_host, options_for_host
from helpers.host_libraries import library_of
from helpers.loops import each

from mummergpu.cuda.pinned_staging import Uploader
from mummergpu.cuda.resident_matches import DeviceMems
from mummergpu.index.pages import Page
from mummergpu.index.tree import layout
from mummergpu.index.tree.flatten import FlatTree, TreePage, empty_halves, lay_out_reference
from mummergpu.index.tree.layout import Layout, length_in_strips, place_in_strips
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends import stream_searcher
from mummergpu.matching.tree import cuda_program
from mummergpu.matching.tree.cuda import DeviceQueries, ResidentCodes, ResidentPage
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.sequence import codes as sequence

FORMATS = [pytest.param(False, id="paper"), pytest.param(True, id="wide")]
FIELDS_OF_NODE = 12
PAGE = Page(0, 1, 1, 1)


class KernelHeaders:
    """The kernels' headers, compiled for one set of policies."""

    def __init__(self, library):
        self.library = ctypes.CDLL(str(library))
        self.library.named_value.restype = ctypes.c_char_p
        self.values = {}
        value = ctypes.c_uint64()
        while name := self.library.named_value(
            ctypes.c_uint64(len(self.values)), ctypes.byref(value)
        ):
            self.values[name.decode()] = value.value

    def fields_of_half(self, half):
        fields = np.empty(6, dtype=np.uint32)
        self.library.read_half(_pointer(half), _pointer(fields))
        return fields.tolist()

    def fields_of_nodes(self, tree, addresses):
        """Row by row the fields of nodes, of both halves."""
        given = addresses.astype(np.uint32)
        fields = np.empty((given.size, FIELDS_OF_NODE), dtype=np.uint32)
        arguments = np.array(tree, dtype=np.uint64)
        assert arguments.nbytes == self.values["sizeof(Tree)"]
        self.library.read_nodes(
            _pointer(arguments), _pointer(given), ctypes.c_uint64(given.size), _pointer(fields)
        )
        return fields

    def codes_of_reference(self, reference, count):
        codes = np.empty(count, dtype=np.uint8)
        arguments = np.array(reference, dtype=np.uint64)
        assert arguments.nbytes == self.values["sizeof(Reference)"]
        self.library.read_reference(_pointer(arguments), ctypes.c_uint64(count), _pointer(codes))
        return codes

    def words_of_queries(self, queries, count):
        words = np.empty(count, dtype=np.uint64)
        arguments = np.array(queries, dtype=np.uint64)
        assert arguments.nbytes == self.values["sizeof(Queries)"]
        self.library.read_words(_pointer(arguments), ctypes.c_uint64(count), _pointer(words))
        return words

    def places(self, numbers, width_bits, strip_bits):
        given = np.array(numbers, dtype=np.uint64)
        found = np.empty_like(given)
        self.library.find_places(
            _pointer(given),
            ctypes.c_uint64(given.size),
            ctypes.c_uint32(width_bits),
            ctypes.c_uint32(strip_bits),
            _pointer(found),
        )
        return found.tolist()


def _pointer(array):
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


Compile = Callable[..., KernelHeaders]


@pytest.fixture(scope="session")
def compiled(cxx, library_folder):
    """Compiles the headers for policies and a format, once each."""

    @cache
    def compile_headers(code, wide, _variant=""):
        program = tree_program(Policy.from_code(code), wide, False)
        options = ["-O0", *options_for_host(program)]
        name = f"layout-{program.name}"
        include = folders_for_host(program, library_folder)
        library = library_of(library_folder, name, HERE / "layout_program.cpp", include, options)
        return KernelHeaders(library)

    return compile_headers


@pytest.mark.parametrize("wide", FORMATS)
def test_slots_are_the_fields_of_a_half_but_the_flags(compiled, wide):
    values = compiled("none", wide).values
    assert values["SLOTS"] == layout.FIELDS - 1 == sequence.BREAK + 1
    assert values["BREAKS_OF_WORD"].to_bytes(8, "little") == bytes([sequence.BREAK] * 8)


def test_the_largest_page_of_the_paper_fits_its_textures(compiled):
    merged = Layout.of(Policy(merged_tree=True))
    texels = 2 * merged.max_bases * merged.node_stride_bytes
    texels //= compiled("T", False).values["sizeof(NodeHalf::Texel)"]
    assert texels <= cuda_program.texture_parts(False) << cuda_program.TEXTURE_PART_BITS


def test_words_end_in_the_padding():
    # From the position after the last code on, two words may be read.
    assert stream_searcher.PADDING_BYTES >= 2 * stream_searcher.WORD_BYTES


@pytest.mark.parametrize("wide", FORMATS)
def test_structures_are_as_large_as_their_arguments(compiled, wide):
    values = compiled("none", wide).values
    mems = DeviceMems(1, (2, 3, 4), 5)
    assert values["sizeof(FoundMems)"] == 8 * len(mems.arguments)
    assert values["sizeof(MemColumns)"] == 8 * len(mems.columns)
    assert values["sizeof(Queries)"] == 8 * len(DeviceQueries(0, 0, 0, 0, None).arguments)
    # As `TreeStreamSearcher._print` gives a page: two of its numbers have 32 bits.
    assert values["sizeof(Page)"] == struct.calcsize("QIIQQ")
    members = ("begin", "base_count", "owned_count", "joined_count", "joined_reference")
    offsets = [values[f"offsetof(Page, {member})"] for member in members]
    assert offsets == [struct.calcsize(before) for before in ("", "Q", "QI", "QII", "QIIQ")]


@pytest.mark.parametrize("wide", FORMATS)
def test_the_real_device_gives_what_the_kernels_expect(compiled, wide):
    values = compiled("none", wide).values
    shared = importlib.import_module("mummergpu.cuda.cuda_device")
    assert shared.BLOCK_THREADS == values["BLOCK_THREADS"], "as much memory is shared"
    channels = {size: count for size, (_, count) in shared._TEXEL_FORMATS.items()}
    assert channels[values["sizeof(NodeHalf::Texel)"]] == values["sizeof(NodeHalf::Texel)"] // 4
    assert channels[values["CODES_IN_WORD"]] == 2
    assert channels[1] == 1


NUMBERS_IN_STRIPS = [0, 1, 3, 4, 5, 31, 32, 33, 127, 128, 4095, 4096, 65_535, 65_536, 100_000]


@pytest.mark.parametrize("wide", FORMATS)
@pytest.mark.parametrize("what", ["tree", "reference"])
def test_items_lie_in_the_same_places(compiled, what, wide):
    kernel = compiled("rt", wide)
    ours = Layout.of(Policy.from_code("rt"), wide)
    if what == "tree":
        width_bits, strip_bits, most = ours.tree_width_bits, ours.tree_strip_bits, 1 << 31
    else:
        width_bits, strip_bits = layout.REFERENCE_WIDTH_BITS, ours.reference_strip_bits
        most = ours.max_bases
    strip = 1 << (width_bits + strip_bits)
    random = np.random.default_rng(3)
    numbers = [*NUMBERS_IN_STRIPS, strip - 1, strip, strip + 1, most - strip, most - 1]
    numbers += random.integers(0, most, 2000).tolist()
    expected = [place_in_strips(number, width_bits, strip_bits) for number in numbers]
    assert kernel.places(numbers, width_bits, strip_bits) == expected
    assert any(place != number for place, number in zip(expected, numbers, strict=True))


@pytest.mark.parametrize("wide", FORMATS)
def test_each_field_of_a_half_is_where_it_is_written(compiled, wide):
    kernel = compiled("none", wide)
    ours = Layout.of(Policy(), wide)
    field_bits = [ours.address_bits] * 5 + [32 if wide else 8]
    for field, bits in enumerate(field_bits):
        begin = field * ours.address_bits // 8
        for number in (1, (1 << bits) - 1, 0x0123_4567_89AB & ((1 << bits) - 1)):
            half = np.zeros(ours.half_bytes, dtype=np.uint8)
            half[begin : begin + bits // 8] = list(number.to_bytes(bits // 8, "little"))
            expected = [0] * layout.FIELDS
            expected[field] = number
            assert kernel.fields_of_half(half) == expected


def made_tree(ours, slots, codes):
    """Nodes full of random numbers, in so many places, and a reference."""
    random = np.random.default_rng(slots)
    nodes, children = empty_halves(slots, ours)
    for halves in [nodes] if ours.merged_tree else [nodes, children]:
        halves.view(np.uint8)[:] = np.frombuffer(random.bytes(halves.nbytes), dtype=np.uint8)
        if ours.wide:
            halves &= np.uint32(0x7FFF_FFFF)
    return FlatTree(ours, nodes, children, lay_out_reference(codes, ours), codes.size - 1, slots, 0)


def nodes_of(tree):
    """The addresses of all nodes, and row by row their fields, as the package decodes them."""
    ours = tree.layout
    fields = np.empty((1 + FIELDS_OF_NODE, tree.node_count), dtype=np.int32)
    widths = ours.tree_width_bits, ours.tree_strip_bits
    decode_fields(tree.nodes, tree.children, ours.node_stride, *widths, 0, fields)
    return fields[0], fields[1:].T


def check_nodes(kernel, policy, wide, slots):
    """Read made nodes on a device as the kernels do, and as the package does."""
    tree = made_tree(Layout.of(policy, wide), slots, np.zeros(8, dtype=np.uint8))
    device = HostDevice(1 << 34)
    page = ResidentPage(
        device, Uploader(device, HostStream(device)), TreePage(PAGE, tree, tree.reference), policy
    )
    addresses, expected = nodes_of(tree)
    found = kernel.fields_of_nodes(page.tree_arguments, addresses)
    assert np.array_equal(found, expected)
    assert len(np.unique(addresses)) == tree.node_count
    page.free()
    assert not device.buffers and not device.textures


@pytest.mark.parametrize("wide", FORMATS)
@pytest.mark.parametrize("code", ["t", "mt", "T", "Tm", "Tt", "Tmt"])
def test_nodes_are_read_where_they_were_laid(compiled, code, wide):
    policy = Policy.from_code(code)
    ours = Layout.of(policy, wide)
    slots = length_in_strips(10_000, ours.tree_width_bits, ours.tree_strip_bits)
    if not wide and ours.two_dimensional_tree:
        slots *= 2
    check_nodes(compiled(code, wide), policy, wide, slots)


@pytest.mark.parametrize("code", ["T", "Tm"])
def test_large_trees_take_several_textures(compiled, code, monkeypatch):
    """As trees of more than 2**27 texels do, but smaller: here textures have few texels."""
    monkeypatch.setattr(cuda_program, "TEXTURE_PART_BITS", 6)
    kernel = compiled(code, True, "small-textures")
    policy = Policy.from_code(code)
    texels = cuda_program.texture_parts(True) << 6
    slots = texels * kernel.values["sizeof(NodeHalf::Texel)"]
    check_nodes(kernel, policy, True, slots // Layout.of(policy, True).node_stride_bytes)


@pytest.mark.parametrize("code", ["none", "R", "r", "Rr"])
def test_bases_are_read_where_they_were_laid(compiled, code):
    policy = Policy.from_code(code)
    strip = 1 << (layout.REFERENCE_WIDTH_BITS + layout.REFERENCE_STRIP_BITS)
    codes = np.random.default_rng(1).integers(0, 5, strip + 70_000).astype(np.uint8)
    tree = made_tree(Layout.of(policy), 2, codes)
    device = HostDevice()
    page = ResidentPage(
        device, Uploader(device, HostStream(device)), TreePage(PAGE, tree, codes), policy
    )
    found = compiled(code, False).codes_of_reference(page.reference_arguments, codes.size)
    assert np.array_equal(found, codes)
    page.free()


@each("count", range(1, 18))
@pytest.mark.parametrize("code", ["none", "Q"])
def test_words_are_eight_codes_from_any_position(compiled, code, count):
    codes = np.random.default_rng(count).integers(0, 5, count).astype(np.uint8)
    device = HostDevice()
    stream = HostStream(device)
    given = ResidentCodes(
        device, Uploader(device, stream), codes, Policy.from_code(code).query_texture
    )
    padded = bytes(codes) + bytes(8)
    found = compiled(code, False).words_of_queries(given.arguments, count + 1)
    for position, word in enumerate(found.tolist()):
        known = padded[position : position + 8]
        assert word.to_bytes(8, "little")[: len(known)] == known
    given.free()
    assert not device.buffers and not device.textures
