"""The differences of genome alignments, one by one and as far to the left as they can be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.output.genomes.difference_moves import Events, find_events
from mummergpu.output.genomes.format import AlignedBases, AlignedQueries
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.sequence.codes import MARGIN, CodeArray


@dataclass(frozen=True)
class Differences:
    """Bases of the reference, and those that a query has in their place.

    Attributes
    ----------
    positions : ndarray, dtype=int64, shape=(n_differences,)
        The first base of the reference, as an index of all its codes.
    reference_lengths : ndarray, dtype=int64, shape=(n_differences,)
        How many bases of the reference differ, at least 1: before an insertion or deletion stands
        the base before it, or at the start of a record the one after it.
    alternatives : ndarray, dtype=uint8, shape=(n_bases,)
        The codes that are in their place, on the strand of the reference; at least 1 for each.
    offsets : ndarray, dtype=int64, shape=(n_differences + 1,)
        Where in `alternatives` those of each begin.
    queries : ndarray, dtype=int64, shape=(n_differences,)
        The query.
    query_positions : ndarray, dtype=int64, shape=(n_differences,)
        Where it has the first of these bases, 0-based on its forward strand.
    strands : ndarray, dtype=uint8, shape=(n_differences,)
        The strand of the alignment.
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
        bases.queries,
        bases.reference,
        bases.strands,
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
    """Return what differs in all alignments (`difference_moves.find_events`)."""
    most = int(columns.mismatches.sum() + columns.gaps.sum())
    rows, begins, ends, firsts, lasts, rotations = (
        np.empty(most, dtype=np.int64) for _ in range(6)
    )
    events = rows, begins, ends, firsts, lasts, rotations
    count = np.zeros(1, dtype=np.int64)
    find_events(
        columns.cigars,
        columns.cigar_offsets,
        bases.queries,
        bases.reference,
        bases.strands,
        bases.query_begins,
        bases.reference_begins,
        record_begins,
        events,
        count,
    )
    filled = int(count[0])
    return (
        *(rows[:filled], begins[:filled], ends[:filled]),
        *(firsts[:filled], lasts[:filled], rotations[:filled]),
    )


@jit_without_refcounts
def _write_alternatives(
    events: Events,
    is_gap: BoolArray,
    has_base_before: BoolArray,
    queries: tuple[CodeArray, CodeArray],
    reference: CodeArray,
    strands: ByteArray,
    offsets: Int64Array,
    alternatives: CodeArray,
) -> None:
    """Write the codes that each query has in place of those of the reference."""
    rows, begins, ends, query_begins, query_ends, rotations = events
    for event in range(rows.size):
        query = queries[strands[rows[event]]]
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
