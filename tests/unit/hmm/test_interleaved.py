"""Sequences in lanes have the cells, words and ORFs that they have one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.profiles import block_of, built, profiles, sequences_like

from mummergpu.hmm import byte_filters, filters, translation, word_filter
from mummergpu.hmm.codons import BEYOND
from mummergpu.hmm.filters import FilterThresholds, ProfileFilter
from mummergpu.hmm.interleaved import BYTE_LANES, WORD_LANES, can_interleave, interleaved
from mummergpu.hmm.interleaved_bytes import (
    NODE_COUNTS,
    find_interleaved_cells,
    node_costs,
    node_scores,
    pass_interleaved,
)
from mummergpu.hmm.interleaved_words import UNDECIDED, node_words, score_interleaved
from mummergpu.hmm.tables import (
    BYTE_BASE,
    BYTE_SCALE,
    byte_tables,
    length_tables,
    word_moves,
    word_tables,
)
from mummergpu.hmm.thresholds import minimal_cells
from mummergpu.runtime.stats import Stats

pytestmark = pytest.mark.skipif(
    not can_interleave(), reason="the processor does not look up bytes in registers"
)

SIZES = (1, 2, 3, 7, 23, 24, 25, 30, 36, 48, 97, 600, 4200)


def test_groups_have_every_sequence_once_and_its_residues() -> None:
    random = np.random.default_rng(2)
    for count in (0, 1, 40, 64, 65, 500):
        sizes = random.integers(0, 60, count)
        sizes[:1] = 9000
        sequences = [random.integers(0, 29, size).astype(np.uint8) for size in sizes]
        block = block_of([*sequences, np.zeros(0, dtype=np.uint8)])
        found = interleaved(block, WORD_LANES)
        numbers = found.sequences[found.sequences >= 0]
        there = np.sort(np.concatenate([numbers, found.rest]))
        assert there.tolist() == np.flatnonzero(sizes).tolist()
        assert found.longest == sizes.max(initial=0)
        assert found.rows == np.diff(found.first_rows).max(initial=0)
        for group, lane in np.argwhere(found.sequences >= 0):
            rows = found.codes[found.first_rows[group] : found.first_rows[group + 1], lane]
            length = found.lengths[group, lane]
            assert np.array_equal(rows[:length], sequences[found.sequences[group, lane]])
            assert (rows[length:] == 29).all()
        assert count < 64 or numbers.size


def some_sequences(profile: Any) -> list[Any]:
    random = np.random.default_rng(profile.nodes)
    short = [random.integers(0, 29, size).astype(np.uint8) for size in random.integers(1, 40, 300)]
    return [*sequences_like(profile, 400), *short]


@pytest.mark.parametrize("limit", [0.02, 1.0 - 1e-9])
def test_cells_are_those_of_rows(limit: float) -> None:
    tiles = set()
    for profile in (*profiles(), *map(built, SIZES)):
        sequences = some_sequences(profile)
        block, tables = block_of(sequences), byte_tables(profile)
        own = ProfileFilter(profile, FilterThresholds(F1=limit))
        longest = max(codes.size for codes in sequences)
        least = minimal_cells(tables, length_tables(1 << 13), own.scores.msv)
        striped = byte_filters.striped_bytes(tables)
        borders = np.empty(longest * BYTE_LANES, dtype=np.uint8)
        expected, found = np.empty((2, 2, len(sequences)), dtype=np.int64)
        groups = interleaved(block, BYTE_LANES)
        inside = np.sort(groups.sequences[groups.sequences >= 0])
        count = byte_filters.find_cells(block, striped, least, borders, inside, *expected)
        scores, best = node_scores(tables), np.empty(BYTE_LANES, dtype=np.int8)
        tiles.add(scores.tile)
        assert find_interleaved_cells(groups, scores, least, borders, best, *found) == count
        found = found[:, :count]
        assert np.array_equal(found[:, np.argsort(found[0])], expected[:, :count])
        assert count > 100
        survivors = own.survivors(block, Stats(), groups)
        assert survivors.tolist() == own.survivors(block, Stats()).tolist()
    assert tiles == {*NODE_COUNTS}


def test_what_msv_finds_is_what_it_finds_in_rows() -> None:
    """Of sequences in an order of their own, some of which are in no group."""
    random, lengths, counts = np.random.default_rng(7), length_tables(1 << 13), [0, 0]
    limits = np.array([-np.inf, BYTE_SCALE], dtype=np.float32)
    for profile in (*profiles(), *map(built, SIZES)):
        sequences = [codes for codes in some_sequences(profile) if codes.size]
        block, tables = block_of(sequences), byte_tables(profile)
        striped = byte_filters.striped_bytes(tables)
        row = np.empty(striped.costs.shape[1], dtype=np.uint8)
        steps, unknown = lengths.move + tables.entry, np.full(len(sequences), -1, dtype=np.int64)
        # With these cells SSV leaves it to MSV.
        expected = steps[np.diff(block.offsets)] + 4
        every = np.arange(expected.size)
        undecided = np.empty_like(every)
        given = block, striped, lengths
        assert byte_filters.find_undecided(*given, every, expected, undecided) == every.size
        assert np.array_equal(undecided, every)
        kept = byte_filters.settle_msv(*given, limits, row, every.copy(), expected, unknown)
        assert kept == every.size
        some = random.permutation(every)[:-3]
        groups = interleaved(block, BYTE_LANES, some)
        found = np.full(some.size, -1, dtype=np.int64)
        cells = np.empty(BYTE_LANES * profile.nodes, dtype=np.uint8)
        lanes = np.empty(3 * BYTE_LANES, dtype=np.uint8)
        own = node_costs(tables), tables.bias, steps, cells, lanes
        pass_interleaved(groups, *own, found)
        there = found >= 0
        assert sorted(some[~there]) == sorted(groups.rest) and there.sum() > 100
        assert np.array_equal(found[there], expected[some[there]]), profile.name
        counts[0] += int((found == byte_filters.OVERFLOW).sum())
        counts[1] += int((found[found != byte_filters.OVERFLOW] > BYTE_BASE).sum())
    assert min(counts) > 100


def test_words_are_those_of_rows_unless_a_second_pass_may_count() -> None:
    undecided = 0
    moves = word_moves(1 << 13)
    for profile in (*profiles(), *map(built, SIZES)):
        sequences = [codes for codes in some_sequences(profile) if codes.size]
        block, tables = block_of(sequences), word_tables(profile)
        words = word_filter.striped_words(tables)
        cells = np.empty(3 * words.registers * word_filter.LANES, dtype=np.int16)
        numbers = np.arange(len(sequences))
        expected = np.empty(numbers.size, dtype=np.int64)
        word_filter.score_viterbi(block, words, moves, cells, numbers, expected)
        groups = interleaved(block, WORD_LANES)
        found = np.full(numbers.size, UNDECIDED, dtype=np.int64)
        borders = np.empty(3 * WORD_LANES * groups.rows, dtype=np.int16)
        lanes = np.empty((2, WORD_LANES), dtype=np.int16)
        score_interleaved(groups, node_words(tables), moves, borders, *lanes, found)
        there = found != UNDECIDED
        undecided += int((found == UNDECIDED).sum())
        assert np.array_equal(found[there], expected[there]), profile.name
        assert there.sum() > 100
        one = ProfileFilter(profile, FilterThresholds())
        # Also in another order, as a device lists them.
        for some in (numbers, numbers[::-3]):
            words_of_some = one.viterbi_words(block, some, length_tables(1 << 13))
            assert np.array_equal(words_of_some, expected[some])
    assert undecided > 1000


def test_the_longest_and_the_shortest_sequences_are_those_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random, profile = np.random.default_rng(8), built(23)
    sizes = np.array([0, 1, 100_000] * 50 + [99_999, 2] * 20)
    sequences = [random.integers(0, 29, size).astype(np.uint8) for size in sizes]
    for number in np.flatnonzero(sizes == 100_000):
        # What the profile likes, at the very end of the longest.
        sequences[number][-23:] = profile.matches.argmax(axis=1)
    block, some = block_of(sequences), np.flatnonzero(sizes)
    own = ProfileFilter(profile, FilterThresholds(F1=1.0 - 1e-9))
    groups = interleaved(block, BYTE_LANES)
    assert (groups.sequences >= 0).sum() + groups.rest.size == some.size
    assert groups.longest == 100_000 and groups.sequences.size > 64
    survivors = own.survivors(block, Stats(), groups)
    words = own.viterbi_words(block, some, length_tables(1 << 17))
    with monkeypatch.context() as patch:
        patch.setattr(filters, "can_interleave", lambda: False)
        assert survivors.tolist() == own.survivors(block, Stats()).tolist()
        expected = own.viterbi_words(block, some, length_tables(1 << 17))
    assert np.array_equal(words, expected)
    assert np.count_nonzero(sizes[survivors] == 100_000) == 50


def test_orfs_are_the_same_where_records_are_translated_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(5)
    count = 0
    for size in (0, 1, 2, 3, 60, 62, 64, 66, 128, 130, 190, 3000):
        for turn in range(6):
            sizes = np.maximum(size + random.integers(-3, 4, 5), 0)
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            codes = random.integers(0, 4, offsets[-1]).astype(np.uint8)
            if turn % 2 and codes.size:
                codes[random.integers(0, codes.size)] = random.integers(4, 15)
            # With and without room behind the last record.
            codes = np.append(codes, np.zeros(BEYOND * (turn // 2), dtype=np.uint8))
            whole = translation.find_orfs(codes, offsets)
            with monkeypatch.context() as patch:
                patch.setattr(translation, "can_interleave", lambda: False)
                for here, there in zip(whole, translation.find_orfs(codes, offsets), strict=True):
                    assert np.array_equal(here, there)
            count += whole.records.size
    assert count > 1000
