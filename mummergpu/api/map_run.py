"""The command ``map`` from Python: to a file, with the same output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from mummergpu.api.log import context_of
from mummergpu.api.mapping_requests import (
    MapKeywords,
    MapRequest,
    Mates,
    Reads,
    read_group_asked,
)
from mummergpu.api.requests import PathLike, cluster_options, showing, targets_asked
from mummergpu.api.run import RunStats
from mummergpu.output.formats import RowKind, fastq_targets
from mummergpu.output.options import USUAL_STYLE, RecordStyle, SortOptions
from mummergpu.pipeline import map_reads as pipeline
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
        The files for the alignments; their names decide whether they are SAM, BAM, CRAM or PAF.
    sort : bool, default False
        Sort BAM or CRAM by coordinate; a file gets an index beside it.
    mark_duplicates : bool, default False
        Flag duplicates in BAM or CRAM.
    gpu_compression : bool, default False
        Compress BAM on the GPU that searches, with NVIDIA's nvCOMP: the same records, in other
        bytes.
    read_group : str, optional
        The read group of all reads: a line of the header that begins with ``@RG``. By default those
        of SAM, BAM and CRAM stay, and other reads are of one with the name of the first file; an
        empty text for none.
    format : str, optional
        ``sam``, ``bam``, ``cram`` or ``paf``, whatever the name of the output.
    max_memory : int, optional
        The most bytes for the reference and its index; by default half of what is free.
    no_empty : bool, default False
        Treat a file without reads as an error.
    circular : str or sequence of str, optional
        The names of circular records of the reference, ``all`` for all: a read goes on behind the
        last base of one at its first, and is told of in two parts. `reference` is FASTA then.
    style : RecordStyle, optional
        How alignments are told, where mappers differ: ``=`` and ``X``, more tags, ...
    unmapped : path, or iterable of paths, optional
        A file for the reads that have no place, and whose mates have none either, as FASTQ; or two
        files, for the first and the second mates.
    cluster : distributed.Client or str, optional
        A cluster of Dask that maps, or its address as for ``--cluster``; the output is the same.

    Other Parameters
    ----------------
    interleaved : bool, default False
        Mates alternate in each of `reads`, or in the reads in memory. In files, single reads may
        lie among them: two reads of one name after the other are mates.
    insert_size : sequence of float, optional
        The mean and the standard deviation of the sizes of templates, in bases, and after them the
        largest size of a proper pair, and the smallest; by default they are estimated for each
        read group or pair of files, from its first pairs.
    orientation : str, optional
        How mates lie: ``fr``, facing each other; ``rf``, back to back; ``ff``, on one strand. By
        default as most of the first pairs do, or ``fr`` with `insert_size`.
    seed_length : int, optional
        The shortest matches that alignments begin with; by default chosen from the reads.
    max_secondary : int, default 0
        The most secondary alignments of a read; the best ones are written.
    max_xa : int, default 0
        The most other places in the tag XA of an alignment: they are told if there are no more
        whose score is 80% of its own or more. 0 for no such tag.
    max_occurrences : int, default 300
        Of a read that has more matches on a strand, the rarest seeds are looked at, or so many
        places of one that is frequent throughout. Other places are looked for among all matches.
    backend : str, default "auto"
        ``cpu``, ``cuda``, or the one that is found.
    threads : int, optional
        The number of working threads; by default one for each processor.
    any_letters : bool, default False
        Accept records whose letters are mostly not DNA or RNA.
    long_reads : str, default "unmapped"
        What becomes of reads of more than 1,500 bases: ``unmapped``, with a warning in the log of
        the package, or ``error``.
    comments : bool, default False
        Write the comments of FASTQ and FASTA as tags; they must be tags of SAM.
    single : bool, default False
        No read has a mate, whatever the flags of SAM, BAM and CRAM tell.
    scores : Scores, optional
        The scores of alignments; by default those of bwa mem.
    ignore_alt : bool, default False
        Take contigs that are in the file of bwa-kit, ``reference.alt``, for contigs like all
        others; without it, a reference beside which there is such a file is an error.

    Returns
    -------
    RunStats
        Counts and times.

    Raises
    ------
    MummergpuError
        If the input, an argument or the machine is at fault. No file is left then.
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
