"""Queries with their alignments, and the sink that makes these of matches and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.options import AlignmentFilter
from mummergpu.mapping.genomes.overlaps import find_rivals, map_one_to_one
from mummergpu.output.sink import MatchSink, Sink
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import writable
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray, padded_reverse_complements
from mummergpu.sequence.mems import BlockMems


class AlignedBases(NamedTuple):
    """The bases that alignments are of, as compiled functions take them.

    `queries` has the codes with margins on the forward and on the reverse strand; if no alignment
    is on the reverse strand, the second is the first. `query_begins` and `reference_begins` are the
    first base of each alignment, as an index of the codes of its strand, and of those of the
    reference.
    """

    queries: tuple[CodeArray, CodeArray]
    reference: CodeArray
    strands: ByteArray
    query_begins: Int64Array
    reference_begins: Int64Array


@frozen
class AlignedQueries:
    """Queries, their names cut at the first white space, and their alignments.

    `block` has the queries with their bases, for formats that need them (`Format.needs_bases`).
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
        """Return the bases of the alignments; raise ValueError if they were not kept."""
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


Prepared = tuple[QueryBlock, BlockMems]


class BlockAligner(Protocol):
    """Makes the alignments of blocks of queries."""

    def align_block(
        self, block: QueryBlock, mems: BlockMems, map_function: Callable[..., Iterable[Any]]
    ) -> GenomeAlignments:
        """Return the alignments of a block, as `mapping.genomes.aligner.GenomeAligner` does."""


class GenomeSink(MatchSink[Prepared]):
    """Receives the matches that alignments begin with, and writes the alignments.

    All threads work on one block after the other, so that one pair of chromosomes keeps them as
    busy as many contigs.

    Alignments that are chosen one to one wait for the last query. Then memory holds the names and
    lengths of all queries and all alignments; and for formats that need bases, all bases of the
    queries, a byte each, as those of the reference.
    """

    def __init__(
        self,
        aligner: BlockAligner,
        kept: AlignmentFilter,
        output: Sink[AlignedQueries, GenomeAlignments, Any],
        stats: Stats,
        map_function: Callable[..., Iterable[Any]],
    ) -> None:
        self._aligner = aligner
        self._kept = kept
        self._output = output
        self._stats = stats
        self._map = map_function
        self._waiting: list[AlignedQueries] = []

    @property
    def needs_bases(self) -> bool:
        """Whether the alignments are written with the bases of the queries."""
        return self._output.needs_bases

    def prepare(self, block: QueryBlock, mems: BlockMems) -> Prepared:
        """Return the matches as they are: all threads align a block together."""
        return block, mems

    def write(self, prepared: Prepared) -> None:
        """Align a block, and write its alignments, unless all must be known before."""
        self.take(self.aligned(prepared, self._output.needs_bases))

    def aligned(self, prepared: Prepared, with_bases: bool) -> AlignedQueries:
        """Return the alignments of a block that may be written, and the bases if they are needed.

        One thread calls this: all threads work on a block together.
        """
        block, mems = prepared
        with self._stats.stage("mapping"):
            found = self._aligner.align_block(block, mems, self._map)
            found = _long_and_alike(found, self._kept)
        return AlignedQueries.of_block(block, found, with_bases)

    def take(self, queries: AlignedQueries) -> None:
        """Write the alignments of the next block, unless all must be known before."""
        if self._kept.one_to_one:
            self._waiting.append(queries)
        else:
            self._write_queries(queries)

    def finish(self) -> None:
        """Write the alignments that have waited for the last ones."""
        if self._waiting:
            for queries in chosen_one_to_one(self._waiting):
                self._write_queries(queries)
        self._output.finish()

    def close(self) -> None:
        """Close the sink of the alignments."""
        self._output.close()

    def _write_queries(self, queries: AlignedQueries) -> None:
        found = queries.alignments
        self._stats.add(
            alignments=found.count,
            aligned_reference_bases=int((found.reference_ends - found.reference_starts).sum()),
            aligned_query_bases=int((found.query_ends - found.query_starts).sum()),
            alignment_columns=int(found.columns_of_each.sum()),
            alignment_errors=int(found.errors.sum()),
        )
        self._output.write(self._output.prepare(queries, found))


def _long_and_alike(found: GenomeAlignments, kept: AlignmentFilter) -> GenomeAlignments:
    """Return the alignments that are long enough, and equal in enough of their columns."""
    keep = found.query_ends - found.query_starts >= kept.min_length
    keep &= found.reference_ends - found.reference_starts >= kept.min_length
    keep &= found.identities >= kept.min_identity
    return found if keep.all() else found.taken(np.flatnonzero(keep))


def chosen_one_to_one(blocks: Sequence[AlignedQueries]) -> Iterator[AlignedQueries]:
    """Yield the queries with those of their alignments that map bases one to one."""
    columns = [queries.alignments for queries in blocks]
    firsts = np.cumsum([0, *(len(queries.names) for queries in blocks)])
    numbers = [one.queries + first for one, first in zip(columns, firsts[:-1], strict=True)]
    ends = [queries.forward_ends() for queries in blocks]
    taken = map_one_to_one(
        (
            np.concatenate([one.records for one in columns]),
            np.concatenate([one.reference_starts for one in columns]),
            np.concatenate([one.reference_ends for one in columns]),
        ),
        (
            np.concatenate(numbers),
            np.concatenate([begins for begins, _ in ends]),
            np.concatenate([last for _, last in ends]),
        ),
        np.concatenate([one.identities for one in columns]),
    )
    place = 0
    for queries in blocks:
        found = queries.alignments
        rows = np.flatnonzero(taken[place : place + found.count])
        place += found.count
        yield replace(queries, alignments=found.taken(rows))
