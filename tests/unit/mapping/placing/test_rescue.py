"""Mates that are looked for beside each other, on diagonals that have a word of theirs."""

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases, ungapped_score
from helpers.uncompiled import Uncompiled
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import RESCUE_ROWS
from mummergpu.mapping.placing import rescue
from mummergpu.sequence.codes import BREAK, MARGIN, with_margins

LONGEST_RUN = Uncompiled().function(rescue.longest_run)

NO_MATCH = 1000
"""Matches of so many bases there are none, so there are no candidates at first."""


def longest_run(read, codes, diagonal, bounds):
    """The length of the longest match on a diagonal, the first of several, and its begin."""
    best, run = (0, 0), 0
    for place, base in enumerate(read):
        at = diagonal + place
        run = run + 1 if at in bounds and base == codes[at] < 4 else 0
        if run > best[0]:
            best = run, place + 1 - run
    return best


@pytest.mark.parametrize("seed", range(15))
def test_the_good_diagonals_of_a_window_become_candidates(seed):
    random = np.random.default_rng(seed)
    unit = random_bases(random, 45)
    records = [
        random_bases(random, 20) + unit + random_bases(random, 30) + unit[:30],
        unit + random_bases(random, 60, b"AACGTN") + unit,
    ]
    record, strand = random.integers(0, 2), random.integers(0, 2)
    at = random.integers(0, 12)
    read = bytearray(unit[at : at + random.integers(25, 40)])
    read[random.integers(0, len(read))] = random.choice(list(b"ACGTN"))
    text = bytes(read)
    if strand == 1:
        text = text[::-1].translate(bytes.maketrans(b"ACGT", b"TGCA"))
    mapped = Mapped(block_of([text]), reference_of(records), NO_MATCH)
    table = mapped.candidates()
    table.offsets[1] += RESCUE_ROWS
    first = int(mapped.reference.record_starts[record])
    bounds = range(first, first + int(mapped.reference.record_lengths[record]))
    low, high = bounds.start - 20, bounds.stop + 20
    if seed % 3:
        low, high = low + random.integers(0, 40), high - random.integers(0, 40)
    marks = rescue.new_marks(mapped.block.longest)
    window = rescue.MateWindow(int(strand), int(record), int(low), int(high))
    reads = mapped.scoring.reads
    rescue.list_words(reads.reverse_codes if strand else reads.codes, MARGIN, len(read), marks)
    added = rescue.rescue_mate(0, mapped.scoring, marks, table, window)
    codes = mapped.reference.codes.tolist()
    bases = mapped.read(0, strand)
    expected = []
    for diagonal in range(low, high):
        length, begin = longest_run(bases, codes, diagonal, bounds)
        if length >= rescue.MIN_RUN:
            flanks = mapped.flanks(bases, record, diagonal, begin, begin + length)
            score = length * mapped.costs.match
            score += sum(ungapped_score(flank, mapped.costs)[0] for flank in flanks)
            if score >= rescue.MIN_RESCUED:
                expected.append((strand, record, score, diagonal))
    rows = range(int(table.counts[0]))
    numbers = table.numbers.tolist()
    found = [
        (
            numbers[row][column.STRAND],
            numbers[row][column.RECORD],
            numbers[row][column.SCORE],
            table.diagonals[row],
        )
        for row in rows
    ]
    assert expected and found == expected[:RESCUE_ROWS]
    assert added == len(found)
    # What is known already is not added again.
    assert rescue.rescue_mate(0, mapped.scoring, marks, table, window) == 0
    assert table.counts[0] == added


def test_the_first_of_the_longest_runs_is_taken():
    random = np.random.default_rng(2)
    lengths = set()
    for _ in range(60):
        read = random.integers(0, 2, int(random.integers(1, 130))).astype(np.uint8)
        reference = read.copy()
        for place in random.integers(0, read.size, 8):
            reference[place] = read[place] = BREAK
        found = LONGEST_RUN(with_margins(read), MARGIN, read.size, with_margins(reference), MARGIN)
        length, begin = longest_run(read, reference, 0, range(read.size))
        assert found == ((begin, length) if length >= rescue.MIN_RUN else (0, 0))
        lengths.add(length)
    assert len(lengths) > 20 and min(lengths) < rescue.MIN_RUN


def diagonals_with_words(read, reference, begin, end):
    """The diagonals of equal words without breaks, of which that of the reference is inside."""
    return {
        position - place
        for place in range(len(read) - rescue.WORD_BASES + 1)
        for position in range(begin, end - rescue.WORD_BASES + 1)
        if read[place : place + rescue.WORD_BASES]
        == reference[position : position + rescue.WORD_BASES]
        and BREAK not in read[place : place + rescue.WORD_BASES]
    }


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 30), letters=st.integers(2, 4), low=st.integers(-40, 120))
def test_no_diagonal_is_missed(seed, letters, low):
    random = np.random.default_rng(seed)
    reference = random.integers(0, letters, 150).astype(np.uint8)
    read = reference[40:90].copy()
    for codes in (reference, read):
        codes[random.random(codes.size) < 0.05] = BREAK
        changed = random.random(codes.size) < 0.05
        codes[changed] = random.integers(0, 4, int(changed.sum()))
    begin, end = sorted(random.integers(0, 151, 2).tolist())
    high = low + 100
    marks = rescue.new_marks(read.size)
    codes = with_margins(read)
    rescue.list_words(codes, MARGIN, read.size, marks)
    rescue.mark_diagonals(with_margins(reference), begin, end, low, high, marks)
    found = set((np.flatnonzero(marks.marked) + low).tolist())
    expected = diagonals_with_words(read.tolist(), reference.tolist(), begin, end)
    assert {one for one in expected if low <= one < high} <= found
    assert found <= set(range(low, high))
    # Another read takes the place of this one.
    marks.marked.fill(0)
    rescue.list_words(codes, MARGIN, rescue.WORD_BASES - 1, marks)
    rescue.mark_diagonals(with_margins(reference), begin, end, low, high, marks)
    assert not marks.marked.any()


def test_no_others_are_marked():
    random = np.random.default_rng(1)
    read, reference = (random.integers(0, 4, size).astype(np.uint8) for size in (150, 2200))
    marks = rescue.new_marks(read.size)
    rescue.list_words(with_margins(read), MARGIN, read.size, marks)
    rescue.mark_diagonals(
        with_margins(reference), 0, reference.size, 0, rescue.DIAGONALS_AT_ONCE, marks
    )
    expected = diagonals_with_words(read.tolist(), reference.tolist(), 0, reference.size)
    found = set(np.flatnonzero(marks.marked).tolist())
    assert found == expected & set(range(rescue.DIAGONALS_AT_ONCE)) and len(found) > 3


@pytest.mark.parametrize("length", [0, 1, rescue.WORD_BASES - 1, rescue.WORD_BASES])
def test_short_reads_have_few_words(length):
    marks = rescue.new_marks(length)
    rescue.list_words(with_margins(np.zeros(length, dtype=np.uint8)), MARGIN, length, marks)
    rescue.mark_diagonals(with_margins(np.zeros(20, dtype=np.uint8)), 0, 20, 0, 20, marks)
    assert marks.marked.sum() == (13 if length == rescue.WORD_BASES else 0)


@pytest.mark.parametrize("places", [rescue.MAX_PLACES, rescue.MAX_PLACES + 1])
def test_a_word_with_many_places_marks_all_diagonals(places):
    read = np.zeros(places + rescue.WORD_BASES - 1, dtype=np.uint8)
    reference = np.full(100, 1, dtype=np.uint8)
    reference[40 : 40 + rescue.WORD_BASES] = 0
    marks = rescue.new_marks(read.size)
    rescue.list_words(with_margins(read), MARGIN, read.size, marks)
    rescue.mark_diagonals(with_margins(reference), 0, reference.size, 10, 60, marks)
    first, end = (41 - places, 41) if places == rescue.MAX_PLACES else (10, 60)
    assert (np.flatnonzero(marks.marked) + 10).tolist() == list(range(first, end))


def test_words_of_many_reads_follow_each_other():
    random = np.random.default_rng(3)
    reads, reference = random.integers(0, 4, (400, 100)), random.integers(0, 4, 600)
    codes, kept = with_margins(reference.astype(np.uint8)), rescue.new_marks(100)
    for read in reads.astype(np.uint8):
        fresh = rescue.new_marks(100)
        for marks in (kept, fresh):
            marks.marked.fill(0)
            rescue.list_words(with_margins(read), MARGIN, read.size, marks)
            rescue.mark_diagonals(codes, 0, 600, 0, 500, marks)
        assert np.array_equal(kept.marked, fresh.marked)
