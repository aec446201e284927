import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases, ungapped_score

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import RESCUE_ROWS
from mummergpu.mapping.placing.rescue import (
    MIN_RESCUED,
    MIN_RUN,
    MateWindow,
    list_words,
    new_marks,
    rescue_mate,
)
from mummergpu.sequence.codes import MARGIN

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
    first = int(mapped.reference.record_starts[record])
    bounds = range(first, first + int(mapped.reference.record_lengths[record]))
    low, high = bounds.start - 20, bounds.stop + 20
    if seed % 3:
        low, high = low + random.integers(0, 40), high - random.integers(0, 40)
    marks = new_marks(mapped.block.longest)
    window = MateWindow(int(strand), int(record), int(low), int(high))
    reads = mapped.scoring.reads
    list_words(reads.reverse_codes if strand else reads.codes, MARGIN, len(read), marks)
    added = rescue_mate(0, mapped.scoring, marks, table, window)
    codes = mapped.reference.codes.tolist()
    bases = mapped.read(0, strand)
    expected = []
    for diagonal in range(low, high):
        length, begin = longest_run(bases, codes, diagonal, bounds)
        if length >= MIN_RUN:
            flanks = mapped.flanks(bases, record, diagonal, begin, begin + length)
            score = length * mapped.costs.match
            score += sum(ungapped_score(flank, mapped.costs)[0] for flank in flanks)
            if score >= MIN_RESCUED:
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
    assert expected
    assert found == expected[:RESCUE_ROWS]
    assert added == len(found)
    # What is known already is not added again.
    assert rescue_mate(0, mapped.scoring, marks, table, window) == 0
    assert table.counts[0] == added
