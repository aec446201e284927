"""What every format of genome alignments is: a head, the alignments of query after query."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.overlaps import find_rivals
from mummergpu.output.sink import Format
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import MARGIN, CodeArray, padded_reverse_complements


class AlignedBases(NamedTuple):
    """The bases that alignments are of, as compiled functions take them.

    Attributes
    ----------
    queries : tuple of ndarray, dtype=uint8
        The codes of the queries with margins, on the forward and on the reverse strand; if no
        alignment is on the reverse strand, the second is the first.
    reference : ndarray, dtype=uint8
        The codes of the reference with margins.
    strands : ndarray, dtype=uint8, shape=(n_alignments,)
        The strand of each alignment.
    query_begins, reference_begins : ndarray, dtype=int64, shape=(n_alignments,)
        The first base of each alignment, as an index of the codes of its strand, and of those of
        the reference.
    """

    queries: tuple[CodeArray, CodeArray]
    reference: CodeArray
    strands: ByteArray
    query_begins: Int64Array
    reference_begins: Int64Array


@frozen
class AlignedQueries:
    """Queries and their alignments.

    Attributes
    ----------
    names : list of bytes
        The names of the queries, cut at the first white space.
    lengths : ndarray, dtype=int64, shape=(n_queries,)
        Their lengths in bases.
    alignments : GenomeAlignments
        Their alignments.
    block : QueryBlock or None
        The queries with their bases, a byte each, for formats that need them
        (`Format.needs_bases`).
    """

    names: list[bytes]
    lengths: Int64Array
    alignments: GenomeAlignments
    block: QueryBlock | None = None

    @classmethod
    def of_block(
        cls, block: QueryBlock, alignments: GenomeAlignments, with_bases: bool = False
    ) -> AlignedQueries:
        """Return the queries of a block with their alignments."""
        text, offsets = block.names.tobytes(), block.name_offsets.tolist()
        names = [text[offsets[n] : offsets[n + 1]] for n in range(block.query_count)]
        return cls(names, np.diff(block.offsets), alignments, block if with_bases else None)

    @property
    def kept_block(self) -> QueryBlock:
        """The queries with their bases."""
        if self.block is None:
            raise ValueError("the bases of these queries were not kept")
        return self.block

    @cached_property
    def oriented_codes(self) -> tuple[CodeArray, CodeArray]:
        """The codes of the queries on both strands (`AlignedBases.queries`)."""
        codes = writable(self.kept_block.padded_codes)
        if not self.alignments.strands.any():
            return codes, codes
        return codes, padded_reverse_complements(codes, self.kept_block.offsets)

    @cached_property
    def roles(self) -> Int64Array:
        """The flag of SAM for the role of each alignment: secondary, supplementary, or 0."""
        columns = self.alignments
        rows = np.arange(columns.count)
        better = find_rivals(columns.queries, *self.forward_ends(), columns.scores)
        roles = np.where(better != rows, int(SamFlag.SECONDARY), int(SamFlag.SUPPLEMENTARY))
        order = np.lexsort((rows, -columns.scores, columns.queries))
        roles[order[np.flatnonzero(np.diff(columns.queries[order], prepend=-1))]] = 0
        return roles

    def bases(self, reference: Reference) -> AlignedBases:
        """Return the bases that the alignments are of.

        Raises
        ------
        ValueError
            If the queries have come without their bases.
        """
        codes, columns = self.oriented_codes, self.alignments
        return AlignedBases(
            codes,
            reference.padded_codes,
            columns.strands,
            columns.query_starts + self.kept_block.offsets[columns.queries] + MARGIN,
            columns.reference_starts + reference.record_starts[columns.records] + MARGIN,
        )

    def forward_ends(self) -> tuple[Int64Array, Int64Array]:
        """Return where each alignment begins and ends on the forward strand of its query."""
        return self.alignments.forward_ends(self.lengths)


class GenomeFormat(Format[AlignedQueries, GenomeAlignments]):
    """A format of genome alignments."""

    def format_block(self, queries: AlignedQueries, _rows: GenomeAlignments) -> Iterator[bytes]:
        """Yield the bytes of the alignments of some queries in one piece: they are few."""
        yield b"".join(self.format_queries(queries))

    @abstractmethod
    def format_queries(self, queries: AlignedQueries) -> Iterator[bytes]:
        """Yield the bytes of the alignments of some queries, in pieces."""
