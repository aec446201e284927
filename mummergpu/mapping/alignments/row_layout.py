"""Lays out the rows of alignments: which there are, and what SAM tells about each."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.alignments.columns import CigarOperation, SamFlag
from mummergpu.mapping.alignments.paths import PathArrays
from mummergpu.mapping.candidates.candidates import GAPPED, RECORD, STRAND, Table
from mummergpu.mapping.placing.choice import CHOSEN, QUALITY, SECOND, reported_score
from mummergpu.mapping.placing.pairing import is_proper_pair
from mummergpu.mapping.placing.secondary import Secondary
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array, UInt16Array, UInt32Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple

Extra = tuple[Int64Array, ByteArray]
"""The candidate of each read's supplementary alignment, -1 if it has none; and its quality."""

RowArrays = tuple[
    Int64Array,
    UInt16Array,
    Int32Array,
    Int64Array,
    ByteArray,
    Int32Array,
    Int64Array,
    Int32Array,
    Int32Array,
]
"""The columns `reads`, `flags`, `records`, `positions`, `qualities`, `template_lengths`,
`mate_rows`, `scores` and `second_scores` of `columns.AlignmentColumns`."""

_SOFT_CLIP: Final = int(CigarOperation.SOFT_CLIP)
_HARD_CLIP: Final = int(CigarOperation.HARD_CLIP)
_PAIRED: Final = int(SamFlag.PAIRED)
_PROPER_PAIR: Final = int(SamFlag.PROPER_PAIR)
_UNMAPPED: Final = int(SamFlag.UNMAPPED)
_MATE_UNMAPPED: Final = int(SamFlag.MATE_UNMAPPED)
_REVERSE: Final = int(SamFlag.REVERSE)
_MATE_REVERSE: Final = int(SamFlag.MATE_REVERSE)
_FIRST: Final = int(SamFlag.FIRST)
_LAST: Final = int(SamFlag.LAST)
_SECONDARY: Final = int(SamFlag.SECONDARY)
_SUPPLEMENTARY: Final = int(SamFlag.SUPPLEMENTARY)


@jit_without_refcounts
def list_rows(
    offsets: Int64Array,
    choices: Int32Array,
    extra: Int64Array,
    secondary: Secondary,
    table: Table,
    rows: tuple[Int64Array, Int64Array],
    primaries: Int64Array,
) -> int:
    """List the primary row of each read, and its supplementary and secondary ones after it.

    Secondary rows come after the supplementary one, or those that belong to the primary one before.
    """
    reads, candidates = rows
    numbers = table[3]
    end, most = 0, 0
    for read in range(offsets.size - 1):
        primaries[read] = end
        first, leading = secondary[0][read], secondary[1][read]
        others = secondary[0][read + 1] - first
        for turn in range(2 + others):
            if turn == 0:
                candidate = as_int64(choices[read, CHOSEN])
            elif turn == 1 + leading:
                candidate = extra[read]
                if candidate < 0:
                    continue
            elif turn <= leading:
                candidate = secondary[2][first + turn - 1]
            else:
                candidate = secondary[2][first + turn - 2]
            reads[end] = read
            candidates[end] = candidate
            end += 1
            if candidate >= 0:
                is_gapped = numbers[candidate, GAPPED] != 0
                most += 2 * (offsets[read + 1] - offsets[read]) + 5 if is_gapped else 3
    return most


@inline_without_refcounts
def harden_clips(cigars: UInt32Array, first: int, end: int) -> None:
    """Turn the soft clips of a CIGAR into hard ones."""
    for place in range(first, end):
        if as_int64(cigars[place]) & 15 == _SOFT_CLIP:
            cigars[place] += np.uint32(_HARD_CLIP - _SOFT_CLIP)


@jit_without_refcounts
def fill_rows(
    offsets: Int64Array,
    is_paired: bool,
    proper: tuple[int, int],
    costs: CostTuple,
    choices: Int32Array,
    extra: Extra,
    table: Table,
    candidates: Int64Array,
    primaries: Int64Array,
    record_starts: Int64Array,
    paths: PathArrays,
    columns: RowArrays,
) -> None:
    """Fill the columns of alignments; make the clips of supplementary ones hard."""
    numbers = table[3]
    cigar_offsets, cigars, begins, ends, _ = paths
    reads, flags, records, positions, qualities, sizes, mate_rows, scores, seconds = columns
    for row in range(reads.size):
        read, candidate = reads[row], candidates[row]
        is_extra = primaries[read] != row
        is_secondary = is_extra and candidate != extra[0][read]
        length = offsets[read + 1] - offsets[read]
        flag = (_SECONDARY if is_secondary else _SUPPLEMENTARY) if is_extra else 0
        records[row] = positions[row] = -1
        qualities[row] = scores[row] = seconds[row] = sizes[row] = 0
        mate_rows[row] = -1
        if candidate < 0:
            flag |= _UNMAPPED
        else:
            record = numbers[candidate, RECORD]
            records[row] = record
            positions[row] = begins[row] - record_starts[record]
            scores[row] = reported_score(table, candidate, length, costs)
            flag |= _REVERSE if numbers[candidate, STRAND] == 1 else 0
            if is_secondary:
                qualities[row] = 0
            elif is_extra:
                qualities[row] = extra[1][read]
                harden_clips(cigars, cigar_offsets[row], cigar_offsets[row + 1])
            else:
                qualities[row] = choices[read, QUALITY]
                seconds[row] = choices[read, SECOND]
        if is_paired:
            mate = read ^ 1
            mate_row = primaries[mate]
            mate_rows[row] = mate_row
            other = candidates[mate_row]
            flag |= _PAIRED | (_FIRST if read & 1 == 0 else _LAST)
            if other < 0:
                flag |= _MATE_UNMAPPED
            else:
                flag |= _MATE_REVERSE if numbers[other, STRAND] == 1 else 0
                if candidate < 0:
                    records[row] = numbers[other, RECORD]
                    positions[row] = begins[mate_row] - record_starts[numbers[other, RECORD]]
                elif numbers[other, RECORD] == numbers[candidate, RECORD]:
                    own = ends[row] if flag & _REVERSE else begins[row]
                    far = ends[mate_row] if flag & _MATE_REVERSE else begins[mate_row]
                    sizes[row] = far - own
            mate_length = offsets[mate + 1] - offsets[mate]
            # The part of a read that is split off belongs to a pair if its primary alignment does.
            paired = candidate if is_secondary else as_int64(choices[read, CHOSEN])
            if proper[1] > 0 and is_proper_pair(
                table, paired, length, other, mate_length, proper[0], proper[1]
            ):
                flag |= _PROPER_PAIR
        flags[row] = flag
