"""Candidates and their scores, against the whole matrix; and seeds sorted by key."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.full_matrix import FullMatrix
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases, ungapped_score
from helpers.uncompiled import Uncompiled

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidate_scores import bound_of_flank
from mummergpu.mapping.candidates.candidates import EXACT, NOTHING_KNOWN, SeedFreeFlank
from mummergpu.mapping.candidates.key_sort import FEW_ROWS, new_sort_room, sort_by_key
from mummergpu.mapping.placing.refinement import refine
from mummergpu.sequence.codes import decode
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.tiles.band import new_scratch

LEAST = 8


def changed(random, read):
    """A read with a few other letters, some of them unknown, and perhaps a gap."""
    letters = bytearray(read)
    for place in random.integers(0, len(letters), random.integers(0, 6)):
        letters[place] = random.choice(list(b"ACGTN"))
    if random.random() < 0.5:
        place, count = random.integers(1, len(letters)), random.integers(1, 6)
        letters[place : place + count] = random_bases(random, random.integers(0, 8))
    return bytes(letters)


def case(seed):
    """Reads from anywhere, also from beyond the ends of records, on both strands."""
    random = np.random.default_rng(seed)
    unit = random_bases(random, 60)
    records = [
        unit + random_bases(random, 40) + changed(random, unit),
        random_bases(random, 25) + changed(random, unit),
        random_bases(random, 30, b"ACGTN"),
    ]
    reads = []
    for _ in range(12):
        record = records[random.integers(0, 3)]
        at = random.integers(0, max(1, len(record) - 20))
        read = changed(random, record[at : at + random.integers(20, 70)])
        if random.random() < 0.3:
            read = random_bases(random, random.integers(1, 12)) + read
        complement = read[::-1].translate(bytes.maketrans(b"ACGT", b"TGCA"))
        reads.append(complement if random.random() < 0.5 else read)
    return Mapped(block_of(reads), reference_of(records), LEAST)


@pytest.mark.parametrize("seed", range(12))
def test_each_diagonal_with_a_match_is_a_candidate(seed):
    mapped = case(seed)
    table = mapped.candidates()
    starts = mapped.reference.record_starts
    for read in range(mapped.block.query_count):
        seeds = {}
        for strand in range(2):
            for begin, at, length in mapped.matches(read, strand):
                best = seeds.setdefault((strand, at - begin), (begin, length))
                if length > best[1]:
                    seeds[strand, at - begin] = begin, length
        first = table.offsets[read]
        rows = range(first, first + table.counts[read])
        numbers = table.numbers
        keys = [(numbers[row, column.STRAND], table.diagonals[row]) for row in rows]
        assert keys == sorted(seeds)
        for row, key in zip(rows, keys, strict=True):
            begin, length = seeds[key]
            assert (numbers[row, column.SEED_BEGIN], numbers[row, column.SEED_BASES]) == (
                begin,
                length,
            )
            record = np.searchsorted(starts, key[1] + begin, side="right") - 1
            assert numbers[row, column.RECORD] == record


@cache
def best_of(read, reference, costs):
    """The best score with gaps; reads with and without windows have the same flanks."""
    return FullMatrix(read, reference, costs).best()


@pytest.mark.parametrize("by_windows", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_scores_without_gaps_and_with_them(seed, by_windows):
    mapped = replace(case(seed), by_windows=by_windows)
    table = mapped.candidates()
    numbers, costs = table.numbers, mapped.costs
    scratch = new_scratch(200, costs.max_gap)
    checked = 0
    for read in range(mapped.block.query_count):
        first = table.offsets[read]
        for row in range(first, first + table.counts[read]):
            codes = mapped.read(read, int(numbers[row, column.STRAND]))
            begin = int(numbers[row, column.SEED_BEGIN])
            end = begin + int(numbers[row, column.SEED_BASES])
            flanks = mapped.flanks(
                codes, int(numbers[row, column.RECORD]), int(table.diagonals[row]), begin, end
            )
            left, right = (ungapped_score(flank, costs) for flank in flanks)
            assert (numbers[row, column.LEFT_SCORE], numbers[row, column.LEFT_QUERY_BASES]) == left
            assert (
                numbers[row, column.RIGHT_SCORE],
                numbers[row, column.RIGHT_QUERY_BASES],
            ) == right
            seed_score = (end - begin) * costs.match
            assert numbers[row, column.SCORE] == left[0] + seed_score + right[0]
            bests = [best_of(tuple(flank[0]), tuple(flank[1]), costs) for flank in flanks]
            score = seed_score + sum(best[0] for best in bests)
            text = decode(np.array(codes, dtype=np.uint8))
            assert numbers[row, column.BOUND] >= score, text
            is_exact = numbers[row, column.STATE] == EXACT
            # The others may have it too, but have to be looked at.
            assert numbers[row, column.SCORE] in ((score,) if is_exact else range(score + 1)), text
            refine(mapped.scoring, read, 0, scratch, table, row)
            assert numbers[row, column.SCORE] == numbers[row, column.BOUND] == score, text
            for best, flank, shift in (
                (bests[0], left, column.LEFT_SHIFT),
                (bests[1], right, column.RIGHT_SHIFT),
            ):
                sign = -1 if shift == column.LEFT_SHIFT else 1
                is_gapped = best[0] > flank[0]
                assert numbers[row, shift] == (sign * (best[2] - best[1]) if is_gapped else 0)
            checked += 1
    assert checked > 10


MOST = 5000


@pytest.mark.parametrize("count", [0, 1, 2, FEW_ROWS, FEW_ROWS + 1, 300, MOST])
@pytest.mark.parametrize("bits", [1, 7, 16, 62])
def test_rows_are_sorted_by_key_and_then_by_value(count, bits):
    """Digits that all keys share are left out; an odd and an even number of them is sorted."""
    generator = np.random.default_rng(count + bits)
    room = new_sort_room(MOST)
    for shared in (0, 5 << 8, 1 << 61):
        keys = generator.integers(0, 1 << bits, count) | shared
        values = generator.integers(0, 1 << 62, count)
        room.keys[:count], room.values[:count] = keys, values
        sort_by_key(room, count)
        order = np.lexsort((values, keys))
        assert np.array_equal(room.keys[:count], keys[order])
        assert np.array_equal(room.values[:count], values[order])


@pytest.mark.parametrize(
    ("match_bases", "window", "losses"),
    [
        # A gap of one base costs 7, and each further edit 5.
        (NOTHING_KNOWN.match_bases, 8, [7, 7, 10, 15, 20]),
        # Two windows in one insertion of two bases cost 10, but an edit in each 15 bases costs 17.
        (15, 8, [17, 17, 17, 17, 20]),
        (39, 8, [12, 12, 12, 15, 20]),
        (40, 8, [7, 7, 10, 15, 20]),
        # All bases of a window of three cost less than an edit.
        (NOTHING_KNOWN.match_bases, 3, [7, 7, 10, 13, 16]),
    ],
)
def test_a_flank_without_matches_has_edits(match_bases, window, losses):
    """What 40 bases with 0 to 4 windows lack of 40 points and the bonus at their end."""
    bound = Uncompiled().function(bound_of_flank)
    beside = SeedFreeFlank(match_bases, window)
    found = [45 - bound(40, windows, Costs(), beside) for windows in range(5)]
    assert found == losses
