"""The kernels of trees on the host: layouts, merging, and the oracle's matches under sanitizers."""

import ctypes
import importlib.util
import re
import struct
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from helpers.decoded_trees import decode_fields
from helpers.host_device import HERE as SOURCES
from helpers.host_device import (
    HostDevice,
    HostProgram,
    HostStream,
    compile_for_host,
    folders_for_host,
    options_for_host,
)
from helpers.host_libraries import library_of
from helpers.in_memory import columns_of
from helpers.loops import each
from helpers.pairwise import name_of, pairwise_policies
from helpers.search_cases import rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

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
from mummergpu.sequence.mems import MemColumns

HERE = Path(__file__).resolve().parent
MINUTES = 60

LAYOUTS = [
    f"{letters}{wide}".replace("none", "") or "none"
    for wide in ("", "W")
    for letters in ("none", "m", "r", "t", "mr", "mt", "rt", "mrt")
]


def run(sanitizing, folder, *words):
    command = [sys.executable, "-W", "error", str(HERE / "sanitized_search.py"), str(folder)]
    return subprocess.run(
        [*command, *words], capture_output=True, text=True, env=sanitizing, timeout=4 * MINUTES
    )


def check(sanitizing, folder, names):
    """Have all cases searched under some policies."""
    done = run(sanitizing, folder, *names)
    report = done.stdout + done.stderr[:5000]
    assert done.returncode == 0, report
    *lines, last = done.stdout.splitlines()
    assert last == "0 differences"
    told = [re.fullmatch(r"(\w+): (\d+) matches in (\d+) cases", line) for line in lines]
    assert [found and found[1] for found in told] == names, report
    for found in told:
        assert found is not None and int(found[2]) > 6_000
        assert int(found[3]) >= (15 if "t" in found[1] and "W" in found[1] else 24)


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_each_pair_of_policies_and_formats_gives_the_matches_of_the_definition(
    sanitizing, library_folder, part
):
    names = [name_of(choice) for choice in pairwise_policies()]
    check(sanitizing, library_folder, names[part::2])


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_textures_and_layouts_give_the_matches_of_the_definition(
    sanitizing, library_folder, layout
):
    """Each set of textures; each with one of the orders of nodes, of which kernels do not know."""
    names = []
    for textures in product(("", "Q"), ("", "R"), ("", "T")):
        letters = "".join(textures) + layout.replace("none", "").replace("W", "")
        letters += "n" * (sum(map(bool, textures)) % 2)
        names.append((letters or "none") + "W" * ("W" in layout))
    check(sanitizing, library_folder, names)


@pytest.mark.parametrize(
    "buffer",
    [
        *("reverse codes", "mem counts", "found mems", "candidate offsets", "mem offsets"),
        "lengths 0",
    ],
)
def test_memory_that_is_one_byte_short_is_noticed(sanitizing, library_folder, buffer):
    done = run(sanitizing, library_folder, "--short", buffer)
    assert done.returncode != 0, done.stdout
    assert "heap-buffer-overflow" in done.stderr
    # What lies after the reversed codes is zeroed before a kernel comes to it.
    where = "memset" if buffer == "reverse codes" else r"kernels/\w+/\w+\.cu"
    assert re.search(rf"#0 .*{where}", done.stderr)


def test_what_the_language_does_not_define_is_noticed(sanitizing, tmp_path):
    done = run(sanitizing, tmp_path, "--overflow")
    assert done.returncode != 0, done.stdout
    assert "signed integer overflow" in done.stderr


FORMATS = [pytest.param(False, id="paper"), pytest.param(True, id="wide")]
FIELDS_OF_NODE = 12
ONLY_PAGE = Page(0, 1, 1, 1)


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

    def _read(self, kind, arguments, found, *given):
        """Let a function read what a structure of some arguments describes."""
        structure = np.array(arguments, dtype=np.uint64)
        assert structure.nbytes == self.values[f"sizeof({kind})"]
        function = {"Tree": "read_nodes", "Reference": "read_reference", "Queries": "read_words"}
        count = ctypes.c_uint64(len(found))
        pointers = [_pointer(array) for array in given]
        getattr(self.library, function[kind])(
            _pointer(structure), *pointers, count, _pointer(found)
        )
        return found

    def fields_of_nodes(self, tree, addresses):
        """Row by row the fields of nodes, of both halves."""
        fields = np.empty((addresses.size, FIELDS_OF_NODE), dtype=np.uint32)
        return self._read("Tree", tree, fields, addresses.astype(np.uint32))

    def codes_of_reference(self, reference, count):
        return self._read("Reference", reference, np.empty(count, dtype=np.uint8))

    def words_of_queries(self, queries, count):
        return self._read("Queries", queries, np.empty(count, dtype=np.uint64))

    def places(self, numbers, width_bits, strip_bits):
        given = np.array(numbers, dtype=np.uint64)
        found = np.empty_like(given)
        bits = ctypes.c_uint32(width_bits), ctypes.c_uint32(strip_bits)
        count = ctypes.c_uint64(given.size)
        self.library.find_places(_pointer(given), count, *bits, _pointer(found))
        return found.tolist()


def _pointer(array):
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


@pytest.fixture(scope="session")
def compiled(cxx, library_folder):
    """Compiles the headers for policies and a format, once each."""

    @cache
    def compile_headers(code, wide, _variant=""):
        program = tree_program(Policy.from_code(code), wide, False)
        options = ["-O0", *options_for_host(program)]
        name = f"layout-{program.name}"
        include = folders_for_host(program, library_folder)
        library = library_of(library_folder, name, SOURCES / "layout_program.cpp", include, options)
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
    assert channels[values["CODES_IN_WORD"]] == 2 and channels[1] == 1


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
    uploader = Uploader(device, HostStream(device))
    page = ResidentPage(device, uploader, TreePage(ONLY_PAGE, tree, tree.reference), policy)
    addresses, expected = nodes_of(tree)
    assert np.array_equal(kernel.fields_of_nodes(page.tree_arguments, addresses), expected)
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
        device, Uploader(device, HostStream(device)), TreePage(ONLY_PAGE, tree, codes), policy
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


PAGE_BASES = 1000
POISON = -77


@pytest.fixture(scope="module")
def merge(cxx, library_folder):
    """Merges pages one after the other, as a search does, with a grid of some threads."""
    program = HostProgram(compile_for_host(tree_program(Policy(), False, False), library_folder))

    def merge_all(pages, blocks=1, threads=1):
        found, *later = [columns_of(page)[:4] for page in pages]
        for other in later:
            found = merged_by(program, found, other, blocks, threads)
        return rows_of(MemColumns(*found))

    return merge_all


def merged_by(program, earlier, later, blocks, threads):
    count = earlier[1].size + later[1].size
    sizes = (earlier[0].size, count, count, count)
    # What no thread writes stays as it is, and so does what lies behind each array.
    merged = [np.full(size + 1, POISON, dtype=np.int64) for size in sizes]
    arguments = [array.ctypes.data for array in (*earlier, *later)]
    arguments += [earlier[0].size - 1, *(array.ctypes.data for array in merged)]
    program.run("merge_pages", blocks, threads, arguments)
    assert all(array[-1] == POISON for array in merged)
    return [array[:-1] for array in merged]


def expected(pages):
    """Rows by query start; those of earlier pages first where it is equal."""
    return [
        sorted((row for rows in queries for row in rows), key=lambda row: row[0])
        for queries in zip(*pages, strict=True)
    ]


def ordered(starts, page):
    """A query's rows on a page, of which many may begin at the same base of the query."""
    return [
        (start, page * PAGE_BASES + number, 10 + number)
        for number, start in enumerate(sorted(starts))
    ]


@st.composite
def several_pages(draw):
    """The rows of some queries on some pages: of many there are none, of some there are many."""
    query_count = draw(st.integers(0, 9))
    lists = st.one_of(st.just([]), st.lists(st.integers(0, 6), max_size=40))
    return [
        [ordered(draw(lists), page) for _ in range(query_count)]
        for page in range(draw(st.integers(2, 5)))
    ]


@settings(max_examples=150)
@given(several_pages(), st.integers(1, 3), st.integers(1, 40))
def test_all_rows_come_in_order_and_none_is_lost(merge, pages, blocks, threads):
    assert merge(pages, blocks, threads) == expected(pages)


@pytest.mark.parametrize("counts", [(20_000, 30_000), (20_000, 1), (1, 20_000), (0, 20_000)])
def test_one_query_may_have_nearly_all_rows(merge, counts):
    random = np.random.default_rng(sum(counts))
    pages = [
        [
            ordered([2], page),
            [],
            ordered(random.integers(0, 300, count).tolist(), page),
            ordered([0], page),
        ]
        for page, count in enumerate(counts)
    ]
    assert merge(pages, 7, 64) == expected(pages)


@pytest.mark.parametrize("threads", [1, 7, 5_000])
def test_all_rows_at_one_base_of_the_query_stay_in_the_order_of_pages(merge, threads):
    pages = [[[], ordered([4] * 500, page), []] for page in range(4)]
    assert merge(pages, 1, threads) == [[], [row for page in pages for row in page[1]], []]
