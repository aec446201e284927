"""Looks for a read beside its mate, on the diagonals of a window on which it has a match."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.candidates.candidate_scores import score_candidate
from mummergpu.mapping.candidates.candidates import (
    CORE_BEGIN,
    CORE_LENGTH,
    DEAD,
    MARK,
    NOTHING_KNOWN,
    NUMBERS,
    RECORD,
    SCORE,
    STATE,
    STRAND,
    Reads,
    Table,
    Target,
    read_length,
)
from mummergpu.mapping.candidates.ungapped import Qualities, differences_right
from mummergpu.mapping.placing.evidence import UNIT
from mummergpu.mapping.placing.marked_diagonals import (
    DIAGONALS_AT_ONCE,
    WORD_BASES,
    DiagonalMarks,
    list_words,
    mark_diagonals,
)
from mummergpu.mapping.placing.pairing import (
    LEAST_SIZE,
    MOST_SIZE,
    Pairing,
    best_partner,
    mate_diagonals,
)
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BREAK, MARGIN, STEP, CodeArray
from mummergpu.viterbi.recurrence.model import CostTuple

LEAST_RUN: Final = WORD_BASES
"""The least bases of a match on a diagonal that is looked at; a power of 2."""

LEAST_RESCUED: Final = 20
"""The least score without gaps, with the bonus of the ends, of a candidate that is added."""

MOST_TRIES: Final = 16
"""The most candidates of a read beside which its mate is looked for: the best ones."""


@inline_without_refcounts
def has_run(
    codes: CodeArray, at: int, length: int, reference: CodeArray, reference_at: int
) -> bool:
    """Return whether there is a match of `LEAST_RUN` bases on a diagonal."""
    before = np.uint64(0xFFFFFFFF)
    found = False
    done = 0
    while done < length:
        mask = differences_right(codes, at + done, reference, reference_at + done)
        count = min(STEP, length - done)
        if count < STEP:
            mask |= np.uint64(0xFFFFFFFF) << np.uint64(count)
            mask &= np.uint64(0xFFFFFFFF)
        both = ~(before | mask << np.uint64(32))
        both &= both >> np.uint64(1)
        both &= both >> np.uint64(2)
        both &= both >> np.uint64(4)
        found |= both != np.uint64(0)
        before = mask
        done += STEP
    return found


@inline_without_refcounts
def longest_run(
    codes: CodeArray, at: int, length: int, reference: CodeArray, reference_at: int
) -> tuple[int, int]:
    """Return where the longest match on a diagonal begins, and its bases, if it is long enough."""
    if not has_run(codes, at, length, reference, reference_at):
        return 0, 0
    best, best_begin, run = 0, 0, 0
    for place in range(length):
        code = codes[at + place]
        if code == reference[reference_at + place] and code != BREAK:
            run += 1
            if run > best:
                best, best_begin = run, place + 1 - run
        else:
            run = 0
    return best_begin, best


@inline_without_refcounts
def move_to_place(table: Table, read: int) -> bool:
    """Move the candidate after those of a read to its place among them, unless they have it."""
    offsets, counts, diagonals, numbers = table
    first = offsets[read]
    end = first + counts[read]
    strand, diagonal = numbers[end, STRAND], diagonals[end]
    place = end
    while place > first and (
        numbers[place - 1, STRAND] > strand
        or (numbers[place - 1, STRAND] == strand and diagonals[place - 1] >= diagonal)
    ):
        place -= 1
        if numbers[place, STRAND] == strand and diagonals[place] == diagonal:
            return False
    for row in range(end, place, -1):
        diagonals[row], diagonals[row - 1] = diagonals[row - 1], diagonals[row]
        for number in range(NUMBERS):
            moved = numbers[row, number]
            numbers[row, number] = numbers[row - 1, number]
            numbers[row - 1, number] = moved
    counts[read] += 1
    return True


@inline_without_refcounts
def add_diagonal(
    read: int,
    reads: Reads,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    table: Table,
    strand: int,
    record: int,
    diagonal: int,
) -> int:
    """Add a diagonal to the candidates of a read, if it has a match and a good score."""
    reference, record_starts, record_ends = target
    begin, length = reads[0][read], read_length(reads, read)
    codes = reads[2] if strand == 1 else reads[1]
    shift = max(0, record_starts[record] - diagonal)
    behind = min(length, record_ends[record] - diagonal)
    core_begin, core_length = longest_run(
        codes, MARGIN + begin + shift, behind - shift, reference, MARGIN + diagonal + shift
    )
    row = table[0][read] + table[1][read]
    if core_length < LEAST_RUN or row == table[0][read + 1]:
        return 0
    # The row after the last is free.
    table[2][row] = diagonal
    table[3][row, STRAND] = strand
    table[3][row, RECORD] = record
    table[3][row, CORE_BEGIN] = shift + core_begin
    table[3][row, CORE_LENGTH] = core_length
    score_candidate(reads, read, target, costs, qualities, NOTHING_KNOWN, table, row)
    return 1 if table[3][row, SCORE] >= LEAST_RESCUED and move_to_place(table, read) else 0


@jit_without_refcounts
def rescue_mate(
    read: int,
    reads: Reads,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    marks: DiagonalMarks,
    table: Table,
    strand: int,
    record: int,
    low: int,
    high: int,
) -> int:
    """Add the diagonals of a window with a good score to the candidates of a read."""
    reference, record_starts, record_ends = target
    begin, length = reads[0][read], read_length(reads, read)
    codes = reads[2] if strand == 1 else reads[1]
    low = max(low, record_starts[record] - length + LEAST_RUN)
    high = min(high, record_ends[record] - LEAST_RUN)
    added = 0
    list_words(codes, MARGIN + begin, length, marks)
    for first in range(low, high, DIAGONALS_AT_ONCE):
        end = min(first + DIAGONALS_AT_ONCE, high)
        mark_diagonals(
            reference, max(first, record_starts[record]),
            min(end - 1 + length, record_ends[record]), first, end, marks,
        )  # fmt: skip
        for diagonal in range(first, end):
            if marks[2][diagonal - first] != 0:
                marks[2][diagonal - first] = 0
                added += add_diagonal(
                    read, reads, target, costs, qualities, table, strand, record, diagonal
                )
    return added


@inline_without_refcounts
def best_marked(table: Table, read: int) -> int:
    """Return the first of the candidates of a read that score best among those with a mark."""
    offsets, counts, _, numbers = table
    best, score = as_int64(-1), as_int64(0)
    for row in range(offsets[read], offsets[read] + counts[read]):
        here = as_int64(numbers[row, SCORE])
        if numbers[row, MARK] != 0 and (best < 0 or here > score):
            best, score = as_int64(row), here
    return best


@inline_without_refcounts
def most_of_rescued(length: int, seed_length: int, costs: CostTuple) -> int:
    """Return the most that a mate may score which is found beside a read only.

    It has no match of the seed length: otherwise it would be a candidate already.
    """
    edits = length // seed_length
    loss = costs.mismatch + costs.match
    return length * costs.match + 2 * costs.end_bonus - edits * loss


@jit_without_refcounts
def rescue_template(
    template: int,
    reads: Reads,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    limits: tuple[int, int],
    pairing: Pairing,
    marks: DiagonalMarks,
    table: Table,
    joint: int,
) -> int:
    """Look for mates beside placements that have none, beside the best ones first."""
    offsets, counts, _, numbers = table
    seed_length, margin = limits
    added = 0
    for mate in range(2):
        read, other = template + mate, template + 1 - mate
        length, other_length = read_length(reads, read), read_length(reads, other)
        most = most_of_rescued(other_length, seed_length, costs)
        for row in range(offsets[read], offsets[read] + counts[read]):
            score = as_int64(numbers[row, SCORE])
            numbers[row, MARK] = 0
            if numbers[row, STATE] == DEAD or (score + most) * UNIT < joint - margin * UNIT:
                continue
            partner = best_partner(table, row, reads, read, other, pairing, costs, SCORE)
            numbers[row, MARK] = 1 if partner < most * UNIT else 0
        for _ in range(MOST_TRIES):
            row = best_marked(table, read)
            if row < 0:
                break
            numbers[row, MARK] = 0
            low, high = mate_diagonals(
                table, row, length, other_length, pairing[LEAST_SIZE], pairing[MOST_SIZE]
            )
            added += rescue_mate(
                other, reads, target, costs, qualities, marks, table,
                1 - numbers[row, STRAND], numbers[row, RECORD], low, high + 1,
            )  # fmt: skip
    return added
