"""Turns the matches of blocks of queries into alignments of genomes, and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.one_to_one import map_one_to_one
from mummergpu.output.bytes.compressed_stream import CompressedStream
from mummergpu.output.bytes.compression import Compressor
from mummergpu.output.genomes.format import AlignedQueries, GenomeFormat
from mummergpu.output.matches.sink import MatchSink
from mummergpu.pipeline.align_options import AlignmentFilter
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems

Prepared = tuple[QueryBlock, BlockMems]


class BlockAligner(Protocol):
    """Makes the alignments of blocks of queries."""

    def align_block(
        self, block: QueryBlock, mems: BlockMems, map_function: Callable[..., Iterable[Any]]
    ) -> GenomeAlignments:
        """Return the alignments of a block, as `mapping.genomes.aligner.GenomeAligner` does."""


class GenomeOutput:
    """A file of genome alignments."""

    def __init__(
        self,
        made: GenomeFormat,
        output: OutputFile,
        stats: Stats,
        compressor: Compressor | None = None,
        threads: int = 1,
    ) -> None:
        self._format = made
        self._output = output
        self._stats = stats
        self._stream: CompressedStream | None = None
        if compressor is not None:
            self._stream = CompressedStream(compressor, threads, self._emit)
        self._write(made.head())

    @property
    def needs_bases(self) -> bool:
        """Whether the format needs the bases of the queries."""
        return self._format.needs_bases

    def write(self, queries: AlignedQueries) -> None:
        """Write the alignments of some queries."""
        with self._stats.stage("format"):
            text = b"".join(self._format.format_queries(queries))
        self._write(text)

    def finish(self) -> None:
        """Write the end of the format and of the compression."""
        pieces = self._format.tail()
        while True:
            with self._stats.stage("format"):
                piece = next(pieces, None)
            if piece is None:
                break
            self._write(piece)
        if self._stream is not None:
            self._stream.finish()

    def close(self) -> None:
        """End the threads that compress."""
        if self._stream is not None:
            self._stream.close()

    def _write(self, piece: bytes) -> None:
        if self._stream is None:
            self._emit(piece)
        else:
            self._stream.add(piece)

    def _emit(self, piece: bytes) -> None:
        with self._stats.stage("results_to_disk"):
            self._output.write(piece)
        self._stats.add_bytes(output=len(piece))


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
        outputs: Sequence[GenomeOutput],
        stats: Stats,
        map_function: Callable[..., Iterable[Any]],
    ) -> None:
        self._aligner = aligner
        self._kept = kept
        self._outputs = outputs
        self._needs_bases = any(output.needs_bases for output in outputs)
        self._stats = stats
        self._map = map_function
        self._waiting: list[AlignedQueries] = []

    def prepare(self, block: QueryBlock, mems: BlockMems) -> Prepared:
        """Return the matches as they are: all threads align a block together."""
        return block, mems

    def write(self, prepared: Prepared) -> None:
        """Align a block, and write its alignments, unless all must be known before."""
        block, mems = prepared
        with self._stats.stage("mapping"):
            found = self._aligner.align_block(block, mems, self._map)
            found = _long_and_alike(found, self._kept)
        queries = AlignedQueries.of_block(block, found, self._needs_bases)
        if self._kept.one_to_one:
            self._waiting.append(queries)
        else:
            self._write_queries(queries)

    def finish(self) -> None:
        """Write the alignments that have waited for the last ones."""
        if self._waiting:
            for queries in chosen_one_to_one(self._waiting):
                self._write_queries(queries)
        for output in self._outputs:
            output.finish()

    def close(self) -> None:
        """Close the files."""
        for output in self._outputs:
            output.close()

    def _write_queries(self, queries: AlignedQueries) -> None:
        found = queries.alignments
        self._stats.add(
            alignments=found.count,
            aligned_reference_bases=int((found.reference_ends - found.reference_starts).sum()),
            aligned_query_bases=int((found.query_ends - found.query_starts).sum()),
            alignment_columns=int(found.columns_of_each.sum()),
            alignment_errors=int(found.errors.sum()),
        )
        for output in self._outputs:
            output.write(queries)


def _long_and_alike(found: GenomeAlignments, kept: AlignmentFilter) -> GenomeAlignments:
    """Return the alignments that are long enough, and equal in enough of their columns."""
    keep = found.query_ends - found.query_starts >= kept.least_length
    keep &= found.reference_ends - found.reference_starts >= kept.least_length
    keep &= found.identities >= kept.least_identity
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
