"""Cuts alignments at the origins of circular records: a row for each side."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.circular_records import BEYOND
from mummergpu.mapping.alignments.columns import (
    NO_ROW,
    OPERATIONS,
    ROWS,
    AlignmentColumns,
    CigarOperation,
    SamFlag,
    copy_row,
    new_columns,
)
from mummergpu.mapping.alignments.paths import PlacedRows, measure_path
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import Candidates, Scoring, circle_of
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.viterbi.recurrence.operations import (
    DELETION_OPERATION,
    INSERTION_OPERATION,
    MATCH_OPERATION,
    append_operation,
)

_SOFT_CLIP: Final = int(CigarOperation.SOFT_CLIP)
_HARD_CLIP: Final = int(CigarOperation.HARD_CLIP)
_UNMAPPED: Final = int(SamFlag.UNMAPPED)
_SECONDARY: Final = int(SamFlag.SECONDARY)
_SUPPLEMENTARY: Final = int(SamFlag.SUPPLEMENTARY)


def cut_at_origins(
    scoring: Scoring,
    table: Candidates,
    rows: PlacedRows,
    originals: Int64Array,
    columns: AlignmentColumns,
) -> AlignmentColumns:
    """Return alignments with records and positions of the reference before it was unrolled.

    An alignment across an origin becomes two: the longer part takes its place, and the other one is
    supplementary, or both are secondary. `originals` is that of `UnrolledReference`.
    """
    count = columns.row_count
    cut = new_columns(2 * count, 2 * columns.cigars.size + 4 * count)
    state, places = np.zeros(2, dtype=np.int64), np.empty(count, dtype=np.int64)
    cut_rows(scoring, table, rows, originals, columns, places, state, cut)
    return cut.first_rows(int(state[ROWS]))


@jit
def cut_rows(
    scoring: Scoring,
    table: Candidates,
    rows: PlacedRows,
    originals: Int64Array,
    columns: AlignmentColumns,
    places: Int64Array,
    state: Int64Array,
    cut: AlignmentColumns,
) -> None:
    """Write the rows that `cut_at_origins` returns to `cut`; those of `columns` change."""
    circles, reads = scoring.target.circles, columns.reads
    first = 0
    while first < reads.size:
        end = first
        while end < reads.size and reads[end] == reads[first]:
            row = end
            end += 1
            circle = circle_of_row(columns, row, circles)
            place_on_circle(columns, row, circle)
            before, behind = bases_beside_origin(columns, row, circle)
            if behind == 0:
                copy_row(columns, row, reads[row], places, state, cut)
                continue
            places[row] = state[ROWS]
            write_part(scoring, table, rows, columns, row, before < behind, False, state, cut)
            if columns.flags[row] & _SECONDARY:
                write_part(scoring, table, rows, columns, row, before >= behind, False, state, cut)
        # The secondary alignments of a row follow it, before the parts of the read.
        for row in range(first, end):
            circle = circle_of_row(columns, row, circles)
            before, behind = bases_beside_origin(columns, row, circle)
            if behind > 0 and columns.flags[row] & _SECONDARY == 0:
                write_part(scoring, table, rows, columns, row, before >= behind, True, state, cut)
        first = end
    for row in range(state[ROWS]):
        if cut.records[row] >= 0:
            cut.records[row] = originals[cut.records[row]]
        if cut.mate_rows[row] != NO_ROW:
            cut.mate_rows[row] = places[cut.mate_rows[row]]
    for row in range(state[ROWS]):
        mate = cut.mate_rows[row]
        if mate != NO_ROW and cut.flags[row] & _UNMAPPED:
            cut.positions[row] = cut.positions[mate]


@inline
def circle_of_row(columns: AlignmentColumns, row: int, circles: Int64Array) -> int:
    """Return the bases of the circular record of a row, 0 if it is on none."""
    record = as_int64(columns.records[row])
    return circle_of(circles, record) if record >= 0 else as_int64(0)


@inline
def place_on_circle(columns: AlignmentColumns, row: int, circle: int) -> None:
    """Set the position in a circular record, and the shorter of both ways to the mate."""
    if circle == 0:
        return
    position = columns.positions[row] - BEYOND
    position += circle if position < 0 else 0
    position -= circle if position >= circle else 0
    columns.positions[row] = position
    length = as_int64(columns.template_lengths[row])
    if 2 * abs(length) > circle:
        # Both ends count.
        other = abs(length) - 2 - circle
        columns.template_lengths[row] = other if length > 0 else -other


@inline
def bases_beside_origin(columns: AlignmentColumns, row: int, circle: int) -> tuple[int, int]:
    """Return how many pairs of bases of an alignment lie before the origin, and after it."""
    before, behind = as_int64(0), as_int64(0)
    if circle == 0:
        return before, behind
    position = as_int64(columns.positions[row])
    for place in range(columns.cigar_offsets[row], columns.cigar_offsets[row + 1]):
        packed = as_int64(columns.cigars[place])
        kind, length = packed & 15, packed >> 4
        if kind == MATCH_OPERATION:
            first = min(max(circle - position, 0), length)
            before += first
            behind += length - first
        if kind == MATCH_OPERATION or kind == DELETION_OPERATION:
            position += length
    return before, behind


@inline
def write_part(
    scoring: Scoring,
    table: Candidates,
    rows: PlacedRows,
    columns: AlignmentColumns,
    row: int,
    is_behind: bool,
    is_split: bool,
    state: Int64Array,
    cut: AlignmentColumns,
) -> None:
    """Write the part of an alignment before or after the origin.

    `is_split` says that the other part is the alignment of the read.
    """
    target, reads = scoring.target, scoring.reads
    record = as_int64(columns.records[row])
    circle = as_int64(target.circles[record])
    is_forward = table.numbers[rows.candidates[row], column.STRAND] == 0
    codes = reads.codes if is_forward else reads.reverse_codes
    flag = as_int64(columns.flags[row]) | (_SUPPLEMENTARY if is_split else 0)
    clip = _HARD_CLIP if flag & _SUPPLEMENTARY else _SOFT_CLIP
    end, first = as_int64(state[ROWS]), as_int64(state[OPERATIONS])
    low = circle if is_behind else as_int64(0)
    begin, clipped, last = cut_path(columns, row, low, low + circle, clip, cut.cigars, first)
    at = MARGIN + reads.offsets[columns.reads[row]] + clipped
    reference_at = MARGIN + target.record_starts[record] + BEYOND + begin
    cigars, codes_of_target = cut.cigars, target.codes
    # Clips cost nothing: the path to measure lies between them.
    path, behind = first, last
    path += as_int64(cigars[first]) & 15 == clip
    behind -= as_int64(cigars[last - 1]) & 15 == clip
    _, edits = measure_path(codes, at, codes_of_target, reference_at, cigars, path, behind)
    score = score_path(scoring, codes, at, reference_at, cigars, path, behind)
    cut.reads[end] = columns.reads[row]
    cut.flags[end] = flag
    cut.records[end] = record
    cut.positions[end] = begin - low
    cut.qualities[end] = columns.qualities[row]
    cut.cigar_offsets[end + 1] = last
    cut.template_lengths[end] = columns.template_lengths[row]
    cut.mate_rows[end] = columns.mate_rows[row]
    cut.scores[end] = max(score, 0)
    cut.second_scores[end] = 0 if is_split else columns.second_scores[row]
    cut.edit_distances[end] = edits
    state[ROWS], state[OPERATIONS] = end + 1, last


@inline
def cut_path(
    columns: AlignmentColumns,
    row: int,
    low: int,
    high: int,
    clip: int,
    cigars: UInt32Array,
    first: int,
) -> tuple[int, int, int]:
    """Write the CIGAR of the part of an alignment between two positions.

    It begins and ends with pairs of bases; a gap at the origin belongs to neither part. Returned
    are its position, the bases of the read before it, and where the CIGAR ends.
    """
    used, position, end = as_int64(0), as_int64(columns.positions[row]), first
    begin, clipped, used_by_part, gaps = as_int64(0), as_int64(-1), as_int64(0), as_int64(0)
    for place in range(columns.cigar_offsets[row], columns.cigar_offsets[row + 1]):
        packed = as_int64(columns.cigars[place])
        kind, length = packed & 15, packed >> 4
        if kind == MATCH_OPERATION:
            left, right = max(position, low), min(position + length, high)
            if left < right:
                if clipped < 0:
                    begin, clipped, gaps = left, used + left - position, as_int64(place)
                    end = append_operation(cigars, first, end, clip, clipped)
                # Gaps count that lie between pairs of bases of this part.
                for gap in range(gaps, place):
                    between = as_int64(columns.cigars[gap])
                    end = append_operation(cigars, first, end, between & 15, between >> 4)
                end = append_operation(cigars, first, end, MATCH_OPERATION, right - left)
                used_by_part, gaps = used + right - position, as_int64(place + 1)
            position += length
        if kind == DELETION_OPERATION:
            position += length
        else:
            used += length
    return begin, clipped, append_operation(cigars, first, end, clip, used - used_by_part)


@inline
def score_path(
    scoring: Scoring,
    codes: CodeArray,
    at: int,
    reference_at: int,
    cigars: UInt32Array,
    first: int,
    end: int,
) -> int:
    """Return the score of a path; `at` and `reference_at` are where it begins after its clip."""
    costs, reference = scoring.costs, scoring.target.codes
    score = as_int64(0)
    for operation in range(first, end):
        packed = as_int64(cigars[operation])
        kind, length = packed & 15, packed >> 4
        if kind == MATCH_OPERATION:
            for place in range(length):
                code = codes[at + place]
                if code == BREAK:
                    score -= costs.unknown
                elif code == reference[reference_at + place]:
                    score += costs.match
                else:
                    score -= costs.mismatch
            at += length
            reference_at += length
        elif kind == INSERTION_OPERATION:
            score -= costs.insertion_open + length * costs.insertion_extend
            at += length
        elif kind == DELETION_OPERATION:
            score -= costs.deletion_open + length * costs.deletion_extend
            reference_at += length
    return score
