"""The rows that SAM, BAM and CRAM have for matches: which there are, and their flags and numbers.

Every match of a query is an alignment; a query without a match is an unmapped row. The longest
match of a query, the first of them if several are equally long, is its primary alignment, and the
others are secondary. If there may be at most so many alignments of a query, they are its longest
matches, and of equally long ones the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.output.bytes.text_arrays import texts_of
from mummergpu.output.matches.match_table import NEXT_QUERY as NEXT_QUERY
from mummergpu.output.matches.match_table import NEXT_ROW as NEXT_ROW
from mummergpu.output.matches.match_table import NOT_BEGUN as NOT_BEGUN
from mummergpu.output.matches.match_table import BothStrands, MatchBlock, MatchPieces
from mummergpu.output.records.header import check_queries, sam_header
from mummergpu.output.records.sam_options import SamOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.sequence.mems import BlockMems, match_count

UNMAPPED: Final = 4
REVERSE: Final = 16
SECONDARY: Final = 256
"""The flags of a row (SAM format specification, section 1.4)."""

NO_ROW: Final = -1
"""What `flag_of` returns for a match that is no row."""

MATCHES, LONGEST, LEAST = 3, 4, 5
"""The elements of the state, after where a loop goes on, with what is known of the query: how many
matches it has, and the longest and the least length of its rows; the latter is 0 if all matches are
rows."""

HITS, TIES_LEFT, HAS_PRIMARY = 6, 7, 8
"""The elements with what has become of its matches so far: the number of rows, how many matches of
the least length may still become rows, and whether there was the primary row."""

STATE_SIZE: Final = 9

_STEP: Final = 8


@inline_without_refcounts
def begin_query(state: Int64Array, heap: Int64Array, rows: BothStrands, query: int) -> None:
    """Find what decides on the rows of a query."""
    count, longest = 0, 0
    for strand in range(2):
        own = rows[strand]
        begin, end = own.offsets[as_index(query)], own.offsets[as_index(query + 1)]
        count += end - begin
        longest = max(longest, _longest(own.lengths, begin, end))
    state[MATCHES], state[LONGEST], state[LEAST] = count, longest, 0
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = 0, 0, 0
    if 0 < heap.size < count:
        _fill_heap(heap, rows, query)
        state[LEAST] = heap[0]
        for place in range(heap.size):
            state[TIES_LEFT] += heap[place] == heap[0]


@inline_without_refcounts
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


@inline_without_refcounts
def flag_of(size: int, longest: int, least: int, ties_left: int, has_primary: int) -> int:
    """Return the flag of a match without its strand, `NO_ROW` if it is no row."""
    if size <= least and (size < least or ties_left == 0):
        return NO_ROW
    return 0 if size == longest and has_primary == 0 else SECONDARY


@inline_without_refcounts
def _fill_heap(heap: Int64Array, rows: BothStrands, query: int) -> None:
    """Put the lengths of the longest matches of a query into a heap, as many as it holds."""
    used = 0
    for strand in range(2):
        own = rows[strand]
        for row in range(own.offsets[query], own.offsets[query + 1]):
            size = own.lengths[row]
            if used < heap.size:
                _add(heap, used, size)
                used += 1
            elif size > heap[0]:
                _replace_least(heap, size)


@inline_without_refcounts
def _add(heap: Int64Array, used: int, number: int) -> None:
    """Add a number to a heap, whose first element is the least."""
    place = used
    while place > 0 and heap[(place - 1) >> 1] > number:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = number


@inline_without_refcounts
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


class QueryHits(NamedTuple):
    """The matches of a query on both strands as one range, for one loop without a branch for it.

    Attributes
    ----------
    forward_count : int
        How many are on the forward strand; they come first.
    forward_begin, reverse_begin : int
        What is added to a number in the range for the number of the match on its strand.
    """

    forward_count: int
    forward_begin: int
    reverse_begin: int


@inline_without_refcounts
def hits_of(rows: BothStrands, query: int) -> QueryHits:
    """Return the matches of a query."""
    forward, reverse = rows
    begin = forward.offsets[as_index(query)]
    count = forward.offsets[as_index(query + 1)] - begin
    return QueryHits(count, begin, reverse.offsets[as_index(query)] - count)


class MatchRecords(MatchPieces):
    """What the records of matches share as SAM and as BAM: their header, and which there are.

    Parameters
    ----------
    record_texts : iterable of bytes
        What rows say of each record of the reference (`MatchBlock`).
    group_tag : bytes
        The tag of the read group, with ``%b`` for its name.
    end : bytes
        What all records end with, after that tag.
    query_path : str
        The files of the queries, for errors.
    """

    def __init__(
        self,
        reference: Reference,
        record_texts: Iterable[bytes],
        options: SamOptions,
        command: str,
        group_tag: bytes,
        end: bytes,
        query_path: str,
        piece_bytes: int,
    ) -> None:
        self._header = sam_header(reference, options, command)
        super().__init__(reference, record_texts, piece_bytes)
        self._most_hits = options.most_hits
        self._with_bases = options.secondary_bases
        self._query_path = query_path
        group = options.read_group
        tag = b"" if group is None else group_tag % group.name.encode()
        self._end, self._end_bytes = texts_of([tag + end]).texts, len(tag + end)

    def _match_block(self, block: QueryBlock, mems: BlockMems) -> MatchBlock:
        """Return matches for a compiled loop, if the format allows such names and lengths."""
        check_queries(block, self._query_path)
        return super()._match_block(block, mems)

    def _hit_heap(self, mems: BlockMems) -> Int64Array:
        """Return the room that `begin_query` needs for the most rows of a query."""
        most = 0 if self._most_hits is None else min(self._most_hits, match_count(mems))
        return np.empty(most, dtype=np.int64)


def new_state(*more: int) -> Int64Array:
    """Return the state of a loop over the rows of a block, with some elements more."""
    state = np.array([0] * STATE_SIZE + list(more), dtype=np.int64)
    state[NEXT_ROW] = NOT_BEGUN
    return state
