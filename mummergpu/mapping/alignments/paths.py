"""The paths of chosen placements: CIGARs and edit distances."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns, CigarOperation, SamFlag
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    LEFT_GAPPED,
    RIGHT_GAPPED,
    Candidates,
    Scoring,
    aligned_part,
    has_breaks,
    prefetch_bases,
    read_length,
)
from mummergpu.mapping.placing.choice import reported_score
from mummergpu.mapping.placing.refinement import FIRST_BAND
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit, writable
from mummergpu.sequence.codes import BREAK, COMPLEMENT_OF_CODE, MARGIN, CodeArray
from mummergpu.viterbi.left_alignment import align_left
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import (
    DELETION_OPERATION,
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    append_operation,
)
from mummergpu.viterbi.recurrence.tile import tile_at
from mummergpu.viterbi.tiles.band import Scratch
from mummergpu.viterbi.tiles.extension import extend_path


class Paths(NamedTuple):
    """The paths of some rows."""

    # Where the operations of each row begin, and where the last ones end; (n_rows + 1,).
    cigar_offsets: Int64Array
    cigars: OperationArray  # The operations as BAM packs them.
    # Where in the joined reference each path begins and ends, -1 if there is none.
    begins: Int64Array
    ends: Int64Array
    edit_distances: Int32Array  # The bases that differ, are inserted or are deleted.


class PlacedRows(NamedTuple):
    """Which alignments are written, in their order."""

    # The read of each row, and its candidate, -1 if it has none.
    reads: Int64Array
    candidates: Int64Array
    primaries: Int64Array  # The primary row of each read.


_REVERSE: Final = int(SamFlag.REVERSE)

ROWS_AHEAD: Final = 16
"""How many rows ahead the reference next to a candidate is fetched."""

_SOFT_CLIP: Final = int(CigarOperation.SOFT_CLIP)


@inline
def add_operations(
    operations: OperationArray,
    first: int,
    end: int,
    flank: OperationArray,
    count: int,
    is_reversed: bool,
) -> int:
    """Add the operations of a flank to a CIGAR; return where it ends."""
    for number in range(count):
        packed = as_int64(flank[count - 1 - number if is_reversed else number])
        end = append_operation(operations, first, end, packed & 15, packed >> 4)
    return end


@inline
def trace_candidate(
    scoring: Scoring,
    scratch: Scratch,
    table: Candidates,
    read: int,
    row: int,
    flank: OperationArray,
    cigars: OperationArray,
    first: int,
) -> int:
    """Write the operations of a candidate without clips, gaps not yet moved to the left.

    They begin at `first` in `cigars`; where they end is returned. `flank` is memory for those of a
    flank.
    """
    reads, target, costs = scoring.reads, scoring.target, scoring.costs
    reference, diagonals, numbers = target.codes, table.diagonals, table.numbers
    begin, length = reads.offsets[read], read_length(reads, read)
    codes = reads.codes if numbers[row, column.STRAND] == 0 else reads.reverse_codes
    seed_begin = as_int64(numbers[row, column.SEED_BEGIN])
    seed_end = seed_begin + as_int64(numbers[row, column.SEED_BASES])
    record, gapped = numbers[row, column.RECORD], numbers[row, column.GAPPED]
    end = first
    # The left flank is aligned outwards from the seed, so its operations come reversed.
    if gapped & LEFT_GAPPED:
        at = diagonals[row] + seed_begin
        tile = tile_at(
            MARGIN + begin + seed_begin - 1,
            seed_begin,
            MARGIN + at - 1,
            at - target.record_starts[record],
            -1,
        )
        least = as_int64(numbers[row, column.LEFT_SCORE])
        found = extend_path(codes, reference, tile, costs, FIRST_BAND, least, scratch, flank, 0)
        end = add_operations(cigars, first, end, flank, found[3], True)
    else:
        end = append_operation(
            cigars, first, end, MATCH_OPERATION, as_int64(numbers[row, column.LEFT_QUERY_BASES])
        )
    end = append_operation(cigars, first, end, MATCH_OPERATION, seed_end - seed_begin)
    if gapped & RIGHT_GAPPED:
        behind = diagonals[row] + seed_end
        tile = tile_at(
            MARGIN + begin + seed_end,
            length - seed_end,
            MARGIN + behind,
            target.record_ends[record] - behind,
            1,
        )
        least = as_int64(numbers[row, column.RIGHT_SCORE])
        found = extend_path(codes, reference, tile, costs, FIRST_BAND, least, scratch, flank, 0)
        return add_operations(cigars, first, end, flank, found[3], False)
    return append_operation(
        cigars, first, end, MATCH_OPERATION, as_int64(numbers[row, column.RIGHT_QUERY_BASES])
    )


@inline
def differences_of_score(table: Candidates, row: int, length: int, costs: Costs) -> int:
    """Return how many bases of a candidate without gaps differ; its read has no unknown bases."""
    begin, end = aligned_part(table, row)
    lost = (end - begin) * costs.match - reported_score(table, row, length, costs)
    return as_int64(lost // (costs.match + costs.mismatch))


@jit
def trace_paths(
    rows: PlacedRows,
    scoring: Scoring,
    scratch: Scratch,
    table: Candidates,
    flank: OperationArray,
    paths: Paths,
) -> None:
    """Write the CIGARs, positions and edit distances of chosen candidates."""
    reads, reference, numbers = scoring.reads, scoring.target.codes, table.numbers
    cigars, costs = paths.cigars, scoring.costs
    end = 0
    paths.cigar_offsets[0] = 0
    for one in range(rows.reads.size):
        later = min(one + ROWS_AHEAD, rows.reads.size - 1)
        prefetch_candidate(scoring, table, rows.reads[later], rows.candidates[later])
        read, row = rows.reads[one], rows.candidates[one]
        if row < 0:
            paths.begins[one] = paths.ends[one] = -1
            paths.edit_distances[one] = 0
            paths.cigar_offsets[one + 1] = end
            continue
        codes = reads.codes if numbers[row, column.STRAND] == 0 else reads.reverse_codes
        clip, used = aligned_part(table, row)
        first = end
        at_path = append_operation(cigars, first, end, _SOFT_CLIP, clip)
        position = table.diagonals[row] + numbers[row, column.LEFT_SHIFT] + clip
        length = read_length(reads, read)
        if numbers[row, column.GAPPED] == 0 and not has_breaks(reads, read):
            # Without a look at the reference, which is seldom in a cache.
            end = append_operation(cigars, first, at_path, MATCH_OPERATION, used - clip)
            paths.begins[one], paths.ends[one] = position, position + used - clip
            paths.edit_distances[one] = differences_of_score(table, row, length, costs)
            end = append_operation(cigars, first, end, _SOFT_CLIP, length - used)
            paths.cigar_offsets[one + 1] = end
            continue
        end = trace_candidate(scoring, scratch, table, read, row, flank, cigars, at_path)
        at = MARGIN + reads.offsets[read] + clip
        # Only gaps can move to the left, and only then can operations become fewer.
        if numbers[row, column.GAPPED] != 0:
            count, start = end - at_path, MARGIN + position
            count = align_left(cigars, at_path, count, codes, at, reference, start, costs, True)
            end = at_path + count
        behind, edits = measure_path(codes, at, reference, MARGIN + position, cigars, at_path, end)
        paths.begins[one], paths.ends[one] = position, behind - MARGIN
        paths.edit_distances[one] = edits
        end = append_operation(cigars, first, end, _SOFT_CLIP, length - used)
        paths.cigar_offsets[one + 1] = end


@inline
def prefetch_candidate(scoring: Scoring, table: Candidates, read: int, row: int) -> None:
    """Prefetch the reference next to a candidate, if it is to be looked at."""
    if row >= 0 and table.numbers[row, column.GAPPED] != 0:
        length = read_length(scoring.reads, read)
        prefetch_bases(scoring.target.codes, MARGIN + table.diagonals[row], length)


@inline
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
        if kind == MATCH_OPERATION:
            for place in range(length):
                code = codes[at + place]
                edits += code == BREAK or code != reference[reference_at + place]
            at += length
            reference_at += length
        elif kind == INSERTION_OPERATION:
            edits += length
            at += length
        else:
            edits += length
            reference_at += length
    return reference_at, edits


def discount_equal_letters(
    block: ReadBlock, columns: AlignmentColumns, reference: Reference
) -> None:
    """Take pairs of the same ambiguity code from the edit distances, in place."""
    letters, written = reference.letters, block.as_written
    if letters.positions.size == 0 or not block.has_letters:
        return
    _discount(
        (writable(written.offsets), writable(written.padded_codes)),
        (writable(reference.record_starts), writable(letters.positions), writable(letters.codes)),
        columns,
    )


@jit
def _discount(
    reads: tuple[Int64Array, CodeArray],
    letters: tuple[Int64Array, Int64Array, CodeArray],
    rows: AlignmentColumns,
) -> None:
    """Do the work of `discount_equal_letters`.

    The search and the alignment count a letter for several bases as a difference. ``samtools
    calmd`` does not if read and reference have the same one, other than N, and NM is what it
    computes.
    """
    offsets, codes = reads
    starts, letter_positions, letter_codes = letters
    flags, records, positions = rows.flags, rows.records, rows.positions
    cigar_offsets, cigars = rows.cigar_offsets, rows.cigars
    for row in range(flags.size):
        if records[row] < 0:
            continue
        begin, end = offsets[rows.reads[row]], offsets[rows.reads[row] + 1]
        is_reverse = flags[row] & _REVERSE != 0
        at, position = 0, starts[records[row]] + positions[row]
        for place in range(cigar_offsets[row], cigar_offsets[row + 1]):
            operation = as_int64(cigars[place])
            kind, length = operation & 15, operation >> 4
            if kind == MATCH_OPERATION:
                # The letters that stand for several bases are few: only those in the span count.
                letter = as_int64(np.searchsorted(letter_positions, position))
                while letter < letter_positions.size:
                    base = at + letter_positions[letter] - position
                    if base >= at + length:
                        break
                    code = codes[MARGIN + (end - 1 - base if is_reverse else begin + base)]
                    if is_reverse:
                        code = COMPLEMENT_OF_CODE[code & 15]
                    if code == letter_codes[letter]:
                        rows.edit_distances[row] -= 1
                    letter += 1
            if kind != DELETION_OPERATION:
                at += length
            if kind == MATCH_OPERATION or kind == DELETION_OPERATION:
                position += length
