"""Alignments with circular records, of which two copies lie end to end.

An alignment that continues after a record's last base continues in the second copy. It is cut at
the origin into two pieces; alignments that lie in the second copy alone are in the first one, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mummergpu.input.circular_records import circular_records
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import Anchors, GenomeAlignments
from mummergpu.mapping.genomes.overlaps import Intervals, not_contained
from mummergpu.mapping.genomes.tracing import TracedEnds
from mummergpu.runtime.arrays import BoolArray, Int64Array, UInt32Array
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.viterbi.recurrence.operations import (
    DELETION_OPERATION,
    INSERTION_OPERATION,
    MATCH_OPERATION,
)


class Axis(NamedTuple):
    """The reference as alignments go along it."""

    codes: CodeArray  # The codes with margins.
    # Where each record begins, without the margin, and its bases. A record that is not on the axis
    # has no bases.
    starts: Int64Array
    lengths: Int64Array

    @classmethod
    def of(cls, reference: Reference) -> Axis:
        """Return the axis of a reference as it is."""
        return cls(reference.padded_codes, reference.record_starts, reference.record_lengths)


class Groups(NamedTuple):
    """Matches of the queries of a block with the records of the reference."""

    keys: Int64Array  # The query and the record of each group; (n_groups, 2).
    offsets: Int64Array  # Where the matches of each group begin; (n_groups + 1,).
    matches: Anchors  # The matches, those of a group ascending.

    def taken(self, is_wanted: BoolArray) -> Groups:
        """Return some of the groups."""
        sizes = np.diff(self.offsets)
        rows = np.repeat(is_wanted, sizes)
        offsets = np.concatenate(([0], np.cumsum(sizes[is_wanted])))
        return Groups(
            self.keys[is_wanted], offsets, Anchors._make(column[rows] for column in self.matches)
        )


class CircularRecords:
    """The circular records of a reference; `OptionError` is raised for an unknown name."""

    def __init__(self, reference: Reference, names: Sequence[str]) -> None:
        self.are_circular = circular_records(reference, names)
        self._linear = Axis.of(reference)
        self._lengths = np.where(self.are_circular, reference.record_lengths, 0)
        pieces = [np.full(MARGIN, BREAK, dtype=np.uint8)]
        starts = np.zeros(self.are_circular.size, dtype=np.int64)
        filled = 0
        for record in np.flatnonzero(self.are_circular).tolist():
            begin = int(reference.record_starts[record]) + MARGIN
            own = reference.padded_codes[begin : begin + int(self._lengths[record])]
            starts[record] = filled
            filled += 2 * own.size + 1
            pieces += [own, own, np.full(1, BREAK, dtype=np.uint8)]
        pieces.append(np.full(MARGIN, BREAK, dtype=np.uint8))
        self.axis = Axis(np.concatenate(pieces), starts, 2 * self._lengths)

    def unrolled(self, groups: Groups) -> Groups:
        """Return groups of circular records with their matches in both copies."""
        sizes = np.diff(groups.offsets)
        numbers = np.repeat(np.arange(sizes.size), sizes)
        records = groups.keys[numbers, 1]
        first = groups.matches.reference_starts - self._linear.starts[records]
        first += self.axis.starts[records]
        begins = np.concatenate((groups.matches.query_starts,) * 2)
        positions = np.concatenate((first, first + self._lengths[records]))
        numbers = np.concatenate((numbers, numbers))
        order = np.lexsort((positions, begins, numbers))
        lengths = np.concatenate((groups.matches.lengths,) * 2)
        matches = Anchors(begins[order], positions[order], lengths[order])
        return groups._replace(offsets=2 * groups.offsets, matches=matches)

    def cut(
        self, records: Int64Array, operations: UInt32Array, ends: TracedEnds
    ) -> tuple[Int64Array, UInt32Array, TracedEnds]:
        """Cut alignments at the origin, and drop those in the second copy.

        `records` has the record of each. Return the alignment that each piece is of, and the
        operations and ends of the pieces.
        """
        origins = self.axis.starts[records] + self._lengths[records] + MARGIN
        begins = ends.operation_begins
        stops = begins + np.diff(begins, append=operations.size)
        columns = (column.tolist() for column in (origins, stops, *ends))
        rows: list[int] = []
        pieces: list[UInt32Array] = []
        bounds: list[tuple[int, int, int, int]] = []
        for row, (origin, stop, begin, query, position, *_) in enumerate(
            zip(*columns, strict=True)
        ):
            own = operations[begin:stop]
            if position >= origin:
                continue
            for piece, at, start in _cut(own, query, position, origin):
                rows.append(row)
                pieces.append(piece)
                bounds.append((at, start, at + _query_bases(piece), start + _bases(piece)))
        sizes = np.array([piece.size for piece in pieces], dtype=np.int64)
        intervals = np.array(bounds, dtype=np.int64).reshape(-1, 4).T
        cut_ends = TracedEnds(np.cumsum(sizes) - sizes, *(column.copy() for column in intervals))
        joined = np.concatenate([np.empty(0, dtype=np.uint32), *pieces])
        return np.array(rows, dtype=np.int64), joined, cut_ends

    def folded(self, found: GenomeAlignments, simplify: bool) -> GenomeAlignments:
        """Return alignments with the positions of one copy.

        An alignment of the first copy that ends where a piece in the second copy does is dropped.
        If `simplify`, so are alignments that lie inside another one.
        """
        lengths = self._lengths[found.records]
        is_second = found.reference_starts >= lengths
        shifts = np.where(is_second, lengths, 0)
        folded = replace(
            found,
            reference_starts=found.reference_starts - shifts,
            reference_ends=found.reference_ends - shifts,
        )
        ends = [folded.queries, folded.records, folded.query_ends, folded.reference_ends]
        rows = list(zip(*(column.tolist() for column in ends), strict=True))
        seconds = {rows[row] for row in np.flatnonzero(is_second).tolist()}
        keep = is_second | np.array([row not in seconds for row in rows], dtype=np.bool_)
        folded = folded.taken(np.flatnonzero(keep))
        if not simplify:
            return folded
        groups = folded.queries * self._lengths.size + folded.records
        intervals = Intervals(
            *(folded.query_starts, folded.query_ends),
            *(folded.reference_starts, folded.reference_ends),
        )
        return folded.taken(np.flatnonzero(not_contained(groups, intervals)))


def _cut(
    operations: UInt32Array, query: int, position: int, origin: int
) -> list[tuple[UInt32Array, int, int]]:
    """Return the pieces of an alignment, and where they begin in the query and the reference."""
    kinds, lengths = operations & 15, (operations >> 4).astype(np.int64)
    reached = position + np.cumsum(np.where(kinds == INSERTION_OPERATION, 0, lengths))
    if reached[-1] <= origin:
        return [(operations, query, position)]
    # The operation that reaches the origin goes to both sides with its bases there.
    at = int(np.searchsorted(reached, origin))
    after = int(reached[at]) - origin
    middle = [(int(lengths[at]) - after, int(kinds[at])), (after, int(kinds[at]))]
    sides = [
        np.array([length << 4 | kind], dtype=np.uint32)[: length > 0] for length, kind in middle
    ]
    before = np.concatenate((operations[:at], sides[0]))
    behind = np.concatenate((sides[1], operations[at + 1 :]))
    is_match = [np.flatnonzero(side & 15 == MATCH_OPERATION) for side in (before, behind)]
    # Pieces begin and end with pairs of bases; a gap at the origin belongs to neither.
    pieces = [(before[: is_match[0][-1] + 1], query, position)] if is_match[0].size else []
    if is_match[1].size:
        skipped, kept = np.split(behind, is_match[1][:1])
        query += _query_bases(before) + _query_bases(skipped)
        pieces.append((kept, query, origin + _bases(skipped)))
    return pieces


def _query_bases(operations: UInt32Array) -> int:
    return int((operations >> 4)[operations & 15 != DELETION_OPERATION].sum())


def _bases(operations: UInt32Array) -> int:
    """Return how many bases of the reference operations take."""
    return int((operations >> 4)[operations & 15 != INSERTION_OPERATION].sum())
