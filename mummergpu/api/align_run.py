"""The command ``align`` from Python: from files to a file, with the same output."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, closing, nullcontext
from typing import Any, TypedDict, Unpack

from mummergpu.api.aligned_genomes import AlignedGenomes
from mummergpu.api.engine import Engine, FoundBlock
from mummergpu.api.log import context_of
from mummergpu.api.query_blocks import QuerySource
from mummergpu.api.requests import PathLike, cluster_options, device_options, showing, targets_asked
from mummergpu.api.run import RunStats
from mummergpu.api.tables import SearchedReference
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH
from mummergpu.input.bytes.files import PLACE
from mummergpu.input.reference import refuse_proteins
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.mapping.genomes.options import (
    AlignmentFilter,
    ClusterOptions,
    GenomeOptions,
    costs_of_gaps,
)
from mummergpu.mapping.genomes.whole import AutoAligner, WholeAligner
from mummergpu.matching.options import DeviceOptions, SearchOptions, Uniqueness
from mummergpu.output.formats import RowKind
from mummergpu.output.genomes.sink import AlignedQueries, BlockAligner
from mummergpu.pipeline import align_genomes as pipeline
from mummergpu.pipeline.align_genomes import BLOCK_BASES, naming_files
from mummergpu.pipeline.align_options import OF_MATCHES, AlignOptions, refuse_options_of_matches
from mummergpu.pipeline.matrix_opening import open_matrix
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import choice, path, paths
from mummergpu.viterbi.recurrence.model import AlignmentMethod


class AlignKeywords(TypedDict, total=False):
    """The types of the fields of `AlignRequest`."""

    min_cluster: int
    max_gap: int
    diagonal_difference: int
    diagonal_factor: float
    break_length: int
    gap_open: int | None
    gap_extend: int | None
    extend: bool
    simplify: bool
    method: str
    circular: str | Sequence[str]


@frozen
class AlignRequest:
    """The keywords that `mummergpu.align`, which documents them, and `Index.align` share."""

    min_cluster: int = ClusterOptions.min_bases
    max_gap: int = ClusterOptions.max_gap
    diagonal_difference: int = ClusterOptions.diagonal_difference
    diagonal_factor: float = ClusterOptions.diagonal_factor
    break_length: int = GenomeOptions.break_length
    gap_open: int | None = None
    gap_extend: int | None = None
    extend: bool = GenomeOptions.extend
    simplify: bool = GenomeOptions.simplify
    method: str = AlignmentMethod.TILE.value
    circular: str | Sequence[str] = ()

    def job(
        self, search: SearchOptions, has_length: bool, formats: Collection[str] = ()
    ) -> tuple[GenomeOptions, AlignmentMethod]:
        """Return how genomes are aligned; the default gap penalties depend on `formats`."""
        genomes = GenomeOptions(
            ClusterOptions(
                *(self.min_cluster, self.max_gap, self.diagonal_difference, self.diagonal_factor)
            ),
            *(self.break_length, self.extend, self.simplify),
            costs_of_gaps(self.gap_open, self.gap_extend, formats),
            self.circular,
        )
        method = choice("method", self.method, {known.value: known for known in AlignmentMethod})
        usual, given = vars(AlignRequest()), {**vars(self), "circular": genomes.circular}
        given_names = [name for name in OF_MATCHES if given.get(name) != usual.get(name)]
        given_names += ["min_length"] * has_length
        given_names += ["mode"] * (search.uniqueness is not Uniqueness.IN_REFERENCE)
        refuse_options_of_matches(method, given_names)
        return genomes, method


@showing(AlignRequest)
def align(
    reference: PathLike,
    queries: PathLike | Iterable[PathLike],
    output: PathLike | Iterable[PathLike],
    min_length: int = DEFAULT_MINIMUM_LENGTH,
    strands: str = "both",
    mode: str = "mumreference",
    backend: str = "auto",
    threads: int | None = None,
    *,
    one_to_one: bool = False,
    min_identity: float = 0.0,
    min_alignment_length: int = 0,
    format: str | None = None,
    max_memory: int | None = None,
    no_empty: bool = False,
    equal_bases: bool = False,
    cluster: Any = None,
    **keywords: Unpack[AlignKeywords],
) -> RunStats:
    """Align genomes, contigs or long reads in files, and write the alignments to a file.

    The options and their defaults are those of nucmer.

    Parameters
    ----------
    reference : path
        A FASTA file or an index file.
    queries : path, or iterable of paths
        Files of queries, in the order of the output; one for .delta.
    output : path, or iterable of paths
        The files for the alignments; their names choose the formats and the
        compression.
    min_length : int, default 20
        The minimum length of the matches that alignments begin with, in bases.
    strands : str, default "both"
        The strands of the queries: ``both``, ``forward`` or ``reverse``.
    mode : str, default "mumreference"
        ``mumreference`` to begin with matches whose bases occur once in the reference; ``mum`` for
        those that occur once in the query, too; ``all`` (or ``maxmatch``) for all.
    backend : str, default "auto"
        ``cpu``, ``cuda``, or ``auto``, the one that is expected to be faster, for the search.
    threads : int, optional
        The number of threads; by default one for each processor.
    one_to_one : bool, default False
        Keep only alignments that map each base to its best place, in both genomes.
    min_identity : float, default 0.0
        Keep only alignments with at least this share of equal columns, between 0 and 1.
    min_alignment_length : int, default 0
        Keep only alignments of at least this length in bases, in both genomes.
    format : str, optional
        ``delta``, ``paf``, ``sam``, ``bam``, ``cram`` or ``vcf``; overrides the name of the output.
    max_memory : int, optional
        The memory limit for the reference and its index, in bytes; by default half of the free
        memory.
    no_empty : bool, default False
        Treat a file without queries as an error.
    equal_bases : bool, default False
        Write ``=`` and ``X`` in the CIGARs of PAF, SAM and BAM, in place of ``M``.
    cluster : distributed.Client or str, optional
        A Dask cluster for the work, or its address as for ``--cluster``; the output is the same.

    Other Parameters
    ----------------
    min_cluster : int, default 65
        The minimum number of matching bases of a cluster.
    max_gap : int, default 90
        The maximum gap in the query between two matches of a cluster, in bases.
    diagonal_difference : int, default 5
        The maximum difference of the diagonals of neighbouring matches of a cluster, in bases.
    diagonal_factor : float, default 0.12
        The same as a share of the gap between them; the larger of both counts.
    break_length : int, default 200
        An alignment is extended until its score does not improve over this number of bases of
        both sequences together.
    gap_open : int, optional
        The gap open penalty; by default nucmer's 3, and 16 for VCF.
    gap_extend : int, optional
        The gap extension penalty; by default nucmer's 7, and 1 for VCF. A match scores 3, a
        mismatch -7.
    extend : bool, default True
        Whether alignments are extended beyond clusters.
    simplify : bool, default True
        Whether alignments that lie inside another one are left out. To find the repeats of a
        genome, align it with itself and ``simplify=False``.
    method : str, default "tile"
        ``tile`` to align between matches, in tiles; ``wavefront`` or
        ``streaming`` to align each query with each record of the reference from end to end, with
        the whole matrix, for short sequences with few matches. ``streaming`` keeps the matrix in
        the memory of the host (with a GPU), or in a temporary file. Both take no options of
        matches. ``auto`` is ``wavefront`` for queries whose matrices take at most 1 GiB (two
        sequences of 27,000 bases), if all records are at most twice and at least half as long;
        ``tile`` for others.
    circular : str or sequence of str, optional
        The names of circular records of the reference, or ``all``: an alignment across the
        origin is written in two pieces.

    Returns
    -------
    RunStats
        Counts and times.

    Raises
    ------
    MummergpuError
        If the input, an argument or the machine is at fault. No file is written then.
    """
    targets = targets_asked(output, format, RowKind.GENOMES)
    search = SearchOptions.of_words(min_length, strands, mode)
    kept = AlignmentFilter(one_to_one, min_identity, min_alignment_length)
    genomes, method = AlignRequest(**keywords).job(
        search,
        search.minimum_length != DEFAULT_MINIMUM_LENGTH,
        [target.format for target in targets],
    )
    device = device_options(backend, threads)
    options = AlignOptions(
        path("reference", reference),
        paths("queries", queries),
        targets,
        search,
        max_memory,
        genomes,
        kept,
        method=method,
        threads=device.threads,
        device=device,
        no_empty=no_empty,
        equal_bases=equal_bases,
    )
    context = context_of(device.threads)
    if cluster is None:
        pipeline.run(options, context)
    else:
        from mummergpu.cluster.match_queries import run_align

        run_align(options, context, cluster_options(cluster, options.threads))
    return RunStats.of(context.stats)


def align_to_index(
    engine: Engine,
    searched: SearchedReference,
    queries: QuerySource,
    genomes: GenomeOptions,
    search: SearchOptions,
    method: AlignmentMethod,
    device: DeviceOptions,
) -> AlignedGenomes:
    """Return the alignments of queries with the reference of an index, in memory."""
    context = context_of(device.threads)
    paths = (PLACE,) if queries.paths is None else queries.paths
    with ExitStack() as stack:
        executor = stack.enter_context(context.executor)
        reference = searched.reference
        refuse_proteins(reference)
        tiles = GenomeAligner(reference, genomes)
        aligner: BlockAligner = tiles
        if method is AlignmentMethod.AUTO:
            wave = AlignmentMethod.WAVEFRONT
            kept = nullcontext(open_matrix(wave, genomes.costs, device, context, stack))
            aligner = AutoAligner(reference, genomes, search.strands, tiles, lambda: kept)
        blocks: Iterable[FoundBlock]
        if method.takes_matches:
            blocks = stack.enter_context(closing(engine.find(queries, search, device)))
        else:
            engine.refuse_if_closed()
            read = stack.enter_context(queries.blocks(BLOCK_BASES, device.threads))
            blocks = ((block, {}) for block in read)
            matrix = open_matrix(method, genomes.costs, device, context, stack)
            aligner = WholeAligner(reference, genomes, search.strands, *matrix)
        stack.enter_context(naming_files(paths))
        done = [
            AlignedQueries.of_block(
                block, aligner.align_block(block, mems, executor.map), with_bases=True
            )
            for block, mems in blocks
        ]
    return AlignedGenomes(done, searched, paths)
