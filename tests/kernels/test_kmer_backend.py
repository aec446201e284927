"""The k-mer search's backend around its kernels: memory that runs out, groups of parts, threads.

`test_cuda_backend.py` and `test_cuda_memory.py` do the same with trees.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.kmer_cases import dense_case, far_case, tables_of
from helpers.opened_backends import FORWARD, GENOME, REPEATS, OpenTables, refused
from helpers.search_cases import ANY, ONE_PAGE, SearchCase, block_of, find_on, rows_of
from helpers.watched_device import WatchedCompiler

from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.backends import stream_searcher as searching
from mummergpu.matching.backends.streaming import STREAMS
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda import KERNELS
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.bit_planes import bit_planes_bytes


def test_the_reference_takes_what_is_planned_for_it(opened_tables: OpenTables) -> None:
    given = opened_tables()
    pages = tables_of(GENOME, KmerSampling(3))
    bases = pages[0].joined_reference.size
    given.backend.load_pages(pages, GENOME.minimum_length)
    tables = sum(page.table.byte_count for page in pages)
    left = given.backend.memory_for_pages(bases)
    assert len(pages) > 1 and given.device.used == tables + given.backend.page_memory - left
    assert given.backend.memory_for_pages(1 << 50) == 0


def test_any_request_may_be_refused_and_no_match_is_lost(opened_tables: OpenTables) -> None:
    given = opened_tables()
    given.load_pages(GENOME)
    block = GENOME.block()
    with refused(given.device, lambda number, size: False):
        assert given.find(block) == GENOME.expected(FORWARD)
        requests = given.device.requests
    assert requests > 12
    for searcher in given.backend._searchers:
        searcher.release()
    for wanted in range(1, requests + 1):
        lines = len(given.notices)
        with refused(given.device, lambda number, size, wanted=wanted: number == wanted):
            assert given.find(block) == GENOME.expected(FORWARD)
        assert given.halved[lines - 1 :] == [13]
        for searcher in given.backend._searchers:
            searcher.release()
    assert given.device.refusals == requests


def test_tables_that_do_not_fit_are_an_error_and_leave_nothing(opened_tables: OpenTables) -> None:
    given = opened_tables()
    with refused(given.device, lambda number, size: False):
        given.load_pages(GENOME)
        requests, held = given.device.requests, given.device.used
    # The reference and its codes, which go when they are packed, and two arrays a part.
    assert requests == 2 + 2 * len(tables_of(GENOME, KmerSampling(3)))
    for wanted in range(1, requests + 1):
        with (
            refused(given.device, lambda number, size, wanted=wanted: number == wanted),
            pytest.raises(BackendError, match="the tables do not fit the device's memory"),
        ):
            given.load_pages(GENOME)
        assert not given.device.buffers
    given.load_pages(GENOME)
    assert given.device.used == held
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)


def test_a_block_of_too_many_bases_is_halved(
    opened_tables: OpenTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MAX_BASES", GENOME.block().base_count - 1)
    given = opened_tables()
    given.load_pages(GENOME)
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)
    assert given.halved == [13]
    with pytest.raises(DeviceMemoryError):
        given.backend._searchers[0].find_mems(
            given.backend._context, GENOME.block(), (FORWARD,), ANY
        )


@pytest.mark.parametrize("halving", [False, True], ids=["whole", "in halves"])
@pytest.mark.parametrize("page_size", [ONE_PAGE, 120])
def test_more_matches_than_there_may_be_are_none(
    opened_tables: OpenTables, small_blocks: int, page_size: int, halving: bool
) -> None:
    case = SearchCase("repeats", REPEATS.records, REPEATS.queries, 5, page_size)
    given = opened_tables(memory=small_blocks if halving else None)
    given.load_pages(case)
    expected = REPEATS.expected(FORWARD)
    count = sum(map(len, expected))
    assert given.find(case.block(), count) == expected
    for most in (0, 1, count // 3, count // 2, count - 1):
        assert given.find(case.block(), most) is None
    assert given.find(case.block(), count) == expected
    assert bool(given.halved) == halving


def test_groups_of_parts_take_each_others_place(opened_tables: OpenTables) -> None:
    """Together the groups find each match once, in whichever its first sample lies."""
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
        # Samples are other ones: the cpu backend's begin with each query, here with the block.
        if group == pages:
            assert rows_of(found) == rows_of(expected) == GENOME.expected(FORWARD)
        for searcher in given.backend._searchers:
            searcher.release()


def test_the_kernels_are_compiled_once(
    opened_tables: OpenTables, compiler: WatchedCompiler
) -> None:
    given = opened_tables()
    before = len(compiler.asked)
    for case, kmer_length in ((GENOME, 3), (far_case(0), 5), (dense_case(0), 1), (GENOME, 6)):
        given.load_pages(case, kmer_length)
        assert given.find(case.block()) == case.expected(FORWARD)
    assert compiler.asked[before:] == [KMER_PROGRAM]
    assert given.stats.stages["kernels_compiled"].count == 1


def test_many_threads_search_at_once(opened_tables: OpenTables) -> None:
    given = opened_tables()
    given.load_pages(GENOME)
    meeting = threading.Barrier(STREAMS, timeout=60)

    def before_launch(kernel: str) -> None:
        if kernel == "mark_queries":
            meeting.wait()

    given.device.before_launch = before_launch
    queries = [GENOME.queries[number:] for number in range(3 * STREAMS)]
    with ThreadPoolExecutor(3 * STREAMS) as pool:
        found = list(pool.map(lambda part: given.find(block_of(part)), queries))
    assert found == [GENOME.expected(FORWARD)[number:] for number in range(3 * STREAMS)]
    assert given.device.most_users == STREAMS


def test_every_launch_and_byte_is_accounted_for(opened_tables: OpenTables) -> None:
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
    assert set(KERNELS) <= set(used)
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
