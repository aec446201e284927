"""Computes a band of a tile's matrix, and follows the best path back through it.

The two sequences are copied first, so that one program reads all tiles in the same way: the read
backwards, seen from the corner, and the reference forwards. Along an anti-diagonal of the matrix
both are then read in ascending order. Codes that equal no other stand around the copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.arrays import ByteArray, Int16Array, UInt16Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.runtime.llvm import intrinsic, ir, load_from, store_to, types
from mummergpu.runtime.vectors import Vectors
from mummergpu.sequence.codes import BREAK, STEP, CodeArray
from mummergpu.viterbi.recurrence.lanes import (
    DIRECTION_WORDS,
    LANES,
    MOST_LANES,
    MOST_REGISTERS,
    RESULTS,
    STATE_WORDS,
    TileProgram,
)
from mummergpu.viterbi.recurrence.model import MOST_BASES, PAIRWISE, Costs
from mummergpu.viterbi.recurrence.operations import (
    OperationArray,
    append_operation,
    reverse_operations,
    source_of,
)
from mummergpu.viterbi.recurrence.tile import Tile

LaneArray = Int16Array
DirectionArray = UInt16Array


class Scratch(NamedTuple):
    """The working memory of compiled functions, one for each thread."""

    codes: CodeArray  # The copies of the two sequences (`band`)
    state: LaneArray  # The cells of a wide band
    results: LaneArray  # Of all lanes (`lanes.RESULTS`)
    # For each anti-diagonal, from 0 on, and each register, `lanes.DIRECTION_WORDS` words with a bit
    # for each lane: the directions that leave the cell (`departures`).
    directions: DirectionArray
    words: ByteArray  # 1 for each word of `WORD_BASES` bases that the reference has


WORD_BASES: Final = 5
WORDS: Final = 1 << 2 * WORD_BASES
"""The bases of a word (`extension.shared_words`), and how many words there are."""

PAD: Final = LANES * (MOST_REGISTERS + 1)
"""The codes before each copy, at most: half of the widest band outside of the matrix."""

_LINE_BYTES: Final = 64


def new_scratch(max_bases: int, max_gap: int) -> Scratch:
    """Return the memory of a thread for tiles of up to `max_bases` of the read, or `MOST_BASES`."""
    if max_bases > MOST_BASES:
        raise ValueError(f"a tile of {max_bases} bases is longer than {MOST_BASES}")
    registers = max_gap // LANES + 1
    diagonals = 2 * LANES * registers
    steps = 2 * max_bases + diagonals
    return Scratch(
        _empty_lines(2 * (max_bases + 2 * PAD + diagonals + STEP), np.uint8),
        _empty_lines(STATE_WORDS, np.int16),
        _empty_lines(2 * len(RESULTS) * MOST_LANES, np.int16),
        _empty_lines(steps * registers * DIRECTION_WORDS, np.uint16),
        _empty_lines(WORDS, np.uint8),
    )


def _empty_lines(count: int, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return an unfilled array that begins at a cache line, so that no register lies in two."""
    size = count * np.dtype(dtype).itemsize
    memory = np.empty(size + _LINE_BYTES, dtype=np.uint8)
    first = -memory.ctypes.data % _LINE_BYTES
    return memory[first : first + size].view(dtype)


REFERENCE_BREAK: Final = BREAK + 1
"""A break of the reference in a copy: it equals no break of the read."""

OUTSIDE_READ: Final = BREAK + 2
OUTSIDE_REFERENCE: Final = BREAK + 3
"""The code around the copies."""


def _copy_lanes(backwards: bool) -> Callable[..., Any]:
    def copy(
        typing_context: Any, codes: Any, at: Any, result: Any, to: Any, break_step: Any
    ) -> Any:
        """Copy `STEP` codes from an index on, or back from it, and add to each break."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            codes, at, result, to, break_step = arguments
            vectors = Vectors(builder, 8, STEP)
            if backwards:
                at = builder.sub(at, ir.Constant(at.type, STEP - 1))
            lanes = load_from(context, builder, vectors.kind, signature.args[0], codes, at)
            if backwards:
                order = list(range(STEP))[::-1]
                order = ir.Constant(ir.VectorType(ir.IntType(32), STEP), order)
                lanes = builder.shuffle_vector(lanes, lanes, order)
            breaks = vectors.constant(BREAK)
            is_break = builder.icmp_unsigned(">=", lanes, breaks)
            moved = builder.add(breaks, vectors.splat(break_step))
            lanes = builder.select(is_break, moved, lanes)
            store_to(context, builder, lanes, signature.args[2], result, to)
            return context.get_dummy_value()

        arguments = (codes, types.int64, result, types.int64, types.int64)
        return types.void(*arguments), generate

    return copy


def _fill_lanes(typing_context: Any, result: Any, to: Any, code: Any) -> Any:
    """Write a code `STEP` times."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result, to, code = arguments
        vectors = Vectors(builder, 8, STEP)
        store_to(context, builder, vectors.splat(code), signature.args[0], result, to)
        return context.get_dummy_value()

    return types.void(result, types.int64, types.int64), generate


_Copy = Callable[[CodeArray, int, CodeArray, int, int], None]
_copy_forwards = cast(_Copy, intrinsic(_copy_lanes(backwards=False)))
_copy_backwards = cast(_Copy, intrinsic(_copy_lanes(backwards=True)))
_fill = cast("Callable[[CodeArray, int, int], None]", intrinsic(_fill_lanes))


@inline
def copy_codes(
    codes: CodeArray, at: int, length: int, step: int, copy: CodeArray, to: int, break_step: int
) -> None:
    """Copy codes, forwards or backwards; up to `STEP` - 1 more are written, and as many are read.

    `step` is 1 if the next code is the one after it, or -1; `break_step` is added to each break.
    """
    for done in range(0, length, STEP):
        if step > 0:
            _copy_forwards(codes, at + done, copy, to + done, break_step)
        else:
            _copy_backwards(codes, at - done, copy, to + done, break_step)


@inline
def fill_codes(copy: CodeArray, to: int, length: int, code: int) -> None:
    """Write one code at least `length` times, and up to `STEP` - 1 times more."""
    for done in range(0, length, STEP):
        _fill(copy, to + done, code)


STEP_RESULTS: Final = 2 * MOST_LANES * RESULTS.index("step")
END_RESULTS: Final = 2 * MOST_LANES * RESULTS.index("end")
"""Where the results of each kind begin (`lanes.RESULTS`)."""

_OPERATIONS: Final = sum(state.operation << 4 * n for n, state in enumerate(PAIRWISE.states))
_READ_BASES: Final = sum(state.read_bases << n for n, state in enumerate(PAIRWISE.states))
_REFERENCE_BASES: Final = sum(state.reference_bases << n for n, state in enumerate(PAIRWISE.states))
"""The operation of each state (4 bits each), and the bases that it consumes (1 bit each)."""

ALL_PAIRS: Final = 1 << 20
"""More pairs of anti-diagonals than a tile has."""


def _tile_program(narrow: bool, traced: bool) -> Callable[..., Any]:
    def compute(
        typing_context: Any,
        codes: Any,
        tile: Any,
        costs: Any,
        registers: Any,
        state: Any,
        results: Any,
        directions: Any,
    ) -> Any:
        """Compute a tile whose codes have been copied."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            TileProgram(context, builder, signature, arguments, narrow, traced).write()
            return context.get_dummy_value()

        numbers = types.UniTuple(types.int64, 6)
        arrays = (state, results, directions)
        return types.void(codes, numbers, costs, types.int64, *arrays), generate

    return compute


_score_narrow = cast(Any, intrinsic(_tile_program(narrow=True, traced=False)))
_trace_narrow = cast(Any, intrinsic(_tile_program(narrow=True, traced=True)))
_score_wide = cast(Any, intrinsic(_tile_program(narrow=False, traced=False)))
_trace_wide = cast(Any, intrinsic(_tile_program(narrow=False, traced=True)))


class TileCopies(NamedTuple):
    """Where in `Scratch.codes` the sequences of a tile are copied to."""

    read_at: int  # The last base of the read, which comes first
    reference_at: int
    length: int  # The bases of the read, 1 or more
    reference_length: int


@jit
def compute_matrix(
    scratch: Scratch,
    copies: TileCopies,
    costs: Costs,
    registers: int,
    min_score: int,
    traced: int,
    max_pairs: int,
) -> None:
    """Compute the scores of a tile, and from where the best path comes into each cell.

    `registers` cover the band, up to `lanes.MOST_REGISTERS`. At most `max_pairs` pairs of
    anti-diagonals are computed.
    """
    codes, state, results, directions, _ = scratch
    read_at, reference_at, length, reference_length = copies
    half = registers * LANES // 2
    read_at, reference_at = read_at - half, reference_at - half
    pairs = min((length + reference_length + 1) // 2, max_pairs)
    tile = (read_at, reference_at, length, reference_length, pairs, min_score)
    if registers == 1:
        if traced:
            _trace_narrow(codes, tile, costs, registers, state, results, directions)
        else:
            _score_narrow(codes, tile, costs, registers, state, results, directions)
    elif traced:
        _trace_wide(codes, tile, costs, registers, state, results, directions)
    else:
        _score_wide(codes, tile, costs, registers, state, results, directions)


@jit
def compute_band(
    read: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    registers: int,
    min_score: int,
    scratch: Scratch,
    traced: int,
    max_pairs: int,
) -> int:
    """Compute the cells of a tile that are in a band around the corner's diagonal.

    The band has the diagonals from ``-LANES * registers`` to before ``LANES * registers``; return
    its number of bases of the reference. If the least score is below 0, no alignment ends at the
    corner: it would hide all others that score 0. Paths end before they have twice `max_pairs`
    bases of both sequences together. `scratch` receives the results, and the directions if `traced`
    is 1.
    """
    read_at, length, reference_at, reference_length, direction = tile
    codes = scratch.codes
    half = LANES * registers // 2
    reference_length = min(reference_length, length + 2 * half - 1)
    pairs = (length + reference_length + 1) // 2
    # The read's last base comes first. Before it are the rows after the end of the read, which the
    # last anti-diagonals touch, after it those before the corner.
    first = as_int64(PAD)
    before = max(0, pairs + half - length)
    fill_codes(codes, first - before, before, OUTSIDE_READ)
    last = read_at + direction * (length - 1)
    copy_codes(read, last, length, -direction, codes, first, 0)
    fill_codes(codes, first + length, half, OUTSIDE_READ)
    second = first + length + PAD + STEP
    fill_codes(codes, second - half, half, OUTSIDE_REFERENCE)
    break_step = REFERENCE_BREAK - BREAK
    copy_codes(reference, reference_at, reference_length, direction, codes, second, break_step)
    after = max(0, pairs + half - reference_length)
    fill_codes(codes, second + reference_length, after, OUTSIDE_REFERENCE)
    copies = TileCopies(first, second, length, reference_length)
    compute_matrix(scratch, copies, costs, registers, min_score, traced, max_pairs)
    return reference_length


@inline
def lane_of(diagonal: int, band: int) -> int:
    """Return the index in the results of a diagonal of a band that `band` lanes cover.

    A diagonal is the position in the reference minus that in the read, counted from the corner.
    """
    parity = diagonal & 1
    return ((diagonal + band - parity) >> 1) + parity * MOST_LANES


@jit
def write_path(
    i: int,
    j: int,
    registers: int,
    directions: DirectionArray,
    operations: OperationArray,
    operations_at: int,
) -> int:
    """Write the operations from the corner to a cell in which the alignment ends with a match.

    The cell is given by the bases of the read and of the reference that the alignment uses; return
    the number of operations.
    """
    band = LANES * registers
    state = 0
    end = operations_at
    # From the end back to the corner: the bases that a state consumes lead to the previous cell.
    while i > 0 or j > 0:
        end = append_operation(operations, operations_at, end, _OPERATIONS >> 4 * state & 15, 1)
        i -= _READ_BASES >> state & 1
        j -= _REFERENCE_BASES >> state & 1
        state = _state_before(state, i, j, band, directions)
    reverse_operations(operations, operations_at, end)
    return end - operations_at


@inline
def _state_before(state: int, i: int, j: int, band: int, directions: DirectionArray) -> int:
    """Return from which state of a cell the path comes into a state of a later one."""
    diagonal = j - i
    lane = (diagonal + band - (diagonal & 1)) >> 1
    at = ((i + j) * band + lane) // LANES * DIRECTION_WORDS
    bits = 0
    # A register has a word for each bit of a cell, with a bit for each lane.
    for word in range(DIRECTION_WORDS):
        bits |= (as_int64(directions[at + word]) >> (lane % LANES) & 1) << word
    return source_of(state, bits)
