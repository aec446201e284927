"""How a run is divided: which format or k-mers, how large the pages, which of them together."""

import numpy as np
import pytest
from helpers.host_device import HostDevice
from helpers.options import index_options

from mummergpu.errors import OptionError
from mummergpu.index import kmer_index
from mummergpu.index.kmer_index import (
    MIN_PAGE_BASES,
    MIN_SCRATCH_BYTES,
    UNKNOWN_QUERY_BASES,
    KmerIndex,
)
from mummergpu.index.kmer_plan import (
    DEVICE_COSTS,
    PROCESSOR_COSTS,
    KmerJob,
    choose_sampling,
    max_table_bytes,
)
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import MAX_SCRATCH_BYTES, MAX_TABLE_BASES, max_scratch_bytes
from mummergpu.index.options import KmerOptions
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import DEFAULT_POLICY
from mummergpu.index.tree_index import TreeIndex, search_length
from mummergpu.input.reference import Reference
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.plan import choose_block_size, describe_plan, plan_index
from mummergpu.runtime import memory as runtime_memory
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.bit_planes import bit_planes_bytes
from mummergpu.sequence.codes import BREAK, MARGIN

PAPERS = 8_388_608
TREE, BUILDING = 97, 65
"""Bytes a base of a wide page: of its tree, and of what building it takes besides."""


@pytest.fixture(autouse=True)
def without_bases(monkeypatch):
    """References are only as long as they say."""
    monkeypatch.setattr(kmer_index, "kmer_likeness", lambda padded_codes: ())


@pytest.fixture
def free(monkeypatch):
    """Sets how much memory is free."""
    return lambda size: monkeypatch.setattr(runtime_memory, "free_memory", lambda: size)


def reference_of_size(bases, base_count=None):
    """A reference of so many bases that takes no memory, some of which can match."""
    codes = np.broadcast_to(np.uint8(0), bases)
    padded = np.broadcast_to(np.uint8(BREAK), bases + 2 * MARGIN)
    starts, lengths = np.zeros(1, dtype=np.int64), np.array([bases], dtype=np.int64)
    reference = Reference("made.fa", codes, starts, lengths, (b"r",), padded)
    # It would take seconds to count them.
    vars(reference)["base_count"] = bases if base_count is None else base_count
    return reference


def plan_of(bases, max_tree_bytes=None, base_count=None, threads=1, **told):
    """The index of a reference as it is planned, whether or not it keeps to a limit."""
    reference = reference_of_size(bases, base_count)
    options = index_options(**told)
    budget = MemoryBudget.of(options.memory, max_tree_bytes)
    if isinstance(options.kind, KmerOptions):
        return KmerIndex.plan(reference, options.kind, options.minimum_length, budget)
    return TreeIndex.plan(reference, options.kind, options.minimum_length, budget, threads)


def padded_bytes(bases):
    """What the reference itself takes."""
    return bases + 2 * MARGIN


def sizes_of(plan):
    return [page.end - page.begin for page in plan.pages]


@pytest.mark.parametrize(
    ("bases", "told", "wide"),
    [
        (PAPERS, {}, False),
        (3 * PAPERS, {}, False),
        (PAPERS, {"page_size": PAPERS + 1}, False),
        (PAPERS + 1, {"page_size": PAPERS + 1}, True),
        (100, {"page_size": 1 << 30}, False),
        (100, {"address_bits": 32}, True),
        (100, {"address_bits": 32, "page_size": 30}, True),
        (3 * PAPERS, {"address_bits": 24}, False),
        (3 * PAPERS, {"address_bits": 24, "page_size": None}, False),
        (PAPERS, {"page_size": None}, False),
        (PAPERS, {"page_size": None, "address_bits": 32}, True),
        (PAPERS + 1, {"page_size": None}, True),
    ],
)
def test_the_format_is_the_papers_while_its_addresses_reach(bases, told, wide, free):
    free(1 << 40)
    assert plan_of(bases, **told).layout == Layout.of(DEFAULT_POLICY, wide)


@pytest.mark.parametrize(
    ("told", "option", "message"),
    [
        ({"page_size": (1 << 30) + 1}, "page_size", "at most 1073741824 bases"),
        ({"page_size": PAPERS + 1, "address_bits": 24}, "address_bits", "at most 8388608 bases"),
    ],
)
def test_pages_too_large_for_the_addresses_are_refused(told, option, message):
    with pytest.raises(OptionError, match=message) as caught:
        plan_of(100, **told)
    assert caught.value.option == option


@pytest.mark.parametrize("bases", [1, 1000, PAPERS])
def test_a_reference_that_fits_one_page_is_one(bases, free):
    free(1)
    assert sizes_of(plan_of(bases, page_size=None)) == [bases]


def test_the_whole_reference_is_one_page_if_it_fits_the_memory(free):
    bases = 250_000_000
    needed = bases * (TREE + BUILDING) + padded_bytes(bases)
    free(2 * needed)
    assert sizes_of(plan_of(bases, page_size=None)) == [bases]
    free(2 * needed - 2)
    assert len(plan_of(bases, page_size=None).pages) == 2
    free(1)
    assert sizes_of(plan_of(bases, page_size=None, memory=needed)) == [bases]
    assert len(plan_of(bases, page_size=None, memory=needed - 1).pages) == 2


@pytest.mark.parametrize(
    ("share", "minimum_length"), [(2, 20), (3, 1), (5, 1000), (7.3, 20), (11, 1000)]
)
def test_pages_are_equal_and_as_few_as_fit(share, minimum_length):
    bases = 250_000_000
    fitting = int(bases / share)
    memory = fitting * (TREE + BUILDING) + padded_bytes(bases)
    plan = plan_of(bases, page_size=None, memory=memory, minimum_length=minimum_length)
    sizes = sizes_of(plan)
    assert max(sizes) <= fitting
    assert max(sizes) - min(sizes) <= len(sizes)
    overlap = minimum_length - 1
    assert bases > (len(sizes) - 1) * (fitting - overlap) + overlap, "fewer would do"
    assert plan.layout.wide
    assert all(len(group) == 1 for group in plan.groups)


def test_the_backend_can_hold_less_than_the_host():
    bases = 100_000_000
    most = 40_000_000 * TREE
    plan = plan_of(bases, most, page_size=None, memory=1 << 40)
    assert len(plan.pages) == 3
    assert [len(group) for group in plan.groups] == [1, 1, 1]
    assert max(sizes_of(plan)) * TREE <= most
    plan = plan_of(bases, most, page_size=15_000_000, memory=1 << 40)
    assert [len(group) for group in plan.groups] == [2, 2, 2, 1]
    assert len(plan_of(bases, 1 << 40, page_size=None, memory=1 << 40).pages) == 1


def test_pages_are_never_smaller_than_the_papers_for_want_of_memory():
    for memory, most in ((1, None), (1 << 40, 1)):
        plan = plan_of(3 * PAPERS, most, page_size=None, memory=memory)
        assert max(sizes_of(plan)) == PAPERS
        assert not plan.layout.wide
        assert len(plan.groups) == len(plan.pages)


def test_no_page_is_larger_than_its_addresses(free):
    free(1 << 60)
    plan = plan_of(3_100_000_000, page_size=None)
    assert len(plan.pages) == 3
    assert max(sizes_of(plan)) <= 1 << 30


@pytest.mark.parametrize(
    ("page_size", "minimum_length", "expected"),
    [(PAPERS, 20, 20), (30, 20, 15), (31, 20, 16), (1, 20, 1), (None, 20, 20)],
)
def test_pages_overlap_by_less_than_half(page_size, minimum_length, expected):
    told = {"page_size": page_size, "minimum_length": minimum_length}
    assert search_length(page_size, minimum_length) == expected
    assert plan_of(1000, **told).search_length == expected


def test_matches_longer_than_the_papers_page_are_planned_for():
    told = {"page_size": None, "minimum_length": 2 * PAPERS}
    plan = plan_of(5 * PAPERS, memory=1, **told)
    assert plan.search_length == PAPERS // 2
    assert plan.pages[-1].end == 5 * PAPERS


def reported(plan):
    """The settings and counts of a plan, and the line for the user."""
    lines = []
    context = RunContext(notice=lines.append)
    describe_plan(plan, 20, "cpu", context)
    (line,) = lines
    return {**context.stats.settings, **context.stats.counts}, line


def test_the_report_tells_the_plan():
    told = {"page_size": 30, "memory": 1}
    plan = plan_of(100, address_bits=32, **told)
    settings, line = reported(plan)
    assert (settings["page_size"], settings["address_bits"]) == (30, 32)
    assert settings["page_groups"] == settings["pages"] == len(plan.pages)
    assert f"{len(plan.pages)} pages in {len(plan.groups)} groups; " in line
    assert "32-bit addresses" in line
    assert "24-bit addresses" in reported(plan_of(100, **told))[1]


def test_the_report_tells_the_plan_of_a_kmer_search():
    plan = plan_of(1000, search="kmer", page_size=300, memory=1)
    settings, line = reported(plan)
    sampling, step = plan.sampling, plan.sampling.query_step(20)
    assert settings["search"] == "kmer"
    assert settings["kmer_length"] == sampling.kmer_length > 0
    assert settings["reference_step"] == sampling.reference_step > 0
    assert settings["query_step"] == step > 0
    assert settings["page_groups"] == settings["pages"] == 4
    # Nothing that is said of trees alone.
    assert not {"policy", "address_bits"} & set(settings)
    assert f"4 pages in 4 groups; backend cpu, k-mer search of {sampling.kmer_length}-mers" in line
    assert f"every {sampling.reference_step} bases of the reference and every {step} " in line


def taken_megabytes(index):
    return int(index.memory_warning.split("this reference takes ")[1].split("M ")[0])


def test_a_limit_that_nothing_keeps_to_is_told():
    bases = 100_000_000
    for told, least in (({"search": "kmer"}, 100 << 20), ({"page_size": None}, 800 << 20)):
        reference = reference_of_size(bases)
        lowest = plan_index(reference, index_options(memory=1 << 20, **told), 2)
        asked = taken_megabytes(lowest) << 20
        assert least < asked < 4 * least
        enough = plan_index(reference, index_options(memory=asked, **told), 2)
        assert enough.memory_warning is None
        # No limit takes more than a higher one.
        most, least = (max(one.peak_bytes(group, 2) for group in one.groups)
                       for one in (enough, lowest))  # fmt: skip
        assert least <= most
        less = plan_index(reference, index_options(memory=asked - (80 << 20), **told), 2)
        lines = []
        describe_plan(less, 20, "cpu", RunContext(2, warn=lines.append))
        assert lines == [less.memory_warning] != [None]
    # What is negligible is not told.
    for told in ({"search": "kmer"}, {"page_size": 300}):
        index = plan_index(reference_of_size(1000), index_options(memory=1, **told), 2)
        assert index.groups and index.memory_warning is None


@pytest.mark.parametrize(
    ("file_bytes", "threads", "asked", "expected"),
    [
        (4_000, 2, None, 8_000 // 8),
        (20_000, 2, None, 20_000 // 8),
        (10_000_000, 2, None, 8_000),
        (10_000_000, 2, 77, 77),
        (10_000, 2, 5_000_000, 5_000_000),
    ],
)
def test_blocks_are_small_where_queries_are_few(tmp_path, file_bytes, threads, asked, expected):
    half = tmp_path / "half.fa"
    half.write_bytes(b"A" * (file_bytes // 2))
    assert choose_block_size(asked, (str(half), str(half)), threads, 8_000) == expected


def test_blocks_are_as_the_backend_likes_where_nobody_knows_the_size():
    assert choose_block_size(None, ("-",), 2, 8_000) == 8_000


@pytest.mark.parametrize("kind", ["kmer", "tree"])
def test_what_else_needs_memory_is_taken_from_the_limit(kind):
    reference = reference_of_size(300_000_000)
    other = 200 << 20

    def plan(memory, other_bytes):
        options = index_options(search=kind, page_size=None, memory=memory)
        return plan_index(reference, options, 1, None, UNKNOWN_QUERY_BASES, other_bytes)

    enough = {"kmer": 700 << 20, "tree": 12 << 30}[kind]
    alone, beside = plan(enough, 0), plan(enough + other, other)
    assert (sizes_of(alone), alone.settings()) == (sizes_of(beside), beside.settings())
    least = [taken_megabytes(plan(100 << 20, other_bytes)) for other_bytes in (0, other)]
    assert abs(least[1] - least[0] - (other >> 20)) <= 1


def tables_of(bases, max_device_bytes=None, **told):
    """Plan a k-mer search, and check what holds of each."""
    told = {"page_size": None, **told}
    plan = plan_of(bases, max_device_bytes, search="kmer", **told)
    assert [page for group in plan.groups for page in group] == plan.pages
    assert all(plan.groups)
    # Parts do not overlap: matches are extended in the whole reference.
    assert all(page.end == page.owned_end for page in plan.pages)
    assert sum(sizes_of(plan)) == bases
    minimum_length = told.get("minimum_length", 20)
    assert plan.search_length == minimum_length
    assert plan.sampling.shortest_match <= minimum_length
    return plan


def table_bytes_of(plan):
    """What the tables of each group take together."""
    return [
        sum(plan.sampling.table_bytes(page.end - page.begin) for page in group)
        for group in plan.groups
    ]


def fastest(bases, minimum_length=20):
    """The k-mers to list if memory is plenty."""
    job = KmerJob(bases, minimum_length, UNKNOWN_QUERY_BASES)
    return choose_sampling(job, max_table_bytes(bases))


def needed_bytes(bases):
    """The least memory with which a reference has one table."""
    tables = fastest(bases).table_bytes(bases)
    # A quarter of what the reference leaves is for the construction, within bounds.
    scratch = min(max(-(-tables // 3), MIN_SCRATCH_BYTES), max_scratch_bytes(bases))
    return padded_bytes(bases) + tables + scratch


@pytest.mark.parametrize("bases", [1, 1000, MIN_PAGE_BASES, 50_000_000, 3_100_000_000])
def test_a_reference_has_one_table_if_it_fits_the_memory(bases, free):
    needed = needed_bytes(bases) + 4
    free(2 * needed)
    assert sizes_of(tables_of(bases)) == [bases]
    free(1)
    assert sizes_of(tables_of(bases, memory=needed)) == [bases]
    assert sizes_of(tables_of(bases, needed, memory=needed)) == [bases]


@pytest.mark.parametrize("most_of", ["the host", "the device"])
@pytest.mark.parametrize("share", [1.01, 2, 3, 7.3])
def test_a_table_that_does_not_fit_is_several(share, most_of):
    bases = 3_000_000_000
    costs = PROCESSOR_COSTS if most_of == "the host" else DEVICE_COSTS
    job = KmerJob(bases, 20, UNKNOWN_QUERY_BASES)
    smallest = choose_sampling(job, 0, costs).table_bytes(bases)
    most = int(smallest / share)
    if most_of == "the host":
        memory = padded_bytes(bases) + most + min(most // 3, MAX_SCRATCH_BYTES)
        plan = tables_of(bases, memory=memory)
    else:
        plan = tables_of(bases, most, memory=1 << 40)
    assert max(table_bytes_of(plan)) <= most
    # Small pages take more memory a base, because they have as many k-mers.
    assert 2 <= len(plan.pages) <= 16 * share
    sizes = sizes_of(plan)
    assert sizes[:-1] == [plan.page_size] * (len(sizes) - 1)


def opened_on(memory_bytes):
    """The k-mer search on a device with so much free memory."""
    no_kernels = None
    return KmerCudaBackend(HostDevice(memory_bytes), no_kernels, Stats(), lambda line: None)


@pytest.mark.parametrize("gibibytes", [5, 6, 8])
def test_tables_leave_a_small_device_the_memory_of_the_packed_reference(gibibytes):
    bases = 3_100_000_000
    backend = opened_on(gibibytes << 30)
    packed = bit_planes_bytes(bases)
    assert packed > bases // 2
    small = tables_of(bases, backend.memory_for_pages(bases), memory=1 << 40)
    tables = max(table_bytes_of(small))
    assert 0 < tables <= backend.page_memory - packed
    # Without the reference the device could hold larger tables.
    alone = tables_of(bases, backend.page_memory, memory=1 << 40)
    assert max(table_bytes_of(alone)) > backend.page_memory - packed
    more_pages = len(small.pages) > len(alone.pages)
    assert more_pages or small.sampling.reference_step > alone.sampling.reference_step
    backend.close()


def test_a_larger_device_has_the_tables_that_are_fastest():
    bases = 3_100_000_000
    backend = opened_on(12 << 30)
    left = backend.memory_for_pages(bases)
    plan, plenty = (tables_of(bases, most, memory=1 << 40) for most in (left, 1 << 50))
    assert plan.sampling == plenty.sampling and sizes_of(plan) == [bases]
    backend.close()


def test_unknown_bases_need_no_memory_but_their_own():
    bases, known = 1_000_000_000, 1_000_000
    memory = padded_bytes(bases) + (100 << 20)
    plan = plan_of(bases, base_count=known, search="kmer", memory=memory)
    assert sizes_of(plan) == [bases]
    assert plan.sampling == fastest(known)
    assert plan.peak_bytes(plan.pages, 1) < 100 << 20
    # Of a tree they have no node.
    plan = plan_of(bases, base_count=known, page_size=None, memory=20 * bases)
    assert len(plan.pages) == 1
    assert plan.peak_bytes(plan.pages, 1) < 20 * bases


def test_parts_are_not_made_smaller_for_ever():
    for bases in (1000, MIN_PAGE_BASES, 10_000_000):
        plan = tables_of(bases, memory=1)
        assert plan.page_size >= min(bases, MIN_PAGE_BASES // 2)
        assert plan.page_size <= MIN_PAGE_BASES
        assert [len(group) for group in plan.groups] == [1] * len(plan.pages)


def test_the_positions_of_a_table_are_numbers_of_32_bits():
    plan = tables_of(2 * MAX_TABLE_BASES + 5, memory=1 << 50)
    assert sizes_of(plan) == [MAX_TABLE_BASES, MAX_TABLE_BASES, 5]
    assert len(plan.groups) == 1


def test_parts_are_as_large_as_is_asked_for_and_make_groups():
    plan = tables_of(1000, page_size=300, memory=1 << 30)
    assert sizes_of(plan) == [300, 300, 300, 100]
    assert len(plan.groups) == 1
    assert plan.sampling == fastest(300)
    # With a limit the table is as small as the limit asks.
    sampling = KmerSampling(4, 2)
    two = 2 * sampling.table_bytes(300)
    besides = padded_bytes(1000) + MIN_SCRATCH_BYTES
    reference, options = reference_of_size(1000), KmerOptions(page_size=300, sampling=sampling)
    # The last part is smaller, and may go with the one before it.
    for memory, expected in ((two, [2, 2]), (two - 1, [1, 1, 2]), (1, [1, 1, 1, 1])):
        for budget in (MemoryBudget(besides + memory), MemoryBudget(1 << 30, memory)):
            plan = KmerIndex.plan(reference, options, 20, budget)
            assert plan.sampling == sampling
            assert [len(group) for group in plan.groups] == expected
    # Tables have no addresses of nodes: a page may be larger than any tree's.
    assert sizes_of(tables_of(1000, page_size=1 << 34, memory=1 << 40)) == [1000]


@pytest.mark.parametrize("minimum_length", [1, 5, 14, 200, 10_000])
def test_matches_may_be_longer_than_a_part(minimum_length):
    plan = tables_of(1000, page_size=7, minimum_length=minimum_length, memory=1 << 30)
    assert len(plan.pages) == 143


def test_scratch_memory_is_a_part_of_the_memory():
    for memory, expected in (
        (1, MIN_SCRATCH_BYTES),
        (padded_bytes(1000) + 4 * MIN_SCRATCH_BYTES + 400, MIN_SCRATCH_BYTES + 100),
        (1 << 50, MAX_SCRATCH_BYTES),
    ):
        assert tables_of(1000, memory=memory).scratch_bytes == expected


@pytest.mark.parametrize("page_size", [None, 101, 1 << 40])
def test_no_part_is_larger_than_a_table_can_be(page_size, monkeypatch):
    monkeypatch.setattr(kmer_index, "MAX_TABLE_BASES", 100)
    plan = plan_of(250, search="kmer", page_size=page_size)
    assert [(page.begin, page.end) for page in plan.pages] == [(0, 100), (100, 200), (200, 250)]
