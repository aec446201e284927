"""Sequences side by side, a lane each: the input of the programs of `processor_text`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.hmm.language.processor_text import LANES, SEGMENT_NUMBERS
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import jit


class SymbolBlock(NamedTuple):
    """Sequences as codes of an alphabet."""

    codes: ByteArray
    # (n_sequences + 1,): where in `codes` each sequence begins, and where the last ends.
    offsets: Int64Array

    @property
    def lengths(self) -> Int64Array:
        """The lengths of the sequences."""
        return np.diff(self.offsets)


def offsets_of_counts(counts: Int64Array) -> Int64Array:
    """Return where each of some lists begins, one after the other, and where the last ends."""
    offsets = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


@jit
def is_every(numbers: Int64Array, count: int) -> bool:
    """Return whether some numbers are all from 0 to `count`, in their order."""
    if numbers.size != count:
        return False
    for at in range(count):
        if numbers[at] != at:
            return False
    return True


class Lanes(NamedTuple):
    """Some sequences, in groups of `LANES`, the shortest first."""

    sequences: Int64Array  # Their numbers in the block; none is empty
    lengths: Int64Array  # Their lengths, ascending
    # (n_rows, LANES): their symbols, and after those that end first a padding symbol.
    rows: ByteArray
    first_rows: Int64Array  # Where each sequence begins; its lane is its place modulo `LANES`
    # (n_segments, SEGMENT_NUMBERS): the rows between the ends of sequences of a group
    # (`processor_text.SEGMENT_NUMBERS`).
    segments: Int64Array
    slots: Int64Array  # The segment that each sequence ends with


def lanes_of(
    block: SymbolBlock, sequences: Int64Array, padding: int, backwards: bool = False
) -> Lanes:
    """Lay out some sequences of a block that are not empty, ordered by length."""
    lengths = block.offsets[sequences + 1] - block.offsets[sequences]
    groups = -(-sequences.size // LANES)
    longest = np.maximum.reduceat(lengths, np.arange(0, lengths.size, LANES))
    ends = np.cumsum(longest)
    first_rows = np.repeat(ends - longest, LANES)[: sequences.size]
    rows = np.empty((int(ends[-1]), LANES), dtype=np.uint8)
    segments = np.empty((sequences.size, SEGMENT_NUMBERS), dtype=np.int64)
    slots = np.empty(sequences.size, dtype=np.int64)
    codes = np.ascontiguousarray(block.codes)
    begins = block.offsets[sequences]
    _fill_rows(codes, begins, lengths, longest, padding, backwards, rows)
    count = _fill_segments(lengths, first_rows, groups, segments, slots)
    return Lanes(sequences, lengths, rows, first_rows, segments[:count], slots)


@jit
def _fill_rows(
    codes: ByteArray,
    begins: Int64Array,
    lengths: Int64Array,
    longest: Int64Array,
    padding: int,
    backwards: bool,
    rows: ByteArray,
) -> None:
    lanes = rows.shape[1]
    first = 0
    for group in range(longest.size):
        for lane in range(lanes):
            number = group * lanes + lane
            size = lengths[number] if number < lengths.size else 0
            at = begins[number] if number < lengths.size else 0
            if backwards:
                for row in range(size):
                    rows[first + row, lane] = codes[at + size - 1 - row]
            else:
                for row in range(size):
                    rows[first + row, lane] = codes[at + row]
            for row in range(size, longest[group]):
                rows[first + row, lane] = padding
        first += longest[group]


@jit
def _fill_segments(
    lengths: Int64Array,
    first_rows: Int64Array,
    groups: int,
    segments: Int64Array,
    slots: Int64Array,
) -> int:
    """Write the segments of each group, and the last one of each sequence; return their number."""
    count = 0
    for group in range(groups):
        done, before = 0, -1
        for number in range(group * LANES, min(lengths.size, (group + 1) * LANES)):
            # The lengths ascend: a segment reaches the end of the next sequence that is longer.
            if lengths[number] > done:
                segments[count, 0] = first_rows[number] + done
                segments[count, 1] = lengths[number] - done
                segments[count, 2] = before
                done, before = lengths[number], count
                count += 1
            slots[number] = before
    return count
