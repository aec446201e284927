"""Extends an exact match through one side of a read: the score, and the path.

Compiled code calls, for each tile,

    extend_score(read, read_at, length, reference, reference_at, reference_length, direction,
                 costs, first_band, least_score, scratch) -> (score, read_bases, reference_bases)
    extend_path(..., scratch, operations, operations_at)
        -> (score, read_bases, reference_bases, operation_count)

with the same arguments; the second also writes the operations. `costs` is `Costs.as_tuple()`, and
`scratch` is from `new_scratch`, one for each thread.

An alignment begins at the corner, just after an exact match (`direction` 1) or just before one
(-1), and ends in a match: anywhere, so that the rest of the read is clipped, or at the end of the
read, which scores the bonus. The result is that of the whole matrix between the diagonals
``-most_gap`` and ``most_gap`` (0 is the corner's), whatever the first band is. Of several
alignments with the best score, the one is taken that

1. reaches the end of the read,
2. ends nearest to the diagonal that it began on,
3. ends on the side of deletions,
4. is the shortest;

and of several paths to its end, the one that, seen from there, stays longest in a match, then
prefers a deletion to an insertion, and a shorter gap to a longer one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, widened
from mummergpu.sequence.codes import BREAK, STEP, CodeArray
from mummergpu.viterbi.lane_arithmetic import LANES, NEVER
from mummergpu.viterbi.lanes import (
    DIRECTION_WORDS,
    MOST_LANES,
    MOST_REGISTERS,
    RESULTS,
    STATE_WORDS,
)
from mummergpu.viterbi.model import MATCH, PAIRWISE, CostTuple, Tile
from mummergpu.viterbi.recurrence import STATE_BITS, source_table
from mummergpu.viterbi.tile_copy import (
    OUTSIDE_READ,
    OUTSIDE_REFERENCE,
    REFERENCE_BREAK,
    copy_codes,
    fill_codes,
)
from mummergpu.viterbi.tile_matrix import DirectionArray, LaneArray, compute_matrix
from mummergpu.viterbi.ungapped import longest_gaps, try_without_gap

OperationArray = npt.NDArray[np.uint32]
Scratch = tuple[CodeArray, LaneArray, LaneArray, DirectionArray]
"""What the functions here write while they work: the copies of the two sequences, the state of
a wide band, the results of all lanes, and the directions."""

CANNOT_REACH: Final = -1
"""The score of a tile in which no alignment has the least score that was asked for."""

MOST_BASES: Final = 1500
"""The longest tile, in bases of the read: its scores fit 16 bits."""

_PAD: Final = LANES * (MOST_REGISTERS + 1)
"""The codes before each copy, at most: half of the widest band outside of the matrix."""

_LINE_BYTES: Final = 64

_STEP: Final = 2 * MOST_LANES * RESULTS.index("step")
_END: Final = 2 * MOST_LANES * RESULTS.index("end")

_SOURCES: Final = tuple(source_table(PAIRWISE, state) for state in PAIRWISE.states)
_OPERATIONS: Final = sum(state.operation << 4 * n for n, state in enumerate(PAIRWISE.states))
_READ_BASES: Final = sum(state.read_bases << n for n, state in enumerate(PAIRWISE.states))
_REFERENCE_BASES: Final = sum(state.reference_bases << n for n, state in enumerate(PAIRWISE.states))
"""What each state does, by its number in the model: four bits, or one."""

_MATCH: Final = MATCH.operation
_STATE_MASK: Final = (1 << STATE_BITS) - 1


def new_scratch(most_bases: int, most_gap: int) -> Scratch:
    """Return the arrays that one thread needs.

    Parameters
    ----------
    most_bases : int
        The longest tile, in bases of the read, up to `MOST_BASES`.
    most_gap : int
        `Costs.most_gap`.

    Returns
    -------
    tuple of ndarray
        What `extend_score` and `extend_path` take as `scratch`.

    Raises
    ------
    ValueError
        If the tiles are longer than `MOST_BASES`.
    """
    if most_bases > MOST_BASES:
        raise ValueError(f"a tile of {most_bases} bases is longer than {MOST_BASES}")
    registers = most_gap // LANES + 1
    diagonals = 2 * LANES * registers
    steps = 2 * most_bases + diagonals
    return (
        _empty_lines(2 * (most_bases + 2 * _PAD + diagonals + STEP), np.uint8),
        _empty_lines(STATE_WORDS, np.int16),
        _empty_lines(2 * len(RESULTS) * MOST_LANES, np.int16),
        _empty_lines(steps * registers * DIRECTION_WORDS, np.uint16),
    )


def _empty_lines(count: int, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return an unfilled array that begins at a cache line, so that no register lies in two."""
    size = count * np.dtype(dtype).itemsize
    memory = np.empty(size + _LINE_BYTES, dtype=np.uint8)
    first = -memory.ctypes.data % _LINE_BYTES
    return memory[first : first + size].view(dtype)


@jit_without_refcounts
def extend_score(
    read: CodeArray,
    read_at: int,
    length: int,
    reference: CodeArray,
    reference_at: int,
    reference_length: int,
    direction: int,
    costs: CostTuple,
    first_band: int,
    least_score: int,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Return the best score of an alignment that begins at a corner, and where it ends.

    Parameters
    ----------
    read : ndarray, dtype=uint8
        Codes with margins.
    read_at : int
        The index of the first base of the tile, the one next to the corner.
    length : int
        The bases of the tile, from the corner to the end of the read; 0 or more.
    reference : ndarray, dtype=uint8
        Codes with margins.
    reference_at : int
        The index of the base of the reference that is next to the corner.
    reference_length : int
        How many bases of the reference the alignment may use, counted in the direction.
    direction : int
        1 if the tile lies to the right of the corner, -1 if to the left: then the bases are
        ``read_at``, ``read_at - 1`` and so on.
    costs : tuple of int
        `Costs.as_tuple()`.
    first_band : int
        How far from the diagonal an alignment probably goes. It changes the time, not the result.
    least_score : int
        The least score that is of interest.
    scratch : tuple of ndarray
        From `new_scratch`.

    Returns
    -------
    tuple of int
        The score with the bonus, and how many bases of the read and of the reference the
        alignment uses; `CANNOT_REACH`, 0 and 0 if the best score is below `least_score`.
    """
    # A constant of the caller would be a type of its own, for which all would be compiled again.
    tile = (
        widened(read_at),
        widened(length),
        widened(reference_at),
        widened(reference_length),
        widened(direction),
    )
    band, least = widened(first_band), widened(least_score)
    score, i, j, _ = _extend(read, reference, tile, costs, band, least, scratch, widened(0))
    return score, i, j


@jit_without_refcounts
def extend_path(
    read: CodeArray,
    read_at: int,
    length: int,
    reference: CodeArray,
    reference_at: int,
    reference_length: int,
    direction: int,
    costs: CostTuple,
    first_band: int,
    least_score: int,
    scratch: Scratch,
    operations: OperationArray,
    operations_at: int,
) -> tuple[int, int, int, int]:
    """Return what `extend_score` returns, and write the operations of the alignment.

    Parameters
    ----------
    read, read_at, length, reference, reference_at, reference_length, direction
        As in `extend_score`.
    costs, first_band, least_score, scratch
        As in `extend_score`.
    operations : ndarray, dtype=uint32
        Output: the operations as BAM packs them, from the corner outwards. There are at most
        ``2 * length + 1``.
    operations_at : int
        Where in `operations` the first one is written.

    Returns
    -------
    tuple of int
        The score, the bases of the read and of the reference, and the number of operations.
    """
    # A constant of the caller would be a type of its own, for which all would be compiled again.
    tile = (
        widened(read_at),
        widened(length),
        widened(reference_at),
        widened(reference_length),
        widened(direction),
    )
    band, least = widened(first_band), widened(least_score)
    score, i, j, registers = _extend(read, reference, tile, costs, band, least, scratch, widened(1))
    if i == 0:
        return score, 0, 0, 0
    if registers == 0:
        operations[operations_at] = np.uint32(i << 4 | _MATCH)
        return score, i, j, 1
    count = _write_path(i, j, registers, scratch[3], operations, operations_at)
    return score, i, j, count


@jit_without_refcounts
def _extend(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: CostTuple,
    first_band: int,
    least_score: int,
    scratch: Scratch,
    traced: int,
) -> tuple[int, int, int, int]:
    """Return the score, where the alignment ends, and the registers that covered the band.

    There are no registers if the alignment has no gap.
    """
    length, most_gap = tile[1], costs[8]
    if length == 0:
        return (costs[7] if costs[7] >= least_score else CANNOT_REACH), 0, 0, 0
    is_sure, score, i = try_without_gap(read, reference, tile, costs, least_score)
    if is_sure:
        return (score, i, i, 0) if score >= least_score else (CANNOT_REACH, 0, 0, 0)
    band = min(first_band, most_gap)
    while True:
        registers = band // LANES + 1
        score, i, j = _extend_in_band(
            read, reference, tile, costs, registers, least_score, scratch, traced
        )
        band = max(longest_gaps(length, costs, max(score, least_score)))
        if band < LANES * registers:
            break
    if score < least_score:
        return CANNOT_REACH, 0, 0, registers
    return score, i, j, registers


@inline_without_refcounts
def _extend_in_band(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: CostTuple,
    registers: int,
    least_score: int,
    scratch: Scratch,
    traced: int,
) -> tuple[int, int, int]:
    """Return the best score within a band, and where the alignment ends."""
    read_at, length, reference_at, reference_length, direction = tile
    codes, state, results, directions = scratch
    half = LANES * registers // 2
    reference_length = min(reference_length, length + 2 * half - 1)
    pairs = (length + reference_length + 1) // 2
    # The read's last base comes first. Before it are the rows after the end of the read, which the
    # last anti-diagonals touch, after it those before the corner.
    first = widened(_PAD)
    before = max(0, pairs + half - length)
    fill_codes(codes, first - before, before, OUTSIDE_READ)
    last = read_at + direction * (length - 1)
    copy_codes(read, last, length, -direction, codes, first, 0)
    fill_codes(codes, first + length, half, OUTSIDE_READ)
    second = first + length + _PAD + STEP
    fill_codes(codes, second - half, half, OUTSIDE_REFERENCE)
    break_step = REFERENCE_BREAK - BREAK
    copy_codes(reference, reference_at, reference_length, direction, codes, second, break_step)
    after = max(0, pairs + half - reference_length)
    fill_codes(codes, second + reference_length, after, OUTSIDE_REFERENCE)
    compute_matrix(
        codes,
        first,
        second,
        length,
        reference_length,
        least_score,
        costs,
        registers,
        state,
        results,
        directions,
        traced,
    )
    return _chosen_end(results, 2 * half, length, reference_length, costs[7])


@inline_without_refcounts
def _chosen_end(
    results: LaneArray, band: int, length: int, reference_length: int, bonus: int
) -> tuple[int, int, int]:
    """Return the best score of all lanes, and where it ends, by the rules above."""
    best, end = NEVER, NEVER
    # The read cannot end beyond the reference.
    highest = min(band - 1, reference_length - length)
    for diagonal in range(highest + 1, band):
        results[_END + _lane(diagonal, band)] = NEVER
    for parity in range(2):
        for lane in range(parity * MOST_LANES, parity * MOST_LANES + band):
            best = max(best, widened(results[lane]))
            end = max(end, widened(results[_END + lane]))
    reached = end + bonus >= best
    first = _END if reached else 0
    score = end if reached else best
    for distance in range(band + 1):
        for diagonal in (distance, -distance):
            if diagonal < band:
                lane = _lane(diagonal, band)
                if widened(results[first + lane]) == score:
                    if reached:
                        return score + bonus, length, length + diagonal
                    step = widened(results[_STEP + lane])
                    return score, (step - diagonal) >> 1, (step + diagonal) >> 1
    return 0, 0, 0


@inline_without_refcounts
def _lane(diagonal: int, band: int) -> int:
    """Return where in the results of a band a diagonal is."""
    parity = diagonal & 1
    return ((diagonal + band - parity) >> 1) + parity * MOST_LANES


@jit_without_refcounts
def _write_path(
    i: int,
    j: int,
    registers: int,
    directions: DirectionArray,
    operations: OperationArray,
    operations_at: int,
) -> int:
    """Write the operations from the corner to a cell; return how many there are."""
    band = LANES * registers
    state = 0
    count = 0
    while i > 0 or j > 0:
        operation = _OPERATIONS >> 4 * state & 15
        last = operations_at + count - 1
        if count > 0 and widened(operations[last]) & 15 == operation:
            operations[last] += np.uint32(16)
        else:
            operations[last + 1] = np.uint32(16 | operation)
            count += 1
        i -= _READ_BASES >> state & 1
        j -= _REFERENCE_BASES >> state & 1
        state = _state_before(state, i, j, band, directions)
    for k in range(count // 2):
        first, last = operations_at + k, operations_at + count - 1 - k
        operations[first], operations[last] = operations[last], operations[first]
    return count


@inline_without_refcounts
def _state_before(state: int, i: int, j: int, band: int, directions: DirectionArray) -> int:
    """Return from which state of a cell the path comes into a state of a later one."""
    diagonal = j - i
    lane = (diagonal + band - (diagonal & 1)) >> 1
    at = ((i + j) * band + lane) // LANES * DIRECTION_WORDS
    bits = 0
    for word in range(DIRECTION_WORDS):
        bits |= (widened(directions[at + word]) >> (lane % LANES) & 1) << word
    return _SOURCES[state] >> STATE_BITS * bits & _STATE_MASK
