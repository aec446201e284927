"""Ranges of sorted tables are merged one by one, to the order of all rows."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.output.sorting import record_store
from mummergpu.output.sorting.bam_index import BAI, RowIndexer, index_bytes
from mummergpu.output.sorting.record_store import RowRanges
from mummergpu.output.sorting.row_tables import KEY, NUMBER, PLACE, Axis, row_table, sizes_of

QUIET = [HealthCheck.function_scoped_fixture]


def tables_of(blocks, bits):
    """Return a table of each block of keys; the records of a row lie where its number says."""
    tables = []
    first = 0
    for block in blocks:
        keys = np.array(block, dtype=np.uint64)
        numbers = np.arange(first, first + keys.size, dtype=np.int64)
        spans = np.full(keys.size, 100, dtype=np.uint32)
        rows = row_table(keys, bits, 1000 * numbers, sizes_by_number(numbers), spans)
        rows[:, NUMBER] += first
        tables.append(rows)
        first += keys.size
    return tables


def sizes_by_number(numbers):
    return numbers % 7 * 97 + 1


def merged_ranges(tables, begin):
    ranges = RowRanges(tables, begin, map)
    merged = [ranges.merged(number) for number in range(ranges.count)]
    assert [one.begin for one in merged] == ranges.begins[:-1].tolist()
    return merged


@settings(suppress_health_check=QUIET, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 1 << 33), max_size=30), max_size=12),
    st.sampled_from([1, 3, 33]),
    st.integers(1, 9),
)
def test_ranges_are_the_stable_order(monkeypatch, blocks, bits, range_rows):
    """Few bits make many equal keys."""
    monkeypatch.setattr(record_store, "_RANGE_ROWS", range_rows)
    monkeypatch.setattr(record_store, "_SAMPLES", 2)
    blocks = [[key % (1 << bits) for key in block] for block in blocks]
    merged = merged_ranges(tables_of(blocks, bits), 50)
    rows = np.concatenate([one.rows for one in merged])
    keys = np.array([key for block in blocks for key in block], dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    assert rows[:, NUMBER].tolist() == order.tolist()
    assert rows[:, KEY].tolist() == keys[order].tolist()
    assert rows[:, PLACE].tolist() == (1000 * order).tolist()
    sizes = sizes_by_number(order)
    assert sizes_of(rows).tolist() == sizes.tolist()
    assert np.concatenate([one.ends for one in merged]).tolist() == (50 + sizes.cumsum()).tolist()


@pytest.mark.parametrize("keys", [range(100_000), [7] * 100_000, [5, *[1 << 20] * 9] * 10_000])
def test_no_range_has_many_more_rows_than_the_others(monkeypatch, keys):
    """Also if the rows are equal, and the tables are smaller than what is asked of a range."""
    monkeypatch.setattr(record_store, "_RANGE_ROWS", 2000)
    made = random.Random(2)
    cuts = [0, *sorted(made.sample(range(1, len(keys)), 999)), len(keys)]
    shuffled = made.sample(list(keys), len(keys))
    tables = tables_of([shuffled[begin:end] for begin, end in pairwise(cuts)], 21)
    merged = merged_ranges(tables, 0)
    assert len(merged) > 40
    assert max(one.ends.size for one in merged) < 6000


def test_an_index_takes_ranges_in_any_order(monkeypatch):
    made = np.random.default_rng(8)
    lengths = np.array([70_000, 20, 3000, 400_000])
    starts = np.append(0, lengths.cumsum())
    axis = Axis(starts, starts[:-1], lengths)
    blocks = [made.integers(0, starts[-1] + 1, 500).tolist() for _ in range(9)]
    blocks.append([int(starts[-1])] * 200)
    tables = tables_of(blocks, axis.bits)
    whole = RowIndexer(axis)
    for merged in merged_ranges(tables, 90):
        whole.add(merged)
    monkeypatch.setattr(record_store, "_RANGE_ROWS", 100)
    ranges = merged_ranges(tables, 90)
    assert len(ranges) > 30
    shuffled = RowIndexer(axis)
    for number in made.permutation(len(ranges)).tolist():
        shuffled.add(ranges[number])
    assert bytes_of(shuffled.found()) == bytes_of(whole.found())
    assert shuffled.found().counts[:, 2].sum() == 4700


def bytes_of(found):
    return index_bytes(found, BAI, np.arange(40) * 20_000)
