"""The table of k-mers against a dictionary of lists, however its building is divided."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from helpers.loops import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.index import kmer_table
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import build_kmer_table
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
    assert table.sampling == sampling
    assert table.byte_count <= sampling.table_bytes(end - begin)
    assert table.bases_beside.size == 0


@each("length", [1, 4, 6, 11])
def test_the_bases_before_each_position_may_be_kept(length):
    """The nearest in the highest bits, whatever the bits of a k-mer; breaks count as A."""
    codes = made_codes(length, 2000)
    for begin, step in ((0, 1), (701, 3)):
        sampling = KmerSampling(length, step)
        padded = with_margins(codes)
        without = build_kmer_table(padded, begin, 1990, sampling)
        table = build_kmer_table(padded, begin, 1990, sampling, map, 4000, with_bases_beside=True)
        assert told_lists(table) == told_lists(without)
        assert table.bases_beside.dtype == np.uint8
        for position, found in zip(table.positions.tolist(), table.bases_beside, strict=True):
            before = [0] * 4 + (codes[: begin + position] % 4).tolist()
            assert found == sum(base << 2 * place for place, base in enumerate(before[-4:]))


@pytest.mark.parametrize("length", [1, 2, 5, 6, 9, 11])
def test_parts_side_by_side_list_each_kmer_once(length):
    """Those that reach over the border belong to the part in which they begin."""
    codes = made_codes(length, 3000)
    padded = with_margins(codes)
    whole = lists_of(codes.tolist(), 0, codes.size, length)
    together = defaultdict(list)
    borders = [0, 1000, 1003, 1004, 2900, 3000]
    for begin, end in pairwise(borders):
        part = told_lists(build_kmer_table(padded, begin, end, KmerSampling(length)))
        assert part == lists_of(codes.tolist(), begin, end, length)
        for kmer, places in part.items():
            together[kmer] += [begin + place for place in places]
    assert together == whole


@pytest.mark.parametrize(
    "text",
    [[BREAK] * 50, [0] * 50, [3] * 50, [1, BREAK] * 25, [0, 1, 2], [BREAK] * 49 + [2]],
    ids=["breaks", "A", "T", "single bases", "short", "a base at the end"],
)
@pytest.mark.parametrize("length", [1, 4, 8])
def test_awkward_texts(text, length):
    table = build_kmer_table(
        with_margins(np.array(text, dtype=np.uint8)), 0, len(text), KmerSampling(length)
    )
    assert told_lists(table) == lists_of(text, 0, len(text), length)


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
    codes = made_codes(3, 1500)
    padded = with_margins(codes)
    monkeypatch.setattr(kmer_table, "SLICE_BASES", 400)
    monkeypatch.setattr(kmer_table, "TASK_NUMBERS", 1)
    plenty, scarce = Spread(), Spread()
    expected = build_kmer_table(padded, 0, 1500, KmerSampling(6), plenty)
    found = build_kmer_table(padded, 0, 1500, KmerSampling(6), scarce, scratch_bytes)
    assert np.array_equal(found.offsets, expected.offsets)
    assert np.array_equal(found.positions, expected.positions)
    # One pass that counts, then for each group one that fills and one that sorts.
    buckets = 1 << kmer_table.MAX_BUCKET_BITS
    assert plenty.tasks == [4, 4, buckets]
    assert set(scarce.tasks[1::2]) == {4}
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
    assert table.byte_count == KmerSampling(3).table_bytes(998)


@pytest.mark.parametrize("scratch_bytes", [1 << 12, 1 << 30])
def test_the_share_that_is_done_is_told(scratch_bytes, monkeypatch):
    monkeypatch.setattr(kmer_table, "SLICE_BASES", 300)
    padded = with_margins(encode(b"ACGGTCATTGCA" * 200))
    told = []
    build_kmer_table(padded, 0, 2000, KmerSampling(6), map, scratch_bytes, told.append)
    assert told == sorted(told) and len(told) > 14
    assert told[6] == pytest.approx(kmer_table.COUNTING_SHARE) and told[-1] == pytest.approx(1)
