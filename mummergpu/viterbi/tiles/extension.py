"""Extends an exact match through one side of a read: the score, and the path.

An alignment begins at the corner of a tile, next to an exact match, and ends in a match: anywhere,
so that the rest of the read is clipped, or at the end of the read, which scores the bonus. The
result is that of the whole matrix between the diagonals ``-max_gap`` and ``max_gap`` (0 is the
corner's), for any first band. Of several alignments with the best score, the one is taken
that

1. reaches the end of the read,
2. ends nearest to the diagonal that it began on,
3. ends on the side of deletions,
4. is the shortest;

and of several paths to its end, the one that, seen from there, stays longest in a match, then
prefers a deletion to an insertion, and a shorter gap to a longer one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import (
    BREAKS,
    codes_as_word,
    extend_left,
    extend_right,
    packed,
)
from mummergpu.viterbi.recurrence.lanes import LANES, MOST_LANES, NEVER
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import MATCH_OPERATION, OperationArray
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.tiles.band import (
    ALL_PAIRS,
    END_RESULTS,
    STEP_RESULTS,
    WORD_BASES,
    WORDS,
    LaneArray,
    Scratch,
    compute_band,
    lane_of,
    write_path,
)

_WORDS_AT_ONCE: Final = 8 - WORD_BASES + 1
_WORD_MASK: Final = np.uint64(WORDS - 1)
_CODES_OF_BASES: Final = np.uint64(0x0303030303030303)

CANNOT_REACH: Final = -1
"""The score of a tile in which no alignment has the least score that was asked for."""


@jit
def extend_score(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    first_band: int,
    min_score: int,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Return the best score of an alignment from a corner on, and the bases of both it uses.

    The codes have margins; the tile goes from the corner to the end of the read. `first_band` is a
    probable distance of the alignment from the diagonal: it changes the time, not the result. The
    score has the bonus. It is `CANNOT_REACH`, with no bases, if it would be below `min_score`.
    """
    # A constant of the caller would have its own type, for which all would be compiled again.
    band, least = as_int64(first_band), as_int64(min_score)
    score, i, j, _ = _extend(read, reference, tile, costs, band, least, scratch, as_int64(0))
    return score, i, j


@jit
def extend_path(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    first_band: int,
    min_score: int,
    scratch: Scratch,
    operations: OperationArray,
    operations_at: int,
) -> tuple[int, int, int, int]:
    """Extend as `extend_score` does; return the number of operations, too.

    These are written from `operations_at` on, from the corner outwards: ``2 * length + 1`` at most.
    """
    band, least = as_int64(first_band), as_int64(min_score)
    traced = as_int64(1)
    score, i, j, registers = _extend(read, reference, tile, costs, band, least, scratch, traced)
    if i == 0:
        return score, 0, 0, 0
    if registers == 0:
        operations[operations_at] = np.uint32(i << 4 | MATCH_OPERATION)
        return score, i, j, 1
    count = write_path(i, j, registers, scratch.directions, operations, operations_at)
    return score, i, j, count


@jit
def _extend(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    first_band: int,
    min_score: int,
    scratch: Scratch,
    traced: int,
) -> tuple[int, int, int, int]:
    """Return the score, where the alignment ends, and the registers that covered the band.

    There are no registers if the alignment has no gap.
    """
    length, bonus = tile.length, costs.end_bonus
    if length == 0:
        return (bonus if bonus >= min_score else CANNOT_REACH), 0, 0, 0
    is_sure, score, i = try_without_gap(read, reference, tile, costs, min_score)
    if is_sure:
        return (score, i, i, 0) if score >= min_score else (CANNOT_REACH, 0, 0, 0)
    shared = shared_words(read, reference, tile, costs, min_score, scratch.words)
    if best_with_words(shared, costs) < min_score:
        return CANNOT_REACH, 0, 0, 0
    band = min(first_band, costs.max_gap)
    all_pairs = as_int64(ALL_PAIRS)
    # A path outside the band has longer gaps than the score that was found allows.
    while True:
        registers = band // LANES + 1
        used = compute_band(
            read, reference, tile, costs, registers, min_score, scratch, traced, all_pairs
        )
        score, i, j = _chosen_end(scratch.results, LANES * registers, length, used, bonus)
        band = max(longest_gaps(length, costs, max(score, min_score)))
        band = min(band, longest_gap_with_words(shared, costs, max(score, min_score)))
        if band < LANES * registers:
            break
    if score < min_score:
        return CANNOT_REACH, 0, 0, registers
    return score, i, j, registers


@inline
def _chosen_end(
    results: LaneArray, band: int, length: int, reference_length: int, bonus: int
) -> tuple[int, int, int]:
    """Return the best score of all lanes, and where it ends, by the rules above."""
    best, end = NEVER, NEVER
    # The read cannot end beyond the reference.
    highest = min(band - 1, reference_length - length)
    for diagonal in range(max(highest + 1, -band), band):
        results[END_RESULTS + lane_of(diagonal, band)] = NEVER
    for parity in range(2):
        for lane in range(parity * MOST_LANES, parity * MOST_LANES + band):
            best = max(best, as_int64(results[lane]))
            end = max(end, as_int64(results[END_RESULTS + lane]))
    reached = end + bonus >= best
    first = END_RESULTS if reached else 0
    score = end if reached else best
    # From the corner's diagonal outwards, and deletions first: the rules 2 and 3.
    for distance in range(band + 1):
        for diagonal in (distance, -distance):
            if diagonal < band:
                lane = lane_of(diagonal, band)
                if as_int64(results[first + lane]) == score:
                    if reached:
                        return score + bonus, length, length + diagonal
                    step = as_int64(results[STEP_RESULTS + lane])
                    return score, (step - diagonal) >> 1, (step + diagonal) >> 1
    return 0, 0, 0


@inline
def _equal_bases(
    read: CodeArray, reference: CodeArray, tile: Tile, first: int, shift: int, most: int
) -> int:
    """Return the number of matching bases, at most `most`, from the `first` of the read on.

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
def shared_words(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    min_score: int,
    words: ByteArray,
) -> int:
    """Return how many words of the read are in the reference where an alignment may reach.

    Up to three words beside the tile count, too. It is the length of the read, which says nothing,
    if the read has a break, or if edits cost too little (`best_with_words`).
    """
    read_at, length, reference_at, reference_length, direction = tile
    if (WORD_BASES - 1) * costs.match > least_penalty(costs):
        return length
    behind = min(reference_length, length + longest_gaps(length, costs, min_score)[1])
    first, other = read_at, reference_at
    if direction < 0:
        first, other = first - length + 1, other - behind + 1
    words[:] = 0
    # Eight bases have four words.
    for at in range(other, other + behind - WORD_BASES + 1, _WORDS_AT_ONCE):
        bases = packed(codes_as_word(reference, at) & _CODES_OF_BASES)
        for place in range(_WORDS_AT_ONCE):
            words[bases >> np.uint64(2 * place) & _WORD_MASK] = 1
    count = as_int64(0)
    for at in range(first, first + length - WORD_BASES + 1, _WORDS_AT_ONCE):
        codes = codes_as_word(read, at)
        if codes & BREAKS != np.uint64(0):
            return length
        bases = packed(codes)
        for place in range(_WORDS_AT_ONCE):
            count += as_int64(words[bases >> np.uint64(2 * place) & _WORD_MASK])
    return count


@inline
def least_penalty(costs: Costs) -> int:
    """Return the least penalty of an edit: of a mismatch, or of a gap without its bases."""
    return min(costs.mismatch, costs.insertion_open, costs.deletion_open)


@inline
def best_with_words(shared: int, costs: Costs) -> int:
    """Return the most that an alignment of a tile scores whose sequences share some words.

    Edits cut the bases that match into pieces. A piece of n bases has ``n - (WORD_BASES - 1)``
    words, so with e edits at most ``shared + (e + 1) * (WORD_BASES - 1)`` bases match. Each further
    edit brings fewer points than it costs: `shared_words` sees to that.
    """
    return (shared + WORD_BASES - 1) * costs.match + costs.end_bonus


@inline
def longest_gap_with_words(shared: int, costs: Costs, score: int) -> int:
    """Return the longest gap with which such an alignment may have a score; negative if none may.

    The penalty of the gap takes the place of that of another edit (`best_with_words`).
    """
    spare = best_with_words(shared, costs) + least_penalty(costs) - score
    insertion = (spare - costs.insertion_open) // costs.insertion_extend
    deletion = (spare - costs.deletion_open) // costs.deletion_extend
    return max(insertion, deletion)


@jit
def try_without_gap(
    read: CodeArray, reference: CodeArray, tile: Tile, costs: Costs, min_score: int
) -> tuple[bool, int, int]:
    """Align a tile without a gap, if at most two bases differ and it is sure that no gap pays.

    A gap costs more than the differences that it can save, unless everything else about it is
    perfect. That is checked: whether the rest of the read, from its first difference, matches on a
    neighbouring diagonal to the end.

    Return whether the result is sure, the score with the bonus, and the bases of each sequence that
    the alignment uses.
    """
    length = tile.length
    match, mismatch, bonus = costs.match, costs.mismatch, costs.end_bonus
    if tile.reference_length < length:
        return False, 0, 0
    # The best score that is clipped before a difference, and where.
    best = best_at = differences = at = 0
    first_difference = length
    # Each turn advances to the next difference; more than two need a matrix.
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
    """Return whether certainly no gapped alignment has some score; the read has no break.

    The first difference is that of the read on the diagonal of the corner.
    """
    match, length, bonus = costs.match, tile.length, costs.end_bonus
    insertion, deletion = longest_gaps(length, costs, score)
    if insertion == 0 and deletion == 0:
        return True
    # The least cost of a gap, and that of anything else that is not a match: a difference, a
    # clipped base, or another gap.
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
