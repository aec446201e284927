"""Looks for a read near its mate, on the diagonals of a window on which it has a match.

The words of the read, eight bases each, are listed. Each word of the window is looked up, so that a
diagonal without a match takes no time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.circular_records import BEYOND
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidate_scores import score_candidate
from mummergpu.mapping.candidates.candidates import (
    DEAD,
    NOTHING_KNOWN,
    NUMBERS,
    RESCUE_ROWS,
    UNIT,
    Candidates,
    Scoring,
    circle_of,
    read_length,
)
from mummergpu.mapping.options import Limits
from mummergpu.mapping.placing.pairing import Placing, best_partner, mate_diagonals
from mummergpu.runtime.arrays import ByteArray, Int16Array, UInt64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, lowest_bit
from mummergpu.sequence.codes import MARGIN, STEP, CodeArray
from mummergpu.sequence.extension import (
    BREAKS,
    WORD_STEP,
    codes_as_word,
    differences_right,
    extend_right,
    packed,
)
from mummergpu.viterbi.recurrence.model import Costs

WORD_BASES: Final = 8
"""The bases of a match that is found."""

MAX_PLACES: Final = 16
"""Where a word has more places in a read, as in a read of a short repeat, all diagonals are marked:
looking at each place of each word of the window would take far longer."""

DIAGONALS_AT_ONCE: Final = 2048
"""How many diagonals are marked at once."""

WORDS: Final = 1 << 2 * WORD_BASES
"""How many words there are: eight codes as `sequence.extension.packed` packs them."""

_CODES_OF_BASES: Final = np.uint64(0x0303030303030303)
_WORD_MASK: Final = np.uint64(WORDS - 1)
_NONE: Final = -1


class DiagonalMarks(NamedTuple):
    """Memory for the marks of one read."""

    listed: UInt64Array  # A bit for each word, set if the read has it.
    last: Int16Array  # Its last place in the read, of a word that is listed.
    before: Int16Array  # For each place the one before it with the same word, or -1.
    marked: ByteArray  # 1 for each diagonal with a match, else 0.


def new_marks(longest: int) -> DiagonalMarks:
    """Return memory for the marks of reads of up to `longest` bases; no diagonal is marked."""
    return DiagonalMarks(
        np.zeros(WORDS // 64, dtype=np.uint64),
        np.empty(WORDS, dtype=np.int16),
        np.empty(max(1, longest), dtype=np.int16),
        np.zeros(DIAGONALS_AT_ONCE, dtype=np.uint8),
    )


@inline
def listed_bit(listed: UInt64Array, word: np.uint64) -> np.uint64:
    """Return 1 if a word is listed, else 0."""
    bits = listed[word >> np.uint64(6)]
    return bits >> (word & np.uint64(63)) & np.uint64(1)  # type: ignore[no-any-return]


@jit
def list_words(codes: CodeArray, at: int, length: int, marks: DiagonalMarks) -> None:
    """List the words of a read that have no breaks, in place of those of another."""
    listed, last, before = marks.listed, marks.last, marks.before
    listed[:] = 0
    for place in range(length - WORD_BASES + 1):
        bases = codes_as_word(codes, at + place)
        if bases & BREAKS == np.uint64(0):
            word = packed(bases)
            before[place] = last[word] if listed_bit(listed, word) != np.uint64(0) else _NONE
            last[word] = place
            listed[word >> np.uint64(6)] |= np.uint64(1) << (word & np.uint64(63))


@jit
def mark_diagonals(
    reference: CodeArray, begin: int, end: int, low: int, high: int, marks: DiagonalMarks
) -> None:
    """Mark the diagonals on which the listed read has a match of a word.

    The match lies in the range from `begin` to `end` of the joined reference, the diagonals in that
    from `low` to `high`. Some are marked that have none: a break of the reference counts as some
    base, and if a word has many places in the read, all are marked.
    """
    listed, last, before, marked = marks
    for first in range(begin, end - WORD_BASES + 1, WORD_BASES):
        # Eight words begin in eight bases. Rarely is one of them listed.
        at = MARGIN + first
        bases = packed(codes_as_word(reference, at) & _CODES_OF_BASES)
        behind = packed(codes_as_word(reference, at + WORD_BASES))
        bases |= behind << np.uint64(2 * WORD_BASES)
        found = np.uint64(0)
        for place in range(WORD_BASES):
            word = bases >> np.uint64(2 * place) & _WORD_MASK
            found |= listed_bit(listed, word) << np.uint64(place)
        while found != np.uint64(0):
            place = lowest_bit(found)
            found &= found - np.uint64(1)
            if first + place > end - WORD_BASES:
                return
            read_place = as_int64(last[bases >> np.uint64(2 * place) & _WORD_MASK])
            places = as_int64(0)
            while read_place != _NONE:
                diagonal = first + place - read_place
                if low <= diagonal < high:
                    marked[diagonal - low] = 1
                read_place = as_int64(before[as_index(read_place)])
                places += 1
                if places > MAX_PLACES:
                    marked[: high - low] = 1
                    return


MIN_RUN: Final = WORD_BASES
"""The fewest bases of a match on a diagonal that is looked at; a power of 2."""

MIN_RESCUED: Final = 20
"""The least score without gaps, with the bonus of the ends, of a candidate that is added."""

MAX_TRIES: Final = 16
"""The most candidates of a read near which its mate is looked for: the best ones."""


@inline
def next_run(
    codes: CodeArray, at: int, length: int, reference: CodeArray, reference_at: int
) -> int:
    """Return where the first match of `MIN_RUN` bases on a diagonal begins; `length` if none."""
    # The lower half is the register before, since a match may go on; nothing matches before it.
    before = np.uint64(0xFFFFFFFF)
    done = 0
    while done < length:
        mask = differences_right(codes, at + done, reference, reference_at + done)
        count = min(STEP, length - done)
        if count < STEP:
            mask |= np.uint64(0xFFFFFFFF) << np.uint64(count)
            mask &= np.uint64(0xFFFFFFFF)
        both = ~(before | mask << np.uint64(32))
        # After the three steps a bit says that its base and the seven after it match.
        both &= both >> np.uint64(1)
        both &= both >> np.uint64(2)
        both &= both >> np.uint64(4)
        if both != np.uint64(0):
            return done - STEP + lowest_bit(both)
        before = mask
        done += STEP
    return length


@inline
def longest_run(
    codes: CodeArray, at: int, length: int, reference: CodeArray, reference_at: int
) -> tuple[int, int]:
    """Return where the longest match on a diagonal begins, and its bases, if it is long enough."""
    best, best_begin, place = as_int64(0), as_int64(0), as_int64(0)
    while length - place > best:
        place += next_run(codes, at + place, length - place, reference, reference_at + place)
        run = extend_right(codes, at + place, reference, reference_at + place, length - place)
        if run > best:
            best, best_begin = run, place
        place += max(1, run)
    return best_begin, best


@inline
def move_to_place(table: Candidates, read: int) -> bool:
    """Move the candidate after those of a read to its place among them, unless they have it."""
    offsets, counts = table.offsets, table.counts
    diagonals, numbers = table.diagonals, table.numbers
    first = offsets[read]
    end = first + counts[read]
    strand, diagonal = numbers[end, column.STRAND], diagonals[end]
    place = end
    while place > first and (
        numbers[place - 1, column.STRAND] > strand
        or (numbers[place - 1, column.STRAND] == strand and diagonals[place - 1] >= diagonal)
    ):
        place -= 1
        if numbers[place, column.STRAND] == strand and diagonals[place] == diagonal:
            return False
    for row in range(end, place, -1):
        diagonals[row], diagonals[row - 1] = diagonals[row - 1], diagonals[row]
        for number in range(NUMBERS):
            moved = numbers[row, number]
            numbers[row, number] = numbers[row - 1, number]
            numbers[row - 1, number] = moved
    counts[read] += 1
    return True


class MateWindow(NamedTuple):
    """Where a mate is looked for: a strand, a record, and a half-open range of diagonals."""

    strand: int
    record: int
    low: int
    high: int


@inline
def give_room(table: Candidates, read: int) -> None:
    """Move the candidates of a read to the end of the table, with room for `RESCUE_ROWS` more."""
    offsets, counts = table.offsets, table.counts
    first, end = offsets[read], offsets[counts.size]
    for place in range(counts[read]):
        table.diagonals[end + place] = table.diagonals[first + place]
        for number in range(NUMBERS):
            table.numbers[end + place, number] = table.numbers[first + place, number]
    offsets[read], offsets[counts.size] = end, end + counts[read] + RESCUE_ROWS


@inline
def has_room(table: Candidates, read: int) -> bool:
    """Return whether the read at the end of the table has fewer candidates than there is room."""
    return bool(table.offsets[read] + table.counts[read] < table.offsets[table.counts.size])


@inline
def add_diagonal(
    read: int, scoring: Scoring, table: Candidates, window: MateWindow, diagonal: int
) -> int:
    """Add a diagonal to a read's candidates if it has a match and a good score; return how many.

    There must be room for one (`has_room`): the row after the last is free.
    """
    reads, target, numbers = scoring.reads, scoring.target, table.numbers
    begin, length = reads.offsets[read], read_length(reads, read)
    codes = reads.reverse_codes if window.strand == 1 else reads.codes
    shift = max(0, target.record_starts[window.record] - diagonal)
    behind = min(length, target.record_ends[window.record] - diagonal)
    seed_begin, seed_bases = longest_run(
        codes, MARGIN + begin + shift, behind - shift, target.codes, MARGIN + diagonal + shift
    )
    row = table.offsets[read] + table.counts[read]
    if seed_bases < MIN_RUN:
        return 0
    table.diagonals[row] = diagonal
    numbers[row, column.STRAND] = window.strand
    numbers[row, column.RECORD] = window.record
    numbers[row, column.SEED_BEGIN] = shift + seed_begin
    numbers[row, column.SEED_BASES] = seed_bases
    score_candidate(scoring, read, NOTHING_KNOWN, table, row)
    return 1 if numbers[row, column.SCORE] >= MIN_RESCUED and move_to_place(table, read) else 0


@jit
def rescue_mate(
    read: int, scoring: Scoring, marks: DiagonalMarks, table: Candidates, window: MateWindow
) -> int:
    """Add the diagonals of a window with a good score to a read's candidates; return how many.

    The read's words are listed (`list_words`). No diagonal is marked before or after.
    """
    target, length = scoring.target, read_length(scoring.reads, read)
    record_start = target.record_starts[window.record]
    record_end = target.record_ends[window.record]
    low = max(window.low, record_start - length + MIN_RUN)
    high = min(window.high, record_end - MIN_RUN)
    circle = circle_of(target.circles, window.record)
    if circle > 0:
        low = max(window.low, record_start + BEYOND)
        high = min(window.high, record_start + BEYOND + circle)
    added = 0
    for first in range(low, high, DIAGONALS_AT_ONCE):
        end = min(first + DIAGONALS_AT_ONCE, high)
        mark_diagonals(
            target.codes, max(first, record_start), min(end - 1 + length, record_end), first, end,
            marks,
        )  # fmt: skip
        for eight in range(0, end - first, WORD_STEP):
            marked = codes_as_word(marks.marked, eight)
            while marked != np.uint64(0):
                place = eight + lowest_bit(marked) // WORD_STEP
                marked &= marked - np.uint64(1)
                marks.marked[place] = 0
                # Where a satellite lies, the first few diagonals take all the room.
                if has_room(table, read):
                    added += add_diagonal(read, scoring, table, window, first + place)
    return added


@inline
def best_marked(table: Candidates, read: int) -> int:
    """Return the first of the candidates of a read that score best among those with a mark."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    best, score = as_int64(-1), as_int64(0)
    for row in range(offsets[read], offsets[read] + counts[read]):
        here = as_int64(numbers[row, column.SCORE])
        if numbers[row, column.MARK] != 0 and (best < 0 or here > score):
            best, score = as_int64(row), here
    return best


@inline
def max_rescued_score(length: int, seed_length: int, costs: Costs) -> int:
    """Return the most that a mate may score that only rescue finds.

    It has no match of the seed length: otherwise it would be a candidate already.
    """
    edits = length // seed_length
    loss = costs.mismatch + costs.match
    return length * costs.match + 2 * costs.end_bonus - edits * loss


@jit
def rescue_beside_marked(read: int, other: int, placing: Placing, marks: DiagonalMarks) -> int:
    """Look for a mate near the candidates of a read with a mark, the best first.

    Return how many are added to those of the mate, the read `other`.
    """
    scoring, pairing, table = placing
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    reads = scoring.reads
    length, other_length = read_length(reads, read), read_length(reads, other)
    added, listed = as_int64(0), as_int64(-1)
    for _ in range(MAX_TRIES):
        row = best_marked(table, read)
        if row < 0:
            break
        if listed < 0:
            give_room(table, other)
        if not has_room(table, other):
            break
        numbers[row, column.MARK] = 0
        strand, record = (
            1 - as_int64(numbers[row, column.STRAND]),
            as_int64(numbers[row, column.RECORD]),
        )
        if strand != listed:
            # The words of the mate on this strand, for all windows in which it is looked for.
            codes = reads.codes if strand == 0 else reads.reverse_codes
            list_words(codes, MARGIN + reads.offsets[other], other_length, marks)
            listed = strand
        for number in range(pairing.range_begin, pairing.range_end):
            least, most = pairing.ranges[number, 0], pairing.ranges[number, 1]
            low, high = mate_diagonals(table, row, length, other_length, least, most)
            window = MateWindow(strand, record, as_int64(low), as_int64(high + 1))
            added += rescue_mate(other, scoring, marks, table, window)
            circle = circle_of(pairing.circles, record)
            if circle > 0:
                # The part of the window beyond an end is at the other one.
                for shift in (-circle, circle):
                    moved = MateWindow(strand, record, window.low + shift, window.high + shift)
                    if has_room(table, other):
                        added += rescue_mate(other, scoring, marks, table, moved)
    if listed >= 0:
        # The rows that are left are free for the next read.
        offsets[counts.size] = offsets[other] + counts[other]
    return added


@jit
def rescue_template(
    template: int, placing: Placing, limits: Limits, marks: DiagonalMarks, pair_score: int
) -> int:
    """Look for mates near placements that have none, the best first; return how many are added.

    `pair_score` is the best score of the template so far, in fixed point.
    """
    scoring, table = placing.scoring, placing.table
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    added = as_int64(0)
    for mate in range(2):
        read, other = template + mate, template + 1 - mate
        other_length = read_length(scoring.reads, other)
        most = max_rescued_score(other_length, limits.seed_length, scoring.costs)
        # A placement is worth it if a mate near it may come within the margin of the best pair,
        # and no candidate of the mate fits it as well as a rescued one could.
        for row in range(offsets[read], offsets[read] + counts[read]):
            score = as_int64(numbers[row, column.SCORE])
            numbers[row, column.MARK] = 0
            if (
                numbers[row, column.STATE] == DEAD
                or (score + most) * UNIT < pair_score - limits.margin * UNIT
            ):
                continue
            partner = best_partner(placing, row, read, other, column.SCORE)
            numbers[row, column.MARK] = 1 if partner < most * UNIT else 0
        added += rescue_beside_marked(read, other, placing, marks)
    return added
