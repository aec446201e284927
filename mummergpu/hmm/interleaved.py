"""Sequences side by side, one in each lane of a register, for processors that look scores up there.

A register holds the cells of one node for all sequences of a group, so no cell waits for the lane
beside it, and short models leave no lane empty. What a node scores for the residue of each lane
comes from a register with all codes, by one instruction of AVX-512 (T. Rognes compares a query so
with several sequences: BMC Bioinformatics 12, 2011). On other processors the lanes have the nodes
of one sequence (`byte_filters`, `word_filter`), with the same results.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.compiled.native.function import keeps_code
from mummergpu.runtime.jit import as_index, jit_without_refcounts, writable
from mummergpu.runtime.llvm import intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import looks_up_in_registers

BYTE_LANES: Final = 64
WORD_LANES: Final = 32

ROWS_AT_ONCE: Final = 2
"""Groups have a multiple of so many rows: what a node scores is loaded once for them."""

_PAD: Final = CODES
"""The code behind the end of a sequence."""

_SQUARE: Final = 8
"""The sequences, and the residues of each, that are copied at once."""

_MIN_FILLS: Final = {BYTE_LANES: 0.6, WORD_LANES: 0.2}
"""The share of a group's cells that must be those of residues; else it takes longer than rows."""


class InterleavedBlock(NamedTuple):
    """Sequences in groups of about the same length, for compiled functions.

    Attributes
    ----------
    codes : ndarray of uint8, shape (rows, lanes)
        In each row the residues of a group's sequences at one place; behind their ends a code that
        no node emits.
    first_rows : ndarray of int64, shape (groups + 1,)
        Where each group begins, and where the last ends.
    sequences : ndarray of int64, shape (groups, lanes)
        The number of the sequence in each lane, -1 where there is none.
    places : ndarray of int64, shape (groups, lanes)
        Where it stands among those that were given.
    lengths : ndarray of int64, shape (groups, lanes)
        Their lengths, increasing but for empty lanes, which the last group has.
    rest : ndarray of int64
        The numbers of the sequences that are in no group.
    longest : int
        The length of the longest sequence, in a group or not.
    rows : int
        Those of the largest group.
    """

    codes: ByteArray
    first_rows: Int64Array
    sequences: Int64Array
    places: Int64Array
    lengths: Int64Array
    rest: Int64Array
    longest: int
    rows: int


@cache
def can_interleave() -> bool:
    """Return whether this processor looks up bytes and words, and code for it alone is kept.

    Where it cannot be kept, as in many containers, generic code that was made beforehand serves.
    """
    return looks_up_in_registers() and keeps_code()


def interleaved(
    block: ProteinBlock, lanes: int, sequences: Int64Array | None = None
) -> InterleavedBlock:
    """Return sequences of a block in groups.

    Parameters
    ----------
    block : ProteinBlock
        The block.
    lanes : int
        Of a group: `BYTE_LANES` or `WORD_LANES`.
    sequences : ndarray of int64, optional
        The numbers of sequences that are not empty; by default all of these.
    """
    if sequences is None:
        sequences = np.flatnonzero(np.diff(block.offsets))
    sizes = block.offsets[sequences + 1] - block.offsets[sequences]
    padded, places = np.full((2, -(-sequences.size // lanes), lanes), -1, dtype=np.int64)
    lengths = np.zeros(padded.shape, dtype=np.int64)
    longest = int(sizes.max(initial=0))
    counts = np.zeros(longest + 2, dtype=np.int64)
    given = writable(sequences), sizes
    _sort_by_length(*given, counts, *(each.reshape(-1) for each in (padded, places, lengths)))
    rows = lengths.max(axis=1, initial=0)
    is_full = lengths.sum(axis=1) >= _MIN_FILLS[lanes] * lanes * rows
    rest = padded[~is_full].ravel()
    if rest.size:
        padded, places = padded[is_full], places[is_full]
        lengths, rows = lengths[is_full], rows[is_full]
    rows += -rows % ROWS_AT_ONCE
    first_rows = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(rows)])
    codes = np.empty((int(first_rows[-1]), lanes), dtype=np.uint8)
    most = int(rows.max(initial=0))
    found = InterleavedBlock(
        codes, first_rows, padded, places, lengths, rest[rest >= 0], longest, most
    )
    _fill_lanes(block, found, np.empty(lanes, dtype=np.int64))
    return found


@jit_without_refcounts
def _sort_by_length(
    sequences: Int64Array,
    sizes: Int64Array,
    counts: Int64Array,
    sorted_sequences: Int64Array,
    places: Int64Array,
    sorted_sizes: Int64Array,
) -> None:
    """Sort by counting; `counts` has a zero for each length and one more.

    Blocks of translated reads have tens of thousands, which numpy takes 15 times as long to sort.
    """
    for size in sizes:
        counts[size + 1] += 1
    for length in range(1, counts.size):
        counts[length] += counts[length - 1]
    for number in range(sizes.size):
        place = counts[sizes[number]]
        counts[sizes[number]] += 1
        sorted_sequences[place] = sequences[number]
        places[place] = number
        sorted_sizes[place] = sizes[number]


def _copy_square(
    typing_context: Any, codes: Any, begins: Any, lane: Any, place: Any, rows: Any, to: Any
) -> Any:
    """Copy `_SQUARE` residues of as many sequences into as many rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        codes, begins, lane, place, _, to = arguments
        word, index = ir.IntType(64), ir.IntType(32)
        rows = context.make_array(signature.args[4])(context, builder, arguments[4])
        width = builder.extract_value(rows.shape, 1)

        def loaded(array: Any, of: int, at: Any) -> Any:
            return load_from(context, builder, word, signature.args[of], array, at)

        square: Any = ir.Constant(ir.VectorType(word, _SQUARE), ir.Undefined)
        for n in range(_SQUARE):
            begin = loaded(begins, 1, builder.add(lane, ir.Constant(word, n)))
            residues = loaded(codes, 0, builder.add(begin, place))
            square = builder.insert_element(square, residues, ir.Constant(index, n))
        # A word is a sequence's residues; turned, it is what some lanes have at one place.
        size = _SQUARE * _SQUARE
        letters = builder.bitcast(square, ir.VectorType(ir.IntType(8), size))
        order = [at % _SQUARE * _SQUARE + at // _SQUARE for at in range(size)]
        turned = builder.shuffle_vector(
            letters, letters, ir.Constant(ir.VectorType(index, size), order)
        )
        turned = builder.bitcast(turned, square.type)
        target = builder.gep(rows.data, [builder.add(builder.mul(to, width), lane)])
        for n in range(_SQUARE):
            row = builder.extract_element(turned, ir.Constant(index, n))
            address = builder.gep(target, [builder.mul(width, ir.Constant(word, n))])
            builder.store(row, builder.bitcast(address, word.as_pointer()), align=1)
        return context.get_dummy_value()

    one = types.int64
    return types.void(codes, begins, one, one, rows, one), generate


copy_square = cast(Any, intrinsic(_copy_square))
"""Called with the codes of a block, where each lane's sequence begins, the first lane, the first
place in its sequences, the codes of an `InterleavedBlock`, and the first row to write to."""


@jit_without_refcounts
def _fill_lanes(block: ProteinBlock, into: InterleavedBlock, begins: Int64Array) -> None:
    """Copy the residues of all groups; `begins` is memory for a number a lane."""
    lanes = into.codes.shape[1]
    for group in range(into.first_rows.size - 1):
        row = into.first_rows[group]
        rows = into.first_rows[group + 1] - row
        shared = rows
        for lane in range(lanes):
            # An empty lane has no sequence, and no residue is read.
            begins[lane] = block.offsets[max(into.sequences[group, lane], 0)]
            shared = min(shared, into.lengths[group, lane])
        # Squares lie within all sequences: what is left is less than a side, and longer ones' ends.
        shared -= shared % _SQUARE
        for place in range(0, shared, _SQUARE):
            for lane in range(0, lanes, _SQUARE):
                copy_square(block.codes, begins, lane, place, into.codes, row + place)
        for lane in range(lanes):
            length = into.lengths[group, lane]
            for place in range(shared, length):
                code = block.codes[as_index(begins[lane] + place)]
                into.codes[as_index(row + place), as_index(lane)] = code
            for place in range(length, rows):
                into.codes[as_index(row + place), as_index(lane)] = _PAD
