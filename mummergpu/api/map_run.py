"""The command ``map`` from Python: to a file, with the same output."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Unpack

from mummergpu.api.alignments import Alignments, MappedBlock
from mummergpu.api.engine import Engine
from mummergpu.api.log import context_of
from mummergpu.api.mapping_requests import MapKeywords, MapRequest, Mates, Reads, read_group_asked
from mummergpu.api.requests import PathLike, cluster_options, showing, targets_asked
from mummergpu.api.run import RunStats
from mummergpu.api.tables import SearchedReference
from mummergpu.errors import OptionError
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import refuse_proteins
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.output.formats import RowKind, fastq_targets
from mummergpu.output.options import USUAL_STYLE, RecordStyle, SortOptions
from mummergpu.pipeline import map_reads as pipeline
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.pipeline.map_reads import TEMPLATES_OF_LENGTHS, MapJob
from mummergpu.pipeline.mapping_search import length_of_second_pass
from mummergpu.pipeline.open_search import waiting_threads
from mummergpu.runtime.option_values import paths


@showing(MapRequest)
def map(
    reference: PathLike,
    reads: Reads,
    mates: Mates | None = None,
    *,
    output: PathLike | Iterable[PathLike],
    sort: bool = False,
    mark_duplicates: bool = False,
    gpu_compression: bool = False,
    read_group: str | None = None,
    format: str | None = None,
    max_memory: int | None = None,
    no_empty: bool = False,
    circular: str | Sequence[str] = (),
    style: RecordStyle | None = None,
    unmapped: PathLike | Iterable[PathLike] | None = None,
    cluster: Any = None,
    **keywords: Unpack[MapKeywords],
) -> RunStats:
    """Map reads to a reference, and write their alignments to a file.

    Parameters
    ----------
    reference : path
        A FASTA file or an index file.
    reads : path, iterable of paths, or iterable of tuple
        The files of reads: FASTQ, FASTA, or unaligned SAM, BAM or CRAM. Or reads in memory, as for
        `Index.map`.
    mates : path, iterable of paths, or iterable of tuple, optional
        The files of the second mates, one for each of `reads`; or the second mates in memory.
    output : path, or iterable of paths
        The files for the alignments; their names choose SAM, BAM, CRAM or PAF.
    sort : bool, default False
        Sort BAM or CRAM by coordinate, and write an index.
    mark_duplicates : bool, default False
        Flag duplicates in BAM or CRAM.
    gpu_compression : bool, default False
        Compress BAM on the GPU with NVIDIA's nvCOMP: the records are the same, the bytes differ.
    read_group : str, optional
        The read group of all reads: a header line that begins with ``@RG``, or an empty text for
        none. By default, the read groups of SAM, BAM and CRAM are kept, and other reads get one
        with the name of the first file.
    format : str, optional
        ``sam``, ``bam``, ``cram`` or ``paf``; overrides the name of the output.
    max_memory : int, optional
        The memory limit for the reference and its index, in bytes; by default half of the free
        memory.
    no_empty : bool, default False
        Treat a file without reads as an error.
    circular : str or sequence of str, optional
        The names of circular records of the reference, or ``all``: a read across the origin is
        written in two parts. `reference` is FASTA, or an index of ``mummergpu index --circular``,
        which needs no names here.
    style : RecordStyle, optional
        Options of the records: ``=`` and ``X``, more tags, ...
    unmapped : path, or iterable of paths, optional
        A FASTQ file for unmapped reads whose mates are unmapped too; or two files, for first and
        second mates.
    cluster : distributed.Client or str, optional
        A Dask cluster for the work, or its address as for ``--cluster``; the output is the same.

    Other Parameters
    ----------------
    interleaved : bool, default False
        Mates alternate in each of `reads`, or in the reads in memory. In files, two consecutive
        reads of one name are mates, and other reads are single.
    insert_size : sequence of float, optional
        Mean and standard deviation of the insert size, in bases; optionally, the largest and the
        smallest insert size of a proper pair. By default, they are estimated from the first pairs
        of each read group or pair of files.
    orientation : str, optional
        The orientation of mates: ``fr``, facing each other; ``rf``, back to back; ``ff``, on one
        strand. By default that of most of the first pairs, or ``fr`` with `insert_size`.
    seed_length : int, optional
        The minimum length of the matches that alignments begin with; by default chosen from the
        length of the reads.
    max_secondary : int, default 0
        The maximum number of secondary alignments of a read.
    max_xa : int, default 0
        Report up to this number of alternative hits (score >= 80% of the best) in the XA tag; none
        if there are more. 0 for no XA tag.
    max_occurrences : int, default 300
        A read with more matches on a strand is mapped by its rarest seeds. `max_secondary` and
        `max_xa` use all matches.
    backend : str, default "auto"
        ``cpu``, ``cuda``, or ``auto``: the one that is expected to be faster.
    threads : int, optional
        The number of threads; by default one for each processor.
    long_reads : str, default "unmapped"
        Reads of more than 1,500 bases stay ``unmapped``, with a warning in the log, or are an
        ``error``.
    comments : bool, default False
        Write the comments of FASTQ and FASTA as tags; they must be tags of SAM.
    single : bool, default False
        Treat all reads as single, whatever the flags of SAM, BAM and CRAM say.
    scores : Scores, optional
        The scores of alignments; by default those of bwa mem.
    ignore_alt : bool, default False
        Ignore the file of bwa-kit, ``reference.alt``: treat its contigs like all others. Without
        this, a reference with such a file is an error.

    Returns
    -------
    RunStats
        Counts and times.

    Raises
    ------
    MummergpuError
        If the input, an argument or the machine is at fault. No file is written then.
    """
    options = MapRequest(**keywords).options(reference, reads, mates)
    options = replace(
        options,
        outputs=targets_asked(output, format, RowKind.READS),
        memory=max_memory,
        read_group=read_group_asked(read_group, options.sources),
        keeps_groups=read_group is None,
        sort=SortOptions(sort, mark_duplicates, threads=options.threads).if_any,
        gpu_compression=gpu_compression,
        no_empty=no_empty,
        style=USUAL_STYLE if style is None else style,
        circular=circular,
        unmapped=() if unmapped is None else fastq_targets(paths("unmapped", unmapped)),
    )
    context = context_of(options.threads)
    if cluster is None:
        pipeline.run(options, context)
    else:
        from mummergpu.cluster import map_reads as on_machines

        on_machines.run(options, context, cluster_options(cluster, options.threads))
    return RunStats.of(context.stats)


Mapped = tuple[MappedBlock, tuple[bytes, ...]]
"""Reads with their alignments, and the lines about read groups of the input."""


def alignments_of(
    found: Sequence[Mapped], searched: SearchedReference, options: MapOptions
) -> Alignments:
    """Return the alignments of all blocks as one result."""
    groups = found[-1][1] if found else ()
    return Alignments([mapped for mapped, _ in found], searched, options.writes_xa, groups)


def map_to_index(engine: Engine, options: MapOptions) -> Generator[Mapped]:
    """Yield the reads and their alignments in the order of the reads, and their read groups.

    If the index has one group of pages, other searches may run at the same time; otherwise they
    wait until this one ends.
    """
    engine.refuse_if_closed()
    refuse_proteins(engine.reference)
    plan = engine.kept_index(engine.options.minimum_length).plan
    if not isinstance(plan, KmerIndex):
        raise OptionError("map", "this index has suffix trees, and maps no reads")
    shortest, device = plan.sampling.shortest_match, options.device
    context = replace(context_of(options.threads), waiting_threads=waiting_threads(device))
    job = MapJob(options, context)
    with ReadingThreads(options.threads) as reading, job.read_stream(reading) as reads:
        first = reads.first_templates(TEMPLATES_OF_LENGTHS)
        how = job.mapping_options(first, shortest)
        second_length = length_of_second_pass(how.seed_length, shortest)
        with engine.lend_search(device, how) as (backend, pages):
            try:
                mapping = job.mapping(job.search(plan, backend, how, second_length, pages))
                sizes = job.pair_sizes(reads, mapping)
                with closing(mapping.results(reads.blocks(), sizes, _both)) as results:
                    for mapped in results:
                        yield mapped, reads.reader.read_groups
            finally:
                # The pages must stay until running searches, which read them, have ended.
                context.executor.shutdown(wait=True, cancel_futures=True)


def _both(block: ReadBlock, columns: AlignmentColumns) -> MappedBlock:
    """Return a block and its alignments."""
    return block, columns
