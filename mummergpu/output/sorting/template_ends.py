"""The compiled loop that lists the templates of a block, and where their reads begin."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, SamFlag
from mummergpu.output.alignments.arrays import REVERSE, UNMAPPED
from mummergpu.output.records.cigars import TAKES_REFERENCE
from mummergpu.output.sorting.radix_order import KeyArray
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)

NO_END: Final = np.iinfo(np.uint64).max
"""The second end of a template with one mapped read."""

MOST_CLIPPED: Final = 1 << 20
"""The most clipped bases that are told apart."""

ScoreArray = UInt32Array

TemplateArrays = tuple[KeyArray, KeyArray, Int64Array, Int64Array, ScoreArray]
"""Templates that have a mapped read: where the reads of each begin in sequencing, and on which
strand, the smaller number first, and `NO_END` for a second read that is not mapped; the primary
rows of the first read of the input and of its mate, `NO_ROW` for none; and the sums of their
qualities."""

_NOT_PRIMARY: Final = int(SamFlag.SECONDARY | SamFlag.SUPPLEMENTARY)
_CLIPS: Final = 0b110000
"""A bit for each operation that clips: S and H."""

_MOST_CLIPS: Final = 2
"""The most operations that clip at one end: soft clips may lie inside hard ones."""


def empty_templates(count: int) -> TemplateArrays:
    """Return unfilled arrays for so many templates."""
    ends = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint64)
    rows = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    return *ends, *rows, np.empty(count, dtype=np.uint32)


@inline_without_refcounts
def clipped_bases(cigars: UInt32Array, begin: int, end: int, is_end: bool) -> int:
    """Return the bases that are clipped at one end of an alignment."""
    bases = as_int64(0)
    for turn in range(min(_MOST_CLIPS, end - begin)):
        operation = as_int64(cigars[as_index(end - 1 - turn if is_end else begin + turn)])
        if (_CLIPS >> (operation & 15)) & 1 == 0:
            break
        bases += operation >> 4
    return min(bases, MOST_CLIPPED)


@inline_without_refcounts
def end_of_row(rows: AlignmentColumns, row: int, bits: int) -> int:
    """Return where the read of a row begins in sequencing, and on which strand."""
    flags, records, positions = rows.flags, rows.records, rows.positions
    offsets, cigars = rows.cigar_offsets, rows.cigars
    begin, end = offsets[as_index(row)], offsets[as_index(row + 1)]
    is_reverse = 1 if as_int64(flags[as_index(row)]) & REVERSE else 0
    place = positions[as_index(row)] + MOST_CLIPPED
    if is_reverse:
        span = as_int64(0)
        for at in range(begin, end):
            operation = as_int64(cigars[as_index(at)])
            span += (operation >> 4) * ((TAKES_REFERENCE >> (operation & 15)) & 1)
        place += max(span, 1) - 1 + clipped_bases(cigars, begin, end, True)
    else:
        place -= clipped_bases(cigars, begin, end, False)
    return as_int64(as_int64(records[as_index(row)]) << bits | place << 1 | is_reverse)


@jit_without_refcounts
def list_templates(
    rows: AlignmentColumns, read_scores: ScoreArray, bits: int, templates: TemplateArrays
) -> int:
    """List the templates that have a mapped read, in the order of their first rows."""
    reads, flags, mates = rows.reads, rows.flags, rows.mate_rows
    first_ends, second_ends, first_rows, second_rows, scores = templates
    count = 0
    for row in range(flags.size):
        if as_int64(flags[as_index(row)]) & (UNMAPPED | _NOT_PRIMARY):
            continue
        mate = mates[as_index(row)]
        has_mate = mate != NO_ROW and as_int64(flags[as_index(mate)]) & UNMAPPED == 0
        # A pair is a template once: with the row of the read that comes first.
        if has_mate and mate < row:
            continue
        first = np.uint64(end_of_row(rows, row, bits))
        score = as_int64(read_scores[as_index(reads[as_index(row)])])
        first_rows[as_index(count)] = row
        if has_mate:
            second = np.uint64(end_of_row(rows, mate, bits))
            first_ends[as_index(count)] = min(first, second)
            second_ends[as_index(count)] = max(first, second)
            second_rows[as_index(count)] = mate
            score += as_int64(read_scores[as_index(reads[as_index(mate)])])
        else:
            first_ends[as_index(count)] = first
            second_ends[as_index(count)] = np.uint64(NO_END)
            second_rows[as_index(count)] = NO_ROW
        scores[as_index(count)] = score
        count += 1
    return count
