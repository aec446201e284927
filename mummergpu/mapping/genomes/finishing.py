"""Makes columns of traced alignments: gaps move to the left, and differences are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.mapping.genomes.columns import GenomeAlignments, Sequences
from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.mapping.genomes.overlaps import Intervals, not_contained, not_repeated
from mummergpu.mapping.genomes.tracing import TracedEnds
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.strand import Strand
from mummergpu.viterbi.left_alignment import align_left
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import (
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    kind_of,
    length_of,
)

_ALIGNMENTS_OF_TASK: Final = 64


class _Differences(NamedTuple):
    """The pairs of different bases of each alignment, the bases of its gaps, and its gaps."""

    mismatches: Int64Array
    gap_bases: Int64Array
    gaps: Int64Array


class _Traced(NamedTuple):
    """Alignments: where they begin in both sequences and among the operations of all."""

    query_begins: Int64Array
    reference_begins: Int64Array
    offsets: Int64Array
    operations: OperationArray


@jit
def _align_each_left(
    traced: _Traced, counts: Int64Array, sequences: Sequences, costs: Costs, first: int, end: int
) -> None:
    """Move the gaps of some alignments to the left; `counts`, their operations, may shrink."""
    for row in range(first, end):
        counts[row] = align_left(
            traced.operations,
            traced.offsets[row],
            counts[row],
            sequences.query,
            traced.query_begins[row],
            sequences.reference,
            traced.reference_begins[row],
            costs,
            False,
        )


@jit
def _count_differences(
    traced: _Traced, sequences: Sequences, first: int, end: int, found: _Differences
) -> None:
    """Count the differences of some alignments."""
    operations = traced.operations
    for row in range(first, end):
        i, j = traced.query_begins[row], traced.reference_begins[row]
        different, gap_length, gap_count = 0, 0, 0
        for position in range(traced.offsets[row], traced.offsets[row + 1]):
            kind, length = kind_of(operations, position), length_of(operations, position)
            if kind == MATCH_OPERATION:
                different += _differences(sequences.query, i, sequences.reference, j, length)
                i += length
                j += length
                continue
            gap_count += 1
            gap_length += length
            if kind == INSERTION_OPERATION:
                i += length
            else:
                j += length
        found.mismatches[row] = different
        found.gap_bases[row], found.gaps[row] = gap_length, gap_count


@inline
def _differences(query: CodeArray, i: int, reference: CodeArray, j: int, length: int) -> int:
    """Return how many pairs of bases are not equal; a break equals nothing."""
    count = 0
    for k in range(length):
        base, other = query[np.uint64(i + k)], reference[np.uint64(j + k)]
        count += (base != other) | (base > 3)
    return count


class RecordBounds(NamedTuple):
    """The query and the record of each group, where each query begins, where each record begins.

    The first is of the shape (n_groups, 2); the others count from the first base of the codes.
    """

    keys: Int64Array
    query_starts: Int64Array
    record_starts: Int64Array


def finish_alignments(
    groups: Int64Array,
    operations: OperationArray,
    ends: TracedEnds,
    sequences: Sequences,
    options: GenomeOptions,
    bounds: RecordBounds,
    strand: Strand,
    map_function: Callable[..., Iterable[Any]],
) -> GenomeAlignments:
    """Return traced alignments as columns, without those inside others if options say so."""
    intervals = Intervals(
        ends.query_begins, ends.query_ends, ends.reference_begins, ends.reference_ends
    )
    # Alignments inside another one go first, so that the rest is done only for those that stay.
    choose = not_contained if options.simplify else not_repeated
    keep = np.flatnonzero(choose(groups, intervals))
    groups, kept = groups[keep], Intervals._make(interval[keep] for interval in intervals)
    counts = np.diff(ends.operation_begins, append=operations.size)[keep]
    begins = ends.operation_begins[keep]
    tasks = range(0, keep.size, _ALIGNMENTS_OF_TASK)

    def in_parts(work: Callable[[int, int], None]) -> None:
        def work_from(first: int) -> None:
            work(first, min(first + _ALIGNMENTS_OF_TASK, keep.size))

        for _ in map_function(work_from, tasks):
            pass

    traced = _Traced(kept.query_begins, kept.reference_begins, begins, operations)
    costs = options.costs
    # Gaps go to the leftmost of equal places, which may join operations: the counts may fall.
    in_parts(lambda first, end: _align_each_left(traced, counts, sequences, costs, first, end))
    offsets = np.concatenate(([0], np.cumsum(counts)))
    cigars = operations[np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])]
    found = _Differences._make(np.empty(keep.size, dtype=np.int64) for _ in range(3))
    aligned = _Traced(kept.query_begins, kept.reference_begins, offsets, cigars)
    in_parts(lambda first, end: _count_differences(aligned, sequences, first, end, found))
    mismatches, gap_bases, gaps = found
    queries, records = bounds.keys[groups, 0], bounds.keys[groups, 1]
    query_starts, record_starts = bounds.query_starts[queries], bounds.record_starts[records]
    # A pair takes a base of both sequences, and each base of a gap one of either.
    bases = kept.query_ends - kept.query_begins + kept.reference_ends - kept.reference_begins
    pairs = (bases - gap_bases) // 2
    scores = (pairs - mismatches) * costs.match - mismatches * costs.mismatch
    scores -= gaps * costs.deletion_open + gap_bases * costs.deletion_extend
    return GenomeAlignments(
        queries,
        np.full(keep.size, strand, dtype=np.uint8),
        records,
        kept.query_begins - query_starts - MARGIN,
        kept.query_ends - query_starts - MARGIN,
        kept.reference_begins - record_starts - MARGIN,
        kept.reference_ends - record_starts - MARGIN,
        offsets,
        cigars,
        mismatches,
        gap_bases,
        gaps,
        scores,
        np.zeros(keep.size),
    )


def join_strands(found: Sequence[GenomeAlignments]) -> GenomeAlignments:
    """Return alignments on several strands in the order of `GenomeAlignments`."""
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in found])
        for field in fields(GenomeAlignments)
        if field.name != "cigar_offsets"
    }
    sizes = np.concatenate([np.diff(part.cigar_offsets) for part in found])
    joined = GenomeAlignments(**columns, cigar_offsets=np.concatenate(([0], np.cumsum(sizes))))
    order = np.lexsort(
        (
            joined.query_starts,
            joined.strands,
            joined.reference_starts,
            joined.records,
            joined.queries,
        )
    )
    return joined.taken(order)
