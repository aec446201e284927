"""Makes columns of traced alignments: gaps go to the left, and differences are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.contained import not_contained, not_repeated
from mummergpu.mapping.genomes.differences import count_differences
from mummergpu.mapping.genomes.links import Sequences
from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.mapping.genomes.tracing import TracedEnds
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.sequence.codes import MARGIN, Strand
from mummergpu.viterbi.left_alignment import align_left
from mummergpu.viterbi.recurrence.operations import OperationArray

_ALIGNMENTS_OF_TASK: Final = 64


@jit_without_refcounts
def _align_each_left(
    operations: OperationArray,
    begins: Int64Array,
    counts: Int64Array,
    query_begins: Int64Array,
    reference_begins: Int64Array,
    sequences: Sequences,
    first: int,
    end: int,
) -> None:
    """Move the gaps of some alignments to the left; `counts` receives their operations."""
    for row in range(first, end):
        counts[row] = align_left(
            operations,
            begins[row],
            counts[row],
            sequences[0],
            query_begins[row],
            sequences[1],
            reference_begins[row],
        )


def finish_alignments(
    groups: Int64Array,
    operations: OperationArray,
    ends: TracedEnds,
    sequences: Sequences,
    options: GenomeOptions,
    places: tuple[Int64Array, Int64Array, Int64Array],
    strand: Strand,
    map_function: Callable[..., Iterable[Any]],
) -> GenomeAlignments:
    """Return traced alignments as columns."""
    begins, query_begins, reference_begins, query_ends, reference_ends = ends
    extents = query_begins, query_ends, reference_begins, reference_ends
    choose = not_contained if options.simplify else not_repeated
    keep = np.flatnonzero(choose(groups, extents))
    counts = np.diff(begins, append=operations.size)[keep]
    groups, begins, query_begins = groups[keep], begins[keep], query_begins[keep]
    reference_begins, query_ends = reference_begins[keep], query_ends[keep]
    reference_ends = reference_ends[keep]
    tasks = range(0, keep.size, _ALIGNMENTS_OF_TASK)

    def align_some(first: int) -> None:
        end = min(first + _ALIGNMENTS_OF_TASK, keep.size)
        starts = query_begins, reference_begins
        _align_each_left(operations, begins, counts, *starts, sequences, first, end)

    for _ in map_function(align_some, tasks):
        pass
    offsets = np.concatenate(([0], np.cumsum(counts)))
    cigars = operations[np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])]
    mismatches, gap_bases, gaps = (np.empty(keep.size, dtype=np.int64) for _ in range(3))

    def count_some(first: int) -> None:
        end = min(first + _ALIGNMENTS_OF_TASK, keep.size)
        starts = query_begins, reference_begins
        found = mismatches, gap_bases, gaps
        count_differences(cigars, offsets, *starts, sequences, first, end, *found)

    for _ in map_function(count_some, tasks):
        pass
    keys, query_starts, record_starts = places
    costs = options.costs
    queries, records = keys[groups, 0], keys[groups, 1]
    pairs = (query_ends - query_begins + reference_ends - reference_begins - gap_bases) // 2
    scores = (pairs - mismatches) * costs.match - mismatches * costs.mismatch
    scores -= gaps * costs.deletion_open + gap_bases * costs.deletion_extend
    return GenomeAlignments(
        queries,
        np.full(keep.size, strand, dtype=np.uint8),
        records,
        query_begins - query_starts[queries] - MARGIN,
        query_ends - query_starts[queries] - MARGIN,
        reference_begins - record_starts[records] - MARGIN,
        reference_ends - record_starts[records] - MARGIN,
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
    sizes = np.concatenate([np.diff(one.cigar_offsets) for one in found])

    def column(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(one, name) for one in found])

    joined = GenomeAlignments(
        column("queries"),
        column("strands"),
        column("records"),
        column("query_starts"),
        column("query_ends"),
        column("reference_starts"),
        column("reference_ends"),
        np.concatenate(([0], np.cumsum(sizes))),
        column("cigars"),
        column("mismatches"),
        column("gap_bases"),
        column("gaps"),
        column("scores"),
        column("rivals"),
    )
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
