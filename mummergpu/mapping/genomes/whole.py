"""Aligns whole sequences from end to end, each query with each record of the reference.

This is for sequences with few matches or none: the matrix of two sequences is computed as a whole
(Du, Yin and Bader 2010, sections IV A and IV B).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.columns import GenomeAlignments, Sequences
from mummergpu.mapping.genomes.finishing import RecordBounds, finish_alignments, join_strands
from mummergpu.mapping.genomes.mapping_quality import with_rivals
from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.mapping.genomes.tracing import TracedEnds
from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.sequence.codes import MARGIN, CodeArray, padded_reverse_complements
from mummergpu.sequence.mems import BlockMems, MemColumns
from mummergpu.sequence.strand import Strand
from mummergpu.viterbi.recurrence.operations import MATCH_OPERATION, OperationArray
from mummergpu.viterbi.whole.processor_matrix import matrix_fits

EndToEnd = Callable[[CodeArray, CodeArray], tuple[int, OperationArray]]
"""Aligns a query with a reference, both codes without margins: returns the score and the
operations, as `device_matrix.DeviceMatrix.align` does."""

CheckSizes = Callable[[int, int], str | None]
"""Returns what is wrong with a matrix of a query and a reference of these lengths, or None."""

_Found = tuple[int, int, int, OperationArray]
"""A query, a record of the reference, the score and the operations."""


class MatrixTooLargeError(Exception):
    """The matrix of a query of a file and a record is too large; the message says why."""

    def __init__(self, file_number: int, query: str, message: str) -> None:
        super().__init__(file_number, query, message)
        self.file_number = file_number
        self.query = query
        self.message = message


class OpenMatrix(NamedTuple):
    """Aligns two sequences, and checks whether they are too long."""

    align: EndToEnd
    check: CheckSizes


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
        self,
        block: QueryBlock,
        mems: BlockMems,
        map_function: Callable[..., Iterable[Any]] = map,
        queries: Iterable[int] | None = None,
    ) -> GenomeAlignments:
        """Return the alignments of all or some queries of a block, which need no matches.

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
        for query in range(block.query_count) if queries is None else queries:
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
            name = block.names[first:last].tobytes().decode()
            raise MatrixTooLargeError(block.file_number, name, problem)
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


class AutoAligner:
    """Aligns queries with whole matrices where these are small, and others in tiles.

    This is Pseudo Code 3 of Du, Yin and Bader (2010), with a threshold for bytes and one for the
    lengths (`suit_whole_matrices`). `open_matrix` opens the aligner of whole matrices while a
    ``with`` statement lasts.
    """

    def __init__(
        self,
        reference: Reference,
        options: GenomeOptions,
        strands: Sequence[Strand],
        tiles: GenomeAligner,
        open_matrix: Callable[[], AbstractContextManager[OpenMatrix]],
    ) -> None:
        self._reference = reference
        self._options = options
        self._strands = strands
        self._tiles = tiles
        self._open_matrix = open_matrix

    def align_block(
        self, block: QueryBlock, mems: BlockMems, map_function: Callable[..., Iterable[Any]] = map
    ) -> GenomeAlignments:
        """Return the alignments of a block of queries; see `WholeAligner` and `GenomeAligner`."""
        fits = suit_whole_matrices(np.diff(block.offsets), self._reference.record_lengths)
        found = []
        if fits.any():
            with self._open_matrix() as matrix:
                whole = WholeAligner(self._reference, self._options, self._strands, *matrix)
                queries = np.flatnonzero(fits).tolist()
                found.append(whole.align_block(block, {}, map_function, queries))
        if not fits.all():
            rest = {strand: _without(columns, fits) for strand, columns in mems.items()}
            found.append(self._tiles.align_block(block, rest, map_function))
        return join_strands(found)


MOST_TIMES: Final = 2
"""A sequence that is more times as long as the other contains it, rather than being alike: from end
to end, the shorter one would be scattered over the longer one."""


def suit_whole_matrices(lengths: Int64Array, record_lengths: Int64Array) -> BoolArray:
    """Return which queries have small matrices, and the lengths for it, with all records."""
    shortest, longest = int(record_lengths.min()), int(record_lengths.max())
    longer, shorter = np.maximum(lengths, longest), np.minimum(lengths, shortest)
    suits: BoolArray = matrix_fits(lengths, longest) & (longer <= MOST_TIMES * shorter)
    return suits


def _without(columns: MemColumns, left_out: BoolArray) -> MemColumns:
    """Return the matches of a block without those of some queries."""
    counts = np.diff(columns.offsets)
    keep = np.repeat(~left_out, counts)
    return columns._replace(
        offsets=np.concatenate(([0], np.cumsum(np.where(left_out, 0, counts)))),
        query_starts=columns.query_starts[keep],
        reference_starts=columns.reference_starts[keep],
        lengths=columns.lengths[keep],
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
