"""Records at random addresses: all inside the table, and spread over it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.loops import each
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.studies import gathers
from mummergpu.studies.gathers import (
    LANES,
    RECORD_WORDS,
    fill_table,
    follow_records,
    processor_gathers,
)


def table_of(records):
    table = np.zeros(records * RECORD_WORDS, dtype=np.uint64)
    fill_table(table)
    return table


def shape_of(split, records):
    """The words from a record to the next, and from its first half to its second."""
    return (2, 2 * records) if split else (RECORD_WORDS, 2)


@settings(max_examples=200, deadline=None)
@given(
    records=st.integers(1, 400),
    split=st.booleans(),
    first=st.integers(0, 1 << 40),
    steps=st.integers(0, 300),
    words=st.sampled_from(["filled", "zeros", "ones"]),
)
def test_addresses_stay_in_the_table(records, split, first, steps, words):
    table = table_of(records)
    if words != "filled":
        table[:] = 0 if words == "zeros" else (1 << 63) - 1
    before = table.copy()
    addresses = (np.arange(LANES, dtype=np.int64) + first) % records
    for _ in range(3):
        follow_records(table, records, *shape_of(split, records), addresses, steps)
        assert addresses.min() >= 0 and addresses.max() < records
    assert np.array_equal(table, before)


@each("records, split", [(1, False), (7, True), (1000, False), (1000, True), (1 << 16, False)])
def test_addresses_are_those_that_the_records_name(records, split):
    table = table_of(records)
    stride, second = shape_of(split, records)
    addresses = np.arange(LANES, dtype=np.int64) % records
    expected = addresses.tolist()
    for step in range(40):
        for lane, address in enumerate(expected):
            both = int(table[address * stride]) + int(table[address * stride + second])
            key = (step * LANES + lane) * 0x9E3779B1
            expected[lane] = ((both + key) % (1 << 32)) * records >> 32
    total = follow_records(table, records, stride, second, addresses, 40)
    assert addresses.tolist() == expected
    assert total == sum(expected)


@each("records, split", [(500, False), (500, True), (20_000, False), (20_000, True)])
def test_chains_do_not_go_in_circles(records, split):
    """Else a table of gigabytes would seem to be read from a cache."""
    table = table_of(records)
    stride, second = shape_of(split, records)
    seen = np.zeros(records, dtype=bool)
    every = []
    for steps in range(0, 4 * records // LANES, 8):
        # A number of steps from the start: the keys depend on it.
        at = np.arange(LANES, dtype=np.int64) % records
        follow_records(table, records, stride, second, at, steps)
        every.append(at)
    seen[np.concatenate(every)] = True
    count = len(every) * LANES
    assert seen.mean() == pytest.approx(1 - np.exp(-count / records), rel=0.15)
    # Lanes that have met go on apart.
    assert all(np.unique(at).size > LANES * 3 // 4 for at in every)


def test_a_table_is_filled_with_different_words():
    table = table_of(5000)
    assert np.unique(table).size == table.size
    assert np.unique(table & 0xFFFFFFFF).size > 0.99 * table.size
    assert abs(float((table & 0xFFFFFFFF).mean()) / (1 << 31) - 1) < 0.02


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("table_bytes", [0, 1, 32, 1000, 1 << 18])
def test_rates_are_plausible(monkeypatch, table_bytes, threads):
    monkeypatch.setattr(gathers, "PROCESSOR_GATHERS", 1 << 10)
    with ThreadPoolExecutor(threads) as pool:
        rates = processor_gathers(table_bytes, 3, threads, pool.map)
    assert set(rates) == {"merged", "split"}
    assert all(1e5 < rate < 1e12 for rate in rates.values())


def test_a_rate_is_the_records_of_all_threads_in_the_median_time(monkeypatch):
    # The first turn warms up; of the others the median counts.
    lengths = iter([50.0, 1.0, 9.0, 2.0] * 2)
    now, turns = [0.0], []

    def clock():
        return now[0]

    def map_function(function, numbers):
        numbers = list(numbers)
        turns.append(numbers)
        now[0] += next(lengths)
        return map(function, numbers)

    monkeypatch.setattr(gathers.time, "perf_counter", clock)
    rates = processor_gathers(1 << 12, 3, 5, map_function)
    per_thread = LANES * gathers.PROCESSOR_GATHERS
    assert rates == {"merged": 5 * per_thread / 2.0, "split": 5 * per_thread / 2.0}
    assert turns == [[0, 1, 2, 3, 4]] * 8


def test_threads_follow_chains_of_their_own(monkeypatch):
    starts, tables = [], []

    def noted(table, records, stride, second, addresses, steps):
        starts.append(addresses.tolist())
        tables.append((table.size, records, stride, second))
        assert addresses.max() * stride + second < table.size
        return 0

    monkeypatch.setattr(gathers, "follow_records", noted)
    processor_gathers(1 << 14, 1, 3, map)
    assert len(starts) == 2 * 2 * 3
    assert sorted(start for each in starts[:3] for start in each) == list(range(3 * LANES))
    assert set(tables) == {(2048, 512, 4, 2), (2048, 512, 2, 1024)}
