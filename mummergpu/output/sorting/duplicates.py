"""Finds duplicates: templates that were copied before they were sequenced.

As Picard and samtools define it: pairs are duplicates of each other if both of their ends, with the
clipped bases, lie at the same places on the same strands; a read without a mapped mate is one of
every pair with an end there, or of another such read. Of each set of duplicates, the one with the
largest sum of base qualities stays, of those of at least 15; of several, the first one of the
input. Only primary alignments decide, and only they are flagged; all reads are of one library.

Templates with the same first end are in one bucket, in the order of the input; within a bucket, the
pairs come after the templates with one mapped read. The second ends of pairs are in the buckets in
which they would be as first ends: there a template with one mapped read looks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, SamFlag
from mummergpu.output.records.rows import NO_QUALITY, REVERSE, UNMAPPED, spans_of
from mummergpu.output.sorting.row_tables import Axis, KeyArray, OrderArray, radix_order
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, writable

NO_END: Final = np.iinfo(np.uint64).max
"""The second end of a template with one mapped read."""

MOST_CLIPPED: Final = 1 << 20
"""The most clipped bases that are distinguished."""


class Templates(NamedTuple):
    """Templates that have a mapped read.

    The ends are where the reads of each begin in sequencing, and on which strand, the smaller
    number first, and `NO_END` for a second read that is not mapped; the rows are the primary ones
    of the first read of the input and of its mate, or `NO_ROW`; the scores are the sums of their
    qualities.
    """

    first_ends: KeyArray
    second_ends: KeyArray
    first_rows: Int64Array
    second_rows: Int64Array
    scores: UInt32Array

    @classmethod
    def of_size(cls, size: int) -> Templates:
        """Return unfilled arrays."""
        kinds = (np.uint64, np.uint64, np.int64, np.int64, np.uint32)
        return cls._make(np.empty(size, dtype=kind) for kind in kinds)


_NOT_PRIMARY: Final = int(SamFlag.SECONDARY | SamFlag.SUPPLEMENTARY)
_CLIPS: Final = 0b110000
"""A bit for each operation that clips: S and H."""

_MOST_CLIPS: Final = 2
"""The most operations that clip at one end: soft clips may lie inside hard ones."""


@inline
def clipped_bases(cigars: UInt32Array, begin: int, end: int, is_end: bool) -> int:
    """Return the bases that are clipped at one end of an alignment."""
    bases = as_int64(0)
    for turn in range(min(_MOST_CLIPS, end - begin)):
        operation = as_int64(cigars[as_index(end - 1 - turn if is_end else begin + turn)])
        if (_CLIPS >> (operation & 15)) & 1 == 0:
            break
        bases += operation >> 4
    return min(bases, MOST_CLIPPED)


@inline
def end_of_row(rows: AlignmentColumns, row: int, bits: int) -> int:
    """Return where the read of a row begins in sequencing, and on which strand."""
    flags, records, positions = rows.flags, rows.records, rows.positions
    offsets, cigars = rows.cigar_offsets, rows.cigars
    begin, end = offsets[as_index(row)], offsets[as_index(row + 1)]
    is_reverse = 1 if as_int64(flags[as_index(row)]) & REVERSE else 0
    place = positions[as_index(row)] + MOST_CLIPPED
    if is_reverse:
        span, _, _ = spans_of(cigars, begin, end)
        place += max(span, 1) - 1 + clipped_bases(cigars, begin, end, True)
    else:
        place -= clipped_bases(cigars, begin, end, False)
    return as_int64(as_int64(records[as_index(row)]) << bits | place << 1 | is_reverse)


@jit
def list_templates(
    rows: AlignmentColumns, read_scores: UInt32Array, bits: int, templates: Templates
) -> int:
    """List the templates that have a mapped read, in the order of their first rows."""
    reads, flags, mates = rows.reads, rows.flags, rows.mate_rows
    first_ends, second_ends, first_rows, second_rows, scores = templates
    count = 0
    for row in range(flags.size):
        if as_int64(flags[as_index(row)]) & (UNMAPPED | _NOT_PRIMARY):
            continue
        mate = mates[as_index(row)]
        has_mate = mate != NO_ROW and as_int64(flags[as_index(mate)]) & UNMAPPED == 0
        # A pair is a template once: with the row of the read that comes first.
        if has_mate and mate < row:
            continue
        first = np.uint64(end_of_row(rows, row, bits))
        score = as_int64(read_scores[as_index(reads[as_index(row)])])
        first_rows[as_index(count)] = row
        if has_mate:
            second = np.uint64(end_of_row(rows, mate, bits))
            first_ends[as_index(count)] = min(first, second)
            second_ends[as_index(count)] = max(first, second)
            second_rows[as_index(count)] = mate
            score += as_int64(read_scores[as_index(reads[as_index(mate)])])
        else:
            first_ends[as_index(count)] = first
            second_ends[as_index(count)] = np.uint64(NO_END)
            second_rows[as_index(count)] = NO_ROW
        scores[as_index(count)] = score
        count += 1
    return count


BUCKETS: Final = 64
"""The buckets: enough for many threads, and small ones are sorted in the cache."""

_BITS: Final = BUCKETS.bit_length() - 1
_MULTIPLIER: Final = 0x9E3779B97F4A7C15
"""A number with which the upper bits of a product depend on all bits of the other factor."""

_KINDS: Final = 2
"""Templates with one mapped read, and pairs."""

MapFunction = Callable[[Callable[..., Any], Sequence[Any]], Any]
"""Calls a function for each of some values, maybe in other threads, and gives the results."""


@frozen
class TemplatePart:
    """The templates of a block, and the number of its first row among those of all blocks."""

    arrays: Templates
    first_row: int


@frozen
class Buckets:
    """All templates, by buckets.

    `starts` say where the templates of each bucket with one mapped read begin, where its pairs
    begin, and so on, and `other_starts` where its second ends begin in `others`, those of pairs,
    which are empty if every template is a pair. The templates have their rows among those of all
    blocks.
    """

    starts: Int64Array
    arrays: Templates
    other_starts: Int64Array
    others: KeyArray

    def templates(self, bucket: int, are_pairs: bool) -> Templates:
        """Return those templates of a bucket that are pairs, or those that are not: views."""
        kind = _KINDS * bucket + are_pairs
        own = slice(self.starts[kind], self.starts[kind + 1])
        return Templates._make(column[own] for column in self.arrays)

    def second_ends(self, bucket: int) -> KeyArray:
        """Return the second ends that belong to a bucket: a view."""
        return self.others[self.other_starts[bucket] : self.other_starts[bucket + 1]]


def spread(parts: Sequence[TemplatePart], map_function: MapFunction) -> Buckets:
    """Spread templates over buckets."""

    def count(part: TemplatePart) -> tuple[Int64Array, Int64Array]:
        counts = np.zeros(_KINDS * BUCKETS, dtype=np.int64)
        other_counts = np.zeros(BUCKETS, dtype=np.int64)
        count_templates(*part.arrays[:2], counts, other_counts)
        return counts, other_counts

    counted = list(map_function(count, parts))
    starts, places = _starts_of([counts for counts, _ in counted])
    other_starts, other_places = _starts_of([counts for _, counts in counted])
    size = int(starts[-1])
    has_others = int(other_starts[-1]) < size
    arrays = Templates.of_size(size)
    others = np.empty(int(other_starts[-1]) if has_others else 0, dtype=np.uint64)

    def scatter(number: int) -> None:
        part = parts[number]
        scatter_templates(part.arrays, part.first_row, places[number], arrays)
        if has_others:
            scatter_second_ends(part.arrays.second_ends, other_places[number], others)

    list(map_function(scatter, range(len(parts))))
    if not has_others:
        other_starts = np.zeros_like(other_starts)
    return Buckets(starts, arrays, other_starts, others)


def _starts_of(counts: Sequence[Int64Array]) -> tuple[Int64Array, Int64Array]:
    """Return where each bucket begins and the last one ends, and where each part begins in it."""
    by_part = np.stack(counts)
    before = np.cumsum(by_part, axis=0) - by_part
    starts = np.zeros(by_part.shape[1] + 1, dtype=np.int64)
    np.cumsum(by_part.sum(axis=0), out=starts[1:])
    return starts, before + starts[:-1]


@inline
def bucket_of(key: np.uint64) -> int:
    """Return the bucket of an end."""
    return as_int64((key * np.uint64(_MULTIPLIER)) >> np.uint64(64 - _BITS))  # type: ignore[arg-type]


@jit
def count_templates(
    first_ends: KeyArray, second_ends: KeyArray, counts: Int64Array, other_counts: Int64Array
) -> None:
    """Count the templates of a block in each bucket."""
    for template in range(first_ends.size):
        second = second_ends[as_index(template)]
        is_pair = 0 if second == np.uint64(NO_END) else 1
        counts[_KINDS * bucket_of(first_ends[as_index(template)]) + is_pair] += 1
        if is_pair:
            other_counts[bucket_of(second)] += 1


@jit
def scatter_templates(
    templates: Templates, first_row: int, places: Int64Array, spread_out: Templates
) -> None:
    """Write the templates of a block to their buckets, in their order."""
    first_ends, second_ends, first_rows, second_rows, scores = templates
    for template in range(first_ends.size):
        first, second = first_ends[as_index(template)], second_ends[as_index(template)]
        kind = _KINDS * bucket_of(first) + (0 if second == np.uint64(NO_END) else 1)
        place = places[as_index(kind)]
        places[as_index(kind)] = place + 1
        other_row = second_rows[as_index(template)]
        spread_out.first_ends[as_index(place)] = first
        spread_out.second_ends[as_index(place)] = second
        spread_out.first_rows[as_index(place)] = first_rows[as_index(template)] + first_row
        spread_out.second_rows[as_index(place)] = (
            NO_ROW if other_row == NO_ROW else other_row + first_row
        )
        spread_out.scores[as_index(place)] = scores[as_index(template)]


@jit
def scatter_second_ends(keys: KeyArray, places: Int64Array, others: KeyArray) -> None:
    """Write the second ends of the pairs of a block to their buckets."""
    for template in range(keys.size):
        key = keys[as_index(template)]
        if key != np.uint64(NO_END):
            bucket = bucket_of(key)
            place = places[as_index(bucket)]
            places[as_index(bucket)] = place + 1
            others[as_index(place)] = key


MarkArray = ByteArray


@jit
def add_good_qualities(
    qualities: ByteArray, offsets: Int64Array, sums: UInt32Array, least: int
) -> None:
    """Sum the qualities of each read that are not too small."""
    for read in range(sums.size):
        total = 0
        for base in range(offsets[as_index(read)], offsets[as_index(read + 1)]):
            quality = as_int64(qualities[as_index(base)])
            total += quality if quality >= least and quality != NO_QUALITY else 0
        sums[as_index(read)] = total


@jit
def mark_equal(
    order: OrderArray, firsts: KeyArray, seconds: KeyArray, scores: UInt32Array, marks: MarkArray
) -> None:
    """Mark all templates but the best one of each set of equal ones."""
    place = 0
    while place < order.size:
        best = order[as_index(place)]
        first, second = firsts[as_index(best)], seconds[as_index(best)]
        place += 1
        while place < order.size:
            other = order[as_index(place)]
            if firsts[as_index(other)] != first or seconds[as_index(other)] != second:
                break
            if scores[as_index(other)] > scores[as_index(best)]:
                marks[as_index(best)] = 1
                best = other
            else:
                marks[as_index(other)] = 1
            place += 1


@jit
def mark_among(
    keys: KeyArray, order: OrderArray, others: KeyArray, found: MarkArray, marks: MarkArray
) -> None:
    """Mark the keys that are among others."""
    for other in range(others.size if keys.size else 0):
        wanted = others[as_index(other)]
        low, high = 0, keys.size
        while low < high:
            middle = (low + high) >> 1
            if keys[as_index(middle)] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < keys.size and keys[as_index(low)] == wanted:
            # The first one stands for all equal ones, which may be many, as may the others.
            found[as_index(low)] = 1
    for place in range(keys.size):
        if place > 0 and keys[as_index(place)] == keys[as_index(place - 1)]:
            found[as_index(place)] = found[as_index(place - 1)]
        if found[as_index(place)]:
            marks[as_index(order[as_index(place)])] = 1


@jit
def flag_rows(found: MarkArray, rows: Int64Array, marks: MarkArray) -> None:
    """Mark the rows of the templates that are found."""
    for template in range(found.size):
        if found[as_index(template)]:
            marks[as_index(rows[as_index(template)])] = 1


LEAST_QUALITY: Final = 15
"""The least quality that counts in the score of a template."""


class DuplicateFinder:
    """Takes the templates of all blocks, and finds duplicates among them at the end."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        longest = int(axis.lengths.max(initial=0))
        # An end may lie before its record or after it, by the bases that are clipped.
        self._bits = (longest + 2 * MOST_CLIPPED).bit_length() + 1
        self._key_bits = self._bits + int(axis.by_reference.size).bit_length()
        self._parts: list[TemplatePart] = []
        self._row_count = 0

    def templates_of(self, reads: ReadBlock, columns: AlignmentColumns) -> Templates:
        """Return the templates of a block; any thread may call this."""
        room = Templates.of_size(reads.offsets.size - 1)
        count = list_templates(columns, _scores_of(reads), self._bits, room)
        # Of pairs there are half as many as reads; only what is copied is kept.
        return Templates._make(column[:count].copy() for column in room)

    def add(self, templates: Templates, row_count: int) -> None:
        """Take the templates of a block, in the order of the input."""
        self._parts.append(TemplatePart(templates, self._row_count))
        self._row_count += row_count

    def mark(self, marks: ByteArray, map_function: MapFunction) -> None:
        """Find the duplicates, after the last block."""
        if not self._parts:
            return
        buckets = spread(self._parts, map_function)
        self._parts = []

        def mark_bucket(bucket: int) -> None:
            self._mark_bucket(buckets, bucket, marks)

        list(map_function(mark_bucket, range(BUCKETS)))

    def _mark_bucket(self, buckets: Buckets, bucket: int, marks: ByteArray) -> None:
        """Find the duplicates of a bucket; no other bucket has their rows."""
        first, second, first_rows, second_rows, scores = buckets.templates(bucket, True)
        order, _ = radix_order(second, self._key_bits)
        order, _ = radix_order(first, self._key_bits, order)
        is_duplicate = np.zeros(first.size, dtype=np.uint8)
        mark_equal(order, first, second, scores, is_duplicate)
        flag_rows(is_duplicate, first_rows, marks)
        flag_rows(is_duplicate, second_rows, marks)
        ends, _, rows, _, scores = buckets.templates(bucket, False)
        order, sorted_ends = radix_order(ends, self._key_bits)
        is_duplicate = np.zeros(ends.size, dtype=np.uint8)
        mark_equal(order, ends, ends, scores, is_duplicate)
        for others in (first, buckets.second_ends(bucket)):
            found = np.zeros(ends.size, dtype=np.uint8)
            mark_among(sorted_ends, order, others, found, is_duplicate)
        flag_rows(is_duplicate, rows, marks)


def _scores_of(reads: ReadBlock) -> UInt32Array:
    """Return the sum of the good qualities of each read."""
    scores = np.empty(reads.offsets.size - 1, dtype=np.uint32)
    add_good_qualities(
        writable(reads.base_qualities), writable(reads.offsets), scores, LEAST_QUALITY
    )
    return scores
