"""Matches as the rows of SAM and BAM.

Every match of a query is an alignment with ``=`` for its bases and soft clips for the rest of the
query, such as ``5S31=4S``; a query without a match is an unmapped row. The longest match of a
query, the first of them if several are equally long, is its primary alignment, and the others are
secondary. If the alignments of a query are limited, they are its longest matches, and of equally
long ones the first. The tags report that no base differs (NM), the length of the match (AS), how
many matches the query has on both strands (NH), and the number of this one (HI).

Sequences are those that are searched: letters in upper case, N for all that is not a base, and T
for U. The qualities of reads are not kept for the search; secondary alignments have no sequence
either, as usual, unless the options ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import RecordLookup, Reference, record_at, record_lookup
from mummergpu.mapping.alignments.columns import NO_RECORD
from mummergpu.output.matches.match_table import (
    NEXT_QUERY,
    NEXT_ROW,
    NOT_BEGUN,
    BothStrands,
    both_strands,
)
from mummergpu.output.options import SamOptions
from mummergpu.output.records.rows import (
    MATCH_OPERATIONS,
    NO_PLACES,
    REVERSE,
    SECONDARY,
    UNMAPPED,
    ReadColumns,
    RecordRows,
    RowFields,
    WrittenRows,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, flattened, inline, jit, writable
from mummergpu.sequence.mems import BlockMems, match_count

NOT_KNOWN: Final = 255
"""The mapping quality of a match."""

PIECE_ROWS: Final = 1 << 14
"""The rows of a piece of a block: a query may have millions."""

NO_MATCH_ROW: Final = -1
"""What `flag_of` returns for a match that is no row."""

MATCHES, LONGEST, LEAST = 3, 4, 5
"""The elements of the state, after where a loop goes on, with what is known of the query: how many
matches it has, and the longest and the least length of its rows; the latter is 0 if all matches are
rows."""

HITS, TIES_LEFT, HAS_PRIMARY = 6, 7, 8
"""The elements with what has become of its matches so far: the number of rows, how many matches of
the least length may still become rows, and whether there was the primary row."""

STATE_SIZE: Final = 9

_SOFT_CLIP, _EQUAL = 4, 7
_STEP: Final = 8


@inline
def begin_query(state: Int64Array, heap: Int64Array, strands: BothStrands, query: int) -> None:
    """Find what decides on the rows of a query."""
    count, longest = 0, 0
    for strand in range(2):
        own = strands[strand]
        begin, end = own.offsets[as_index(query)], own.offsets[as_index(query + 1)]
        count += end - begin
        longest = max(longest, _longest(own.lengths, begin, end))
    state[MATCHES], state[LONGEST], state[LEAST] = count, longest, 0
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = 0, 0, 0
    if 0 < heap.size < count:
        _fill_heap(heap, strands, query)
        state[LEAST] = heap[0]
        for place in range(heap.size):
            state[TIES_LEFT] += heap[place] == heap[0]


@inline
def _longest(sizes: Int64Array, begin: int, end: int) -> int:
    """Return the largest of some sizes."""
    longest = 0
    # The first step is taken for an empty range too: most queries have few matches on a strand, and
    # the processor cannot predict which of them have none.
    first = begin
    while True:
        if first + _STEP <= sizes.size:
            for lane in range(_STEP):
                in_range = as_int64(first + lane < end)
                longest = max(longest, sizes[as_index(first + lane)] & -in_range)
        else:
            for row in range(first, end):
                longest = max(longest, sizes[as_index(row)])
        first += _STEP
        if first >= end:
            break
    return longest


@inline
def flag_of(size: int, longest: int, least: int, ties_left: int, has_primary: int) -> int:
    """Return the flag of a match without its strand, `NO_MATCH_ROW` if it is no row."""
    if size <= least and (size < least or ties_left == 0):
        return NO_MATCH_ROW
    return 0 if size == longest and has_primary == 0 else SECONDARY


@inline
def _fill_heap(heap: Int64Array, strands: BothStrands, query: int) -> None:
    """Put the lengths of the longest matches of a query into a heap, as many as it holds."""
    used = 0
    for strand in range(2):
        own = strands[strand]
        for row in range(own.offsets[query], own.offsets[query + 1]):
            size = own.lengths[row]
            if used < heap.size:
                _add(heap, used, size)
                used += 1
            elif size > heap[0]:
                _replace_least(heap, size)


@inline
def _add(heap: Int64Array, used: int, number: int) -> None:
    """Add a number to a heap, whose first element is the least."""
    place = used
    while place > 0 and heap[(place - 1) >> 1] > number:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = number


@inline
def _replace_least(heap: Int64Array, number: int) -> None:
    """Put a number into a full heap in place of the least one."""
    place = 0
    while 2 * place + 1 < heap.size:
        child = 2 * place + 1
        if child + 1 < heap.size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= number:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = number


class MatchFilling(NamedTuple):
    """What the loop that fills rows with matches needs.

    `heap` is room for the lengths of the most rows of a query; empty if it may have any number.
    """

    rows: RecordRows
    query_offsets: Int64Array
    strands: BothStrands
    lookup: RecordLookup
    heap: Int64Array


@inline
def _put_unmapped(rows: RecordRows, at: int, query: int) -> None:
    """Fill the row of a query without a match."""
    rows.reads[as_index(at)] = query
    rows.flags[as_index(at)] = UNMAPPED
    rows.records[as_index(at)] = NO_RECORD
    rows.positions[as_index(at)] = -1
    rows.qualities[as_index(at)] = 0
    rows.scores[as_index(at)] = 0
    for operation in range(MATCH_OPERATIONS):
        rows.cigars[as_index(MATCH_OPERATIONS * at + operation)] = 0


@inline
def _put_rows(at: int, state: Int64Array, block: MatchFilling, query: int) -> int:
    """Fill rows with the matches of a query from `state` on, as far as there is room.

    Returns where they end, and updates `state`.
    """
    rows, lookup, (forward, reverse) = block.rows, block.lookup, block.strands
    # One range for the matches on both strands, the forward ones first: a loop without a branch.
    forward_begin = forward.offsets[as_index(query)]
    forward_count = forward.offsets[as_index(query + 1)] - forward_begin
    reverse_begin = reverse.offsets[as_index(query)] - forward_count
    length = block.query_offsets[as_index(query + 1)] - block.query_offsets[as_index(query)]
    # What the choice depends on stays in registers during a query.
    place, count = state[NEXT_ROW], state[MATCHES]
    longest, least = state[LONGEST], state[LEAST]
    hits, ties_left, has_primary = state[HITS], state[TIES_LEFT], state[HAS_PRIMARY]
    while place < count and at < rows.flags.size:
        strand = as_int64(place >= forward_count)
        own = reverse if strand == 1 else forward
        match = as_index(place + (reverse_begin if strand == 1 else forward_begin))
        place += 1
        size = own.lengths[match]
        flag = flag_of(size, longest, least, ties_left, has_primary)
        if flag == NO_MATCH_ROW:
            continue
        ties_left -= size == least
        has_primary |= flag == 0
        hits += 1
        position, before = own.reference_starts[match], own.query_starts[match]
        record = record_at(lookup.starts, lookup.buckets, lookup.bucket_shift, position)
        rows.reads[as_index(at)] = query
        rows.flags[as_index(at)] = flag + REVERSE * strand
        rows.records[as_index(at)] = record
        rows.positions[as_index(at)] = position - lookup.starts[as_index(record)]
        rows.qualities[as_index(at)] = NOT_KNOWN
        # On the strand that was searched, the query lies as the reference does.
        cigar = MATCH_OPERATIONS * at
        rows.cigars[as_index(cigar)] = before << 4 | _SOFT_CLIP
        rows.cigars[as_index(cigar + 1)] = size << 4 | _EQUAL
        rows.cigars[as_index(cigar + 2)] = (length - before - size) << 4 | _SOFT_CLIP
        rows.scores[as_index(at)] = size
        rows.hit_counts[as_index(at)] = count
        rows.hit_numbers[as_index(at)] = hits
        at += 1
    state[NEXT_ROW] = place
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = hits, ties_left, has_primary
    return at


@jit
def fill_match_rows(state: Int64Array, block: MatchFilling) -> int:
    """Fill rows from `state` on, until the block ends or they are full.

    Returns the number of rows, and updates `state`.
    """
    query, at = state[NEXT_QUERY], 0
    rows = block.rows
    while query < block.query_offsets.size - 1 and at < rows.flags.size:
        if state[NEXT_ROW] == NOT_BEGUN:
            begin_query(state, block.heap, block.strands, query)
            state[NEXT_ROW] = 0
        if state[MATCHES] == 0:
            _put_unmapped(rows, at, query)
            at += 1
        else:
            at = _put_rows(at, state, block, query)
            if state[NEXT_ROW] < state[MATCHES]:
                break
        state[NEXT_ROW] = NOT_BEGUN
        query += 1
    state[NEXT_QUERY] = query
    return at


class MatchRows:
    """Turns blocks of queries and their matches into rows (`rows.RowMaker`)."""

    needs_bases: Final = True

    def __init__(
        self, reference: Reference, options: SamOptions, piece_rows: int = PIECE_ROWS
    ) -> None:
        self._lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._max_hits = options.max_hits
        self._piece_rows = piece_rows
        self._spare: list[RecordRows] = []
        self.fields = RowFields(
            secondary_bases=options.secondary_bases, mismatches=False, matches=True
        )

    def written_rows(self, block: QueryBlock, mems: BlockMems) -> Iterator[WrittenRows]:
        """Yield the rows of a block in pieces, each of which is gone when the next one is made."""
        reads = ReadColumns(
            writable(block.offsets),
            writable(block.names),
            writable(block.name_offsets),
            writable(block.padded_codes),
        )
        most = 0 if self._max_hits is None else min(self._max_hits, match_count(mems))
        state = np.zeros(STATE_SIZE, dtype=np.int64)
        state[NEXT_ROW] = NOT_BEGUN
        rows = self._new_rows()
        filling = flattened(
            MatchFilling(
                *(rows, reads.offsets, both_strands(mems, block), self._lookup),
                np.empty(most, dtype=np.int64),
            )
        )
        while state[NEXT_QUERY] < block.query_count:
            # A block can end without a row, such as after the matches that are too many.
            if count := fill_match_rows(state, filling):
                yield WrittenRows(reads, rows, NO_PLACES, count)
        self._spare.append(rows)

    def _new_rows(self) -> RecordRows:
        """Return columns to fill; those that are not written of matches are empty."""
        with suppress(IndexError):
            # Another thread may take the last ones between a test and the removal.
            return self._spare.pop()
        count = self._piece_rows
        no_numbers, no_places = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
        return RecordRows(
            reads=np.empty(count, dtype=np.int64),
            flags=np.empty(count, dtype=np.uint16),
            records=np.empty(count, dtype=np.int32),
            positions=np.empty(count, dtype=np.int64),
            qualities=np.empty(count, dtype=np.uint8),
            cigar_offsets=no_places,
            cigars=np.empty(MATCH_OPERATIONS * count, dtype=np.uint32),
            part_offsets=no_places,
            part_cigars=np.empty(0, dtype=np.uint32),
            template_lengths=no_numbers,
            mate_rows=no_places,
            scores=np.empty(count, dtype=np.int32),
            second_scores=no_numbers,
            edit_distances=no_numbers,
            hit_counts=np.empty(count, dtype=np.uint32),
            hit_numbers=np.empty(count, dtype=np.uint32),
        )
