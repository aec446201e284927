"""The templates among which duplicates are looked for: where their reads begin, and their buckets.

Templates with the same first end are in one bucket, in the order of the input; within a bucket, the
pairs come after the templates with one mapped read. The second ends of pairs are in the buckets in
which they would be as first ends: there a template with one mapped read looks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, SamFlag
from mummergpu.output.records.rows import REVERSE, UNMAPPED
from mummergpu.output.records.sam_fields import TAKES_REFERENCE
from mummergpu.output.sorting.radix_order import KeyArray
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline,
    jit,
)

NO_END: Final = np.iinfo(np.uint64).max
"""The second end of a template with one mapped read."""

MOST_CLIPPED: Final = 1 << 20
"""The most clipped bases that are told apart."""

ScoreArray = UInt32Array

TemplateArrays = tuple[KeyArray, KeyArray, Int64Array, Int64Array, ScoreArray]
"""Templates that have a mapped read: where the reads of each begin in sequencing, and on which
strand, the smaller number first, and `NO_END` for a second read that is not mapped; the primary
rows of the first read of the input and of its mate, `NO_ROW` for none; and the sums of their
qualities."""

_NOT_PRIMARY: Final = int(SamFlag.SECONDARY | SamFlag.SUPPLEMENTARY)
_CLIPS: Final = 0b110000
"""A bit for each operation that clips: S and H."""

_MOST_CLIPS: Final = 2
"""The most operations that clip at one end: soft clips may lie inside hard ones."""


def empty_templates(count: int) -> TemplateArrays:
    """Return unfilled arrays for so many templates."""
    ends = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint64)
    rows = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    return *ends, *rows, np.empty(count, dtype=np.uint32)


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
        span = as_int64(0)
        for at in range(begin, end):
            operation = as_int64(cigars[as_index(at)])
            span += (operation >> 4) * ((TAKES_REFERENCE >> (operation & 15)) & 1)
        place += max(span, 1) - 1 + clipped_bases(cigars, begin, end, True)
    else:
        place -= clipped_bases(cigars, begin, end, False)
    return as_int64(as_int64(records[as_index(row)]) << bits | place << 1 | is_reverse)


@jit
def list_templates(
    rows: AlignmentColumns, read_scores: ScoreArray, bits: int, templates: TemplateArrays
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
    """The templates of a block.

    Attributes
    ----------
    arrays : tuple of ndarray
        The templates (`TemplateArrays`).
    first_row : int
        The number of the block's first row among those of all blocks.
    """

    arrays: TemplateArrays
    first_row: int


@frozen
class Buckets:
    """All templates, by buckets.

    Attributes
    ----------
    starts : ndarray, dtype=int64, shape=(2 * BUCKETS + 1,)
        Where the templates of each bucket with one mapped read begin, where its pairs begin, and so
        on; and where the last pairs end.
    arrays : tuple of ndarray
        The templates (`TemplateArrays`), with their rows among those of all blocks.
    other_starts : ndarray, dtype=int64, shape=(BUCKETS + 1,)
        Where the second ends of each bucket begin, and where the last ones end.
    others : ndarray, dtype=uint64
        The second ends of pairs; empty if every template is a pair.
    """

    starts: Int64Array
    arrays: TemplateArrays
    other_starts: Int64Array
    others: KeyArray

    def templates(self, bucket: int, are_pairs: bool) -> TemplateArrays:
        """Return those templates of a bucket that are pairs, or those that are not: views."""
        kind = _KINDS * bucket + are_pairs
        own = slice(self.starts[kind], self.starts[kind + 1])
        first_ends, second_ends, first_rows, second_rows, scores = self.arrays
        return first_ends[own], second_ends[own], first_rows[own], second_rows[own], scores[own]

    def second_ends(self, bucket: int) -> KeyArray:
        """Return the second ends that belong to a bucket: a view."""
        return self.others[self.other_starts[bucket] : self.other_starts[bucket + 1]]


def spread(parts: Sequence[TemplatePart], map_function: MapFunction) -> Buckets:
    """Spread templates over buckets."""

    def count(part: TemplatePart) -> tuple[Int64Array, Int64Array]:
        counts = np.zeros(_KINDS * BUCKETS, dtype=np.int64)
        other_counts = np.zeros(BUCKETS, dtype=np.int64)
        count_templates(part.arrays[0], part.arrays[1], counts, other_counts)
        return counts, other_counts

    counted = list(map_function(count, parts))
    starts, places = _starts_of([counts for counts, _ in counted])
    other_starts, other_places = _starts_of([counts for _, counts in counted])
    size = int(starts[-1])
    has_others = int(other_starts[-1]) < size
    arrays = empty_templates(size)
    others = np.empty(int(other_starts[-1]) if has_others else 0, dtype=np.uint64)

    def scatter(number: int) -> None:
        part = parts[number]
        scatter_templates(part.arrays, part.first_row, places[number], arrays)
        keys = part.arrays[1] if has_others else part.arrays[1][:0]
        scatter_second_ends(keys, other_places[number], others)

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
    templates: TemplateArrays, first_row: int, places: Int64Array, spread_out: TemplateArrays
) -> None:
    """Write the templates of a block to their buckets, in their order."""
    first_ends, second_ends, first_rows, second_rows, scores = templates
    for template in range(first_ends.size):
        first, second = first_ends[as_index(template)], second_ends[as_index(template)]
        kind = _KINDS * bucket_of(first) + (0 if second == np.uint64(NO_END) else 1)
        place = places[as_index(kind)]
        places[as_index(kind)] = place + 1
        other_row = second_rows[as_index(template)]
        spread_out[0][as_index(place)] = first
        spread_out[1][as_index(place)] = second
        spread_out[2][as_index(place)] = first_rows[as_index(template)] + first_row
        spread_out[3][as_index(place)] = NO_ROW if other_row == NO_ROW else other_row + first_row
        spread_out[4][as_index(place)] = scores[as_index(template)]


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
