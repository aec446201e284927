"""Tiles that need no matrix: few bases differ on the diagonal of the corner, and no gap can pay."""

from __future__ import annotations

from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import extend_left, extend_right
from mummergpu.viterbi.recurrence.model import CostTuple, Tile


@inline_without_refcounts
def _equal_bases(
    read: CodeArray, reference: CodeArray, tile: Tile, first: int, shift: int, most: int
) -> int:
    """Return how many bases match from one on, on a diagonal.

    Parameters
    ----------
    read, reference, tile
        As in `try_without_gap`.
    first : int
        The first base of the read, counted from the corner.
    shift : int
        The diagonal: how much further from the corner the base of the reference is.
    most : int
        The most bases to count.

    Returns
    -------
    int
        Between 0 and `most`.
    """
    read_at, _, reference_at, _, direction = tile
    other = first + shift
    if direction > 0:
        return extend_right(read, read_at + first, reference, reference_at + other, most)
    return extend_left(read, read_at - first + 1, reference, reference_at - other + 1, most)


@inline_without_refcounts
def longest_gaps(length: int, costs: CostTuple, score: int) -> tuple[int, int]:
    """Return the longest insertion and deletion with which an alignment may have a score.

    All other bases match. A path that leaves a band is at least as many bases from its diagonal,
    and several gaps cost more than one.

    Parameters
    ----------
    length : int
        The bases of the read.
    costs : tuple of int
        `Costs.as_tuple()`.
    score : int
        The score.

    Returns
    -------
    tuple of int
        The bases of an insertion and of a deletion; 0 if none can have the score.
    """
    match, _, _, insertion_open, insertion_extend, deletion_open, deletion_extend, bonus, most = (
        costs
    )
    spare = length * match + bonus - score
    insertion = max(0, spare - insertion_open) // (insertion_extend + match)
    deletion = max(0, spare - deletion_open) // deletion_extend
    return min(insertion, most), min(deletion, most)


@jit_without_refcounts
def try_without_gap(
    read: CodeArray, reference: CodeArray, tile: Tile, costs: CostTuple, least_score: int
) -> tuple[bool, int, int]:
    """Align a tile without a gap, if at most two bases differ and it is sure that no gap pays.

    A gap costs more than the differences that it can save, unless everything else about it is
    perfect. That is looked up: whether the rest of the read, from its first difference, matches on
    a neighbouring diagonal to the end.

    Parameters
    ----------
    read, reference : ndarray, dtype=uint8
        Codes with margins.
    tile : tuple of int
        See `mummergpu.viterbi.model.Tile`.
    costs : tuple of int
        `Costs.as_tuple()`.
    least_score : int
        The least score that is of interest.

    Returns
    -------
    bool
        Whether the result is sure.
    int
        The score, with the bonus.
    int
        The bases of the read, and of the reference, that the alignment uses.
    """
    length, reference_length = tile[1], tile[3]
    match, mismatch, bonus = costs.match, costs.mismatch, costs.end_bonus
    if reference_length < length:
        return False, 0, 0
    # The best score that is clipped before a difference, and where.
    best = best_at = differences = at = 0
    first_difference = length
    while True:
        at += _equal_bases(read, reference, tile, at, 0, length - at)
        score = at * match - differences * (match + mismatch)
        if at == length:
            break
        if differences == 2 or read[tile[0] + tile[4] * at] >= BREAK:
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
    needed = max(best, least_score)
    return _no_gap_pays(read, reference, tile, costs, needed, first_difference), best, best_at


@inline_without_refcounts
def _no_gap_pays(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: CostTuple,
    score: int,
    first_difference: int,
) -> bool:
    """Whether no alignment with a gap has at least some score; if it is not sure, false.

    Parameters
    ----------
    read, reference, tile, costs
        As in `try_without_gap`; the read has no break.
    score : int
        The score.
    first_difference : int
        The first base of the read that differs on the diagonal of the corner.

    Returns
    -------
    bool
        Whether none has.
    """
    match, mismatch, _, insertion_open, insertion_extend, deletion_open, deletion_extend = costs[:7]
    length, bonus = tile[1], costs.end_bonus
    insertion, deletion = longest_gaps(length, costs, score)
    if insertion == 0 and deletion == 0:
        return True
    # What a gap costs at least, and what anything else costs that is not a match: a difference, a
    # base that is clipped, or another gap.
    gap = min(insertion_open + insertion_extend + match, deletion_open + deletion_extend)
    other = min(match + mismatch, bonus + match, gap)
    if gap + other <= length * match + bonus - score:
        return False
    for shift in range(1, min(deletion, tile[3] - length) + 1):
        rest = length - min(first_difference, length - 1)
        if _equal_bases(read, reference, tile, length - rest, shift, rest) == rest:
            return False
    for shift in range(1, min(insertion, length - 1) + 1):
        first = min(first_difference + shift, length - 1)
        rest = length - first
        if _equal_bases(read, reference, tile, first, -shift, rest) == rest:
            return False
    return True
