"""How a k-mer search is divided: which k-mers, how large the parts, which of them together."""

import pytest
from helpers.host_device import HostDevice
from helpers.plans import padded_bytes, plan_of, reference_of_size, sizes_of

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
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.plan import describe_plan
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.bit_planes import bit_planes_bytes

pytestmark = pytest.mark.usefixtures("without_bases")


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


def test_the_report_tells_the_plan_of_a_kmer_search():
    lines = []
    context = RunContext(notice=lines.append)
    stats = context.stats
    plan = plan_of(1000, search="kmer", page_size=300, memory=1)
    describe_plan(plan, 20, "cpu", context)
    assert stats.settings["search"] == "kmer"
    sampling, step = plan.sampling, plan.sampling.query_step(20)
    assert stats.settings["kmer_length"] == sampling.kmer_length > 0
    assert stats.settings["reference_step"] == sampling.reference_step > 0
    assert stats.settings["query_step"] == step > 0
    assert stats.settings["page_groups"] == stats.counts["pages"] == 4
    # Nothing that is said of trees alone.
    assert not {"policy", "address_bits"} & set(stats.settings)
    (line,) = lines
    assert f"4 pages in 4 groups; backend cpu, k-mer search of {sampling.kmer_length}-mers" in line
    assert f"every {sampling.reference_step} bases of the reference and every {step} " in line


@pytest.mark.parametrize("page_size", [None, 101, 1 << 40])
def test_no_part_is_larger_than_a_table_can_be(page_size, monkeypatch):
    monkeypatch.setattr(kmer_index, "MAX_TABLE_BASES", 100)
    plan = plan_of(250, search="kmer", page_size=page_size)
    assert [(page.begin, page.end) for page in plan.pages] == [(0, 100), (100, 200), (200, 250)]
