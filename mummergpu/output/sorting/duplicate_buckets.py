"""Spreads templates over buckets, so that threads can look for duplicates in each of them alone.

Templates with the same first end are in one bucket, in the order of the input; within a bucket, the
pairs come after the templates with one mapped read. The second ends of pairs are in the buckets in
which they would be as first ends: there a template with one mapped read looks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW
from mummergpu.output.sorting.radix_order import KeyArray
from mummergpu.output.sorting.template_ends import NO_END, TemplateArrays, empty_templates
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)

BUCKETS: Final = 64
"""The buckets: enough for many threads, and small ones are sorted in the cache."""

_BITS: Final = BUCKETS.bit_length() - 1
_MULTIPLIER: Final = 0x9E3779B97F4A7C15
"""A number with which the upper bits of a product depend on all bits of the other factor."""

_KINDS: Final = 2
"""Templates with one mapped read, and pairs."""

MapFunction = Callable[[Callable[..., Any], Sequence[Any]], Any]
"""Calls a function for each of some values, maybe in other threads, and gives the results."""


@dataclass(frozen=True)
class TemplatePart:
    """The templates of a block.

    Attributes
    ----------
    arrays : tuple of ndarray
        The templates (`template_ends.TemplateArrays`).
    first_row : int
        The number of the block's first row among those of all blocks.
    """

    arrays: TemplateArrays
    first_row: int


@dataclass(frozen=True)
class Buckets:
    """All templates, by buckets.

    Attributes
    ----------
    starts : ndarray, dtype=int64, shape=(2 * BUCKETS + 1,)
        Where the templates of each bucket with one mapped read begin, where its pairs begin, and so
        on; and where the last pairs end.
    arrays : tuple of ndarray
        The templates (`template_ends.TemplateArrays`), with their rows among those of all blocks.
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


@inline_without_refcounts
def bucket_of(key: np.uint64) -> int:
    """Return the bucket of an end."""
    return as_int64((key * np.uint64(_MULTIPLIER)) >> np.uint64(64 - _BITS))  # type: ignore[arg-type]


@jit_without_refcounts
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


@jit_without_refcounts
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


@jit_without_refcounts
def scatter_second_ends(keys: KeyArray, places: Int64Array, others: KeyArray) -> None:
    """Write the second ends of the pairs of a block to their buckets."""
    for template in range(keys.size):
        key = keys[as_index(template)]
        if key != np.uint64(NO_END):
            bucket = bucket_of(key)
            place = places[as_index(bucket)]
            places[as_index(bucket)] = place + 1
            others[as_index(place)] = key
