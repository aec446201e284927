"""Lays out the rows of alignments: which rows there are, and the SAM fields of each."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, CigarOperation, SamFlag
from mummergpu.mapping.alignments.paths import Paths, PlacedRows
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import Candidates, Scoring
from mummergpu.mapping.placing.choice import Choices, reported_score
from mummergpu.mapping.placing.pairing import Pairing, is_proper_pair, pairing_of
from mummergpu.mapping.placing.secondary import Extra, Secondary
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, inline, jit

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


class Placements(NamedTuple):
    """The primary, supplementary and secondary placements of the reads of a block."""

    choices: Choices
    extra: Extra
    secondary: Secondary


@inline
def list_rows(
    offsets: Int64Array, placements: Placements, table: Candidates, rows: PlacedRows
) -> tuple[int, int]:
    """List the rows of each read; return how many, and the most operations of all their CIGARs.

    The primary row comes first. Secondary rows come after the supplementary row, or before it if
    they belong to the primary one.
    """
    secondary, extra = placements.secondary, placements.extra.candidates
    end, most = 0, 0
    for read in range(offsets.size - 1):
        rows.primaries[read] = end
        first, leading = secondary.offsets[read], secondary.leading[read]
        others = secondary.offsets[read + 1] - first
        for turn in range(2 + others):
            if turn == 0:
                candidate = placements.choices.candidates[read]
            elif turn == 1 + leading:
                candidate = extra[read]
                if candidate < 0:
                    continue
            elif turn <= leading:
                candidate = secondary.candidates[first + turn - 1]
            else:
                candidate = secondary.candidates[first + turn - 2]
            rows.reads[end] = read
            rows.candidates[end] = candidate
            end += 1
            if candidate >= 0:
                is_gapped = table.numbers[candidate, column.GAPPED] != 0
                most += 2 * (offsets[read + 1] - offsets[read]) + 5 if is_gapped else 3
    return end, most


@inline
def harden_clips(cigars: UInt32Array, first: int, end: int) -> None:
    """Turn the soft clips of a CIGAR into hard ones."""
    for place in range(first, end):
        if as_int64(cigars[place]) & 15 == _SOFT_CLIP:
            cigars[place] += np.uint32(_HARD_CLIP - _SOFT_CLIP)


@inline
def is_reverse(table: Candidates, row: int, read: int, turns: int) -> bool:
    """Return whether a read is on the reverse strand; it may have been reverse-complemented."""
    return bool(table.numbers[row, column.STRAND] != ((turns >> (read & 1)) & 1))


@inline
def template_length(own: int, far: int) -> int:
    """Return TLEN of a mate: from its 5' end to the other one, both included, on any strands."""
    distance = far - own
    return distance + (distance > 0) - (distance < 0)


@jit
def fill_sam_records(
    scoring: Scoring,
    of_block: Pairing,
    placements: Placements,
    table: Candidates,
    rows: PlacedRows,
    paths: Paths,
    columns: AlignmentColumns,
) -> None:
    """Fill the columns of alignments; make the clips of supplementary ones hard.

    Their reads are those of `rows`, their CIGARs and edit distances those of `paths`. For each row:

        flag, record, position, quality and scores of its own placement
        for pairs: the mate's row and flags, the template length, and whether the pair is proper

    An unmapped read takes the record and position of its mapped mate, so that sorting keeps both
    together (SAM format specification, section 2.4).
    """
    offsets, record_starts = scoring.reads.offsets, scoring.target.record_starts
    choices, extra, numbers = placements.choices, placements.extra, table.numbers
    candidates, primaries, begins, ends = rows.candidates, rows.primaries, paths.begins, paths.ends
    records, positions, qualities = columns.records, columns.positions, columns.qualities
    for row in range(candidates.size):
        read, candidate = rows.reads[row], candidates[row]
        is_extra = primaries[read] != row
        is_secondary = is_extra and candidate != extra.candidates[read]
        length = offsets[read + 1] - offsets[read]
        pairing = pairing_of(of_block, read // of_block.mates)
        flag = (_SECONDARY if is_secondary else _SUPPLEMENTARY) if is_extra else 0
        records[row] = positions[row] = -1
        qualities[row] = columns.scores[row] = columns.second_scores[row] = 0
        columns.template_lengths[row], columns.mate_rows[row] = 0, NO_ROW
        if candidate < 0:
            flag |= _UNMAPPED
        else:
            records[row] = record = numbers[candidate, column.RECORD]
            positions[row] = begins[row] - record_starts[record]
            columns.scores[row] = reported_score(table, candidate, length, scoring.costs)
            flag |= _REVERSE if is_reverse(table, candidate, read, pairing.turns) else 0
            if is_extra and not is_secondary:
                # A supplementary alignment: a part of the read that was placed by itself.
                qualities[row] = extra.qualities[read]
                harden_clips(
                    columns.cigars, columns.cigar_offsets[row], columns.cigar_offsets[row + 1]
                )
            elif not is_extra:
                qualities[row] = choices.qualities[read]
                columns.second_scores[row] = choices.second_scores[read]
        if pairing.mates == 2:
            mate = read ^ 1
            mate_row = primaries[mate]
            columns.mate_rows[row] = mate_row
            other = candidates[mate_row]
            flag |= _PAIRED | (_FIRST if read & 1 == 0 else _LAST)
            if other < 0:
                flag |= _MATE_UNMAPPED
            else:
                flag |= _MATE_REVERSE if is_reverse(table, other, mate, pairing.turns) else 0
                if candidate < 0:
                    records[row] = numbers[other, column.RECORD]
                    positions[row] = begins[mate_row] - record_starts[numbers[other, column.RECORD]]
                elif numbers[other, column.RECORD] == numbers[candidate, column.RECORD]:
                    own = ends[row] - 1 if flag & _REVERSE else begins[row]
                    far = ends[mate_row] - 1 if flag & _MATE_REVERSE else begins[mate_row]
                    columns.template_lengths[row] = template_length(own, far)
            mate_length = offsets[mate + 1] - offsets[mate]
            # A supplementary alignment belongs to a pair if the primary alignment of its read does.
            paired = candidate if is_secondary else choices.candidates[read]
            if is_proper_pair(table, paired, length, other, mate_length, pairing):
                flag |= _PROPER_PAIR
        columns.flags[row] = flag
