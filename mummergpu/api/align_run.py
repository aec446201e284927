"""The command ``align`` from Python: from files to a file, with the same output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from mummergpu.api.genome_requests import AlignKeywords, AlignRequest
from mummergpu.api.log import context_of
from mummergpu.api.requests import (
    PathLike,
    cluster_options,
    device_options,
    showing,
    targets_asked,
)
from mummergpu.api.run import RunStats
from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH
from mummergpu.matching.options import SearchOptions
from mummergpu.output.formats import RowKind
from mummergpu.output.genomes.sink import AlignmentFilter
from mummergpu.pipeline import align_genomes as pipeline
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.runtime.option_values import path, paths


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
    any_letters: bool = False,
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
    any_letters : bool, default False
        Accept records whose letters are mostly not DNA or RNA.
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
        matches.
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
        any_letters=any_letters,
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
