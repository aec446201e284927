"""Tables of k-mers against a dictionary of lists, however they are built, sorted and loaded."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import pairwise
from operator import xor

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.loops import each
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import InputError
from mummergpu.index import kmer_order, kmer_table
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.kmer_order import FILE_ORDERED_BASES, MAX_ORDERED_BASES, order_long_lists
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage, build_kmer_page, build_kmer_table
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.index.pages import Page, plan_pages
from mummergpu.index.reference_index import BuildWork
from mummergpu.input.reference import Reference
from mummergpu.pipeline.plan import plan_storable_index
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK, encode, with_margins


def lists_of(codes, begin, end, length, step=1):
    """Where each k-mer begins in a part; it may end behind the part, not behind the text."""
    found = defaultdict(list)
    for at in range(-(-begin // step) * step, end, step):
        kmer = codes[at : at + length]
        if len(kmer) == length and BREAK not in kmer:
            found[sum(code << 2 * place for place, code in enumerate(kmer))].append(at - begin)
    return dict(found)


def told_lists(table):
    """What a table says, of every k-mer that it has."""
    assert table.offsets.dtype == table.positions.dtype == np.uint32
    assert table.offsets.shape == (4**table.sampling.kmer_length + 1,)
    assert table.offsets[0] == 0 and table.offsets[-1] == table.positions.size
    sizes = np.diff(table.offsets.astype(np.int64))
    assert sizes.min() >= 0
    return {
        kmer: table.positions[table.offsets[kmer] : table.offsets[kmer + 1]].tolist()
        for kmer in np.flatnonzero(sizes).tolist()
    }


def made_codes(seed, count, letters=4, breaks=0.02):
    random = np.random.default_rng(seed)
    codes = random.integers(0, letters, count).astype(np.uint8)
    codes[random.random(count) < breaks] = BREAK
    return codes


class Spread:
    """A map that knows how often it was asked."""

    def __init__(self, spread=map):
        self.spread = spread
        self.tasks = []

    def __call__(self, function, items):
        given = list(items)
        self.tasks.append(len(given))
        return self.spread(function, given)


@settings(max_examples=60)
@given(
    codes=st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 3, BREAK]), min_size=1, max_size=120),
    length=st.integers(1, 7),
    step=st.integers(1, 9),
    data=st.data(),
)
def test_every_kmer_of_a_part_is_listed_where_it_begins(codes, length, step, data):
    begin = data.draw(st.integers(0, len(codes)), "begin")
    end = data.draw(st.integers(begin, len(codes)), "end")
    padded = with_margins(np.array(codes, dtype=np.uint8))
    sampling = KmerSampling(length, step)
    table = build_kmer_table(padded, begin, end, sampling)
    assert told_lists(table) == lists_of(codes, begin, end, length, step)
    assert table.sampling == sampling and table.byte_count <= sampling.table_bytes(end - begin)
    assert table.bases_beside.size == 0


@each("length", [1, 4, 6, 11])
def test_the_bases_before_each_position_may_be_kept(length):
    """As one byte, whatever the bits of a k-mer; breaks count as A."""
    codes = made_codes(length, 2000)
    for begin, step in ((0, 1), (701, 3)):
        sampling = KmerSampling(length, step)
        padded = with_margins(codes)
        without = build_kmer_table(padded, begin, 1990, sampling)
        table = build_kmer_table(padded, begin, 1990, sampling, map, 4000, with_bases_beside=True)
        assert told_lists(table) == told_lists(without) and table.bases_beside.dtype == np.uint8
        for position, found in zip(table.positions.tolist(), table.bases_beside, strict=True):
            before = [0] * 12 + codes[: begin + position].tolist()
            assert found == digest(before[:-13:-1])


@each("length", [1, 2, 5, 6, 8, 9, 11])
def test_parts_side_by_side_list_each_kmer_once(length):
    """Those that reach over the border belong to the part in which they begin."""
    codes = made_codes(length, 3000)
    padded = with_margins(codes)
    for begin, end in pairwise([0, 1000, 1003, 1004, 2900, 3000]):
        part = told_lists(build_kmer_table(padded, begin, end, KmerSampling(length)))
        assert part == lists_of(codes.tolist(), begin, end, length)


@pytest.mark.parametrize("length", [3, 7, 8])
@pytest.mark.parametrize("slice_bases", [1, 7, 100, 1 << 22])
def test_slices_do_not_change_the_table(slice_bases, length, monkeypatch):
    codes = made_codes(2, 500, 3)
    monkeypatch.setattr(kmer_table, "SLICE_BASES", slice_bases)
    spread = Spread()
    table = build_kmer_table(with_margins(codes), 13, 490, KmerSampling(length), spread)
    assert told_lists(table) == lists_of(codes.tolist(), 13, 490, length)
    assert spread.tasks[0] == -(-477 // slice_bases)


@pytest.mark.parametrize("scratch_bytes", [0, 8, 200, 4000])
def test_little_memory_makes_groups_of_buckets_and_the_same_table(scratch_bytes, monkeypatch):
    padded = with_margins(made_codes(3, 1500))
    monkeypatch.setattr(kmer_table, "SLICE_BASES", 400)
    monkeypatch.setattr(kmer_table, "TASK_NUMBERS", 1)
    plenty, scarce = Spread(), Spread()
    expected = build_kmer_table(padded, 0, 1500, KmerSampling(6), plenty)
    found = build_kmer_table(padded, 0, 1500, KmerSampling(6), scarce, scratch_bytes)
    assert np.array_equal(found.offsets, expected.offsets)
    assert np.array_equal(found.positions, expected.positions)
    # One pass that counts, then for each group one that fills and one that sorts.
    buckets = 1 << kmer_table.MAX_BUCKET_BITS
    assert plenty.tasks == [4, 4, buckets] and set(scarce.tasks[1::2]) == {4}
    assert sum(scarce.tasks[2::2]) == buckets
    entries = 8 * expected.positions.size
    assert len(scarce.tasks[1::2]) >= min(entries / max(scratch_bytes, 1), buckets / 2)


@pytest.mark.parametrize(("task_numbers", "tasks"), [(1, 1024), (12, 344), (1 << 15, 1)])
def test_one_task_sorts_several_small_buckets(task_numbers, tasks, monkeypatch):
    codes = np.tile(np.arange(4, dtype=np.uint8), 6)
    monkeypatch.setattr(kmer_table, "TASK_NUMBERS", task_numbers)
    spread = Spread()
    table = build_kmer_table(with_margins(codes), 0, codes.size, KmerSampling(6), spread)
    assert told_lists(table) == lists_of(codes.tolist(), 0, codes.size, 6)
    assert spread.tasks == [1, 1, tasks]


def test_a_bucket_larger_than_the_memory_is_a_group_of_its_own():
    codes = np.zeros(900, dtype=np.uint8)
    codes[::7] = 1
    table = build_kmer_table(with_margins(codes), 0, 900, KmerSampling(8), map, 8)
    assert told_lists(table) == lists_of(codes.tolist(), 0, 900, 8)


@pytest.mark.parametrize(("count", "scratch_bytes"), [(20_000, 1 << 30), (2000, 500)])
def test_threads_build_the_same_table(count, scratch_bytes, monkeypatch):
    padded = with_margins(made_codes(4, count, 4, 0.001))
    expected = build_kmer_table(padded, 5, count - 10, KmerSampling(7))
    monkeypatch.setattr(kmer_table, "SLICE_BASES", count // 26)
    with ThreadPoolExecutor(4) as pool:
        found = build_kmer_table(padded, 5, count - 10, KmerSampling(7), pool.map, scratch_bytes)
    assert np.array_equal(found.offsets, expected.offsets)
    assert np.array_equal(found.positions, expected.positions)


def test_the_memory_of_a_table_is_told_ahead():
    padded = with_margins(np.zeros(1000, dtype=np.uint8))
    table = build_kmer_table(padded, 0, 1000, KmerSampling(3))
    assert table.byte_count == KmerSampling(3).table_bytes(998) == 4 * (998 + 64 + 1)
    assert KmerSampling(3, 7).table_bytes(100) == 4 * (15 + 64 + 1)
    picked = KmerSampling(9, 16, is_picked=True)
    table = build_kmer_table(with_margins(made_codes(7, 100_000, breaks=0)), 0, 100_000, picked)
    assert table.positions.size == pytest.approx(picked.positions_expected(100_000), rel=0.01)
    assert picked.table_bytes(100) == 4 * (12 + (1 << 18) + 1)


@pytest.mark.parametrize("scratch_bytes", [1 << 12, 1 << 30])
def test_the_share_that_is_done_is_told(scratch_bytes, monkeypatch):
    monkeypatch.setattr(kmer_table, "SLICE_BASES", 300)
    padded = with_margins(encode(b"ACGGTCATTGCA" * 200))
    told = []
    build_kmer_table(padded, 0, 2000, KmerSampling(6), map, scratch_bytes, told.append)
    assert told == sorted(told) and len(told) > 14
    assert told[6] == pytest.approx(kmer_table.COUNTING_SHARE) and told[-1] == pytest.approx(1)


def test_each_page_gets_a_table_of_its_own_and_all_share_the_reference():
    codes = np.random.default_rng(1).integers(0, 5, 1000).astype(np.uint8)
    reference = Reference("made.fa", codes, np.array([0]), np.array([1000]), (b"r",))
    pages = plan_pages(1000, 300, 0)
    stats, sampling = Stats(), KmerSampling(4, 3)
    found = [build_kmer_page(reference, page, sampling, 1 << 20, stats) for page in pages]
    for one, page in zip(found, pages, strict=True):
        assert told_lists(one.table) == lists_of(codes.tolist(), page.begin, page.owned_end, 4, 3)
        assert one.padded_reference is found[0].padded_reference
        assert np.array_equal(one.joined_reference, codes)
    assert stats.stages["table_construction"].count == len(pages)


REPEATS = np.array([0, 1] * 60 + [BREAK, 2] + [0, 1] * 60 + [3] * 70 + [0, 1] * 9, dtype=np.uint8)


def page_with_bases(codes, begin, length, step=1):
    padded = with_margins(np.asarray(codes, dtype=np.uint8))
    table = build_kmer_table(
        padded, begin, len(codes), KmerSampling(length, step), with_bases_beside=True
    )
    return KmerPage(Page(2, begin, len(codes), len(codes)), table, padded, "r.mgi")


def ordered(page, longest, period, spread=map):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kmer_order, "MAX_UNSORTED_OCCURRENCES", longest)
        return order_long_lists(page, period, spread)


def lists_in(page):
    table = page.table
    return [
        table.positions[table.offsets[kmer] : table.offsets[kmer + 1]].tolist()
        for kmer in range(table.offsets.size - 1)
    ]


def bases_before(page, position, count):
    """The nearest base first; what lies before the reference are breaks."""
    codes = page.joined_reference[: page.page.begin + position][::-1][:count].tolist()
    return [*codes, *[BREAK] * (count - len(codes))]


def bases_behind(page, position, length):
    """The four bases behind a k-mer, the last one first; behind the reference are breaks."""
    begin = page.page.begin + position + length
    codes = page.joined_reference[begin : begin + 4].tolist()
    return [*codes, *[BREAK] * (4 - len(codes))][::-1]


def as_byte(bases):
    """Four bases, of which the first one counts most; breaks count as A."""
    return sum(base % 4 << 2 * place for place, base in zip((3, 2, 1, 0), bases, strict=True))


def digest(bases):
    """The nearest of twelve bases, and the sums of the next three, four and four; breaks are A."""
    found = 0
    for begin, end in ((0, 1), (1, 4), (4, 8), (8, 12)):
        found = found << 2 | reduce(xor, (base % 4 for base in bases[begin:end]))
    return found


def check_order(codes, begin, length, step, longest, period):
    """Sort a page's lists and hold them to the definition; return how many were sorted."""
    page = page_with_bases(codes, begin, length, step)
    before = lists_in(page)
    found = ordered(page, longest, period)
    assert found.table.ordered_bases == period and found.table.longest_ascending == longest
    beside, sorted_lists = [], 0
    for ascending, list_found in zip(before, lists_in(found), strict=True):
        assert sorted(list_found) == ascending
        keys = [bases_before(found, position, period) for position in list_found]
        if len(ascending) > longest:
            sorted_lists += 1
            assert keys == sorted(keys)
            beside += [as_byte(bases_behind(found, at, length)) for at in list_found]
        else:
            assert list_found == ascending
            beside += [digest(bases_before(found, at, 12)) for at in list_found]
    assert found.table.bases_beside.tolist() == beside
    return sorted_lists


@given(
    codes=st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, BREAK]), min_size=1, max_size=150),
    length=st.integers(1, 4),
    step=st.integers(1, 3),
    longest=st.sampled_from([0, 1, 3, 10, 1000]),
    period=st.integers(1, 11),
    data=st.data(),
)
def test_lists_are_sorted_by_the_bases_before_each_position(
    codes, length, step, longest, period, data
):
    begin = data.draw(st.integers(0, len(codes)), "begin")
    check_order(codes, begin, length, step, longest, period)


@pytest.mark.parametrize("period", [1, 4, 5, 63, 64, 65, 100, MAX_ORDERED_BASES])
@pytest.mark.parametrize("begin", [0, 7])
def test_bases_before_the_reference_are_breaks(begin, period):
    assert check_order(REPEATS, begin, 3, 1, 20, period) == 3


def test_lists_are_not_sorted_for_a_very_long_period():
    page = page_with_bases(REPEATS, 0, 3)
    assert ordered(page, 20, MAX_ORDERED_BASES + 1) is page


def test_threads_sort_the_same_lists():
    codes = np.random.default_rng(5).integers(0, 4, 30_000)
    one = ordered(page_with_bases(codes, 11, 5), 30, 9)
    with ThreadPoolExecutor(4) as pool:
        other = ordered(page_with_bases(codes, 11, 5), 30, 9, pool.map)
    assert np.array_equal(one.table.positions, other.table.positions)
    assert not np.array_equal(one.table.positions, page_with_bases(codes, 11, 5).table.positions)


@pytest.mark.parametrize("damage", ["a position", "an offset"])
def test_what_is_outside_is_an_error(damage):
    page = page_with_bases(REPEATS, 0, 3)
    if damage == "a position":
        page.table.positions[page.table.offsets[0b000100]] = REPEATS.size - 2
    else:
        page.table.offsets[0b000100 + 1] = 1 << 31
    with pytest.raises(InputError, match=r"^r\.mgi: the index is damaged: its page 2 holds"):
        ordered(page, 20, 5)


def test_sorted_lists_stay_as_they_are():
    """A system may keep what was written to the arrays of an index file, and load them again."""
    once = ordered(page_with_bases(REPEATS, 0, 2), 3, 7)
    lists = lists_in(once)
    assert lists != lists_in(page_with_bases(REPEATS, 0, 2))
    assert lists_in(ordered(once, 3, 7)) == lists


MINIMUM_LENGTH = 20


@pytest.fixture(scope="module")
def satellite():
    return reference_of(["AC" * 40_000])


def load(index):
    with ThreadPoolExecutor(1) as executor:
        (page,) = index.load_pages(index.pages, BuildWork(executor, 1, Stats(), lambda: None))
    return page


def test_long_lists_are_sorted_only_for_enough_queries(satellite):
    for query_bases, ascends in ((100, True), (10**6, False)):
        options = KmerOptions(sampling=KmerSampling(10))
        budget = MemoryBudget(1 << 30, None)
        page = load(KmerIndex.plan(satellite, options, MINIMUM_LENGTH, budget, query_bases))
        assert (page.table.ordered_bases == 0) == ascends
        offsets = page.table.offsets.astype(np.int64)
        longest = int(np.argmax(np.diff(offsets)))
        positions = page.table.positions[offsets[longest] : offsets[longest + 1]]
        assert positions.size > 10_000
        assert bool(np.all(np.diff(positions.astype(np.int64)) > 0)) == ascends


def test_an_index_that_outlives_a_run_serves_reads_of_satellites(satellite):
    """Long lists are sorted as those of an index file, for `Index.map`."""
    options = IndexOptions(MINIMUM_LENGTH, KmerOptions(sampling=KmerSampling(10)), None)
    page = load(plan_storable_index(satellite, options, 1))
    assert page.table.ordered_bases == FILE_ORDERED_BASES
