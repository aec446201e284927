"""Alignments of genomes as columns, and the anchors that they begin with."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.codes import CodeArray

NONE: Final = -1
"""The number of a match if there is none."""


class Anchors(NamedTuple):
    """Where matches begin in the query and in the reference, and their lengths."""

    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array


class Sequences(NamedTuple):
    """The codes of the queries and of the reference, with margins."""

    query: CodeArray
    reference: CodeArray


class Bounds(NamedTuple):
    """How far alignments may go: the first base in each sequence, and the one after the last."""

    query_begins: Int64Array
    query_ends: Int64Array
    reference_begins: Int64Array
    reference_ends: Int64Array


@frozen
class GenomeAlignments:
    """The alignments of a block of queries.

    They ascend by query, record, start in the reference, strand, and start in the query.

    Attributes
    ----------
    queries : ndarray, dtype=int64, shape=(n_alignments,)
        The number of the query in its block, counted from 0.
    strands : ndarray, dtype=uint8, shape=(n_alignments,)
        The strand of the query (`sequence.strand.Strand`).
    records : ndarray, dtype=int64, shape=(n_alignments,)
        The record of the reference, counted from 0.
    query_starts, query_ends : ndarray, dtype=int64, shape=(n_alignments,)
        The first base of the query that is aligned, and the one after the last; 0-based on the
        strand that is aligned.
    reference_starts, reference_ends : ndarray, dtype=int64, shape=(n_alignments,)
        The same in the record, 0-based.
    cigar_offsets : ndarray, dtype=int64, shape=(n_alignments + 1,)
        Where the operations of each alignment begin in `cigars`, and where the last ones end.
    cigars : ndarray, dtype=uint32, shape=(n_operations,)
        The operations as BAM packs them: matches, insertions and deletions. Each alignment begins
        and ends with a match; gaps are as far to the left as they can be.
    mismatches, gap_bases, gaps : ndarray, dtype=int64, shape=(n_alignments,)
        The pairs of different bases, the bases of gaps, and the gaps.
    scores : ndarray, dtype=int64, shape=(n_alignments,)
        The scores.
    rivals : ndarray, dtype=float64, shape=(n_alignments,)
        The odds that not this alignment is right, but one of those that compete with it; infinite
        for one that competes with a better one itself (`mapping_quality.with_rivals`).
    """

    queries: Int64Array
    strands: ByteArray
    records: Int64Array
    query_starts: Int64Array
    query_ends: Int64Array
    reference_starts: Int64Array
    reference_ends: Int64Array
    cigar_offsets: Int64Array
    cigars: UInt32Array
    mismatches: Int64Array
    gap_bases: Int64Array
    gaps: Int64Array
    scores: Int64Array
    rivals: Float64Array

    @property
    def count(self) -> int:
        """The number of alignments."""
        return self.queries.size

    @property
    def errors(self) -> Int64Array:
        """The differences of each alignment: mismatches and the bases of gaps."""
        return self.mismatches + self.gap_bases

    @property
    def columns_of_each(self) -> Int64Array:
        """The columns of each alignment: pairs of bases, and bases of gaps."""
        bases = self.query_ends - self.query_starts + self.reference_ends - self.reference_starts
        return (bases + self.gap_bases) // 2

    @property
    def identities(self) -> Float64Array:
        """The share of the columns of each alignment in which the bases are equal."""
        columns = self.columns_of_each
        shares: Float64Array = (columns - self.errors) / np.maximum(columns, 1)
        return shares

    def forward_ends(self, lengths: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return where each alignment begins and ends on the forward strand of its query.

        `lengths` are the bases of the queries.
        """
        own = lengths[self.queries]
        is_reverse = self.strands != 0
        begins = np.where(is_reverse, own - self.query_ends, self.query_starts)
        ends = np.where(is_reverse, own - self.query_starts, self.query_ends)
        return begins, ends

    def taken(self, rows: Int64Array) -> GenomeAlignments:
        """Return some alignments, in the order of `rows`."""
        begins = self.cigar_offsets[rows]
        sizes = self.cigar_offsets[rows + 1] - begins
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        places = np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])
        picked = {
            name: column[rows]
            for name, column in vars(self).items()
            if not name.startswith("cigar")
        }
        return GenomeAlignments(**picked, cigar_offsets=offsets, cigars=self.cigars[places])
