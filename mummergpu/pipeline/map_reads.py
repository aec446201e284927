"""Maps reads: reads in, alignments out.

One thread reads the reads in blocks. A thread of a pool searches a block for its matches, maps it,
and lays out its alignments; the main thread writes them in the order of the reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any, Final

from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.input.blocks.queries import QueryRules, bytes_of
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_checksums import record_checksums
from mummergpu.input.reference import Reference
from mummergpu.mapping.options import MOST_READ_BASES
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.mapping.seeding.seeds import has_enough_windows
from mummergpu.matching.backends.interface import Backend
from mummergpu.output.alignments.sink import AlignmentSink
from mummergpu.output.bytes.compression import Compressor
from mummergpu.output.open_alignments import (
    AlignmentFacts,
    check_alignment_target,
    index_path,
    open_alignment_sink,
)
from mummergpu.output.records.sam_options import ReadGroup, check_groups
from mummergpu.pipeline.backend_opening import start_to_open, worker_count
from mummergpu.pipeline.compression_on_device import compressor_on_device
from mummergpu.pipeline.first_reads import (
    TEMPLATES_OF_ESTIMATE,
    choose_seed_length,
    describe_sizes,
    parts_to_measure,
    shortest_seed,
    sizes_of,
    usual_length,
)
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.pipeline.mapped_reads import MappedReads
from mummergpu.pipeline.mapping_groups import MappingWork, ReadMapping, open_mapping
from mummergpu.pipeline.mapping_passes import length_of_second_pass
from mummergpu.pipeline.mapping_search import MappingSearch
from mummergpu.pipeline.plan import choose_block_size, describe_plan, plan_index
from mummergpu.pipeline.query_progress import QueryProgress
from mummergpu.pipeline.query_volume import estimate_query_bases
from mummergpu.pipeline.read_stream import ReadStream
from mummergpu.pipeline.reference_source import open_source
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import NullProgress, Phase, Work
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand

BOTH_STRANDS: Final = (Strand.FORWARD, Strand.REVERSE)

BLOCK_BASES: Final = 1 << 24
"""The bases of a block of reads, if there are enough of them. A block takes so long to map that
many threads seldom wait for the lock of the interpreter."""

UNKNOWN_READ_BASES: Final = 10**9
"""The bases of reads that are expected where nothing is known of them."""


def run(
    options: MapOptions,
    stats: Stats,
    progress: NullProgress,
    notice: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Map all reads, and write their alignments.

    Parameters
    ----------
    options : MapOptions
        The files and options of the run.
    stats : Stats
        Collects counts, bytes and times.
    progress : Progress or NullProgress
        Shows how many pages and reads are done.
    notice : callable
        Receives progress messages, shown with -v.
    warn : callable
        Receives warnings; any thread may call it.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    check_alignment_target(options.output, options.sort, options.gpu_compression)
    with stats.stage("end_to_end"), ExitStack() as stack:
        output = stack.enter_context(OutputFile(options.output.path))
        workers = worker_count(options.device, options.threads)
        executor = ThreadPoolExecutor(workers, thread_name_prefix="map")
        opening = start_to_open(
            stack, executor, KmerOptions(), options.device, stats, notice, BLOCK_BASES
        )
        reading = stack.enter_context(ReadingThreads(options.threads))
        job = _MapJob(options, executor, stats, progress, notice, warn)
        reads = stack.enter_context(job.read_stream(reading))
        progress.tell(Work(Phase.READING_REFERENCE))
        source, checksums = job.open_source(reading)
        backend = opening.result()
        compressor = job.open_compressor(backend, stack)
        first = reads.first_templates(TEMPLATES_OF_ESTIMATE)
        search = job.open_search(source, first, backend)
        mapping = open_mapping(
            MappingWork(search, executor, workers, stats, progress.tell, job.done)
        )
        reference = source.reference if isinstance(source, IndexFile) else source
        sizes = search.single_mapper().pair_sizes(job.template_sizes(first, mapping))
        groups = job.groups_of(reads)
        sink = job.open_sink(reference, checksums.result(), groups, output, compressor, stack)
        mapped = MappedReads(sink, stats, options.most_alternatives > 0)
        results = mapping.results(reads.blocks(), sizes, mapped.prepare)
        with closing(results):
            for prepared in results:
                mapped.write(prepared)
                del prepared
        mapped.finish()


class _MapJob:
    """The steps that prepare a run; `run` describes the parameters."""

    def __init__(
        self,
        options: MapOptions,
        executor: ThreadPoolExecutor,
        stats: Stats,
        progress: NullProgress,
        notice: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        self._options = options
        self._executor = executor
        self._stats = stats
        self._progress = progress
        self._notice = notice
        self._warn = warn
        self.done = QueryProgress(progress.tell, len(BOTH_STRANDS))

    def read_stream(self, reading: ReadingThreads) -> ReadStream:
        """Return what reads the reads; the caller enters it."""
        options = self._options
        block_size = choose_block_size(
            options.block_size, options.read_paths, options.threads, BLOCK_BASES
        )
        rules = QueryRules(
            options.any_letters,
            options.no_empty,
            self._warn,
            most_bases=MOST_READ_BASES,
            refuses_long=options.refuses_long,
            keeps_groups=options.keeps_groups,
            keeps_comments=options.comments,
        )
        return ReadStream(options.sources, block_size, self._stats, self.done.read, rules, reading)

    def open_source(
        self, reading: ReadingThreads
    ) -> tuple[Reference | IndexFile, Future[Sequence[str]]]:
        """Return the reference or its index file, and the checksums of the records to come."""
        options = self._options
        path, has_index = options.reference_path, is_index(options.reference_path)
        with self._stats.stage("ref_from_disk"):
            source = open_source(
                path, has_index, options.verify, options.any_letters, self._executor, reading
            )
        # An index file has the bases, but not all letters; and a pipe can be read once.
        is_known = not has_index and bytes_of([path]) is not None
        compute: Callable[[str], Sequence[str]] = record_checksums if is_known else _no_checksums
        return source, self._executor.submit(compute, path)

    def open_search(
        self, source: Reference | IndexFile, first: Sequence[ReadBlock], backend: Backend[Any]
    ) -> MappingSearch:
        """Plan or open the index; return what loads and searches it."""
        options = self._options
        shortest = shortest_seed(source) if isinstance(source, IndexFile) else 1
        length = choose_seed_length(
            options.seed_length, first, shortest, options.reference_path, self._warn
        )
        second_length = length_of_second_pass(length, shortest)
        if second_length > (wanted := length_of_second_pass(length, 1)):
            self._warn(
                f"the index '{options.reference_path}' finds matches of {shortest} bases and more, "
                f"and reads with many differences are mapped better with those of {wanted}: make "
                f"an index with 'mummergpu index -l {wanted}'"
            )
        reference = source.reference if isinstance(source, IndexFile) else source
        memory = backend.memory_for_pages(reference.codes.size)
        read_bases = estimate_query_bases(options.read_paths)
        index = plan_index(
            source,
            IndexOptions(second_length, KmerOptions(), options.memory),
            options.threads,
            memory,
            len(BOTH_STRANDS) * (UNKNOWN_READ_BASES if read_bases is None else read_bases),
        )
        describe_plan(index, length, options.threads, backend.name, self._stats, self._notice)
        if warning := index.slow_search_warning():
            self._warn(warning)
        return MappingSearch(
            index,
            backend,
            options.mapping(length, has_enough_windows(usual_length(first), length)),
            second_length,
            self._executor,
            options.threads,
            self._stats,
            self._progress,
            self.done.searched,
        )

    def template_sizes(
        self, first: Sequence[ReadBlock], mapping: ReadMapping
    ) -> InsertSizes | None:
        """Return the sizes of templates: those of the user, or an estimate from first pairs."""
        sizes = self._options.insert_sizes
        parts = list(parts_to_measure(first))
        if sizes is None and parts:
            sizes = sizes_of(mapping.template_sizes(parts))
        if parts:
            describe_sizes(sizes, self._stats, self._notice)
        return sizes

    def open_compressor(self, backend: Backend[Any], stack: ExitStack) -> Compressor | None:
        """Return what compresses the output on the device; None if a processor does."""
        if not self._options.gpu_compression:
            return None
        return compressor_on_device(backend, self._stats, stack)

    def groups_of(self, reads: ReadStream) -> tuple[ReadGroup | None, Sequence[bytes]]:
        """Return the read group of the run, if reads may need it, and the lines of other ones."""
        options, lines = self._options, reads.read_groups
        own = options.read_group
        if not lines or own is None:
            return own, lines
        if not reads.needs_own_group:
            return None, lines
        check_groups(lines, own)
        return own, lines

    def open_sink(
        self,
        reference: Reference,
        checksums: Sequence[str],
        groups: tuple[ReadGroup | None, Sequence[bytes]],
        output: OutputFile,
        compressor: Compressor | None,
        stack: ExitStack,
    ) -> AlignmentSink[Any]:
        """Return what writes the alignments, and the index of a sorted BAM."""
        options = self._options
        facts = AlignmentFacts(
            *(reference, options.read_paths, options.threads, options.command),
            groups[0],
            checksums,
            options.sort,
            compressor,
            groups[1],
        )
        path = index_path(options.output, reference, options.sort)
        index_file = None if path is None else stack.enter_context(OutputFile(path))
        sink = open_alignment_sink(options.output, output, facts, self._stats, index_file)
        stack.callback(sink.close)
        return sink


def _no_checksums(path: str) -> Sequence[str]:
    """Return no checksums, for a file of which they are not known."""
    return ()
