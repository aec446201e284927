"""The differences of genome alignments, one by one and as far to the left as they can be.

An event is a range of the reference and the range of the query that is in its place, without equal
bases at their ends. Either may be empty, which is an insertion or a deletion. Such an event moves
over the column before it while the last base of the longer range equals the base of the reference
in that column. The alignments' gaps are to the left already where the bases of one sequence repeat;
but what remains is seen here with the eyes of one who knows the reference only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.output.genomes.sink import AlignedBases, AlignedQueries
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.sequence.extension import extend_right

Events = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]
"""The alignment of each event; where it begins and ends in the reference, and in the query; and how
many bases of an insertion must be taken from its end to its front."""

_MATCH: Final = 0
_INSERTION: Final = 1


@jit
def find_events(
    cigars: UInt32Array,
    offsets: Int64Array,
    bases: AlignedBases,
    record_begins: Int64Array,
    events: Events,
    count: Int64Array,
) -> None:
    """Find the events of alignments."""
    filled = 0
    for row in range(offsets.size - 1):
        query, reference = bases.queries[bases.strands[row]], bases.reference
        first = filled
        i, j = bases.query_begins[row], bases.reference_begins[row]
        position = offsets[row]
        while position < offsets[row + 1]:
            operation = as_int64(cigars[position])
            if operation & 15 == _MATCH:
                length = operation >> 4
                filled = _put_pairs(events, filled, row, query, i, reference, j, length)
                i += length
                j += length
                position += 1
                continue
            # Insertions and deletions next to each other are one event.
            query_end, end = i, j
            while position < offsets[row + 1] and cigars[position] & np.uint32(15) != _MATCH:
                operation = as_int64(cigars[position])
                if operation & 15 == _INSERTION:
                    query_end += operation >> 4
                else:
                    end += operation >> 4
                position += 1
            starts = bases.query_begins[row], bases.reference_begins[row], record_begins[row]
            filled = _put_gap(
                events, first, filled, row, query, i, query_end, reference, j, end, starts
            )
            i, j = query_end, end
    count[0] = filled


@inline
def _put(
    events: Events, at: int, row: int, begin: int, end: int, query_begin: int, query_end: int
) -> int:
    """Write an event; return the place after it."""
    rows, begins, ends, query_begins, query_ends, rotations = events
    rows[at] = row
    begins[at], ends[at] = begin, end
    query_begins[at], query_ends[at] = query_begin, query_end
    rotations[at] = 0
    return at + 1


@inline
def _put_pairs(
    events: Events,
    filled: int,
    row: int,
    query: CodeArray,
    i: int,
    reference: CodeArray,
    j: int,
    length: int,
) -> int:
    """Write an event for each pair of different bases; return how many events there are."""
    done = 0
    while done < length:
        done += extend_right(query, i + done, reference, j + done, length - done)
        if done < length:
            if query[i + done] < BREAK and reference[j + done] < BREAK:
                at, query_at = j + done, i + done
                filled = _put(events, filled, row, at, at + 1, query_at, query_at + 1)
            done += 1
    return filled


@inline
def _put_gap(
    events: Events,
    first: int,
    filled: int,
    row: int,
    query: CodeArray,
    query_begin: int,
    query_end: int,
    reference: CodeArray,
    begin: int,
    end: int,
    starts: tuple[int, int, int],
) -> int:
    """Write the event of a gap, or of neighbouring ones; return how many events there are."""
    _, begins, ends, query_begins, query_ends, rotations = events
    query_start, start, record_start = starts
    last_end = end
    while True:
        begin, end, query_begin, query_end = _trim(
            reference, begin, end, query, query_begin, query_end
        )
        if begin < end and query_begin < query_end:
            break
        if filled > first and ends[filled - 1] == begin and query_ends[filled - 1] == query_begin:
            size = ends[filled - 1] - begins[filled - 1]
            if size != 1 or query_ends[filled - 1] - query_begins[filled - 1] != 1:
                # Without an equal base between them, two gaps are one event.
                filled -= 1
                begin, query_begin = begins[filled], query_begins[filled]
                continue
        if begin == start or query_begin == query_start:
            break
        last = query[query_end - 1] if begin == end else reference[end - 1]
        if reference[begin - 1] != last:
            break
        # The event passes a pair of bases. If they still differ, they are written again below.
        filled -= filled > first and ends[filled - 1] == begin
        begin -= 1
        end -= 1
        query_begin -= 1
        query_end -= 1
    pairs_begin, pairs_query_begin = end, query_end
    if begin == start and (begin == end or query_begin == query_end):
        begin, end = _leave(reference, begin, end, query, query_begin, query_end, record_start)
    if begin < end or query_begin < query_end:
        filled = _put(events, filled, row, begin, end, query_begin, query_end)
        if begin == end:
            rotations[filled - 1] = (pairs_begin - end) % (query_end - query_begin)
    equal = last_end - pairs_begin
    return _put_pairs(events, filled, row, query, pairs_query_begin, reference, pairs_begin, equal)


@inline
def _trim(
    reference: CodeArray, begin: int, end: int, query: CodeArray, query_begin: int, query_end: int
) -> tuple[int, int, int, int]:
    """Return two ranges without the equal bases at their ends."""
    while begin < end and query_begin < query_end and reference[end - 1] == query[query_end - 1]:
        end -= 1
        query_end -= 1
    while begin < end and query_begin < query_end and reference[begin] == query[query_begin]:
        begin += 1
        query_begin += 1
    return begin, end, query_begin, query_end


@inline
def _leave(
    reference: CodeArray,
    begin: int,
    end: int,
    query: CodeArray,
    query_begin: int,
    query_end: int,
    record_start: int,
) -> tuple[int, int]:
    """Return where a gap at the start of its alignment begins and ends, farther to the left.

    There the query has no bases to show, and the last base of an insertion becomes its first.
    """
    moved = 0
    while begin - moved > record_start:
        if begin == end:
            last = query[query_end - 1 - moved % (query_end - query_begin)]
        else:
            last = reference[end - moved - 1]
        if reference[begin - moved - 1] != last:
            break
        moved += 1
    return begin - moved, end - moved


class Differences(NamedTuple):
    """Bases of the reference, and those that a query has in their place.

    `positions` are the first bases of the reference, as indices of all its codes. At least one base
    differs: before an insertion or deletion stands the base before it, or at the start of a record
    the one after it. `alternatives` are the codes in their place, on the strand of the reference,
    at least one for each; `offsets` say where those of each begin, shape=(n_differences + 1,).
    `query_positions` are where the query has the first of these, 0-based on its forward strand;
    `strands` are those of the alignments.
    """

    positions: Int64Array
    reference_lengths: Int64Array
    alternatives: CodeArray
    offsets: Int64Array
    queries: Int64Array
    query_positions: Int64Array
    strands: ByteArray


def find_differences(queries: AlignedQueries, reference: Reference) -> Differences:
    """Return the differences of alignments, those of one alignment after the other.

    Each pair of different bases is one, and each gap; neighbouring gaps without an equal base
    between them are one together. Pairs with a letter that is no base are left out. A gap is as far
    to the left as the bases of the reference allow, also if it leaves its alignment by that.
    """
    columns, bases = queries.alignments, queries.bases(reference)
    record_begins = reference.record_starts[columns.records] + MARGIN
    rows, begins, ends, query_begins, query_ends, rotations = _all_events(
        columns, bases, record_begins
    )
    is_gap = (begins == ends) | (query_begins == query_ends)
    has_base_before = is_gap & (begins > record_begins[rows])
    lengths = query_ends - query_begins + is_gap
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    alternatives = np.empty(offsets[-1], dtype=np.uint8)
    _write_alternatives(
        (rows, begins, ends, query_begins, query_ends, rotations),
        is_gap,
        has_base_before,
        bases,
        offsets,
        alternatives,
    )
    first_bases = columns.query_starts[rows] + query_begins - bases.query_begins[rows]
    sizes = queries.lengths[columns.queries[rows]]
    # A gap that leaves its alignment may pass the start of the query too.
    first_bases = np.clip(first_bases - has_base_before, 0, sizes - 1)
    is_reverse = bases.strands[rows] != 0
    return Differences(
        begins - has_base_before - MARGIN,
        ends - begins + is_gap,
        alternatives,
        offsets,
        columns.queries[rows],
        np.where(is_reverse, sizes - 1 - first_bases, first_bases),
        bases.strands[rows],
    )


def _all_events(
    columns: GenomeAlignments, bases: AlignedBases, record_begins: Int64Array
) -> Events:
    """Return the differences of all alignments."""
    most = int(columns.mismatches.sum() + columns.gaps.sum())
    rows, begins, ends, firsts, lasts, rotations = (
        np.empty(most, dtype=np.int64) for _ in range(6)
    )
    events = rows, begins, ends, firsts, lasts, rotations
    count = np.zeros(1, dtype=np.int64)
    find_events(columns.cigars, columns.cigar_offsets, bases, record_begins, events, count)
    filled = int(count[0])
    return (
        *(rows[:filled], begins[:filled], ends[:filled]),
        *(firsts[:filled], lasts[:filled], rotations[:filled]),
    )


@jit
def _write_alternatives(
    events: Events,
    is_gap: BoolArray,
    has_base_before: BoolArray,
    bases: AlignedBases,
    offsets: Int64Array,
    alternatives: CodeArray,
) -> None:
    """Write the codes that each query has in place of those of the reference."""
    rows, begins, ends, query_begins, query_ends, rotations = events
    for event in range(rows.size):
        query, reference = bases.queries[bases.strands[rows[event]]], bases.reference
        at = offsets[event]
        if has_base_before[event]:
            alternatives[at] = reference[begins[event] - 1]
            at += 1
        first, size = query_begins[event], query_ends[event] - query_begins[event]
        for base in range(size):
            # A rotation takes the last bases to the front.
            alternatives[at + base] = query[first + (base + size - rotations[event]) % size]
        if is_gap[event] and not has_base_before[event]:
            alternatives[at + size] = reference[ends[event]]
