"""The search for unique matches finds what the filter leaves of all matches."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from helpers.in_memory import block_of, reference_of
from helpers.kmer_cases import periodic_case
from helpers.loops import each
from helpers.search_cases import (
    ANY,
    CASES,
    STRANDS,
    SearchCase,
    difference,
    made_bases,
    made_queries,
    random_case,
    rows_of,
)

from mummergpu.index import minimizer_order
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage, build_kmer_table
from mummergpu.index.minimizer_index import MinimizerPage
from mummergpu.index.minimizer_table import build_minimizer_table
from mummergpu.index.pages import Page
from mummergpu.matching.filter import keep_unique
from mummergpu.matching.kmer import unique
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand


@pytest.fixture(autouse=True, params=[2, 256])
def longest_ascending(request, monkeypatch):
    """Most lists are sorted by bases, or few."""
    monkeypatch.setattr(minimizer_order, "MAX_UNSORTED_OCCURRENCES", request.param)
    return int(request.param)


def backend_with(case, kmer_length, window):
    """A backend with a table of minimizers of the whole reference."""
    reference = reference_of(case.records)
    bases = reference.codes.size
    padded = reference.padded_codes
    table = build_minimizer_table(padded, kmer_length, window)
    backend = KmerCpuBackend(Stats())
    backend.load_pages(
        [MinimizerPage(Page(0, 0, bases, bases), table, padded)], case.minimum_length
    )
    assert backend.only_unique
    return backend


def found_by_minimizers(case, kmer_length, window):
    backend = backend_with(case, kmer_length, window)
    return backend.find_unique(case.block(), STRANDS, ANY, map, lambda bases: None)


@cache
def unique_of_all(case):
    """All matches, by a table of k-mers, of which the filter leaves those of the reference."""
    reference = reference_of(case.records)
    bases = reference.codes.size
    sampling = KmerSampling(min(case.minimum_length, 6))
    table = build_kmer_table(reference.padded_codes, 0, bases, sampling)
    backend = KmerCpuBackend(Stats())
    page = KmerPage(Page(0, 0, bases, bases), table, reference.padded_codes)
    backend.load_pages([page], case.minimum_length)
    assert not backend.only_unique
    found = backend.find_mems(case.block(), STRANDS, ANY)
    return [
        {strand: keep_unique(found[strand], in_query) for strand in STRANDS}
        for in_query in (False, True)
    ]


def check(case, kmer_length, window):
    """Compare both searches; return how many matches they find."""
    found = found_by_minimizers(case, kmer_length, window)
    in_reference, in_both = unique_of_all(case)
    for strand in STRANDS:
        assert difference(found[strand], in_reference[strand]) is None, (case.name, strand)
        assert difference(keep_unique(found[strand], in_query=True), in_both[strand]) is None
    return sum(columns.count for columns in found.values())


def lengths_for(minimum_length):
    """K-mers and windows with which all matches of a length can be found."""
    odd = [length for length in (1, 3, 5, 9, 13) if length <= minimum_length]
    return [(length, minimum_length - length + 1) for length in odd[-3:]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_awkward_and_random_cases(case):
    for kmer_length, window in lengths_for(case.minimum_length):
        check(case, kmer_length, window)


@each("seed", range(16))
def test_tandem_repeats(seed):
    check(periodic_case(seed), 9, 4)
    check(periodic_case(seed), 5, 8)


def repeat_case(seed):
    """Genomes that consist of a few families of repeats: diverged, turned, in tandem, broken."""
    random = np.random.default_rng(seed)
    letters = "ACGT"[: 1 + seed % 4]
    families = [made_bases(random, int(random.integers(1, 60)), letters) for _ in range(4)]
    text = ""
    while len(text) < 900:
        piece = families[int(random.integers(0, 4))] * int(random.integers(1, 7))
        (text_piece,) = made_queries(random, piece, 1, len(piece), letters, 0.03)
        text += text_piece + made_bases(random, int(random.integers(0, 20)), "ACGT", 0.02)
    bounds = sorted(random.integers(0, len(text), 2).tolist())
    records = (text[: bounds[0]], text[bounds[0] : bounds[1]], text[bounds[1] :] + "ACGT")
    queries = made_queries(random, text, 6, 500, letters, 0.02)
    queries = ("", *queries, text[bounds[0] : bounds[1]], "ACG", text[::-1])
    return SearchCase(f"repeats {seed}", records, queries, int(random.integers(5, 45)))


@each("seed", range(120))
def test_genomes_of_repeats(seed):
    case = repeat_case(seed)
    for kmer_length, window in lengths_for(case.minimum_length):
        check(case, kmer_length, window)
        # Matches may be longer than windows have to be.
        check(case, kmer_length, (window + 1) // 2)


def test_these_genomes_have_unique_matches_on_both_strands():
    counts = np.zeros(2, dtype=np.int64)
    for seed in range(20):
        found = found_by_minimizers(repeat_case(seed), 3, 3)
        counts += [found[strand].count for strand in STRANDS]
    assert counts.min() > 100


@each("seed", range(12))
def test_neither_parts_nor_room_change_anything(seed):
    case = repeat_case(seed)
    (kmer_length, window), *_ = lengths_for(case.minimum_length)
    expected = found_by_minimizers(case, kmer_length, window)
    # Each base is a task of its own in few of the cases: it takes long.
    least = 1 if seed in (2, 3) else 11
    for task_bases, room, candidates in ((least, 1, 64), (37, 2, 1), (500, 7, 3)):
        with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(3) as executor:
            patch.setattr(unique, "TASK_BASES", task_bases)
            patch.setattr(unique, "MIN_ROOM", room)
            patch.setattr(unique, "CANDIDATES", candidates)
            told = []
            backend = backend_with(case, kmer_length, window)
            block = case.block()
            found = backend.find_unique(block, STRANDS, ANY, executor.map, told.append)
        assert sum(told) == block.base_count
        for strand in STRANDS:
            assert difference(found[strand], expected[strand]) is None


def test_long_matches_reach_the_ends_of_records_and_queries():
    record = made_bases(np.random.default_rng(3), 3000, "ACGT")
    case = SearchCase("long", (record, record[:100]), (record, "T" + record[99:]), 20)
    found = found_by_minimizers(case, 9, 12)
    # The first hundred bases occur twice, but no match consists of them.
    assert rows_of(found[Strand.FORWARD]) == [[(0, 0, 3000)], [(1, 99, 2901)]]
    assert check(case, 9, 12) >= 2


def test_one_strand_alone_has_the_same_matches():
    case = random_case(5)
    expected = found_by_minimizers(case, 3, case.minimum_length - 2)
    backend = backend_with(case, 3, case.minimum_length - 2)
    for strand in STRANDS:
        found = backend.find_unique(case.block(), (strand,), ANY, map, lambda bases: None)
        assert list(found) == [strand] and difference(found[strand], expected[strand]) is None


def test_more_rows_than_are_allowed_give_none():
    case = repeat_case(1)
    (kmer_length, window), *_ = lengths_for(case.minimum_length)
    backend = backend_with(case, kmer_length, window)
    found = backend.find_unique(case.block(), STRANDS, ANY, map, lambda bases: None)
    most = sum(columns.count for columns in found.values())
    assert most > 0
    assert backend.find_unique(case.block(), STRANDS, most, map, lambda bases: None) is not None
    assert backend.find_unique(case.block(), STRANDS, most - 1, map, lambda bases: None) is None


def test_a_part_of_a_block_does_not_see_its_neighbours():
    """The codes beside a part are those of other queries (`QueryBlock.part`)."""
    text = made_bases(np.random.default_rng(8), 400, "ACGT")
    queries = tuple(text[begin : begin + 50] for begin in range(0, 400, 50))
    backend = backend_with(SearchCase("parts", (text,), queries, 20), 9, 12)
    block = block_of(queries)
    for first in range(len(queries)):
        part = block.part(first, first + 1)
        found = backend.find_unique(part, STRANDS, ANY, map, lambda bases: None)
        assert rows_of(found[Strand.FORWARD]) == [[(0, 50 * first, 50)]]


def test_released_pages_are_gone():
    backend = backend_with(random_case(1), 1, 1)
    backend.release_pages()
    assert not backend.only_unique


def satellite_case(seed):
    """Copies of a unit, of which each base may differ, between other bases; and reads of them."""
    random = np.random.default_rng(seed)
    unit = ("AC", "A", made_bases(random, 171, "ACGT"))[seed % 3]
    copies = unit * (3000 // len(unit) + 1)
    (copies,) = made_queries(random, copies, 1, len(copies), "ACGT", (0.0, 0.001, 0.02)[seed % 3])
    text = made_bases(random, 400, "ACGT") + copies + made_bases(random, 400, "ACGT")
    queries = made_queries(random, text, 40, 150, "ACGT", 0.01)
    return SearchCase(f"satellite {seed}", (text, copies[:700]), (*queries, text, copies), 20)


@each("seed", range(12))
def test_satellites(seed):
    """Reads, and sequences longer than what lists are sorted by."""
    check(satellite_case(seed), 13, 8)
    check(satellite_case(seed), 9, 12)
