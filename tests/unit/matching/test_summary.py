"""What is counted about matches, beside a count of every base and row."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from helpers.in_memory import block_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.matching import summary
from mummergpu.matching.summary import (
    LENGTH_BINS,
    FileCounts,
    LengthCount,
    MatchCounts,
    MatchSummary,
    StrandCounts,
    bin_range,
    count_matches,
)
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.strand import Strand

BOTH = (Strand.FORWARD, Strand.REVERSE)


def columns(rows):
    """The matches of queries, each a reference start and a length."""
    flat = np.array([row for query in rows for row in query], dtype=np.int64).reshape(-1, 2)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    starts = np.ascontiguousarray(flat[:, 0])
    return MemColumns(offsets, np.zeros_like(starts), starts, np.ascontiguousarray(flat[:, 1]))


def counted(found, stats):
    found.report()
    return stats.match_counts


def test_files_strands_and_lengths_are_counted():
    stats = Stats()
    found = MatchSummary(100, ["a.fq", "b.fq", "a.fq"], BOTH, stats)
    one = block_of(("ACGT", "AC", "A"))
    other = replace(block_of(("ACGTACGT",)), file_number=2)
    found.add(
        one,
        {
            Strand.FORWARD: columns([[(0, 4), (90, 4)], [], []]),
            Strand.REVERSE: columns([[(2, 4)], [(50, 2)], []]),
        },
    )
    found.add(other, {Strand.FORWARD: columns([[]]), Strand.REVERSE: columns([[(50, 8)]])})
    assert counted(found, stats) == MatchCounts(
        6 + 4 + 8,
        (LengthCount(2, 2, 1), LengthCount(4, 4, 3), LengthCount(8, 8, 1)),
        (
            FileCounts("a.fq", 3, 7, 2, 4),
            FileCounts("b.fq", 0, 0, 0, 0),
            FileCounts("a.fq", 1, 8, 1, 1),
        ),
        (StrandCounts("forward", 1, 2), StrandCounts("reverse", 3, 3)),
    )
    assert stats.counts == {"queries_with_match": 3, "bases_covered": 18}
    assert stats.stages["summary"].count == 2


def test_one_strand_and_nothing_at_all():
    stats = Stats()
    found = MatchSummary(0, ["a"], [Strand.REVERSE], stats)
    found.add(block_of(()), {Strand.REVERSE: columns([])})
    found.add(block_of(("", "A")), {Strand.REVERSE: columns([[], []])})
    expected = MatchCounts(0, (), (FileCounts("a", 2, 1, 0, 0),), (StrandCounts("reverse", 0, 0),))
    assert counted(found, stats) == expected


@settings(max_examples=60)
@given(st.data(), st.integers(1, 700))
def test_bases_are_covered_once(data, size):
    interval = st.integers(0, size - 1).flatmap(
        lambda begin: st.tuples(st.just(begin), st.integers(1, size - begin))
    )
    blocks = data.draw(st.lists(st.lists(interval, max_size=8), max_size=5))
    stats = Stats()
    found = MatchSummary(size, ["a"], [Strand.FORWARD], stats)
    covered = np.zeros(size, dtype=bool)
    for rows in blocks:
        found.add(block_of(("A",)), {Strand.FORWARD: columns([rows])})
        for begin, length in rows:
            covered[begin : begin + length] = True
    assert counted(found, stats).bases_covered == np.count_nonzero(covered)


def test_many_threads_count_as_one_does():
    chance = random.Random(3)
    size = 200_000
    blocks = [
        [(chance.randrange(size - 3000), chance.randrange(1, 3000)) for _ in range(200)]
        for _ in range(40)
    ]
    stats = Stats()
    found = MatchSummary(size, ["a"], [Strand.FORWARD], stats)

    def add(rows):
        found.add(block_of(("A",)), {Strand.FORWARD: columns([rows])})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, blocks))
    covered = np.zeros(size, dtype=bool)
    for begin, length in (row for rows in blocks for row in rows):
        covered[begin : begin + length] = True
    counts = counted(found, stats)
    assert counts.bases_covered == np.count_nonzero(covered) and counts.files[0].matches == 8000
    lengths = Counter(length for rows in blocks for _, length in rows)
    assert sum(one.matches for one in counts.lengths) == 8000
    for one in counts.lengths:
        assert one.matches == sum(lengths[n] for n in range(one.first, one.last + 1))


def test_ranges_of_lengths_follow_each_other():
    """Each begins where the one before ends, and a long one is a thirtieth of its lengths wide."""
    end = 0
    for number in range(LENGTH_BINS):
        first, last = bin_range(number)
        assert first == end and last >= first
        assert (first == last) if first < 1024 else last - first + 1 <= first / 32
        end = last + 1
    assert end == 1 << 63


@pytest.mark.parametrize("octave", range(9, 21))
def test_a_length_is_counted_in_its_range(octave):
    chance = random.Random(octave)
    some = [chance.randrange(1 << octave, 2 << octave) for _ in range(20)]
    lengths = [1 << octave, (2 << octave) - 1, *some]
    counts = np.zeros(LENGTH_BINS, dtype=np.int64)
    for number in range(LENGTH_BINS):
        first, last = bin_range(number)
        expected = [length for length in lengths if first <= length <= last]
        if expected:
            before = counts.copy()
            rows = np.array(expected, dtype=np.int64)
            covered = np.zeros(1 << 17, dtype=np.uint64)
            count_matches(np.zeros_like(rows), rows, 1 << 23, covered, counts)
            assert np.flatnonzero(counts - before).tolist() == [number]
            assert counts[number] == len(expected)


def test_rows_outside_the_reference_mark_nothing():
    """Only a damaged index gives such rows; they must not be written to other memory."""
    starts = np.array([-1, 0, 60, 64, 1 << 60, -(1 << 62)], dtype=np.int64)
    lengths = np.array([5, 70, 10, 1, 1 << 62, 3], dtype=np.int64)
    covered = np.zeros(3, dtype=np.uint64)
    counts = np.zeros(LENGTH_BINS, dtype=np.int64)
    assert count_matches(starts, lengths, 64, covered[1:2], counts) == 0
    assert not covered.any() and not counts.any()


def test_the_memory_is_that_of_a_bit_for_each_base():
    found = MatchSummary(10**6, ["a"], BOTH, Stats())
    assert found._covered.nbytes <= summary.summary_bytes(10**6) + 8
