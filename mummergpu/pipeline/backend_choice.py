"""Choose between the processor and a GPU before either is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mummergpu.index.format import is_index
from mummergpu.index.kmer_plan import (
    DEVICE_COSTS,
    THREADS_BESIDE_DEVICE,
    KmerJob,
    choose_sampling,
    expected_cost,
    max_table_bytes,
)
from mummergpu.index.options import KmerOptions
from mummergpu.input.bytes.files import STANDARD_INPUT
from mummergpu.pipeline.options import MatchOptions

if TYPE_CHECKING:
    from mummergpu.pipeline.map_options import MapOptions

_BASES_PER_BYTE: Final = (
    ((".gz", ".bgz", ".bgzf", ".bz2", ".xz", ".zst", ".bam"), 2.0),
    ((".cram",), 4.0),
    ((".fq", ".fastq", ".sam"), 0.45),
)
"""File name suffixes, and the approximate bases per byte of such files. A byte of FASTA is about
one base."""


def estimate_query_bases(paths: Sequence[str]) -> int | None:
    """Return the bases in some files, estimated within a factor of a few.

    Return None if one of them is not a regular file.
    """
    total = 0.0
    for path in paths:
        if path == STANDARD_INPUT:
            return None
        try:
            found = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        name = path.lower()
        factors = (factor for endings, factor in _BASES_PER_BYTE if name.endswith(endings))
        total += found.st_size * next(factors, 1.0)
    return int(total)


TOO_LITTLE_WORK: Final = "too little work for a GPU to be faster than the processor: backend cpu"

DEVICE_START_SECONDS: Final = 0.35
"""The time to start a GPU and to destroy its context."""

SLOWDOWN_OF_UNIQUE: Final = 1.75
"""The ratio of measured to expected cost (`minimizer_index.COSTS`) of a search for unique matches
on several processors, which share caches and memory. Measured on 4 and 16: 1.3 to 1.75 with 30 and
100 Mbp without repeats, 2.3 and 3.4 with 200 and 1,000 Mbp of which 45% are repeats."""

HOST_NANOSECONDS_OF_UNIQUE: Final = 2.0
"""The cost per query base and strand of fetching the matches from a GPU and dropping those that are
not unique. Measured with the same genomes: 1.1 without repeats, 3.8 and 6.6 with them."""

SAVED_BY_MAPPING: Final = 10.0
SAVED_BY_MAPPING_OF_MBP: Final = 0.1
"""The nanoseconds of one thread that a GPU saves per base of the reads, and how many more per Mbp
of the reference. Measured with 16 threads: 10 with 100 Mbp without repeats, and 330 with 3.1 Gbp of
which 45% are repeats."""


def backend_of_search(options: MatchOptions) -> str:
    """Return the backend to open for a search of files (`choose_backend`)."""
    bases = searched_bases(options)
    return choose_backend(options, is_index(options.reference_path), bases)


def searched_bases(options: MatchOptions) -> int | None:
    """Return the estimated bases of the queries on all strands; None if unknown."""
    bases = estimate_query_bases(options.query_paths)
    return None if bases is None else len(options.search.strands) * bases


def backend_of_mapping(options: MapOptions) -> str:
    """Return the backend to open for mapping: ``cpu`` if a GPU saves less than it takes to start.

    ``auto`` stays if the size of the reads is unknown, or if a GPU has to compress.
    """
    asked = options.device.backend
    if asked != "auto" or options.gpu_compression:
        return asked
    bases, reads = (
        estimate_query_bases(paths) for paths in ([options.reference_path], options.read_paths)
    )
    if not bases or reads is None:
        return asked
    if is_index(options.reference_path):
        bases = os.stat(options.reference_path).st_size // 4
    saved = reads * (SAVED_BY_MAPPING + SAVED_BY_MAPPING_OF_MBP * bases * 1e-6) * 1e-9
    return "cpu" if saved / options.threads < DEVICE_START_SECONDS else asked


def choose_backend(options: MatchOptions, has_index: bool, query_bases: int | None) -> str:
    """Return the backend to open; for ``auto``, the expected cost of the search decides.

    ``auto`` becomes ``cpu`` if a k-mer search on the processor would end before a GPU has started
    and searched. The estimate includes that for matches unique in the reference, the processor
    finds only these, but a GPU all matches. ``auto`` stays, and takes a GPU if there is one, if the
    number of query bases on all strands is unknown, or if trees are searched.
    """
    asked = options.device.backend
    if asked != "auto" or not isinstance(options.index.kind, KmerOptions):
        return asked
    bases = estimate_query_bases([options.reference_path]) or 0
    if has_index:
        # The codes of the reference take a byte per base, and the table some more.
        bases = os.stat(options.reference_path).st_size // 4
    # The sizes of pipes and empty files are unknown: a GPU is safer for input that may be large.
    if bases == 0 or query_bases is None:
        return asked
    faster = None if has_index else _finds_unique_sooner(options, bases, query_bases)
    if faster is None:
        faster = processor_is_faster(
            bases, options.index.minimum_length, query_bases, options.threads, has_index
        )
    return "cpu" if faster else asked


def _finds_unique_sooner(options: MatchOptions, bases: int, query_bases: int) -> bool | None:
    """Return whether the processor finds unique matches before a GPU starts and finds all matches.

    None if other matches are wanted, too, or if the processor would not look up minimizers.
    """
    kind, length, strands = options.index.kind, options.index.minimum_length, options.unique_strands
    if strands == 0 or not isinstance(kind, KmerOptions):
        return None
    # Imported here: most searches are for all matches, and do without this module.
    from mummergpu.index.minimizer_index import choose_minimizers, kmer_seconds
    from mummergpu.index.minimizer_index import expected_cost as expected_unique_cost

    chosen = choose_minimizers(bases, bases, length, kind)
    if chosen is None:
        return None
    job = KmerJob(bases, length, query_bases)
    seconds = expected_unique_cost(bases, query_bases // strands, chosen[1]).seconds
    if seconds > kmer_seconds(job):
        return None
    host_seconds = HOST_NANOSECONDS_OF_UNIQUE * 1e-9 * query_bases
    device_seconds = _device_seconds(job, options.threads) + host_seconds
    return SLOWDOWN_OF_UNIQUE * seconds / options.threads < device_seconds


def processor_is_faster(
    bases: int, minimum_length: int, query_bases: int, threads: int, has_index: bool
) -> bool:
    """Return whether the processor would be done before a GPU has started and searched.

    The cost model of the k-mer search (`kmer_plan`) decides. `query_bases` counts all strands;
    `has_index` means that the tables exist already.
    """
    job = KmerJob(bases, minimum_length, query_bases, is_kept=has_index)
    max_bytes = max_table_bytes(bases, has_index)
    by_processor = expected_cost(job, choose_sampling(job, max_bytes))
    return by_processor.seconds / threads < _device_seconds(job, threads)


def _device_seconds(job: KmerJob, threads: int) -> float:
    """Return the expected time of a job on a GPU, including the start of the GPU."""
    new = replace(job, is_kept=False)
    sampling = choose_sampling(new, max_table_bytes(job.bases), DEVICE_COSTS)
    cost = expected_cost(new, sampling, DEVICE_COSTS)
    seconds = DEVICE_START_SECONDS + cost.search / THREADS_BESIDE_DEVICE
    return seconds if job.is_kept else seconds + cost.table / threads
