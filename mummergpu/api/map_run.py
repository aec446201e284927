"""The command ``map`` from Python: from files to a file, with the same output."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from io import StringIO

from mummergpu.api.engine import LOG
from mummergpu.api.mapping_requests import (
    insert_sizes,
    other_places,
    read_group_asked,
    read_sources,
    sort_options,
)
from mummergpu.api.requests import (
    PathLike,
    device_options,
    positive,
    thread_count,
)
from mummergpu.api.run import RunStats
from mummergpu.output.targets import target_of
from mummergpu.pipeline import map_reads as pipeline
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.runtime.progress import NullProgress
from mummergpu.runtime.stats import Stats


def map(
    reference: PathLike,
    reads: PathLike | Iterable[PathLike],
    mates: PathLike | Iterable[PathLike] | None = None,
    *,
    output: PathLike,
    interleaved: bool = False,
    sort: bool = False,
    mark_duplicates: bool = False,
    gpu_compression: bool = False,
    read_group: str | None = None,
    insert_size: Sequence[float] | None = None,
    seed_length: int | None = None,
    max_secondary: int = 0,
    max_xa: int = 0,
    backend: str = "auto",
    threads: int | None = None,
    format: str | None = None,
    max_memory: int | None = None,
    any_letters: bool = False,
    no_empty: bool = False,
) -> RunStats:
    """Map the reads in files to a reference, and write their alignments to a file.

    Parameters
    ----------
    reference : path
        A FASTA file or an index file.
    reads : path, or iterable of paths
        The files of reads: FASTQ, FASTA, or unaligned SAM, BAM or CRAM.
    mates : path, or iterable of paths, optional
        The files of the second mates, one for each of `reads`.
    output : path
        The file for the alignments; its name decides whether it is SAM, BAM or CRAM.
    interleaved : bool, default False
        Mates alternate in each of `reads`.
    sort : bool, default False
        Sort BAM or CRAM by coordinate; a file gets an index beside it.
    mark_duplicates : bool, default False
        Flag duplicates in BAM or CRAM.
    gpu_compression : bool, default False
        Compress BAM on the GPU that searches, with NVIDIA's nvCOMP: the same records, in other
        bytes.
    read_group : str, optional
        The read group of all reads: a line of the header that begins with ``@RG``. By default one
        with the name of the first file of reads; an empty text for none.
    insert_size : sequence of float, optional
        The mean and the standard deviation of the sizes of templates, in bases; by default they are
        estimated from the first pairs.
    seed_length : int, optional
        The shortest matches that alignments begin with; by default chosen from the reads.
    max_secondary : int, default 0
        The most secondary alignments of a read; the best ones are written.
    max_xa : int, default 0
        The most other places in the tag XA of an alignment: they are told if there are no more
        whose score is 80% of its own or more. 0 for no such tag.
    backend : str, default "auto"
        ``cpu``, ``cuda``, or the one that is found.
    threads : int, optional
        The number of working threads; by default one for each processor.
    format : str, optional
        ``sam``, ``bam`` or ``cram``, whatever the name of the output.
    max_memory : int, optional
        The most bytes for the reference and its index; by default half of what is free.
    any_letters : bool, default False
        Accept records whose letters are mostly not DNA or RNA.
    no_empty : bool, default False
        Treat a file without reads as an error.

    Returns
    -------
    RunStats
        Counts and times.

    Raises
    ------
    MummergpuError
        If the input, an argument or the machine is at fault. No file is left then.
    """
    count = thread_count(threads)
    stats, places = Stats(), other_places(max_secondary, max_xa)
    sources = read_sources(reads, mates, interleaved)
    options = MapOptions(
        os.fspath(reference),
        sources,
        target_of(os.fspath(output), format, "output"),
        threads=count,
        seed_length=None if seed_length is None else positive("seed_length", seed_length),
        insert_sizes=insert_sizes(insert_size),
        most_secondary=places.most_secondary,
        most_alternatives=places.most_alternatives,
        memory=max_memory,
        device=device_options(backend, count),
        read_group=read_group_asked(read_group, sources[0].paths),
        sort=sort_options(sort, mark_duplicates, count),
        gpu_compression=gpu_compression,
        any_letters=any_letters,
        no_empty=no_empty,
    )
    pipeline.run(options, stats, NullProgress(StringIO()), LOG.info, LOG.warning)
    return RunStats.of(stats)
