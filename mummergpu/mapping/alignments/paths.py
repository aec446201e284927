"""The paths of chosen placements: CIGARs and edit distances."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.candidates.candidates import (
    CORE_BEGIN,
    CORE_LENGTH,
    GAPPED,
    LEFT_GAPPED,
    LEFT_SCORE,
    LEFT_SHIFT,
    LEFT_TAKEN,
    RECORD,
    RIGHT_GAPPED,
    RIGHT_SCORE,
    RIGHT_TAKEN,
    STRAND,
    Reads,
    Table,
    Target,
    prefetch_bases,
    read_length,
)
from mummergpu.mapping.placing.refinement import FIRST_BAND
from mummergpu.runtime.arrays import Int32Array, Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.viterbi.left_alignment import align_left
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.recurrence.tile import tile_at
from mummergpu.viterbi.tiles.extension import extend_path
from mummergpu.viterbi.tiles.scratch import Scratch

OperationArray = UInt32Array

PathArrays = tuple[Int64Array, OperationArray, Int64Array, Int64Array, Int32Array]
"""The paths of some rows: where the operations of each begin in the next array, and where the last
ones end; the operations as BAM packs them; where in the joined reference each path begins and ends,
-1 if there is none; and the bases that differ, are inserted or are deleted."""

ROWS_AHEAD: Final = 16
"""How many rows before it is used the reference beside a candidate is fetched."""

_MATCH = 0
_INSERTION = 1
_DELETION = 2
_SOFT_CLIP = 4


@inline_without_refcounts
def add_operation(operations: OperationArray, first: int, end: int, kind: int, length: int) -> int:
    """Add an operation to a CIGAR, or lengthen its last one; return where it ends."""
    if length == 0:
        return end
    if end > first and as_int64(operations[end - 1]) & 15 == kind:
        operations[end - 1] += np.uint32(length << 4)
        return end
    operations[end] = np.uint32(length << 4 | kind)
    return end + 1


@inline_without_refcounts
def add_operations(
    operations: OperationArray,
    first: int,
    end: int,
    tail: OperationArray,
    count: int,
    is_reversed: bool,
) -> int:
    """Add the operations of a tail to a CIGAR; return where it ends."""
    for number in range(count):
        packed = as_int64(tail[count - 1 - number if is_reversed else number])
        end = add_operation(operations, first, end, packed & 15, packed >> 4)
    return end


@inline_without_refcounts
def trace_candidate(
    reads: Reads,
    read: int,
    target: Target,
    costs: CostTuple,
    scratch: Scratch,
    table: Table,
    row: int,
    tail: OperationArray,
    cigars: OperationArray,
    first: int,
) -> int:
    """Write the operations of a candidate without clips, gaps not yet moved to the left."""
    reference, record_starts, record_ends = target
    diagonals, numbers = table[2], table[3]
    begin, length = reads[0][read], read_length(reads, read)
    codes = reads[1] if numbers[row, STRAND] == 0 else reads[2]
    core_begin = as_int64(numbers[row, CORE_BEGIN])
    core_end = core_begin + as_int64(numbers[row, CORE_LENGTH])
    record, gapped = numbers[row, RECORD], numbers[row, GAPPED]
    end = first
    if gapped & LEFT_GAPPED:
        at = diagonals[row] + core_begin
        tile = tile_at(
            MARGIN + begin + core_begin - 1,
            core_begin,
            MARGIN + at - 1,
            at - record_starts[record],
            -1,
        )
        least = as_int64(numbers[row, LEFT_SCORE])
        found = extend_path(codes, reference, tile, costs, FIRST_BAND, least, scratch, tail, 0)
        end = add_operations(cigars, first, end, tail, found[3], True)
    else:
        end = add_operation(cigars, first, end, _MATCH, as_int64(numbers[row, LEFT_TAKEN]))
    end = add_operation(cigars, first, end, _MATCH, core_end - core_begin)
    if gapped & RIGHT_GAPPED:
        behind = diagonals[row] + core_end
        tile = tile_at(
            MARGIN + begin + core_end,
            length - core_end,
            MARGIN + behind,
            record_ends[record] - behind,
            1,
        )
        least = as_int64(numbers[row, RIGHT_SCORE])
        found = extend_path(codes, reference, tile, costs, FIRST_BAND, least, scratch, tail, 0)
        return add_operations(cigars, first, end, tail, found[3], False)
    return add_operation(cigars, first, end, _MATCH, as_int64(numbers[row, RIGHT_TAKEN]))


@jit_without_refcounts
def trace_paths(
    rows: tuple[Int64Array, Int64Array],
    reads: Reads,
    target: Target,
    costs: CostTuple,
    scratch: Scratch,
    table: Table,
    tail: OperationArray,
    paths: PathArrays,
) -> None:
    """Write the CIGARs, positions and edit distances of chosen candidates."""
    reference, numbers = target[0], table[3]
    cigar_offsets, cigars, begins, ends, edit_distances = paths
    end = 0
    cigar_offsets[0] = 0
    for one in range(rows[0].size):
        later = min(one + ROWS_AHEAD, rows[0].size - 1)
        prefetch_candidate(reads, rows[0][later], target, table, rows[1][later])
        read, row = rows[0][one], rows[1][one]
        if row < 0:
            begins[one] = ends[one] = -1
            edit_distances[one] = 0
            cigar_offsets[one + 1] = end
            continue
        codes = reads[1] if numbers[row, STRAND] == 0 else reads[2]
        core_begin = as_int64(numbers[row, CORE_BEGIN])
        clip = core_begin - as_int64(numbers[row, LEFT_TAKEN])
        first = end
        at_path = add_operation(cigars, first, end, _SOFT_CLIP, clip)
        end = trace_candidate(
            reads, read, target, costs, scratch, table, row, tail, cigars, at_path
        )
        position = table[2][row] + numbers[row, LEFT_SHIFT] + clip
        at = MARGIN + reads[0][read] + clip
        if numbers[row, GAPPED] != 0:
            end = at_path + align_left(
                cigars, at_path, end - at_path, codes, at, reference, MARGIN + position
            )
        behind, edits = measure_path(codes, at, reference, MARGIN + position, cigars, at_path, end)
        begins[one], ends[one], edit_distances[one] = position, behind - MARGIN, edits
        used = (
            core_begin + as_int64(numbers[row, CORE_LENGTH]) + as_int64(numbers[row, RIGHT_TAKEN])
        )
        end = add_operation(cigars, first, end, _SOFT_CLIP, read_length(reads, read) - used)
        cigar_offsets[one + 1] = end


@inline_without_refcounts
def prefetch_candidate(reads: Reads, read: int, target: Target, table: Table, row: int) -> None:
    """Have the memory fetch the reference beside a candidate that comes a little later."""
    if row >= 0:
        prefetch_bases(target[0], MARGIN + table[2][row], read_length(reads, read))


@inline_without_refcounts
def measure_path(
    codes: CodeArray,
    at: int,
    reference: CodeArray,
    reference_at: int,
    cigars: OperationArray,
    first: int,
    end: int,
) -> tuple[int, int]:
    """Return where a path ends in the reference, and its edit distance."""
    edits = 0
    for operation in range(first, end):
        packed = as_int64(cigars[operation])
        kind, length = packed & 15, packed >> 4
        if kind == _MATCH:
            for place in range(length):
                code = codes[at + place]
                edits += code == BREAK or code != reference[reference_at + place]
            at += length
            reference_at += length
        elif kind == _INSERTION:
            edits += length
            at += length
        else:
            edits += length
            reference_at += length
    return reference_at, edits
