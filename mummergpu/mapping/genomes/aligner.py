"""Aligns blocks of queries with a reference: from matches to alignments of genomes."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.chaining import (
    FAR_OPERATIONS,
    Extender,
    LinkedAnchors,
    Targets,
    find_targets,
    link_clusters,
    new_targets,
)
from mummergpu.mapping.genomes.circular import Axis, CircularRecords, Groups
from mummergpu.mapping.genomes.clusters import Clusters, find_clusters
from mummergpu.mapping.genomes.columns import Anchors, Bounds, GenomeAlignments, Sequences
from mummergpu.mapping.genomes.device_tiles import (
    ReadyTiles,
    TileAligner,
    align_tiles_ahead,
    no_tiles,
)
from mummergpu.mapping.genomes.finishing import RecordBounds, finish_alignments, join_strands
from mummergpu.mapping.genomes.mapping_quality import with_rivals
from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.mapping.genomes.overlaps import Intervals, not_contained
from mummergpu.mapping.genomes.tracing import FILLED, TracedEnds, trace_anchors
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.sequence.codes import MARGIN, CodeArray, padded_reverse_complements
from mummergpu.sequence.mems import BlockMems, MemColumns
from mummergpu.sequence.strand import Strand
from mummergpu.viterbi.recurrence.model import MOST_BASES
from mummergpu.viterbi.recurrence.operations import OperationArray
from mummergpu.viterbi.tiles.band import Scratch, new_scratch
from mummergpu.viterbi.whole.whole_matrix import MatrixScratch, new_matrix

MapFunction = Callable[..., Iterable[Any]]

_ANCHORS_OF_TASK: Final = 4096
_CLUSTERS_OF_TASK: Final = 256
"""The anchors and the clusters of a task: tasks are many, so that all threads end together."""

_OPERATIONS_OF_ANCHOR: Final = 4
_MIN_OPERATIONS: Final = 1 << 14
"""The operations of each anchor, and besides them, that there is room for at first."""


class GenomeAligner:
    """Aligns blocks of queries; one thread calls it, and several work.

    `align_tiles` aligns many tiles at once on a device; None if the processor aligns them all.
    """

    def __init__(
        self, reference: Reference, options: GenomeOptions, align_tiles: TileAligner | None = None
    ) -> None:
        self._align_tiles = align_tiles
        self._reference = reference
        self._options = options
        self._costs = options.costs
        self._circular = None
        if options.circular:
            self._circular = CircularRecords(reference, options.circular)
        self._rooms: queue.SimpleQueue[tuple[Scratch, MatrixScratch, OperationArray]]
        self._rooms = queue.SimpleQueue()

    def align_block(
        self, block: QueryBlock, mems: BlockMems, map_function: MapFunction = map
    ) -> GenomeAlignments:
        """Return the alignments of a block of queries.

        `mems` are the matches that they begin with. None of them lies inside another one on the
        same strand, unless the options say so, and none is there twice.
        """
        found = [
            aligned
            for strand, columns in mems.items()
            for aligned in self._align_strand(block, strand, columns, map_function)
        ]
        return with_rivals(join_strands(found), np.diff(block.offsets), self._options.costs)

    def _align_strand(
        self, block: QueryBlock, strand: Strand, columns: MemColumns, map_function: MapFunction
    ) -> Iterator[GenomeAlignments]:
        """Yield the alignments of a block on one strand: with linear and with circular records."""
        queries = block.padded_codes
        if strand is Strand.REVERSE:
            queries = padded_reverse_complements(queries, block.offsets)
        groups, circular = self._groups(block, columns), self._circular
        if circular is None:
            yield self._align_groups(block, queries, groups, strand, map_function)
            return
        are_circular = circular.are_circular[groups.keys[:, 1]]
        linear = groups.taken(~are_circular)
        yield self._align_groups(block, queries, linear, strand, map_function)
        unrolled = circular.unrolled(groups.taken(are_circular))
        found = self._align_groups(block, queries, unrolled, strand, map_function, circular)
        yield circular.folded(found, self._options.simplify)

    def _align_groups(
        self,
        block: QueryBlock,
        queries: CodeArray,
        groups: Groups,
        strand: Strand,
        map_function: MapFunction,
        circular: CircularRecords | None = None,
    ) -> GenomeAlignments:
        """Return the alignments that begin with matches, in both copies of circular records."""
        axis = Axis.of(self._reference) if circular is None else circular.axis
        sequences = Sequences(queries, axis.codes)
        bounds = self._bounds(block, groups.keys, axis)
        clusters = find_clusters(
            groups.offsets, groups.matches, self._options.clusters, map_function
        )
        if self._options.simplify:
            clusters = _without_contained(clusters)
        targets = new_targets(clusters.groups.size)
        if self._options.extend:
            self._find_targets(clusters, bounds, sequences, targets, map_function)
        linked = link_clusters(clusters, bounds, targets, self._options.break_length)
        operations, ends = self._trace(linked, sequences, map_function)
        numbers = linked.groups
        if circular is not None:
            rows, operations, ends = circular.cut(groups.keys[numbers, 1], operations, ends)
            numbers = numbers[rows]
        return finish_alignments(
            numbers,
            operations,
            ends,
            sequences,
            self._options,
            RecordBounds(groups.keys, block.offsets, axis.starts),
            strand,
            map_function,
        )

    def _groups(self, block: QueryBlock, columns: MemColumns) -> Groups:
        """Return the groups of matches: those of a query with a record of the reference."""
        starts = self._reference.record_starts
        queries = np.repeat(np.arange(block.query_count), np.diff(columns.offsets))
        records = np.searchsorted(starts, columns.reference_starts, side="right") - 1
        key = queries * starts.size + records
        query_starts = columns.query_starts + block.offsets[queries] + MARGIN
        reference_starts = columns.reference_starts + MARGIN
        lengths = columns.lengths
        if starts.size > 1:
            order = np.argsort(key, kind="stable")
            key, query_starts = key[order], query_starts[order]
            reference_starts, lengths = reference_starts[order], lengths[order]
        begins = np.flatnonzero(np.diff(key, prepend=-1))
        offsets = np.append(begins, key.size)
        keys = np.stack((key[begins] // starts.size, key[begins] % starts.size), axis=1)
        return Groups(keys, offsets, Anchors(query_starts, reference_starts, lengths))

    def _bounds(self, block: QueryBlock, keys: Int64Array, axis: Axis) -> Bounds:
        """Return where the query and the record of each group begin and end."""
        queries, records = keys[:, 0], keys[:, 1]
        starts = axis.starts[records] + MARGIN
        return Bounds(
            block.offsets[queries] + MARGIN,
            block.offsets[queries + 1] + MARGIN,
            starts,
            starts + axis.lengths[records],
        )

    def _find_targets(
        self,
        clusters: Clusters,
        bounds: Bounds,
        sequences: Sequences,
        targets: Targets,
        map_function: MapFunction,
    ) -> None:
        """Find where each cluster may continue."""
        count = clusters.groups.size

        def find(first: int) -> None:
            end = min(first + _CLUSTERS_OF_TASK, count)
            with self._extender(sequences) as extender:
                find_targets(clusters, bounds, extender, first, end, targets)

        for _ in map_function(find, range(0, count, _CLUSTERS_OF_TASK)):
            pass

    def _trace(
        self, linked: LinkedAnchors, sequences: Sequences, map_function: MapFunction
    ) -> tuple[UInt32Array, TracedEnds]:
        """Return the operations of all alignments, and where the alignments begin and end."""
        ready = no_tiles()
        if self._align_tiles is not None:
            ready = align_tiles_ahead(linked, sequences, self._options.costs, self._align_tiles)
        count = linked.groups.size
        ends = TracedEnds._make(np.empty(count, dtype=np.int64) for _ in TracedEnds._fields)
        total = int(linked.offsets[-1])

        def trace(first: int) -> UInt32Array:
            end = min(first + _ANCHORS_OF_TASK, total)
            return self._trace_part(linked, sequences, first, end, ends, ready)

        tasks = range(0, total, _ANCHORS_OF_TASK)
        parts = list(map_function(trace, tasks))
        before = np.cumsum([0, *(part.size for part in parts)])
        # Each alignment begins in the part that has its first anchor.
        begins = ends.operation_begins
        begins += before[linked.offsets[:-1] // _ANCHORS_OF_TASK]
        operations = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)
        return operations, ends

    def _trace_part(
        self,
        linked: LinkedAnchors,
        sequences: Sequences,
        first: int,
        end: int,
        ends: TracedEnds,
        ready: ReadyTiles,
    ) -> UInt32Array:
        """Return the operations of a range of anchors."""
        room = _MIN_OPERATIONS + _OPERATIONS_OF_ANCHOR * (end - first)
        operations = np.empty(room, dtype=np.uint32)
        alignment = np.searchsorted(linked.offsets, first, side="right") - 1
        state = np.array([first, alignment, 0], dtype=np.int64)
        with self._extender(sequences) as extender:
            while not trace_anchors(linked, extender, ready, end, operations, state, ends):
                longer = np.empty(2 * operations.size, dtype=np.uint32)
                longer[: state[FILLED]] = operations[: state[FILLED]]
                operations = longer
        return operations[: state[FILLED]]

    @contextmanager
    def _extender(self, sequences: Sequences) -> Iterator[Extender]:
        """Lend an extender whose memory no other thread uses meanwhile."""
        options = self._options
        try:
            scratch, matrix, operations = self._rooms.get_nowait()
        except queue.Empty:
            scratch, matrix = new_scratch(MOST_BASES, options.costs.max_gap), new_matrix()
            operations = np.empty(FAR_OPERATIONS, dtype=np.uint32)
        yield Extender(
            sequences,
            self._costs,
            options.break_length,
            options.window,
            scratch,
            matrix,
            operations,
        )
        self._rooms.put((scratch, matrix, operations))


def _without_contained(clusters: Clusters) -> Clusters:
    """Return the clusters that do not lie inside another one."""
    if clusters.groups.size == 0:
        return clusters
    anchors = clusters.anchors
    first, last = clusters.offsets[:-1], clusters.offsets[1:] - 1
    intervals = Intervals(
        anchors.query_starts[first],
        anchors.query_starts[last] + anchors.lengths[last],
        anchors.reference_starts[first],
        anchors.reference_starts[last] + anchors.lengths[last],
    )
    keep = not_contained(clusters.groups, intervals)
    if keep.all():
        return clusters
    sizes = np.diff(clusters.offsets)
    kept_anchors = np.repeat(keep, sizes)
    return Clusters(
        clusters.groups[keep],
        np.concatenate(([0], np.cumsum(sizes[keep]))),
        Anchors._make(column[kept_anchors] for column in anchors),
    )
