"""The second pass: templates whose reads are placed badly, or not at all, are mapped once more.

The first pass begins with long matches, so it finds all placements with few edits. A read that it
places with more edits than that may have a better place. The second pass begins with shorter
matches, but leaves out those of frequent k-mers. So the candidates of the first pass stay: no
read gets less than it had.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.blocks.read_block import OriginalReads, ReadBlock
from mummergpu.input.records.tags import NO_TAGS, Tags
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidate_scores import min_loss
from mummergpu.mapping.candidates.candidates import DEAD, NUMBERS, Candidates, no_candidates
from mummergpu.mapping.placing.choice import Choices
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import inline, jit, writable
from mummergpu.sequence.codes import MARGIN, empty_with_margins
from mummergpu.viterbi.recurrence.model import Costs

READS_AT_FIRST: Final = 1 << 10
MATCHES_AT_ONCE: Final = 1 << 18
"""So many reads are mapped again together at first, and then as many as have about so many matches:
a read of a satellite may have a thousand, each of which becomes a candidate."""

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
    """Return some reads of a block with copies of their candidates, but for the dead ones."""
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
    name_offsets = np.empty(reads.size + 1, dtype=np.int64)
    names = np.empty(add_lengths(block.name_offsets, reads, name_offsets), dtype=np.uint8)
    copy_parts(writable(block.names), 0, block.name_offsets, reads, names)
    searched = _part_of_bases(block, reads)
    return ReadBlock(
        block.index,
        searched.padded_codes,
        searched.offsets,
        names,
        name_offsets,
        block.file_number,
        base_qualities=searched.base_qualities,
        paired=block.paired,
        written=None if block.written is None else _part_of_bases(block.written, reads),
        # Libraries are told apart by read groups.
        tags=_part_of_tags(block.tags, reads) if block.has_groups else NO_TAGS,
        has_groups=block.has_groups,
    )


def _part_of_tags(tags: Tags, reads: Int64Array) -> Tags:
    """Return the tags of some reads."""
    if not tags.are_kept:
        return tags
    offsets = np.empty(reads.size + 1, dtype=np.int64)
    content = np.empty(add_lengths(tags.offsets, reads, offsets), dtype=np.uint8)
    copy_parts(writable(tags.content), 0, tags.offsets, reads, content)
    return Tags(content, offsets)


def _part_of_bases(block: ReadBlock | OriginalReads, reads: Int64Array) -> OriginalReads:
    """Return the bases and the qualities of some reads."""
    offsets = np.empty(reads.size + 1, dtype=np.int64)
    bases = add_lengths(block.offsets, reads, offsets)
    padded = empty_with_margins(bases)
    qualities = np.empty(bases, dtype=np.uint8)
    copy_parts(block.padded_codes, MARGIN, block.offsets, reads, padded)
    copy_parts(writable(block.base_qualities), 0, block.offsets, reads, qualities)
    return OriginalReads(padded, offsets, qualities)


@jit
def add_lengths(offsets: Int64Array, chosen: Int64Array, own_offsets: Int64Array) -> int:
    """Compute where some texts begin if they follow each other; return where the last one ends."""
    end = 0
    for row in range(chosen.size):
        own_offsets[row] = end
        end += offsets[chosen[row] + 1] - offsets[chosen[row]]
    own_offsets[chosen.size] = end
    return end


@jit
def copy_parts(
    text: ByteArray, margin: int, offsets: Int64Array, chosen: Int64Array, copied: ByteArray
) -> None:
    """Copy some texts, one after the other."""
    end = margin
    for row in range(chosen.size):
        for place in range(offsets[chosen[row]], offsets[chosen[row] + 1]):
            copied[end] = text[margin + place]
            end += 1
