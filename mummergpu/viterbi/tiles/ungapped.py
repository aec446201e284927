"""Tiles that need no matrix: few bases differ on the diagonal of the corner, and no gap can pay."""

from __future__ import annotations

from mummergpu.runtime.jit import inline, jit
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import extend_left, extend_right
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.tile import Tile


@inline
def _equal_bases(
    read: CodeArray, reference: CodeArray, tile: Tile, first: int, shift: int, most: int
) -> int:
    """Return how many bases match, at most `most`, from the `first` of the read on.

    The base of the reference is `shift` bases farther from the corner.
    """
    other = first + shift
    if tile.direction > 0:
        at, reference_at = tile.read_at + first, tile.reference_at + other
        return extend_right(read, at, reference, reference_at, most)
    at, reference_at = tile.read_at - first + 1, tile.reference_at - other + 1
    return extend_left(read, at, reference, reference_at, most)


@inline
def longest_gaps(length: int, costs: Costs, score: int) -> tuple[int, int]:
    """Return the longest insertion and deletion with which an alignment may have a score.

    All other bases match. A path that leaves a band is at least as many bases from its diagonal,
    and several gaps cost more than one.
    """
    match, most = costs.match, costs.max_gap
    spare = length * match + costs.end_bonus - score
    insertion = max(0, spare - costs.insertion_open) // (costs.insertion_extend + match)
    deletion = max(0, spare - costs.deletion_open) // costs.deletion_extend
    return min(insertion, most), min(deletion, most)


@jit
def try_without_gap(
    read: CodeArray, reference: CodeArray, tile: Tile, costs: Costs, min_score: int
) -> tuple[bool, int, int]:
    """Align a tile without a gap, if at most two bases differ and it is sure that no gap pays.

    A gap costs more than the differences that it can save, unless everything else about it is
    perfect. That is looked up: whether the rest of the read, from its first difference, matches on
    a neighbouring diagonal to the end.

    Returned are whether the result is sure, the score with the bonus, and the bases of the read,
    and of the reference, that the alignment uses.
    """
    length = tile.length
    match, mismatch, bonus = costs.match, costs.mismatch, costs.end_bonus
    if tile.reference_length < length:
        return False, 0, 0
    # The best score that is clipped before a difference, and where.
    best = best_at = differences = at = 0
    first_difference = length
    # Each turn goes on to the next difference; more than two need a matrix.
    while True:
        at += _equal_bases(read, reference, tile, at, 0, length - at)
        score = at * match - differences * (match + mismatch)
        if at == length:
            break
        if differences == 2 or read[tile.read_at + tile.direction * at] >= BREAK:
            return False, 0, 0
        if score > best:
            best, best_at = score, at
        first_difference = min(first_difference, at)
        differences += 1
        at += 1
        if at == length:
            score -= mismatch
            break
    if score + bonus >= best:
        best, best_at = score + bonus, length
    needed = max(best, min_score)
    return _no_gap_pays(read, reference, tile, costs, needed, first_difference), best, best_at


@inline
def _no_gap_pays(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    score: int,
    first_difference: int,
) -> bool:
    """Return whether surely no alignment with a gap has at least some score; the read has no break.

    The first difference is that of the read on the diagonal of the corner.
    """
    match, length, bonus = costs.match, tile.length, costs.end_bonus
    insertion, deletion = longest_gaps(length, costs, score)
    if insertion == 0 and deletion == 0:
        return True
    # What a gap costs at least, and what anything else costs that is not a match: a difference, a
    # base that is clipped, or another gap.
    gap = min(
        costs.insertion_open + costs.insertion_extend + match,
        costs.deletion_open + costs.deletion_extend,
    )
    other = min(match + costs.mismatch, bonus + match, gap)
    if gap + other <= length * match + bonus - score:
        return False
    for shift in range(1, min(deletion, tile.reference_length - length) + 1):
        rest = length - min(first_difference, length - 1)
        if _equal_bases(read, reference, tile, length - rest, shift, rest) == rest:
            return False
    for shift in range(1, min(insertion, length - 1) + 1):
        first = min(first_difference + shift, length - 1)
        rest = length - first
        if _equal_bases(read, reference, tile, first, -shift, rest) == rest:
            return False
    return True
