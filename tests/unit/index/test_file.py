"""Index files: what is built comes back, mapped; what is planned with it, builds that fail."""

import gc
import mmap
import os
import sys
import zlib
from dataclasses import fields, replace

import numpy as np
import pytest
from helpers.index_files import SAMPLED, SAMPLED_PAGES, TREE, TREE_PAGES, WIDE_PAGES, index_of
from helpers.index_pages import build_kmer_pages, load_pages
from helpers.options import index_options
from numba import typeof

from mummergpu.errors import OptionError
from mummergpu.index import file as index_file
from mummergpu.index import format as index_format
from mummergpu.index import kmer_index, kmer_table, mapped_file, writer
from mummergpu.index.file import IndexFile
from mummergpu.index.format import checksum_of, digest_of, is_index
from mummergpu.index.kmer_order import FILE_ORDERED_BASES, order_long_lists
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage
from mummergpu.index.mapped_file import bring_in, give_up, map_file
from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.index.tree_index import build_page
from mummergpu.input.reference import read_reference
from mummergpu.pipeline import build_index as indexing
from mummergpu.pipeline.plan import plan_index
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats

EVERY_POLICY = {"search": "tree", "page_size": 1200, "policy": Policy.from_code("QRTmrtn")}
KINDS = [SAMPLED, SAMPLED_PAGES, TREE, TREE_PAGES, WIDE_PAGES, EVERY_POLICY]


@pytest.fixture(autouse=True)
def _bases_beside_of_small_references(monkeypatch):
    monkeypatch.setattr(kmer_index, "MIN_BASES_WITH_BESIDE", 0)


def assert_same(one, other):
    """Compare two records by their fields, and arrays by what code is compiled for, and content."""
    for field in fields(one):
        value, loaded = getattr(one, field.name), getattr(other, field.name)
        if isinstance(value, np.ndarray):
            assert type(loaded) is np.ndarray
            assert typeof(loaded) == typeof(value) and loaded.flags.writeable
            np.testing.assert_array_equal(loaded, value)
        elif field.name == "letters":
            assert [array.tolist() for array in loaded] == [array.tolist() for array in value]
        elif field.name not in ("path", "index_path", "checksums"):
            assert loaded == value


@pytest.mark.parametrize("told", KINDS)
def test_what_is_written_comes_back(told, fasta, tmp_path):
    index = IndexFile(str(index_of(fasta, tmp_path, **told)))
    reference = read_reference(str(fasta))
    assert_same(reference, index.reference)
    assert index.reference.path == index.path
    assert index.header.digest == digest_of(reference) == digest_of(index.reference)
    # Sections begin on pages of memory.
    assert all(section.offset % 4096 == 0 for section in index.header.sections)
    assert index.byte_count == os.path.getsize(index.path)
    assert index.padded_reference.ctypes.data % mmap.PAGESIZE == 0
    assert index.damaged_sections() == []
    assert (len(index.pages) > 2) == (told.get("page_size") is not None)
    counted = []
    loaded = load_pages(index, lambda: counted.append(None))
    assert len(counted) == len(index.pages)
    if told["search"] == "kmer":
        sampling = KmerSampling(index.header.kmer_length, index.header.reference_step)
        built = build_kmer_pages(reference, index.pages, sampling, with_bases_beside=True)
        for one, other in zip(built, loaded, strict=True):
            assert isinstance(other, KmerPage)
            assert_same(one, replace(other, table=one.table))
            assert_same(order_long_lists(one, FILE_ORDERED_BASES).table, other.table)
            assert_same(other, replace(other, padded_reference=index.padded_reference))
        return
    layout = Layout.of(told.get("policy", Policy.from_code("m")), told.get("address_bits") == 32)
    assert layout == index.layout
    for other in loaded:
        assert isinstance(other, TreePage)
        one = build_page(reference, other.page, layout, Stats())
        assert_same(one, replace(other, tree=one.tree))
        assert_same(one.tree, other.tree)


def test_a_table_without_kmers_comes_back(tmp_path):
    """A part of unknown bases alone has an empty list of positions."""
    path = tmp_path / "n.fa"
    path.write_text(">n\n" + "N" * 900 + "ACGTTGCATCGATCGGATCA\n")
    index = IndexFile(str(index_of(path, tmp_path, search="kmer", page_size=300)))
    pages = load_pages(index)
    sizes = [page.table.positions.size for page in pages if isinstance(page, KmerPage)]
    assert sizes[:3] == [0, 0, 0] and sizes[3] > 0
    assert index.damaged_sections() == []


def test_the_digest_is_of_the_sequences_and_names(fasta):
    reference = read_reference(str(fasta))
    codes = reference.codes.copy()
    codes[17] ^= 1
    lengths = reference.record_lengths.copy()
    lengths[[0, 2]] += (1, -1)
    others = [
        reference,
        replace(reference, codes=codes),
        replace(reference, record_lengths=lengths),
        replace(reference, names=(b"c", *reference.names[1:])),
        replace(reference, names=(b"aempty", b"", *reference.names[2:])),
    ]
    assert len({digest_of(other) for other in others}) == len(others)
    assert digest_of(replace(reference, path="other.fa")) == digest_of(reference)


def test_the_digest_takes_the_codes_in_pieces(fasta, monkeypatch):
    monkeypatch.setattr(index_format, "PIECE_BYTES", 100)
    reference = read_reference(str(fasta))
    codes = reference.codes.copy()
    codes[[150, 250]] = codes[[250, 150]] ^ 1
    assert digest_of(reference) != digest_of(replace(reference, codes=codes))
    assert checksum_of(codes) == checksum_of(codes.copy())
    assert checksum_of(codes) != checksum_of(reference.codes)
    assert checksum_of(codes) == zlib.crc32(codes.tobytes())


def plan(path, max_device_bytes=None, **told):
    index = IndexFile(str(path))
    return plan_index(index, index_options(index.header.search, **told), 2, max_device_bytes)


def test_all_pages_are_one_group_if_there_is_room(fasta, tmp_path, monkeypatch):
    path = index_of(fasta, tmp_path, **SAMPLED_PAGES)
    count = len(IndexFile(str(path)).pages)
    largest = max(IndexFile(str(path)).page_bytes(number) for number in range(count))
    sizes = [len(group) for group in plan(path).groups]
    assert sizes == [count]
    assert [len(group) for group in plan(path, memory=1).groups] == [1] * count
    assert len(plan(path, 2 * largest).groups[0]) == 2
    assert [len(group) for group in plan(path, 1 << 40, memory=1).groups] == [count]
    monkeypatch.setattr(index_file, "free_memory", lambda: 1)
    assert [len(group) for group in plan(path).groups] == [1] * count


def test_the_bases_beside_positions_are_read_where_they_help_and_fit(fasta, tmp_path, monkeypatch):
    """A device, a limit that only the rest fits, a small reference and a small index do without."""
    monkeypatch.setattr(kmer_index, "MIN_BASES_WITH_BESIDE", 1 << 26)
    index = IndexFile(str(index_of(fasta, tmp_path, **SAMPLED_PAGES)))
    index.groups_within(MemoryBudget(1 << 40))
    assert all(index.table(page).bases_beside.size == 0 for page in index.pages)
    monkeypatch.setattr(kmer_index, "MIN_BASES_WITH_BESIDE", 0)
    index = IndexFile(str(index_of(fasta, tmp_path, **SAMPLED_PAGES)))
    reference = index.padded_reference.nbytes
    index.groups_within(MemoryBudget(1 << 40))
    whole = sum(index.page_bytes(page.index) for page in index.pages)
    positions = sum(index.table(page).bases_beside.size for page in index.pages)
    assert positions == sum(index.table(page).positions.size for page in index.pages) > 0
    for limit, read in ((whole, positions), (whole - 1, 0)):
        groups = index.groups_within(MemoryBudget(reference + limit, is_limit=True))
        assert [len(group) for group in groups] == [len(index.pages)]
        assert sum(index.table(page).bases_beside.size for page in index.pages) == read
    index.groups_within(MemoryBudget(1 << 40, 1 << 40))
    assert all(index.table(page).bases_beside.size == 0 for page in index.pages)
    small = IndexFile(str(index_of(fasta, tmp_path, "small.mgi", purpose="memory", **SAMPLED)))
    small.groups_within(MemoryBudget(1 << 40))
    assert all(small.table(page).bases_beside.size == 0 for page in small.pages)


def test_tables_serve_lengths_from_the_kmers_on(fasta, tmp_path):
    path = index_of(fasta, tmp_path, **SAMPLED)
    length = IndexFile(str(path)).header.sampling.shortest_match
    assert 1 < length <= 12
    for minimum in (length, 12, 500):
        assert plan(path, minimum_length=minimum).search_length == minimum
    with pytest.raises(OptionError, match=f"min_length: .* no matches of less than {length} bases"):
        plan(path, minimum_length=length - 1)


def test_trees_are_searched_for_what_their_pages_overlap_for(fasta, tmp_path):
    pages = index_of(fasta, tmp_path, "pages.mgi", **TREE_PAGES)
    page = index_of(fasta, tmp_path, "page.mgi", **TREE)
    policy = Policy.from_code("Tn")
    lengths = [1, 11, 12, 13, 500]
    told = [plan(pages, minimum_length=length, policy=policy).search_length for length in lengths]
    assert told == [1, 11, 12, 12, 12]
    assert [plan(page, minimum_length=length).search_length for length in lengths] == lengths


def test_options_that_an_index_cannot_serve_are_refused(fasta, tmp_path):
    index = IndexFile(str(index_of(fasta, tmp_path, **TREE_PAGES)))
    plan_index(index, index_options("tree", policy=Policy.from_code("QRTn")), 2)
    with pytest.raises(OptionError, match=r"the index '.*' is for 'tree'"):
        plan_index(index, index_options("kmer"), 2)
    with pytest.raises(OptionError, match=r"policy: the index '.*' is laid out for 'Tn'"):
        plan_index(index, index_options("tree", policy=Policy.from_code("Tmn")), 2)


class _StoppedError(Exception):
    pass


@pytest.mark.parametrize("step", ["build_kmer_table", "digest_of", "start_of"])
def test_a_build_that_fails_leaves_nothing(step, fasta, tmp_path, monkeypatch):
    """And what a killed one leaves, which cannot take it away, is no index."""
    left = []

    def fail(*_):
        left.extend(is_index(str(path)) for path in tmp_path.glob("*.part"))
        raise _StoppedError

    places = {"build_kmer_table": kmer_table, "digest_of": indexing, "start_of": writer}
    monkeypatch.setattr(places[step], step, fail)
    (tmp_path / "ref.mgi").write_text("older")
    with pytest.raises(_StoppedError):
        index_of(fasta, tmp_path, **SAMPLED)
    assert left == [False] and os.listdir(tmp_path) == ["ref.mgi"]
    assert (tmp_path / "ref.mgi").read_text() == "older"


def test_an_open_index_outlives_its_name(fasta, tmp_path):
    path = index_of(fasta, tmp_path, **SAMPLED)
    index = IndexFile(str(path))
    before = index.reference.codes.copy()
    other = tmp_path / "other.fa"
    other.write_text(">o\n" + "ACGT" * 700 + "\n")
    index_of(other, tmp_path, **SAMPLED)
    np.testing.assert_array_equal(index.reference.codes, before)
    assert IndexFile(str(path)).header.digest != index.header.digest
    path.unlink()
    assert index.damaged_sections() == []


PAGE = 4096


def mapped(path, before=0, behind=0):
    with open(path, "rb", buffering=0) as file:
        return map_file(file.fileno(), path.stat().st_size, before, behind)


def is_mapped(address):
    with open("/proc/self/maps") as maps:
        ranges = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps]
    return any(begin <= address < end for begin, end in ranges)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(1, 251)) * 40)
    return path


@pytest.mark.parametrize(("before", "behind"), [(0, 0), (1, 1), (PAGE, 1 << 38)])
def test_a_file_is_an_array(path, before, behind):
    array = mapped(path, before, behind)
    assert type(array) is np.ndarray
    assert (array.dtype, array.flags.writeable, array.flags.c_contiguous) == (np.uint8, True, True)
    bring_in([array, array[PAGE:]])
    assert array.tobytes() == path.read_bytes()
    array[0] = 0
    assert path.read_bytes()[0] == 1


def test_zeros_lie_around_the_file(path):
    array = mapped(path, 10 * PAGE, 1 << 38)
    around = np.lib.stride_tricks.as_strided(array[:1], shape=(10 * PAGE,), strides=(-1,))
    assert not around[1:].any()
    for distance in (array.size, PAGE * 100, (1 << 38) + array.size):
        assert np.lib.stride_tricks.as_strided(array, shape=(2,), strides=(distance,))[1] == 0


def test_memory_is_given_back_with_the_last_array(path):
    array = mapped(path, PAGE, PAGE)
    part = array[5:].view(np.uint8)
    begin = array.ctypes.data
    del array
    gc.collect()
    assert is_mapped(begin) and part[0] == 6
    del part
    gc.collect()
    assert not is_mapped(begin)


def test_what_cannot_be_mapped_is_an_error(path):
    with open(path, "rb") as file:
        descriptor = file.fileno()
    for around in ((), (PAGE, PAGE)):
        with pytest.raises(OSError, match="Bad file descriptor"):
            map_file(descriptor, 100, *around)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        mapped(path, 1 << 32, 1 << 60)


def test_room_takes_no_memory(path):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    assert mapped(path, 1 << 32, 1 << 38)[9] == 10 and resident() - before < 1 << 24


@pytest.mark.parametrize(
    ("system", "page_bytes", "is_lost"),
    [("linux", PAGE, True), ("linux", 4 * PAGE, False), ("darwin", PAGE, False)],
)
def test_what_is_written_to_an_array_that_is_given_up_is_lost_wholly_or_not_at_all(
    system, page_bytes, is_lost, path, monkeypatch
):
    if mmap.PAGESIZE != PAGE or sys.platform != "linux":
        pytest.skip("only Linux with pages of 4 KiB loses what is written")
    # A mapping that is made with another size of pages would take its neighbours along at its end.
    array, written = mapped(path), mapped(path)
    array[: 2 * PAGE] = 255
    monkeypatch.setattr(mapped_file, "_IS_LINUX", system == "linux")
    monkeypatch.setattr(mmap, "PAGESIZE", page_bytes)
    give_up([array[:PAGE]])
    assert (array[:PAGE] == 255).all() == (not is_lost)
    assert np.array_equal(array[:PAGE], written[:PAGE]) == is_lost
    assert (array[PAGE : 2 * PAGE] == 255).all()


def test_arrays_are_brought_in_on_a_system_without_the_call_of_linux(path, monkeypatch):
    calls = []
    array = mapped(path)
    monkeypatch.setattr(mapped_file, "_BRING_IN", mapped_file._WILL_NEED)
    monkeypatch.setattr(mmap, "PAGESIZE", 4 * PAGE)
    library = mapped_file._library()

    class Watched:
        @staticmethod
        def madvise(begin, size, advice):
            calls.append((begin, size, advice))
            return int(library.madvise(begin, size, advice))

    monkeypatch.setattr(mapped_file, "_library", Watched)
    mapped_file._populate([array[PAGE:]])
    ((begin, size, advice),) = calls
    assert begin % (4 * PAGE) == 0 and begin <= array.ctypes.data + PAGE
    assert begin + size == array.ctypes.data + array.size
    assert advice == 3 and array.tobytes() == path.read_bytes()
