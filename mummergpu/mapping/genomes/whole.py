"""Aligns whole sequences from end to end, each query with each record of the reference.

This is for sequences with few matches or none: the matrix of two sequences is computed as a whole
(Du, Yin and Bader 2010, sections IV A and IV B).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.columns import GenomeAlignments, Sequences
from mummergpu.mapping.genomes.finishing import RecordBounds, finish_alignments, join_strands
from mummergpu.mapping.genomes.mapping_quality import with_rivals
from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.mapping.genomes.tracing import TracedEnds
from mummergpu.sequence.codes import MARGIN, CodeArray, padded_reverse_complements
from mummergpu.sequence.mems import BlockMems
from mummergpu.sequence.strand import Strand
from mummergpu.viterbi.recurrence.operations import MATCH_OPERATION, OperationArray

EndToEnd = Callable[[CodeArray, CodeArray], tuple[int, OperationArray]]
"""Aligns a query with a reference, both codes without margins: returns the score and the
operations, as `device_matrix.DeviceMatrix.align` does."""

CheckSizes = Callable[[int, int], str | None]
"""Returns what is wrong with a matrix of a query and a reference of these lengths, or None."""

_Found = tuple[int, int, int, OperationArray]
"""A query, a record of the reference, the score and the operations."""


class MatrixTooLargeError(Exception):
    """The matrix of a query, which is named, and a record is too large; the message says why."""

    def __init__(self, query: str, message: str) -> None:
        super().__init__(query, message)
        self.query = query
        self.message = message


class WholeAligner:
    """Aligns blocks of queries from end to end; one thread calls it.

    Of the strands, the one with the higher score is kept, the forward strand if both have the same.
    `check` says what is wrong with the lengths of two sequences.
    """

    def __init__(
        self,
        reference: Reference,
        options: GenomeOptions,
        strands: Sequence[Strand],
        align: EndToEnd,
        check: CheckSizes,
    ) -> None:
        self._reference = reference
        self._options = options
        self._strands = strands
        self._align = align
        self._check = check

    def align_block(
        self, block: QueryBlock, mems: BlockMems, map_function: Callable[..., Iterable[Any]] = map
    ) -> GenomeAlignments:
        """Return the alignments of a block of queries, which need no matches.

        There is one of each query with each record, without the gaps at its ends; none if no base
        of one lies on a base of the other. `MatrixTooLargeError` is raised if two are too long.
        """
        codes = {
            strand: block.padded_codes
            if strand is Strand.FORWARD
            else padded_reverse_complements(block.padded_codes, block.offsets)
            for strand in self._strands
        }
        found: dict[Strand, list[_Found]] = {strand: [] for strand in self._strands}
        for query in range(block.query_count):
            for record in range(self._reference.record_starts.size):
                best = self._best_strand(block, codes, query, record)
                if best is not None:
                    found[best[0]].append((query, record, *best[1]))
        joined = join_strands(
            [
                self._columns(block, strand, codes[strand], alignments, map_function)
                for strand, alignments in found.items()
            ]
        )
        return with_rivals(joined, np.diff(block.offsets), self._options.costs)

    def _best_strand(
        self, block: QueryBlock, codes: dict[Strand, CodeArray], query: int, record: int
    ) -> tuple[Strand, tuple[int, OperationArray]] | None:
        """Return the better strand of a query on a record, with its score and operations."""
        reference = self._reference
        begin, end = (int(place) + MARGIN for place in block.offsets[query : query + 2])
        start, length = int(reference.record_starts[record]), int(reference.record_lengths[record])
        if begin == end or length == 0:
            return None
        if problem := self._check(end - begin, length):
            first, last = block.name_offsets[query : query + 2]
            raise MatrixTooLargeError(block.names[first:last].tobytes().decode(), problem)
        other = reference.codes[start : start + length]
        best: tuple[Strand, tuple[int, OperationArray]] | None = None
        for strand, padded in codes.items():
            aligned = self._align(padded[begin:end], other)
            if best is None or aligned[0] > best[1][0]:
                best = strand, aligned
        return best

    def _columns(
        self,
        block: QueryBlock,
        strand: Strand,
        codes: CodeArray,
        found: Sequence[_Found],
        map_function: Callable[..., Iterable[Any]],
    ) -> GenomeAlignments:
        """Return alignments on one strand as columns."""
        reference = self._reference
        keys, operations = [], []
        ends: list[tuple[int, int, int, int, int]] = []
        filled = 0
        for query, record, _, path in found:
            first, last = _between_gaps(path)
            if first > last:
                continue
            before, behind = (_consumed(part) for part in (path[:first], path[last + 1 :]))
            start = int(reference.record_starts[record]) + MARGIN
            stop = start + int(reference.record_lengths[record])
            begin, end = (int(place) + MARGIN for place in block.offsets[query : query + 2])
            ends.append(
                (filled, begin + before[0], start + before[1], end - behind[0], stop - behind[1])
            )
            keys.append((query, record))
            operations.append(path[first : last + 1])
            filled += last + 1 - first
        columns = np.array(ends, dtype=np.int64).reshape(-1, 5).T.copy()
        return finish_alignments(
            np.arange(len(keys)),
            np.concatenate([np.empty(0, dtype=np.uint32), *operations]),
            TracedEnds._make(columns),
            Sequences(codes, reference.padded_codes),
            self._options,
            RecordBounds(
                np.array(keys, dtype=np.int64).reshape(-1, 2),
                block.offsets,
                reference.record_starts,
            ),
            strand,
            map_function,
        )


def _between_gaps(path: OperationArray) -> tuple[int, int]:
    """Return the first and the last match of a path; the first is past the end if there is none."""
    matches = np.flatnonzero(path & 15 == MATCH_OPERATION)
    return (int(matches[0]), int(matches[-1])) if matches.size else (1, 0)


def _consumed(gaps: OperationArray) -> tuple[int, int]:
    """Return how many bases of the query and of the reference gaps consume."""
    lengths, kinds = gaps >> 4, gaps & 15
    insertions = int(lengths[kinds == 1].sum())
    return insertions, int(lengths.sum()) - insertions
