"""The k-mer search's backend around its kernels: groups of parts, what is counted."""

from collections import Counter

import pytest
from helpers.kmer_cases import dense_case, far_case, tables_of
from helpers.opened_backends import FORWARD, GENOME
from helpers.search_cases import ANY, find_on, rows_of

from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.backends import stream_searcher as searching
from mummergpu.matching.backends.stream_searcher import HostColumns
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda import KERNELS
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM, TEXT_KERNELS
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.bit_planes import bit_planes_bytes


def test_the_reference_takes_what_is_planned_for_it(opened_tables):
    given = opened_tables()
    pages = tables_of(GENOME, KmerSampling(3))
    bases = pages[0].joined_reference.size
    given.backend.load_pages(pages, GENOME.minimum_length)
    tables = sum(page.table.byte_count for page in pages)
    left = given.backend.memory_for_pages(bases)
    assert len(pages) > 1 and given.device.used == tables + given.backend.page_memory - left
    assert given.backend.memory_for_pages(1 << 50) == 0


def test_a_length_that_no_kernel_takes_finds_nothing(opened_tables):
    given = opened_tables()
    given.backend.load_pages(tables_of(GENOME, KmerSampling(3)), 1 << 40)
    assert not any(given.find(GENOME.block()) or ())


def test_a_block_of_too_many_bases_is_halved(opened_tables, monkeypatch):
    monkeypatch.setattr(searching, "MAX_BASES", GENOME.block().base_count - 1)
    given = opened_tables()
    given.load_pages(GENOME)
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)
    assert given.halved == [13]
    with pytest.raises(DeviceMemoryError):
        given.backend._searchers[0].use_matches(
            given.backend._context, GENOME.block(), ANY, HostColumns((FORWARD,))
        )


def test_groups_of_parts_take_each_others_place(opened_tables):
    """Together the groups find each match once, in whichever its first query_kmer lies."""
    given = opened_tables()
    pages = tables_of(GENOME, KmerSampling(3))
    assert len(pages) >= 4
    block = GENOME.block()
    cpu = KmerCpuBackend(Stats())
    for group in (pages[:2], pages[2:3], pages[3:], pages[-1:], pages):
        given.backend.load_pages(group, GENOME.minimum_length)
        cpu.load_pages(group, GENOME.minimum_length)
        # Two arrays a part, and the whole reference.
        assert len(given.device.buffers) == 2 * len(group) + 1
        tables = sum(page.table.byte_count for page in group)
        assert given.device.used == tables + bit_planes_bytes(pages[0].joined_reference.size)
        expected, found = (find_on(one, block) for one in (cpu, given.backend))
        assert expected is not None and found is not None
        # QueryKmers are other ones: the cpu backend's begin with each query, here with the block.
        if group == pages:
            assert rows_of(found) == rows_of(expected) == GENOME.expected(FORWARD)
        for searcher in given.backend._searchers:
            searcher.release()


def test_the_kernels_are_compiled_once(opened_tables, compiler):
    given = opened_tables()
    before = len(compiler.asked)
    for case, kmer_length in ((GENOME, 3), (far_case(0), 5), (dense_case(0), 1), (GENOME, 6)):
        given.load_pages(case, kmer_length)
        assert given.find(case.block()) == case.expected(FORWARD)
    assert compiler.asked[before:] == [KMER_PROGRAM]
    assert given.stats.stages["kernels_compiled"].count == 1


def test_every_launch_and_byte_is_accounted_for(opened_tables):
    given = opened_tables()
    given.load_pages(GENOME)
    pages = tables_of(GENOME, KmerSampling(3))
    held = sum(page.table.byte_count for page in pages) + pages[0].joined_reference.size
    assert given.stats.bytes == {"to_device": held}
    # What the reference is packed by is no part of a search.
    given.device.launches.clear()
    block = GENOME.block()
    found = given.find(block)
    assert found is not None
    launches = {name: kernel.launches for name, kernel in given.stats.kernels.items()}
    used = {name: count for name, count in launches.items() if count > 0}
    assert Counter(given.device.launches) == used
    # Seeds are chosen by searches with windows only.
    assert set(KERNELS) - {"choose_query_seeds", *TEXT_KERNELS} <= set(used)
    assert used["count_kmer_mems"] == len(pages)
    stage = given.stats.stages["kmer_kernel"]
    assert stage.count == sum(used.values())
    assert stage.seconds == pytest.approx(stage.count / 1000)
    rows = sum(map(len, found))
    assert given.stats.bytes["from_device"] == len(pages) * (8 * len(found) + 8) + 24 * rows
    moved = given.stats.bytes["to_device"] - held
    assert block.codes.size <= moved - block.offsets.nbytes <= block.codes.size + 32
    for kernel in KERNELS:
        assert given.stats.kernels[kernel].resources["registers"] == 1
