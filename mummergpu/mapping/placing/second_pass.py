"""The second pass: templates whose reads are placed badly, or not at all, are mapped once more.

The first pass begins with long matches, so it finds all placements with few edits. A read that it
places with more edits than that may have a better place. The second pass begins with shorter
matches, but leaves out those of frequent k-mers. So the candidates of the first pass stay: no
read gets less than it had.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.records.record_arrays import NO_SPANS, in_order
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidate_scores import min_loss
from mummergpu.mapping.candidates.candidates import DEAD, NUMBERS, Candidates, no_candidates
from mummergpu.mapping.placing.choice import Choices
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import inline, jit
from mummergpu.viterbi.recurrence.model import Costs

READS_AT_FIRST: Final = 1 << 10
MATCHES_AT_ONCE: Final = 1 << 18
"""The reads mapped again together: first `READS_AT_FIRST`, then as many as have about this many
matches: a read of a satellite may have a thousand, each of which becomes a candidate."""

_NOT_PLACED: Final = -1
"""A score below that of any placement."""


@inline
def max_unseen(length: int, seed_length: int, costs: Costs) -> int:
    """Return the best score that a placement without a long match can have.

    A read of n bases with e edits has a match of at least ``(n - e) / (e + 1)`` bases.
    """
    edits = max(0, -(-(length - seed_length + 1) // seed_length))
    return length * costs.match + 2 * costs.end_bonus - edits * min_loss(costs)


@jit
def list_badly_placed(
    offsets: Int64Array,
    choices: Choices,
    table: Candidates,
    mates: int,
    seed_length: int,
    costs: Costs,
    reads: Int64Array,
) -> int:
    """List the reads that may have a better place, with their mates; return how many.

    A placement without a match of `seed_length` bases is not found.
    """
    end = 0
    for first in range(0, offsets.size - 1, mates):
        is_bad = False
        for read in range(first, first + mates):
            chosen = choices.candidates[read]
            score = table.numbers[chosen, column.SCORE] if chosen >= 0 else _NOT_PLACED
            length = offsets[read + 1] - offsets[read]
            is_bad |= length > 0 and score < max_unseen(length, seed_length, costs)
        if is_bad:
            for read in range(first, first + mates):
                reads[end] = read
                end += 1
    return end


@frozen
class DoubtfulReads:
    """Reads of a block that may have a better place, with their mates."""

    numbers: Int64Array  # Which reads of the block they are, ascending.
    candidates: Candidates  # Their candidates, in memory of their own.

    def part(self, first: int, end: int) -> DoubtfulReads:
        """Return a range of these reads, which parts no mates."""
        table = self.candidates
        return DoubtfulReads(
            self.numbers[first:end],
            table._replace(
                offsets=table.offsets[first : end + 1],
                counts=table.counts[first:end],
                seeds_kept=table.seeds_kept[first:end],
            ),
        )


def doubtful_reads(numbers: Int64Array, candidates: Candidates) -> DoubtfulReads:
    """Return some reads of a block with copies of their candidates, except the dead ones."""
    most = int(candidates.counts[numbers].sum())
    kept = no_candidates(numbers.size)
    diagonals = np.empty(most, dtype=np.int64)
    rows = np.empty((most, NUMBERS), dtype=np.int32)
    count = copy_candidates(
        candidates, numbers, Candidates(kept.offsets, kept.counts, diagonals, rows, kept.seeds_kept)
    )
    found = kept._replace(diagonals=diagonals[:count], numbers=rows[:count])
    return DoubtfulReads(numbers, found)


@jit
def copy_candidates(table: Candidates, reads: Int64Array, copied: Candidates) -> int:
    """Copy the candidates of some reads that are not dead; return how many there are."""
    end = 0
    for place in range(reads.size):
        first = table.offsets[reads[place]]
        copied.offsets[place] = end
        for row in range(first, first + table.counts[reads[place]]):
            if table.numbers[row, column.STATE] != DEAD:
                copied.diagonals[end] = table.diagonals[row]
                for number in range(NUMBERS):
                    copied.numbers[end, number] = table.numbers[row, number]
                end += 1
        copied.counts[place] = end - copied.offsets[place]
        copied.seeds_kept[place] = table.seeds_kept[reads[place]]
    copied.offsets[reads.size] = end
    return end


def part_of_reads(block: ReadBlock, reads: Int64Array) -> ReadBlock:
    """Return some reads of a block as a block of its own, in new arrays.

    The reads ascend; of pairs, there are both mates.
    """
    # Libraries are distinguished by read groups.
    tags = block.tags if block.has_groups else NO_SPANS
    records = in_order(block.records._replace(tags=tags), reads)
    written = None if block.written is None else in_order(block.written, reads)
    return block.with_records(records, written=written)
