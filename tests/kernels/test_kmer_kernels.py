"""The k-mer search's kernels on the host, and the backend around them.

First under the sanitizers, held to the definition of a match; then without them, as
`test_cuda_backend.py` does with trees: memory that runs out, groups of parts, many threads.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.kmer_cases import (
    dense_case,
    far_case,
    ordered_tables_of,
    periodic_case,
    tables_of,
)
from helpers.opened_backends import (
    ANY,
    FORWARD,
    GENOME,
    REPEATS,
    OpenedBackend,
    close_all,
    refused,
)
from helpers.oracle import reverse_complement
from helpers.search_cases import (
    COLUMNS,
    ONE_PAGE,
    STRANDS,
    SearchCase,
    block_of,
    difference,
    find_on,
    made_bases,
    made_queries,
    rows_of,
)
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.cuda.pool import DevicePool
from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.backends import stream_searcher as searching
from mummergpu.matching.backends.streaming import STREAMS
from mummergpu.matching.columns import MemColumns
from mummergpu.matching.kmer import cuda as kmer_search
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda import KERNELS, KmerCudaBackend, bit_planes_bytes
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM, MOST_OCCURRENCES
from mummergpu.runtime.stats import Stats

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def sanitized(sanitizing: dict[str, str], library_folder: Path) -> Callable[..., str]:
    """Runs the program under the sanitizers."""

    def run(*words: str) -> str:
        command = [
            sys.executable,
            "-W",
            "error",
            str(HERE / "sanitized_kmer.py"),
            str(library_folder),
        ]
        done = subprocess.run(
            [*command, *words], capture_output=True, text=True, env=sanitizing, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr[:5000]
        return done.stdout

    return run


def test_kmers_of_every_length_give_the_matches_of_the_definition(
    sanitized: Callable[..., str],
) -> None:
    report = sanitized()
    pattern = (
        r"(\d+) matches in (\d+) searches, 0 differences\n"
        r"lists of (\d+) places, periods of (\d+) bases, (\d+) parts\n"
    )
    told = re.fullmatch(pattern, report)
    assert told is not None, report
    matches, searches, longest, farthest, parts = map(int, told.groups())
    assert matches > 150_000 and searches > 100
    # A warp shares lists of up to 32 places; a word has 32 bases.
    assert longest > 500 and farthest > 100 and parts > 10


def test_memory_that_is_one_byte_short_is_noticed(sanitized: Callable[..., str]) -> None:
    lines = sanitized("--short").splitlines()
    assert len(lines) == 22
    assert [line for line in lines if not line.endswith(": noticed")] == []


class Opened(OpenedBackend[KmerCudaBackend]):
    """A backend that searches tables."""

    too_many = "(bytes|bases)"

    def load_pages(self, case: SearchCase, kmer_length: int = 3, reference_step: int = 1) -> None:
        sampling = KmerSampling(kmer_length, reference_step)
        self.backend.load_pages(tables_of(case, sampling), case.minimum_length)


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def compiler(cxx: str, library_folder: Path) -> WatchedCompiler:
    return WatchedCompiler(library_folder)


@pytest.fixture
def opened(compiler: WatchedCompiler) -> Iterator[Open]:
    """Opens backends, and closes them: then nothing may be left on their devices."""
    every: list[Opened] = []

    def open_backend(device: WatchedDevice | None = None, memory: int | None = None) -> Opened:
        given = WatchedDevice() if device is None else device
        stats, notices = Stats(), list[str]()
        pool = DevicePool(lambda number: given)
        backend = KmerCudaBackend(
            pool.device(0), compiler, stats, notices.append, memory, pool=pool
        )
        every.append(Opened(backend, given, stats, notices))
        return every[-1]

    yield open_backend
    close_all(every)


def large_case(seed: int) -> tuple[SearchCase, KmerSampling]:
    """A case too large for a definition in plain Python, and the k-mers to list."""
    random = np.random.default_rng(seed)
    letters = "ACGT"[: 2 + seed % 3]
    unit = made_bases(random, 171, letters)
    record = made_bases(random, 5000, letters, 0.001)
    record = record[:2000] + unit * 12 + "A" * 400 + record[2000:]
    queries = (*made_queries(random, record, 150, 300, letters, 0.02), unit * 3, "A" * 500, "")
    minimum_length = (7, 12, 20, 45, 80, 9)[seed % 6]
    page_size = (ONE_PAGE, 2500, 700)[seed % 3]
    kmer_length = (2, 4, 7, 9)[seed % 4]
    kmer_length = min(kmer_length, minimum_length)
    reference_step = min((1, 3, 5)[seed // 2 % 3], minimum_length - kmer_length + 1)
    sampling = KmerSampling(kmer_length, reference_step)
    return SearchCase("large", (record,), queries, minimum_length, page_size), sampling


@pytest.mark.parametrize("seed", range(12))
def test_larger_cases_give_what_the_cpu_backend_gives(opened: Open, seed: int) -> None:
    case, sampling = large_case(seed)
    cpu = KmerCpuBackend(Stats())
    pages = tables_of(case, sampling)
    cpu.load_pages(pages, case.minimum_length)
    # A few blocks of threads, or more than there are items.
    given = opened(WatchedDevice(1 << 30, (1, 3, 100_000)[seed % 3]))
    given.backend.load_pages(pages, case.minimum_length)
    block = case.block()
    for strand in STRANDS:
        expected, found = (find_on(one, block, strand) for one in (cpu, given.backend))
        assert isinstance(expected, MemColumns) and isinstance(found, MemColumns)
        assert expected.count > 100
        assert difference(found, expected) is None
        assert all(getattr(found, name).dtype == np.int64 for name in COLUMNS)
    assert given.halved == []
    expected = find_on(cpu, block)
    assert expected is not None
    for backend in (cpu, given.backend):
        backend.load_pages(ordered_tables_of(case, sampling), case.minimum_length)
        found = find_on(backend, block)
        assert found is not None and difference(found, expected) is None


@pytest.mark.parametrize("seed", range(16))
def test_occurrences_that_are_skipped_lack_no_match(opened: Open, seed: int) -> None:
    case = periodic_case(seed)
    block = case.block()
    cpu = KmerCpuBackend(Stats())
    given = opened(WatchedDevice(1 << 30, (1, 3, 100_000)[seed % 3]))
    for sampling in (KmerSampling(3), KmerSampling(5, 3), KmerSampling(12), KmerSampling(2, 7)):
        cpu.load_pages(tables_of(case, sampling), case.minimum_length)
        ordered = ordered_tables_of(case, sampling)
        longest = max(int(np.diff(page.table.offsets).max()) for page in ordered)
        assert longest > MOST_OCCURRENCES or len(ordered) > 1 or sampling.kmer_length != 3
        for strand in STRANDS:
            cpu.load_pages(tables_of(case, sampling), case.minimum_length)
            expected = find_on(cpu, block, strand)
            assert expected is not None
            for backend in (cpu, given.backend):
                backend.load_pages(ordered, case.minimum_length)
                found = find_on(backend, block, strand)
                assert found is not None and difference(found, expected) is None


@pytest.mark.parametrize(
    ("minimum_length", "bases"),
    [(4103, 30_000), (4104, 30_000), (9000, 60_000), (700, 33_000), (700, 1 << 20)],
    ids=[
        *("the widest kept step", "a wider step", "a much wider step"),
        *("a match too long by a bit", "a much longer match"),
    ],
)
def test_what_cannot_be_kept_in_few_bits_is_searched_for_twice(
    opened: Open, minimum_length: int, bases: int
) -> None:
    """Left extensions of more than 12 bits, or lengths of more than 15."""
    random = np.random.default_rng(minimum_length)
    record = made_bases(random, bases, "ACGT")
    copy = record[: bases // 2] + "N" + record[minimum_length // 2 : 3 * minimum_length]
    queries = (record[5:], record[minimum_length // 3 : 2 * minimum_length], "A" + copy[77:], "C")
    case = SearchCase("far", (record + "N" + copy,), queries, minimum_length)
    pages = tables_of(case, KmerSampling(8))
    given, cpu = opened(), KmerCpuBackend(Stats())
    given.backend.load_pages(pages, minimum_length)
    cpu.load_pages(pages, minimum_length)
    block = case.block()
    expected, found = (find_on(one, block) for one in (cpu, given.backend))
    assert expected is not None and found is not None
    assert expected.count >= 6 and max(expected.lengths) >= bases - 5
    assert difference(found, expected) is None


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most", [1, 3, 70, 100_000])
def test_frequent_kmers_are_skipped_as_on_the_processor(opened: Open, seed: int, most: int) -> None:
    case = periodic_case(seed)
    block = case.block()
    given = opened(WatchedDevice(1 << 30, (1, 3, 100_000)[seed % 3]))
    for sampling in (KmerSampling(4), KmerSampling(3, 5)):
        pages = [replace(page, most_occurrences=most) for page in ordered_tables_of(case, sampling)]
        stats = Stats()
        cpu = KmerCpuBackend(stats)
        before = given.stats.counts.get("skipped_lookups", 0)
        for backend in (cpu, given.backend):
            backend.load_pages(pages, case.minimum_length)
        expected, found = (find_on(one, block) for one in (cpu, given.backend))
        assert expected is not None and found is not None
        assert difference(found, expected) is None
        skipped = given.stats.counts.get("skipped_lookups", 0) - before
        lists = [np.diff(page.table.offsets).max() for page in pages]
        assert (skipped > 0) == (max(lists) > most)
        # The processor does not look at queries that are shorter than a match.
        short = sum(map(len, filter(lambda q: len(q) < case.minimum_length, case.queries)))
        assert 0 <= skipped - stats.counts.get("skipped_lookups", 0) <= short * len(pages)


def test_references_are_packed_a_stretch_at_a_time(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stretches are whole words; what lies behind the last of each is in the next."""
    for stretch in (32, 64, 416, 1 << 26):
        monkeypatch.setattr(kmer_search, "UPLOAD_BASES", stretch)
        given = opened()
        given.load_pages(GENOME)
        assert given.find(GENOME.block()) == GENOME.expected(FORWARD)
        count = Counter(given.device.launches)["pack_codes"]
        assert count == 1 + -(-(sum(map(len, GENOME.records)) + 3) // stretch)


def test_a_block_is_sent_and_packed_once_for_both_strands(opened: Open) -> None:
    given = opened()
    given.load_pages(GENOME)
    block = GENOME.block()
    before = given.stats.bytes["to_device"]
    given.device.launches.clear()
    found = given.backend.find_mems(block, STRANDS, ANY)
    assert found is not None and list(found) == list(STRANDS)
    for strand, columns in found.items():
        assert rows_of(columns) == GENOME.expected(strand)
    sent = given.stats.bytes["to_device"] - before
    assert sent == block.codes.nbytes + block.offsets.nbytes
    launches = Counter(given.device.launches)
    assert [launches[kernel] for kernel in ("pack_codes", "mark_queries")] == [1, 1]
    assert launches["reverse_bit_planes"] == 1


@pytest.mark.parametrize("seed", range(40))
def test_queries_of_every_length_are_turned_in_their_places(opened: Open, seed: int) -> None:
    """Many queries in a word, a query of many words, none at all: on both strands."""
    random = np.random.default_rng(seed)
    record = made_bases(random, 400, "ACGT"[: 2 + seed % 3], 0.01)
    most = (1, 3, 20, 32, 33, 64, 200)[seed % 7]
    queries = [record[:0]] * (seed % 3)
    for length in random.integers(0, most + 1, 60):
        begin = int(random.integers(0, len(record) - length))
        text = record[begin : begin + int(length)]
        queries.append(reverse_complement(text) if random.random() < 0.5 else text)
    case = SearchCase("turned", (record,), tuple(queries), 1 + min(most, 20) // 2)
    given = opened(WatchedDevice(1 << 30, (1, 3, 100_000)[seed % 3]))
    given.load_pages(case, 1 + seed % 3 if most > 3 else 1)
    found = given.backend.find_mems(case.block(), STRANDS, ANY)
    assert found is not None
    for strand in STRANDS:
        assert rows_of(found[strand]) == case.expected(strand)


def test_what_is_planned_is_told(opened: Open, small_blocks: int) -> None:
    given = opened(WatchedDevice(2 << 30), small_blocks)
    assert given.notices == ["device host (sm_90), 2.0 GiB free; 3 blocks of 300 bases at once"]
    assert given.backend.sizes.block_bases == given.backend.sizes.part_bases == 300
    assert given.backend.page_memory == small_blocks // 2


def test_the_reference_takes_what_is_planned_for_it(opened: Open) -> None:
    given = opened()
    pages = tables_of(GENOME, KmerSampling(3))
    bases = pages[0].joined_reference.size
    given.backend.load_pages(pages, GENOME.minimum_length)
    tables = sum(page.table.byte_count for page in pages)
    left = given.backend.memory_for_pages(bases)
    assert len(pages) > 1 and given.device.used == tables + given.backend.page_memory - left
    assert given.backend.memory_for_pages(1 << 50) == 0


@pytest.mark.parametrize("who", ["the plan", "the device"])
def test_blocks_that_do_not_fit_are_halved(opened: Open, small_blocks: int, who: str) -> None:
    given = opened(memory=small_blocks if who == "the plan" else None)
    given.load_pages(REPEATS)
    if who == "the device":
        given.device.refuse = lambda number, size: size > 20_000
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD)
    assert (given.device.refusals > 0) == (who == "the device")
    assert given.halved[0] == 16 and Counter(given.halved)[8] == 2
    launched = Counter(given.device.launches)["count_kmer_mems"]
    counted = given.stats.kernels["count_kmer_mems"].launches
    assert launched > counted, "what came to nothing is not counted"
    small = block_of(REPEATS.queries[:1])
    assert given.find(small) == REPEATS.expected(FORWARD)[:1]


@pytest.mark.parametrize("who", ["the plan", "the device"])
def test_a_single_query_that_does_not_fit_is_an_error(
    opened: Open, small_blocks: int, who: str
) -> None:
    given = opened(memory=small_blocks if who == "the plan" else None)
    given.load_pages(REPEATS)
    if who == "the device":
        given.device.refuse = lambda number, size: size > 20_000
    block = block_of(("A" * 20, "A" * 3000, "A" * 30))
    for _ in range(STREAMS + 1):
        with pytest.raises(BackendError, match="the matches of one query do not fit") as caught:
            given.find(block)
        assert "use a larger -l or --backend cpu" in caught.value.message
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD), "no searcher is lost"


def test_any_request_may_be_refused_and_no_match_is_lost(opened: Open) -> None:
    given = opened()
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


def test_tables_that_do_not_fit_are_an_error_and_leave_nothing(opened: Open) -> None:
    given = opened()
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


def test_a_block_of_too_many_bases_is_halved(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_BASES", GENOME.block().base_count - 1)
    given = opened()
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
    opened: Open, small_blocks: int, page_size: int, halving: bool
) -> None:
    case = SearchCase("repeats", REPEATS.records, REPEATS.queries, 5, page_size)
    given = opened(memory=small_blocks if halving else None)
    given.load_pages(case)
    expected = REPEATS.expected(FORWARD)
    count = sum(map(len, expected))
    assert given.find(case.block(), count) == expected
    for most in (0, 1, count // 3, count // 2, count - 1):
        assert given.find(case.block(), most) is None
    assert given.find(case.block(), count) == expected
    assert bool(given.halved) == halving


def test_groups_of_parts_take_each_others_place(opened: Open) -> None:
    """Together the groups find each match once, in whichever its first sample lies."""
    given = opened()
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


def test_the_kernels_are_compiled_once(opened: Open, compiler: WatchedCompiler) -> None:
    given = opened()
    before = len(compiler.asked)
    for case, kmer_length in ((GENOME, 3), (far_case(0), 5), (dense_case(0), 1), (GENOME, 6)):
        given.load_pages(case, kmer_length)
        assert given.find(case.block()) == case.expected(FORWARD)
    assert compiler.asked[before:] == [KMER_PROGRAM]
    assert given.stats.stages["kernels_compiled"].count == 1


def test_many_threads_search_at_once(opened: Open) -> None:
    given = opened()
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


def test_every_launch_and_byte_is_accounted_for(opened: Open) -> None:
    given = opened()
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
