"""The table of minimizers against a search of them, and the plan of an index of them."""

from concurrent.futures import ThreadPoolExecutor
from math import inf
from unittest.mock import patch

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.loops import each
from helpers.search_cases import made_bases
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index import minimizer_index, minimizer_table
from mummergpu.index.kmer_plan import KmerCost, KmerJob
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.minimizer_index import (
    MinimizerIndex,
    expected_cost,
    kept_seconds,
    kmer_seconds,
)
from mummergpu.index.minimizer_order import MAX_UNSORTED_OCCURRENCES, ORDERED_BASES, POSITION_SHIFT
from mummergpu.index.minimizer_table import MAX_BASES, build_minimizer_table, max_build_bytes
from mummergpu.index.options import KmerOptions
from mummergpu.index.reference_index import BuildWork
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK, MARGIN, with_margins
from mummergpu.sequence.contexts import context_at
from mummergpu.sequence.minimizers import find_minimizers, new_workspace

EXAMPLES = settings(max_examples=40)

PLENTY = MemoryBudget(1 << 40)


def told_entries(table):
    """The bucket and the entry of each minimizer, by position."""
    assert table.offsets.dtype == np.uint32 and table.entries.dtype == np.uint64
    assert table.offsets[0] == 0 and table.offsets[-1] == table.entries.size
    ordered = sum(array.nbytes for array in table.ordered)
    assert table.byte_count == 4 * table.offsets.size + 8 * table.entries.size + ordered
    sizes = np.diff(table.offsets.astype(np.int64))
    assert sizes.min() >= 0 and sizes.size & (sizes.size - 1) == 0
    found = []
    for bucket in np.flatnonzero(sizes).tolist():
        entries = table.entries[table.offsets[bucket] : table.offsets[bucket + 1]].tolist()
        assert entries == sorted(entries) or len(entries) > MAX_UNSORTED_OCCURRENCES
        found += [(bucket, entry) for entry in entries]
    return sorted(found, key=lambda row: row[1] >> POSITION_SHIFT)


def expected_entries(codes, kmer_length, window, buckets):
    padded = with_margins(codes)
    places, ranks = np.empty(codes.size + 1, np.int64), np.empty(codes.size + 1, np.uint32)
    count = find_minimizers(
        *(padded, MARGIN, MARGIN + codes.size, MARGIN, MARGIN + codes.size),
        *(kmer_length, window, new_workspace(), 0, places, ranks),
    )
    rows = []
    for place, rank in zip(places[:count].tolist(), ranks[:count].tolist(), strict=True):
        context = int(context_at(padded, place // 2, kmer_length, place % 2 == 1))
        rows.append((rank % buckets, (place - 2 * MARGIN) << POSITION_SHIFT - 1 | context))
    return rows


@EXAMPLES
@given(
    seed=st.integers(0, 10**6),
    bases=st.integers(1, 3000),
    kmer_length=st.sampled_from([1, 3, 7]),
    window=st.integers(1, 30),
    slice_bases=st.sampled_from([64, 1000, 1 << 20]),
)
def test_all_minimizers_are_listed_by_rank_and_position(
    seed, bases, kmer_length, window, slice_bases
):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 + seed % BREAK, bases).astype(np.uint8)
    codes[random.random(bases) < 0.01] = BREAK
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(3) as executor:
        patch.setattr(minimizer_table, "SLICE_BASES", slice_bases)
        shares = []
        table = build_minimizer_table(
            with_margins(codes), kmer_length, window, executor.map, shares.append
        )
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)
    expected = expected_entries(codes, kmer_length, window, table.offsets.size - 1)
    assert told_entries(table) == expected


def plan_of(bases, minimum_length, budget=PLENTY, kmer_seconds=inf, **told):
    """The plan, if a table of k-mers is expected to take so long."""
    reference = reference_of([made_bases(np.random.default_rng(1), bases, "ACGT")])
    options = KmerOptions(unique_strands=2, **told)
    # The same number of bases on each strand of the queries.
    with patch.object(minimizer_index, "kmer_seconds", lambda job: kmer_seconds):
        return MinimizerIndex.plan(reference, options, minimum_length, budget, 2 * bases)


def test_kmers_are_long_enough_for_the_reference(monkeypatch):
    def chosen(bases, minimum_length):
        plan = plan_of(bases, minimum_length)
        return None if plan is None else (plan.kmer_length, plan.window)

    monkeypatch.setattr(minimizer_index, "KMER_LENGTHS", (3, 5, 7))
    assert chosen(100, 8) == (3, 6) and chosen(100, 9) == (3, 7)
    # Longer ones, as far as windows of eight k-mers allow.
    assert chosen(100, 12) == (5, 8) and chosen(100, 13) == (5, 9)
    assert chosen(100, 14) == chosen(1 << 16, 14) == (7, 8) and chosen(100, 10**6) == (7, 256)
    # Longer ones, as the reference has more bases than there are k-mers.
    assert chosen(128, 9) == (3, 7) and chosen(132, 10) == (5, 6)
    assert chosen(1 << 16, 12) == (7, 6)
    # Windows of fewer k-mers are not worth it.
    assert chosen(100, 7) is chosen(132, 9) is chosen(1 << 16, 11) is None


def test_what_a_table_of_minimizers_cannot_do_is_left_to_tables_of_kmers():
    assert plan_of(4000, 20) is not None and plan_of(4000, 20, page_size=4000) is not None
    assert plan_of(4000, 20, page_size=3999) is None
    assert plan_of(4000, 20, sampling=KmerSampling(5)) is None
    assert plan_of(4000, 20, MemoryBudget(1 << 40, device=1 << 40)) is None
    assert plan_of(4000, 13) is None and plan_of(4000, 20, kmer_seconds=0) is None
    assert MAX_BASES == 1 << 30


def test_the_cheaper_one_of_both_tables_is_chosen():
    def is_cheaper(bases, query_bases, strands, minimum_length):
        window = minimum_length - 12
        cost = expected_cost(bases, query_bases, window).seconds
        return cost < kmer_seconds(KmerJob(bases, minimum_length, strands * query_bases))

    # Large genomes against each other, and less so on one strand alone.
    assert is_cheaper(10**8, 10**8, 2, 20) and is_cheaper(10**8, 10**8, 1, 20)
    assert is_cheaper(12 * 10**6, 12 * 10**6, 2, 20)
    # Many reads of a small genome, whose table of k-mers is in the caches.
    assert not is_cheaper(3 * 10**6, 120 * 10**6, 1, 30)
    twice, once = (expected_cost(10**8, bases, 8).search for bases in (2 * 10**8, 10**8))
    assert twice == pytest.approx(2 * once)


def test_few_queries_of_a_large_repeat_are_searched_by_minimizers():
    def plan(base, bases):
        options = KmerOptions(unique_strands=1)
        return MinimizerIndex.plan(reference_of([base * bases]), options, 20, PLENTY, 3000)

    # All k-mers of the first one are the same.
    assert plan("A", 5_000_000) is not None and plan("ACGTGTCATTGC", 60_000) is None


def test_minimizers_beside_a_table_that_there_is_have_to_pay():
    bases = 1 << 17
    reference = reference_of([made_bases(np.random.default_rng(1), bases, "ACGT")])
    options = KmerOptions(unique_strands=2)
    cost = expected_cost(bases, bases, 8).seconds

    def plan(kept):
        return MinimizerIndex.plan(reference, options, 20, PLENTY, 2 * bases, kept)

    # A reference in the caches: what the costs tell counts.
    assert plan(KmerCost(0, 1.01 * cost)) is not None and plan(KmerCost(0, 0.99 * cost)) is None
    assert plan(KmerCost(1.01 * cost, 0)) is not None and plan(KmerCost(0, 0)) is None
    assert kept_seconds(KmerCost(3, 5), 1 << 20) == 8
    assert 3 + 5 * 1.5 < kept_seconds(KmerCost(3, 5), 10**8) < 3 + 5 * 1.6


def test_the_plan_keeps_to_the_memory(monkeypatch):
    """If the user sets a limit, minimizers are counted where it could be exceeded."""
    assert plan_of(4000, 20, MemoryBudget(1, is_limit=True)) is not None
    monkeypatch.setattr(minimizer_index, "NEGLIGIBLE_BYTES", 0)
    padded = 4000 + 2 * MARGIN
    plan = plan_of(4000, 20)
    expected = max_build_bytes(4000, plan.window, 2 * 4000 // (plan.window + 1) + 1)
    (group,) = plan.groups
    assert plan.peak_bytes(group, 4) == expected
    assert plan_of(4000, 20, MemoryBudget(padded + expected)) is not None
    assert plan_of(4000, 20, MemoryBudget(padded + expected - 1)) is None
    codes = reference_of([made_bases(np.random.default_rng(1), 4000, "ACGT")]).padded_codes
    table = build_minimizer_table(codes, plan.kmer_length, plan.window)
    counted = max_build_bytes(4000, plan.window, table.entries.size)
    most = max_build_bytes(4000, plan.window, 4000)
    assert counted < most
    for room, taken in ((most, most), (most - 1, counted), (max(counted, expected), counted)):
        limited = plan_of(4000, 20, MemoryBudget(padded + room, is_limit=True))
        assert limited is not None and limited.peak_bytes(group, 4) == taken
    too_few = min(counted, expected) - 1
    assert plan_of(4000, 20, MemoryBudget(padded + too_few, is_limit=True)) is None


def test_the_page_is_the_whole_reference():
    plan = plan_of(4000, 20)
    stats, ready = Stats(), []
    with ThreadPoolExecutor(2) as executor:
        work = BuildWork(executor, 2, stats, lambda: ready.append(1))
        (page,) = plan.load_pages(plan.groups[0], work)
    assert (page.page.begin, page.page.end, page.page.owned_end) == (0, 4000, 4000)
    assert (page.table.kmer_length, page.table.window) == (plan.kmer_length, plan.window)
    settings = plan.settings()
    assert (settings["kmer_length"], settings["minimizer_window"]) == (13, 8)
    assert settings["expected_query_bases"] == 8000
    assert settings["expected_search_seconds"] > 0 < settings["expected_table_seconds"]
    assert "8 13-mers" in plan.describe()
    assert stats.bytes["tables"] == page.table.byte_count and ready == [1]
    assert page.table.entries.nbytes < plan.peak_bytes(plan.groups[0], 2)


@each("seed", range(12))
def test_long_lists_are_sorted_by_what_follows_and_by_what_precedes(seed):
    random = np.random.default_rng(seed)
    unit = ("A", "AC", "G", made_bases(random, 20, "ACGT"))[seed % 4]
    text = made_bases(random, seed // 4 * 50, "ACGT") + unit * 800 + "ACGT" * 3
    codes = reference_of([text, text[5:300]]).padded_codes
    table = build_minimizer_table(codes, 7, 8)
    long = np.flatnonzero(np.diff(table.offsets.astype(np.int64)) > MAX_UNSORTED_OCCURRENCES)
    assert long.size == table.ordered.begins.size > 0

    def key(entry, by_preceding_bases):
        at = (entry >> POSITION_SHIFT) + MARGIN
        after, before = codes[at + 7 :].tobytes(), codes[:at][::-1].tobytes()
        side = (before if by_preceding_bases else after)[:ORDERED_BASES]
        # What lies beyond a break does not count.
        return entry >> POSITION_SHIFT - 1 & 1, side.split(bytes([BREAK]))[0] + b"\x04", entry

    for number, bucket in enumerate(long.tolist()):
        begin, end = table.offsets[bucket : bucket + 2].tolist()
        first, last = table.ordered.left_begins[number : number + 2].tolist()
        entries, by_preceding_bases = (
            table.entries[begin:end].tolist(),
            table.ordered.by_preceding_bases[first:last],
        )
        assert entries == sorted(entries, key=lambda entry: key(entry, False))
        assert by_preceding_bases.tolist() == sorted(entries, key=lambda entry: key(entry, True))
        reverse = sum(1 for entry in entries if entry >> POSITION_SHIFT - 1 & 1)
        assert table.ordered.reverse_begins[number] == end - reverse
