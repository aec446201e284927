"""What the k-mer search's kernels find on the host.

First under the sanitizers, held to the definition of a match; then without them, beside the
backend of the processor.
"""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from helpers.kmer_cases import (
    ordered_tables_of,
    periodic_case,
    repeats_case,
    satellite_case,
    tables_of,
)
from helpers.loops import each
from helpers.opened_backends import FORWARD, GENOME
from helpers.oracle import reverse_complement
from helpers.search_cases import (
    ANY,
    COLUMNS,
    ONE_PAGE,
    STRANDS,
    SearchCase,
    difference,
    find_on,
    made_bases,
    made_queries,
    rows_of,
)
from helpers.watched_device import WatchedDevice

from mummergpu.index import kmer_order
from mummergpu.index.kmer_order import order_long_lists
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.filter import keep_unique
from mummergpu.matching.kmer import cuda as kmer_tables
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.kmer.cuda_program import MOST_OCCURRENCES
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import MemColumns

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def sanitized(sanitizing, library_folder):
    """Runs the program under the sanitizers."""

    def run(*words):
        program = [str(HERE / "sanitized_kmer.py"), str(library_folder), *words]
        command = [sys.executable, "-W", "error", *program]
        done = subprocess.run(command, capture_output=True, text=True, env=sanitizing, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr[:5000]
        return done.stdout

    return run


def test_kmers_of_every_length_give_the_matches_of_the_definition(sanitized):
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


def test_memory_that_is_one_byte_short_is_noticed(sanitized):
    lines = sanitized("--short").splitlines()
    assert len(lines) == 22 and [line for line in lines if not line.endswith(": noticed")] == []


def large_case(seed):
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
    sampling = KmerSampling(kmer_length, reference_step, is_picked=seed % 2 == 1)
    return SearchCase("large", (record,), queries, minimum_length, page_size), sampling


def found_by(backends, pages, case, strands=STRANDS):
    """Yield the matches of a case on each strand, of each backend."""
    for backend in backends:
        backend.load_pages(pages, case.minimum_length)
    for strand in strands:
        found = [find_on(backend, case.block(), strand) for backend in backends]
        assert all(isinstance(columns, MemColumns) for columns in found)
        yield found


def watched(seed):
    """A device with a few blocks of threads, or with more than there are items."""
    return WatchedDevice(1 << 30, (1, 3, 100_000)[seed % 3])


@pytest.mark.parametrize("seed", range(12))
def test_larger_cases_give_what_the_cpu_backend_gives(opened_tables, seed):
    case, sampling = large_case(seed)
    cpu, given = KmerCpuBackend(Stats()), opened_tables(watched(seed))
    for expected, found in found_by((cpu, given.backend), tables_of(case, sampling), case):
        assert expected.count > 100 and difference(found, expected) is None
        assert all(getattr(found, name).dtype == np.int64 for name in COLUMNS)
    assert given.halved == []
    expected = find_on(cpu, case.block())
    ordered = ordered_tables_of(case, sampling)
    for both in found_by((cpu, given.backend), ordered, case, [FORWARD]):
        assert [difference(found, expected) for found in both] == [None, None]


@pytest.mark.parametrize("seed", range(16))
def test_occurrences_that_are_skipped_lack_no_match(opened_tables, seed):
    case = periodic_case(seed)
    backends = KmerCpuBackend(Stats()), opened_tables(watched(seed)).backend
    for sampling in (
        *(KmerSampling(3), KmerSampling(5, 3), KmerSampling(12), KmerSampling(2, 7)),
        *(KmerSampling(5, 3, is_picked=True), KmerSampling(2, 7, is_picked=True)),
    ):
        ordered = ordered_tables_of(case, sampling)
        longest = max(int(np.diff(page.table.offsets).max()) for page in ordered)
        assert longest > MOST_OCCURRENCES or len(ordered) > 1 or sampling.kmer_length != 3
        every = [found[0] for found in found_by(backends[:1], tables_of(case, sampling), case)]
        for expected, both in zip(every, found_by(backends, ordered, case), strict=True):
            assert [difference(found, expected) for found in both] == [None, None]


@each("seed", range(16))
def test_where_unique_matches_are_wanted_no_others_tell_more(opened_tables, seed):
    cases = [(periodic_case(seed), KmerSampling(3, 1 + seed % 4))]
    if seed < 6:
        cases.append(large_case(seed))
    given, cpu = opened_tables(watched(seed)), KmerCpuBackend(Stats())
    for case, sampling in cases:
        for pages in (tables_of(case, sampling), ordered_tables_of(case, sampling)):
            cpu.load_pages(pages, case.minimum_length)
            unique = [replace(page, only_unique=True) for page in pages]
            given.backend.load_pages(unique, case.minimum_length)
            block = case.block()
            every, found = (find_on(one, block) for one in (cpu, given.backend))
            pieces = find_on(given.backend, replace(block, continues=True))
            assert every is not None and found is not None and pieces is not None
            assert difference(pieces, every) is None
            for in_query in (False, True):
                expected = keep_unique(every, in_query)
                assert difference(keep_unique(found, in_query), expected) is None
            # A query_kmer has two matches for each start at most.
            assert found.count <= every.count
            assert (found.count < every.count) == (every.count > 1000)


@pytest.mark.parametrize(
    ("minimum_length", "bases"),
    [(4103, 30_000), (4104, 30_000), (9000, 60_000), (700, 33_000), (700, 1 << 20)],
    ids=[
        *("the widest kept step", "a wider step", "a much wider step"),
        *("a match too long by a bit", "a much longer match"),
    ],
)
def test_what_cannot_be_kept_in_few_bits_is_searched_for_twice(
    opened_tables, minimum_length, bases
):
    """Left extensions of more than 12 bits, or lengths of more than 15."""
    record = made_bases(np.random.default_rng(minimum_length), bases, "ACGT")
    copy = record[: bases // 2] + "N" + record[minimum_length // 2 : 3 * minimum_length]
    queries = (record[5:], record[minimum_length // 3 : 2 * minimum_length], "A" + copy[77:], "C")
    case = SearchCase("far", (record + "N" + copy,), queries, minimum_length)
    pages = tables_of(case, KmerSampling(8))
    backends = KmerCpuBackend(Stats()), opened_tables().backend
    ((expected, found),) = found_by(backends, pages, case, [FORWARD])
    assert expected.count >= 6 and max(expected.lengths) >= bases - 5
    assert difference(found, expected) is None


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("step", [6, 11, 23, 64])
def test_query_kmers_lie_at_steps_of_their_query_as_on_the_processor(opened_tables, seed, step):
    """Mapping looks up some k-mers of each window of a read, wherever that lies in its block."""
    random = np.random.default_rng(seed)
    record = made_bases(random, 6000, "ACGT"[: 3 + seed % 2], 0.001)
    queries = (*made_queries(random, record, 200, 300, "ACGT", 0.02), "", "ACG", record[:700])
    case = SearchCase("windows", (record,), queries, 12, (ONE_PAGE, 2500)[seed % 2])
    pages = ordered_tables_of(case, KmerSampling(6, 1 + seed // 2 % 2 * (step // 11)))
    given, cpu, complete = opened_tables(), KmerCpuBackend(Stats()), KmerCpuBackend(Stats())
    complete.load_pages(pages, case.minimum_length)
    for backend in (cpu, given.backend):
        sampled = [replace(page, window_bases=step) for page in pages]
        backend.load_pages(sampled, case.minimum_length)
    for strand in STRANDS:
        every, *found = (
            find_on(one, case.block(), strand) for one in (complete, cpu, given.backend)
        )
        longer = 0
        for columns in found:
            for rows, rows_of_query in zip(rows_of(every), rows_of(columns), strict=True):
                windows = [row for row in rows if has_window(row[0], row[2], step)]
                assert windows == sorted(
                    row for row in rows_of_query if has_window(row[0], row[2], step)
                )
                assert set(rows_of_query).issubset(rows)
                longer += len(windows)
        assert longer > (50 if step < 64 else 0)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("ordered_bases", "sampling"),
    [
        *((8, KmerSampling(6)), (14, KmerSampling(6)), (34, KmerSampling(6))),
        *((10, KmerSampling(6, 4)), (40, KmerSampling(6, 15))),
        *((10, KmerSampling(6, 4, is_picked=True)), (40, KmerSampling(6, 9, is_picked=True))),
    ],
)
def test_windows_of_repeats_are_found_in_sorted_lists_as_on_the_processor(
    opened_tables, seed, ordered_bases, sampling
):
    """Lists may be sorted by fewer bases than a window has before its k-mer, or by more."""
    case = repeats_case(seed)
    with patch.object(kmer_order, "MAX_UNSORTED_OCCURRENCES", MOST_OCCURRENCES):
        pages = [
            replace(order_long_lists(page, ordered_bases), window_bases=case.minimum_length)
            for page in tables_of(case, sampling)
        ]
    for both in found_by((KmerCpuBackend(Stats()), opened_tables().backend), pages, case):
        expected, found = (list(map(sorted, rows_of(columns))) for columns in both)
        assert found == expected and sum(map(len, found)) > 500


@pytest.mark.parametrize("most", [1, 60, 300])
@pytest.mark.parametrize(
    ("ordered_bases", "sampling"),
    [
        *((14, KmerSampling(7)), (60, KmerSampling(7, 3))),
        *((14, KmerSampling(7, 3, is_picked=True)), (60, KmerSampling(7, 8, is_picked=True))),
    ],
)
@pytest.mark.parametrize("by_windows", [True, False])
def test_seeds_are_chosen_as_on_the_processor(
    opened_tables, most, ordered_bases, sampling, by_windows
):
    """Reads of repeats, of which those with too many matches keep the rarest seeds."""
    case = satellite_case()
    with patch.object(kmer_order, "MAX_UNSORTED_OCCURRENCES", MOST_OCCURRENCES):
        pages = [
            replace(
                order_long_lists(page, ordered_bases),
                window_bases=case.minimum_length if by_windows else None,
                max_matches=most,
            )
            for page in tables_of(case, sampling)
        ]
    stats = Stats()
    given = opened_tables()
    before, compared = Counter(given.stats.counts), 0
    for expected, found in found_by((KmerCpuBackend(stats), given.backend), pages, case):
        assert list(map(sorted, rows_of(found))) == list(map(sorted, rows_of(expected)))
        assert not expected.seeds.size or np.array_equal(found.seeds, expected.seeds)
        compared += expected.seeds.size
    for name in ("reads_with_chosen_seeds", "reads_at_spread_places"):
        assert given.stats.counts[name] - before[name] == stats.counts[name]
    assert compared > 0 or stats.counts["reads_with_chosen_seeds"] == 0
    # Without windows, far more matches are kept before seeds are chosen.
    assert by_windows or stats.counts["reads_with_chosen_seeds"] >= (5 if most < 60 else 0)
    assert not by_windows or stats.counts["reads_with_chosen_seeds"] > 5


def has_window(start, length, step):
    """Whether a match has all bases of a window of its query."""
    return -(-start // step) * step + step <= start + length


def test_references_are_packed_a_stretch_at_a_time(opened_tables, monkeypatch):
    """Stretches are whole words; what lies behind the last of each is in the next."""
    for stretch in (32, 64, 416, 1 << 26):
        monkeypatch.setattr(kmer_tables, "UPLOAD_BASES", stretch)
        given = opened_tables()
        given.load_pages(GENOME)
        assert given.find(GENOME.block()) == GENOME.expected(FORWARD)
        count = Counter(given.device.launches)["pack_codes"]
        assert count == 1 + -(-(sum(map(len, GENOME.records)) + 3) // stretch)


def test_a_block_is_sent_and_packed_once_for_both_strands(opened_tables):
    given = opened_tables()
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
def test_queries_of_every_length_are_turned_in_their_places(opened_tables, seed):
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
    given = opened_tables(watched(seed))
    given.load_pages(case, 1 + seed % 3 if most > 3 else 1)
    found = given.backend.find_mems(case.block(), STRANDS, ANY)
    for strand in STRANDS:
        assert rows_of(found[strand]) == case.expected(strand)
