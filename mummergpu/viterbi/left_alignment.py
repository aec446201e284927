"""Moves the gaps of an alignment to the left, where the bases allow several places."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.jit import inline, jit
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.viterbi.recurrence.cell_recurrence import pair_score
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import (
    DELETION_OPERATION,
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    append_operation,
    kind_of,
    length_of,
)

_READ_CONSUMERS: Final = 0b110010011
"""A bit for each operation of BAM that consumes bases of the read: M, I, S, = and X."""
_REFERENCE_CONSUMERS: Final = 0b110001101
"""A bit for each operation that consumes bases of the reference: M, D, N, = and X."""


@jit
def align_left(
    operations: OperationArray,
    operations_at: int,
    count: int,
    read: CodeArray,
    read_at: int,
    reference: CodeArray,
    reference_at: int,
    costs: Costs,
    over_ties: bool,
) -> int:
    """Move every gap as far to the left as equal bases allow, and merge neighbours.

    A gap moves over a base while the sequence that has the bases of the gap repeats it; so every
    pair of bases stays a match or stays a mismatch, and the score is the same. Two gaps of one
    kind that meet are merged, which scores more. A gap moves over matches only (``M``), and leaves
    at least one base between itself and the start of the alignment, or a gap of the other kind.

    With `over_ties` a gap also moves where other pairs of bases have the same total score. Next to
    a variant or a read error there are such places, and the start of the read decides which one is
    found: a variant caller would see different reads with different gaps.

    The `count` operations from `operations_at` on are changed in place; return their new number.
    They consume bases from `read_at` (on the reference's strand, clipped bases included) and
    `reference_at` on.
    """
    i, j = read_at, reference_at
    kept = operations_at
    end = operations_at + count
    # Up to `kept`, operations have their place, and end before `i` and `j`; only a gap that comes
    # later can still shorten the last match of them.
    for position in range(operations_at, end):
        kind, length = kind_of(operations, position), length_of(operations, position)
        if length == 0:
            continue
        if kind != INSERTION_OPERATION and kind != DELETION_OPERATION:
            kept = append_operation(operations, operations_at, kept, kind, length)
        else:
            next_is_match = (
                position + 1 < end and kind_of(operations, position + 1) == MATCH_OPERATION
            )
            while True:
                # A neighbour of the same kind becomes part of the gap.
                if kept > operations_at and kind_of(operations, kept - 1) == kind:
                    kept -= 1
                    before = length_of(operations, kept)
                    length += before
                    i -= before * (kind == INSERTION_OPERATION)
                    j -= before * (kind == DELETION_OPERATION)
                most = _room_before(operations, operations_at, kept, kind) * next_is_match
                if kind == INSERTION_OPERATION:
                    moved = _repeated_before(read, i, length, most)
                else:
                    moved = _repeated_before(reference, j, length, most)
                if moved == 0 and over_ties:
                    of_read = length * (kind == INSERTION_OPERATION)
                    gap = of_read, length - of_read
                    moved = _tied_before(read, i, reference, j, gap, most, costs)
                if moved == 0:
                    break
                i -= moved
                j -= moved
                # The match before the gap gives its last bases to the match after it.
                operations[kept - 1] -= np.uint32(moved << 4)
                operations[position + 1] += np.uint32(moved << 4)
                kept -= length_of(operations, kept - 1) == 0
            operations[kept] = np.uint32(length << 4 | kind)
            kept += 1
        i += length * ((_READ_CONSUMERS >> kind) & 1)
        j += length * ((_REFERENCE_CONSUMERS >> kind) & 1)
    return kept - operations_at


@inline
def _room_before(operations: OperationArray, first: int, kept: int, kind: int) -> int:
    """Return the number of bases over which a gap after the kept operations may move."""
    if kept == first or kind_of(operations, kept - 1) != MATCH_OPERATION:
        return 0
    meets_its_kind = kept - 1 > first and kind_of(operations, kept - 2) == kind
    return length_of(operations, kept - 1) - (not meets_its_kind)


@inline
def _repeated_before(codes: CodeArray, at: int, length: int, most: int) -> int:
    """Return the number of bases before a gap that equal its last ones, up to `most`.

    The codes are those of the sequence that has the bases of the gap, which begin at `at`.
    """
    equal = 0
    while equal < most:
        base = codes[at - 1 - equal]
        if base >= BREAK or base != codes[at + length - 1 - equal]:
            break
        equal += 1
    return equal


@inline
def _tied_before(
    read: CodeArray,
    i: int,
    reference: CodeArray,
    j: int,
    gap: tuple[int, int],
    most: int,
    costs: Costs,
) -> int:
    """Return the most bases, up to `most`, over which a gap moves without a change of the score.

    The gap begins at `i` and `j`; it has bases of the read or of the reference alone. It is never
    worth more elsewhere, since its alignment is one of the best.
    """
    of_read, of_reference = gap
    moved = balance = 0
    for distance in range(1, most + 1):
        # Which base of a sequence without the gap's bases is aligned does not change.
        base, other = read[i - distance], reference[j - distance]
        new_base, new_other = read[i + of_read - distance], reference[j + of_reference - distance]
        balance += pair_score(new_base, new_other, costs) - pair_score(base, other, costs)
        if balance == 0:
            moved = distance
    return moved
