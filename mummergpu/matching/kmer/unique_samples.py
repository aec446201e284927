"""The look-up of the minimizers of queries in the table of the reference."""

from __future__ import annotations

from typing import Final

from mummergpu.index.kmer_table import EntryArray, PositionArray
from mummergpu.input.blocks.queries import OffsetArray
from mummergpu.matching.kmer.unique_matches import (
    FORWARD_ROWS,
    NUMBER,
    QUERY,
    REVERSE_ROWS,
    Rows,
    write_matches,
)
from mummergpu.matching.row_order import ColumnArray
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, jit_without_refcounts, prefetch
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.contexts import context_at
from mummergpu.sequence.minimizers import PlaceArray, RankArray

BUCKETS_AHEAD: Final = 32
ENTRIES_AHEAD: Final = 16
"""How many minimizers before its turn the bucket of one, and then its entries, are prefetched."""

ENTRIES_OF_LINE: Final = 8
"""The entries in 64 bytes."""


@jit_without_refcounts
def find_unique_rows(
    table: tuple[PositionArray, EntryArray],
    reference: CodeArray,
    codes: CodeArray,
    offsets: OffsetArray,
    lengths: tuple[int, int, int],
    minimizers: tuple[PlaceArray, RankArray, ColumnArray],
    part: tuple[int, int, int],
    state: Int64Array,
    forward: Rows,
    reverse: Rows,
) -> bool:
    """Write the matches that are unique in the reference, and whose minimizers lie in a range.

    Rows of both strands ascend by their starts, which count from the first base of the block on the
    forward strand. False means that the rows are full: the caller then calls again with longer
    ones.
    """
    table_offsets, entries = table
    places, ranks, _ = minimizers
    count, first, end = part
    kmer_length = lengths[0]
    mask = table_offsets.size - 2
    number, query = state[NUMBER], state[QUERY]
    while number < count and places[as_index(number)] >> 1 < end:
        if number + BUCKETS_AHEAD < count:
            coming = as_int64(ranks[as_index(number + BUCKETS_AHEAD)]) & mask
            prefetch(table_offsets, coming)
            coming = as_int64(ranks[as_index(number + ENTRIES_AHEAD)]) & mask
            begin_of_entries = as_int64(table_offsets[as_index(coming)])
            prefetch(entries, begin_of_entries)
            # Of entries that begin in a line of the caches, some lie in the next one.
            prefetch(entries, begin_of_entries + ENTRIES_OF_LINE - 1)
        place = places[as_index(number)]
        at = place >> 1
        while MARGIN + offsets[query + 1] <= at:
            query += 1
        bucket = as_int64(ranks[as_index(number)]) & mask
        listed = as_int64(table_offsets[as_index(bucket)])
        listed_end = as_int64(table_offsets[as_index(bucket + 1)])
        is_whole = at + kmer_length <= MARGIN + offsets[query + 1]
        if at < first or listed == listed_end or not is_whole:
            number += 1
            continue
        sample = number, place, MARGIN + offsets[query], MARGIN + offsets[query + 1]
        filled, filled_reverse = state[FORWARD_ROWS], state[REVERSE_ROWS]
        context = context_at(codes, at, kmer_length, place & 1 == 1)
        if not write_matches(
            entries, (listed, listed_end), context, reference, codes, lengths,
            minimizers, count, sample, state, forward, reverse,
        ):  # fmt: skip
            state[NUMBER], state[QUERY] = number, query
            state[FORWARD_ROWS], state[REVERSE_ROWS] = filled, filled_reverse
            return False
        number += 1
    state[NUMBER], state[QUERY] = number, query
    return True
