"""The edits of alignments where reads and the reference have the same letter for several bases.

All that is searched and aligned takes such a letter for a difference. ``samtools calmd`` does not
where both have the same one, other than N, and NM is what it computes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns, SamFlag
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, jit, writable
from mummergpu.sequence.codes import COMPLEMENT_OF_CODE, MARGIN, CodeArray

_REVERSE: Final = int(SamFlag.REVERSE)
_MATCH, _INSERTION, _DELETION, _SOFT_CLIP, _HARD_CLIP = 0, 1, 2, 4, 5


def discount_equal_letters(
    block: ReadBlock, columns: AlignmentColumns, reference: Reference
) -> None:
    """Take pairs of the same letter for several bases from the edit distances, in place."""
    letters, written = reference.letters, block.as_written
    if letters.positions.size == 0 or not written.has_letters:
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
    """Do what `discount_equal_letters` says, with the arrays of the reads and of the letters."""
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
            if kind == _MATCH:
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
            if kind == _MATCH or kind == _INSERTION or kind == _SOFT_CLIP or kind == _HARD_CLIP:
                at += length
            if kind == _MATCH or kind == _DELETION:
                position += length
