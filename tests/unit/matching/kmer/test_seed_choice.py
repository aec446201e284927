"""The choice of seeds where a read has too many matches, against the rule in plain Python."""

from collections import Counter
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from helpers.chosen_seeds import chosen
from helpers.in_memory import reference_of
from helpers.kmer_cases import repeats_case, satellite_case, tables_of
from helpers.loops import each
from helpers.search_cases import STRANDS, SearchCase, find_on, made_bases, rows_of
from helpers.sequences import reverse_complement

from mummergpu.index import kmer_order
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.mapping.seeding.windows import (
    ChosenBy,
    ReadCodes,
    chosen_matches,
    matches_of_windows,
)
from mummergpu.matching.kmer import seed_search
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence import seed_rule
from mummergpu.sequence.codes import padded_reverse_complements, with_margins
from mummergpu.sequence.mems import ALL_SEEDS
from mummergpu.sequence.seed_rule import KEPT_SEEDS, new_seed_room, take_rarest
from mummergpu.sequence.strand import Strand

CASE = satellite_case()


def ordered(pages, bases):
    with patch.object(kmer_order, "MAX_UNSORTED_OCCURRENCES", 16):
        return [kmer_order.order_long_lists(page, bases) for page in pages]


@cache
def expected(most, any_match=False):
    """What the rule keeps of each query on each strand."""
    complete = KmerCpuBackend(Stats())
    complete.load_pages(tables_of(CASE, KmerSampling(6)), CASE.minimum_length)
    found = {}
    for strand in STRANDS:
        columns = find_on(complete, CASE.block(), strand)
        found[strand] = [
            chosen(
                CASE.records,
                query if strand is Strand.FORWARD else reverse_complement(query),
                rows,
                CASE.minimum_length,
                most,
                any_match,
            )
            for query, rows in zip(CASE.queries, rows_of(columns), strict=True)
        ]
    return found


@pytest.mark.parametrize("most", [1, 7, 60, 300, 2000])
def test_the_choice_is_that_of_the_rule_whatever_the_table(most):
    wanted = expected(most)
    kinds = Counter(
        (one.seeds < len(query) // 20, one.survives_thinning)
        for strand in STRANDS
        for one, query in zip(wanted[strand], CASE.queries, strict=True)
    )
    assert most == 2000 or kinds[True, False] > 5
    assert most > 60 or kinds[True, True] > 0
    for sampling, bases in (
        (KmerSampling(6), 14),
        (KmerSampling(6), 60),
        (KmerSampling(8, 5), 8),
        (KmerSampling(10, 3), 200),
        (KmerSampling(8, 5, is_picked=True), 8),
        (KmerSampling(7, 9, is_picked=True), 60),
    ):
        # The bases before positions, which a table may have, change nothing.
        (page,) = ordered(tables_of(CASE, sampling, with_bases_beside=bases > 14), bases)
        stats = Stats()
        backend = KmerCpuBackend(stats)
        backend.load_pages([replace(page, window_bases=20, max_matches=most)], 20)
        for strand in STRANDS:
            found = find_on(backend, CASE.block(), strand)
            for rows, one in zip(rows_of(found), wanted[strand], strict=True):
                assert sorted(rows) == sorted(one.matches)
        spread = sum(one.survives_thinning for strand in STRANDS for one in wanted[strand])
        assert stats.counts["reads_at_spread_places"] == spread


@each("most", [1, 4, 9, 60])
def test_without_windows_all_matches_are_counted(most):
    """As of reads that are too short for windows."""
    wanted = expected(most, any_match=True)
    assert most > 9 or sum(one.survives_thinning for one in wanted[Strand.FORWARD]) > 3
    complete = KmerCpuBackend(Stats())
    complete.load_pages(tables_of(CASE, KmerSampling(6)), CASE.minimum_length)
    block = CASE.block()
    offsets = block.offsets
    codes = {Strand.FORWARD: block.padded_codes}
    codes[Strand.REVERSE] = padded_reverse_complements(block.padded_codes, offsets)
    reference = with_margins(reference_of(CASE.records).codes)
    for sampling, bases in (
        (KmerSampling(6), 14),
        (KmerSampling(8, 5), 60),
        (KmerSampling(10), 8),
        (KmerSampling(8, 5, is_picked=True), 60),
        (KmerSampling(7, 9, is_picked=True), 8),
    ):
        # The bases before positions, which a table may have, change nothing.
        (page,) = ordered(tables_of(CASE, sampling, with_bases_beside=bases > 14), bases)
        backend = KmerCpuBackend(Stats())
        backend.load_pages([replace(page, max_matches=most)], 20)
        with_seeds = 0
        for strand in STRANDS:
            found, every = (find_on(one, CASE.block(), strand) for one in (backend, complete))
            by = ChosenBy(20, 20, most, any_match=True)
            by_parts = chosen_matches(every, ReadCodes(offsets, codes[strand], reference), by)
            for columns in (found, by_parts):
                for rows, one in zip(rows_of(columns), wanted[strand], strict=True):
                    assert sorted(rows) == sorted(one.matches)
                chosen_at = [number < ALL_SEEDS for number in columns.seeds]
                assert [
                    one.seeds
                    for one, at in zip(wanted[strand], columns.seeds, strict=False)
                    if at < ALL_SEEDS
                ] == [number for number in columns.seeds if number < ALL_SEEDS]
                with_seeds += sum(chosen_at)
        assert with_seeds > 5 or most == 60


@each("is_young", [False, True])
def test_reads_without_windows_lose_matches_only_if_many_are_near(is_young):
    """Copies that share a part with a read, or all of it but for up to four bases."""
    random = np.random.default_rng(7)
    read = made_bases(random, 60, "ACGT")
    turned = str.maketrans("ACGT", "CAGT" if is_young else "TGCA")
    copies = (read[:25] + read[25:32].translate(turned) + read[32:] for _ in range(50))
    if not is_young:
        copies = (read[:25] + read[25:].translate(turned) for _ in range(50))
    record = "".join(copy + made_bases(random, 90, "ACGT") for copy in copies)
    case = SearchCase("copies", (record, read + "G"), (read,), 20)
    (page,) = tables_of(case, KmerSampling(8, 3))
    backend = KmerCpuBackend(Stats())
    backend.load_pages([replace(page, max_matches=10)], 20)
    found = find_on(backend, case.block(), Strand.FORWARD)
    assert found.count == 51 if not is_young else found.count < 51
    assert (found.seeds.size > 0) == is_young


@pytest.mark.parametrize("most", [1, 60, 300])
@pytest.mark.parametrize("is_picked", [False, True])
def test_matches_of_parts_of_a_reference_are_chosen_as_by_one_search(most, is_picked):
    """Windows side by side, and windows that overlap, as in the second pass."""
    wanted = expected(most)
    sampling = KmerSampling(6, 3, is_picked)
    (page,) = tables_of(CASE, sampling)
    parts = tables_of(replace(CASE, page_size=5000), sampling)
    assert len(parts) > 4
    block = CASE.block()
    chosen_of_windows = 0
    for distance in (20, 4):
        by_one, by_parts = KmerCpuBackend(Stats()), KmerCpuBackend(Stats())
        overlapping = replace(page, window_bases=20, window_distance=distance, max_matches=most)
        by_one.load_pages([overlapping], 20)
        # Matches that contain no window may contain a longer seed.
        step = None if distance == 20 else 20
        by_parts.load_pages(
            [replace(part, window_bases=step, window_distance=distance) for part in parts], 20
        )
        for strand in STRANDS:
            one, all_matches = find_on(by_one, block, strand), find_on(by_parts, block, strand)
            found = chosen_matches(
                all_matches, ReadCodes(block.offsets), ChosenBy(20, distance, most)
            )
            assert list(map(sorted, rows_of(found))) == list(map(sorted, rows_of(one)))
            if distance == 20:
                kept = [sorted(each.matches) for each in wanted[strand]]
                assert list(map(sorted, rows_of(found))) == kept
            chosen_of_windows += one.count
    assert chosen_of_windows > 50


@each("most", [5, 60, 300])
def test_all_places_with_fewer_differences_than_seeds_are_kept(most):
    """Hamming distances to every place of the reference, compared one by one."""
    wanted = expected(most)
    codes = np.frombuffer("N".join(CASE.records).encode(), np.uint8)
    near = 0
    for query, one in zip(CASE.queries, wanted[Strand.FORWARD], strict=True):
        if not 80 <= len(query) <= 200 or one.survives_thinning:
            continue
        read = np.frombuffer(query.encode(), np.uint8)
        places = np.lib.stride_tricks.sliding_window_view(codes, len(query))
        differences = np.count_nonzero(places != read, axis=1)
        inside = np.count_nonzero(places == ord("N"), axis=1) == 0
        kept = {row[1] - row[0] for row in one.matches}
        places_near = set(np.flatnonzero((differences < one.seeds) & inside).tolist())
        assert places_near <= kept
        near += len(places_near)
    assert near > 5


def satellites_case():
    """Reads of three satellites in turn, with and without differences, each several times."""
    satellites = "AC" * 2500, "AG" * 1500, "ACT" * 1000
    reads = [
        satellite[at : at + 100 + at % 3] + base * (at % 2) + satellite[: 10 * at]
        for at in range(6)
        for satellite in satellites
        for base in ("", "G", "T")
    ]
    return SearchCase("satellites", satellites, tuple(3 * reads), 20)


@pytest.mark.parametrize("step", [20, None])
def test_seeds_that_other_reads_have_had_are_counted_the_same(step):
    """Each read is searched with all others, and alone."""
    case = satellites_case()
    (page,) = ordered(tables_of(case, KmerSampling(6, 3)), 160)
    backend = KmerCpuBackend(Stats())
    backend.load_pages([replace(page, window_bases=step, max_matches=60)], 20)
    together = find_on(backend, case.block(), Strand.FORWARD)
    assert together.count > 1000
    for at, (rows, query) in enumerate(zip(rows_of(together), case.queries, strict=True)):
        alone = find_on(backend, replace(case, queries=(query,)).block(), Strand.FORWARD)
        assert [rows] == rows_of(alone)
        assert alone.seeds.size == 0 or together.seeds[at] == alone.seeds[0]


@pytest.mark.parametrize("most", [1, 60, 300])
def test_places_of_seeds_that_other_reads_have_had_are_the_same(most):
    """Reads of satellites in turn, with and without differences, each several times."""
    case = satellites_case()
    (page,) = ordered(tables_of(case, KmerSampling(6, 3)), 160)
    found = {}
    for kept_seeds in (KEPT_SEEDS, 0):
        stats = Stats()
        backend = KmerCpuBackend(stats)
        backend.load_pages([replace(page, window_bases=20, max_matches=most)], 20)
        with patch.object(seed_rule, "KEPT_SEEDS", kept_seeds):
            columns = [find_on(backend, case.block(), strand) for strand in STRANDS]
        found[kept_seeds] = [rows_of(one) for one in columns if one is not None]
        assert stats.counts["reads_at_spread_places"] > 60
    assert found[KEPT_SEEDS] == found[0]


@pytest.mark.parametrize(
    "sampling", [KmerSampling(8, 5), KmerSampling(8, 9), KmerSampling(8, 5, is_picked=True)]
)
def test_places_of_a_seed_end_where_their_memory_ends(sampling):
    """The table lists fewer k-mers than a seed has places: each stands for several."""
    case = SearchCase("one unit", ("A" * 700, "AC" * 400), ("A" * 150, "AC" * 75), 20)
    (page,) = tables_of(case, sampling)
    (complete,) = tables_of(case, KmerSampling(6))
    behind, rooms = 1000, []

    def room_with_more_behind(most):
        room = new_seed_room(most)
        rooms.append(np.full(room.places.size + behind, -7))
        return room._replace(places=rooms[-1][:-behind])

    for most in (1, 100, 300, 450, 650, 5000):
        found = []
        for one in (page, complete):
            backend = KmerCpuBackend(Stats())
            backend.load_pages([replace(one, window_bases=20, max_matches=most)], 20)
            with patch.object(seed_search, "new_seed_room", room_with_more_behind):
                columns = find_on(backend, case.block(), Strand.FORWARD)
            found.append(list(map(sorted, rows_of(columns))))
            assert (rooms[-1][-behind:] == -7).all() and (rooms[-1] != -7).any() == (most < 551)
        assert found[0] == found[1] and all(found[0])


def test_the_rarest_are_taken_and_of_equal_ones_the_first():
    room = new_seed_room()
    for counts, most, taken in (
        ([5, 1, 3, 1], 5, [0, 1, 1, 1]),
        ([5, 1, 3, 1], 4, [0, 1, 0, 1]),
        ([2, 2, 2], 4, [1, 1, 0]),
        ([9, 9], 4, [0, 0]),
        ([0, 9, 0], 0, [1, 0, 1]),
    ):
        room.occurrences[: len(counts)] = counts
        assert take_rarest(room, len(counts), most) == sum(taken)
        assert room.taken[: len(counts)].tolist() == taken


@cache
def repeats_and_matches(seed):
    """Repeats, and on each strand the rows of all matches that contain a window."""
    case = repeats_case(seed)
    complete = KmerCpuBackend(Stats())
    complete.load_pages(tables_of(case, KmerSampling(6)), case.minimum_length)
    every = [find_on(complete, case.block(), strand) for strand in STRANDS]
    assert all(one is not None for one in every)
    return case, [rows_of(matches_of_windows(one, case.minimum_length)) for one in every]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ordered_bases", [8, 14, 15, 34, 60])
@pytest.mark.parametrize(
    "sampling",
    [
        *(KmerSampling(6, step) for step in (1, 4, 15)),
        *(KmerSampling(6, kmers, is_picked=True) for kmers in (1, 4, 9)),
    ],
)
def test_all_matches_with_a_window_are_found_in_sorted_lists(seed, ordered_bases, sampling):
    """Lists may be sorted by fewer bases than a window has before its k-mer, or by many more."""
    case, expected = repeats_and_matches(seed)
    window = case.minimum_length
    for with_bases_beside in (False, True):
        pages = tables_of(case, sampling, with_bases_beside)
        with patch.object(kmer_order, "MAX_UNSORTED_OCCURRENCES", 16):
            ordered = [kmer_order.order_long_lists(page, ordered_bases) for page in pages]
        by_windows = KmerCpuBackend(Stats())
        by_windows.load_pages([replace(page, window_bases=window) for page in ordered], window)
        for strand, wanted in zip(STRANDS, expected, strict=True):
            found = find_on(by_windows, case.block(), strand)
            assert [sorted(rows) for rows in rows_of(found)] == wanted
            assert sum(map(len, wanted)) > 500


@pytest.mark.parametrize("distance", [1, 4, 11])
def test_windows_that_overlap_are_found_by_picked_kmers(distance):
    """Several windows may have the same picked k-mer, and a match not all of them."""
    case = repeats_case(1)
    window = case.minimum_length
    found = []
    for sampling in (KmerSampling(6), KmerSampling(6, 7, is_picked=True)):
        backend = KmerCpuBackend(Stats())
        pages = tables_of(case, sampling)
        backend.load_pages(
            [replace(page, window_bases=window, window_distance=distance) for page in pages], window
        )
        columns = [find_on(backend, case.block(), strand) for strand in STRANDS]
        assert all(one is not None for one in columns)
        found.append([sorted(rows) for one in columns if one is not None for rows in rows_of(one)])
    assert found[0] == found[1] and sum(map(len, found[0])) > 500
