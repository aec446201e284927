"""Maps reads: reads in, alignments out.

One thread reads the reads in blocks. A thread of a pool searches the matches of a block, maps it,
and formats its alignments; the main thread writes them in the order of the reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_table import KmerPage
from mummergpu.index.options import IndexOptions, KmerOptions
from mummergpu.index.reference_index import ReferenceIndex
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.blocks.reader import BLOCKS_AHEAD, ReadStream, read_reader
from mummergpu.input.bytes.files import bytes_of_files
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.circular_records import circular_records, unrolled
from mummergpu.input.reference import Reference, record_checksums
from mummergpu.mapping.alignments.columns import AlignmentColumns, FoldedColumns, fold
from mummergpu.mapping.alignments.summary import MappingSummary, empty_summary, summary_of
from mummergpu.mapping.options import (
    MAX_READ_BASES,
    MappingOptions,
    has_enough_windows,
    seed_length,
)
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.matching.backends.interface import Backend
from mummergpu.output.alignments.read_rows import AlignmentSink, apply_style
from mummergpu.output.bytes.compression import Compressor
from mummergpu.output.formats import RowKind
from mummergpu.output.open_sink import check_targets, index_path, open_sink
from mummergpu.output.options import ReadGroup, SamOptions, check_groups
from mummergpu.output.sink import OpenRequest, OutputContext, SeveralSinks, writer_of
from mummergpu.pipeline.backend_choice import (
    TOO_LITTLE_WORK,
    backend_of_mapping,
    estimate_query_bases,
)
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.libraries import LibraryEstimate
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.pipeline.mapping_groups import ReadMapping
from mummergpu.pipeline.mapping_search import MappingSearch, length_of_second_pass
from mummergpu.pipeline.open_search import open_source, reference_of, start_to_open, waiting_threads
from mummergpu.pipeline.plan import choose_block_size, describe_plan, plan_index
from mummergpu.pipeline.progress import QueryProgress
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

BOTH_STRANDS: Final = (Strand.FORWARD, Strand.REVERSE)

BLOCK_BASES: Final = 1 << 24
THREADS_OF_LARGE_BLOCKS: Final = 16
"""The bases of a block of reads, if there are enough reads, and the number of threads from which on
it has twice as many bases. A block takes so long to map that threads seldom wait for the lock of
the interpreter; with more threads, they wait more often."""

UNKNOWN_READ_BASES: Final = 10**9
"""The expected bases of the reads if their size is unknown."""


def run(options: MapOptions, context: RunContext) -> None:
    """Map all reads, and write their alignments.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    check_targets(options.outputs, None, options.sort, options.gpu_compression)
    if (name := backend_of_mapping(options)) != options.device.backend:
        context.notice(TOO_LITTLE_WORK)
        options = replace(options, device=replace(options.device, backend=name))
    context = replace(context, waiting_threads=waiting_threads(options.device))
    stats = context.stats
    with stats.stage("end_to_end"), ExitStack() as stack:
        targets = (*options.outputs, *options.unmapped)
        files = [stack.enter_context(OutputFile(target.path)) for target in targets]
        most = most_block_bases(options.threads)
        opening = start_to_open(context, stack, KmerOptions(), options.device, most)
        reading = stack.enter_context(ReadingThreads(options.threads))
        job = FileJob(options, context)
        reads = stack.enter_context(job.read_stream(reading))
        source = open_source(options, context, reading, True, maps_reads=True)
        checksums = job.start_checksums(source)
        # A device has started in the meantime.
        backend = opening.result()
        compressor = None
        if options.gpu_compression:
            compressor = compressor_on_device(backend, stats, stack)
        # The same reads choose the seed length, however the input is cut into blocks.
        first = reads.first_templates(TEMPLATES_OF_LENGTHS)
        mapping = job.mapping(job.open_search(source, job.plan_passes(source, first), backend))
        sizes = job.pair_sizes(reads, mapping)
        facts = job.facts(source, reads, checksums.result(), compressor)
        sink = job.open_sink(facts, files, stack)
        mapped = MappedReads(sink, stats, options, facts.reference)
        results = mapping.results(reads.blocks(), sizes, mapped.prepare)
        with closing(results):
            for prepared in results:
                mapped.write(prepared)
                del prepared
        mapped.finish()


def most_block_bases(threads: int) -> int:
    """Return the maximum size of a block of reads, in bases."""
    return BLOCK_BASES if threads < THREADS_OF_LARGE_BLOCKS else 2 * BLOCK_BASES


class MapJob:
    """The steps that prepare the mapping of reads from files or from memory."""

    def __init__(self, options: MapOptions, context: RunContext) -> None:
        self._options = options
        self._context = context
        self._done = QueryProgress(context.progress.tell, len(BOTH_STRANDS))

    def read_stream(self, reading: ReadingThreads) -> ReadStream[ReadBlock]:
        """Return a stream of the reads, which the caller enters."""
        options, context = self._options, self._context
        most = most_block_bases(options.threads)
        block_size = choose_block_size(
            options.block_size, options.read_paths, options.threads, most
        )
        rules = QueryRules(
            no_empty=options.no_empty,
            warn=context.warn,
            max_bases=MAX_READ_BASES,
            refuses_long=options.refuses_long,
            keeps_groups=options.keeps_groups,
            keeps_comments=options.comments,
        )
        reader = read_reader(options.sources, block_size, rules=rules, threads=reading)
        # A device starts and takes the index meanwhile; later, more blocks than these are in work.
        ahead = context.window // 2 if context.waiting_threads else BLOCKS_AHEAD
        return ReadStream(reader, context.stats, self._done.read, ahead)

    def mapping_options(self, first: Sequence[ReadBlock], shortest: int) -> MappingOptions:
        """Return the options of the first pass; the index finds matches of `shortest` bases."""
        options = self._options
        length = choose_seed_length(
            options.seed_length, first, shortest, options.reference_path, self._context.warn
        )
        return options.mapping(length, has_enough_windows(usual_length(first), length))

    def search(
        self,
        index: ReferenceIndex[Any],
        backend: Backend[Any],
        mapping: MappingOptions,
        second_length: int,
        kept_pages: Sequence[KmerPage] | None = None,
    ) -> MappingSearch:
        """Return the search of an index."""
        return MappingSearch(
            index, backend, mapping, second_length, self._context, self._done.searched, kept_pages
        )

    def mapping(self, search: MappingSearch, in_parts: bool = False) -> ReadMapping:
        """Return the mapping of the reads, which may come in parts (`ReadMapping`)."""
        is_limited = self._options.memory is not None
        return ReadMapping(search, self._context, self._done, is_limited, in_parts)

    def pair_sizes(self, reads: ReadStream[ReadBlock], mapping: ReadMapping) -> PairSizes:
        """Return the insert sizes: those of the user, or an estimate for each library."""
        estimate = LibraryEstimate(self._options, reads, mapping.template_sizes)
        return PairSizes.of_libraries(estimate.libraries(self._context), self._options.unpaired)


class Passes(NamedTuple):
    """The options of the first pass, and the minimum match length of the second one."""

    first: MappingOptions
    second_length: int


class FileJob(MapJob):
    """The steps that prepare the mapping of reads to a reference file, with output to files."""

    def start_checksums(self, source: Reference | IndexFile) -> Future[Sequence[str]]:
        """Begin to compute the checksums of the records of the reference, unless they are known."""
        path = self._options.reference_path

        def find() -> Sequence[str]:
            # An index file has the bases, but not the letters for several bases.
            known = isinstance(source, IndexFile) or bytes_of_files([path]) is None
            return reference_of(source).checksums if known else record_checksums(path)

        return self._context.executor.submit(find)

    def plan_passes(self, source: Reference | IndexFile, first: Sequence[ReadBlock]) -> Passes:
        """Choose the minimum match lengths of both passes from the first reads."""
        options, context = self._options, self._context
        shortest = shortest_seed(source) if isinstance(source, IndexFile) else 1
        mapping = self.mapping_options(first, shortest)
        length = mapping.seed_length
        second_length = length_of_second_pass(length, shortest)
        if second_length > (wanted := length_of_second_pass(length, 1)):
            context.warn(
                f"the index '{options.reference_path}' finds matches of {shortest} bases and more, "
                f"and reads with many differences are mapped better with those of {wanted}: make "
                f"an index with 'mummergpu index -l {wanted}'"
            )
        return Passes(mapping, second_length)

    def open_search(
        self, source: Reference | IndexFile, passes: Passes, backend: Backend[Any]
    ) -> MappingSearch:
        """Plan or open the index, and return its search."""
        options, context, second_length = self._options, self._context, passes.second_length
        if isinstance(source, Reference):
            searched = source = unrolled(source, options.circular) if options.circular else source
        else:
            searched = source.reference
            wanted = np.flatnonzero(circular_records(source.original, options.circular))
            if options.circular and not np.array_equal(wanted, source.circular):
                text = f"the index '{source.path}' has other circular records, or none"
                raise OptionError("circular", f"{text}: see 'mummergpu index --circular'")
        kind = KmerOptions(chooses_seeds=passes.first.max_occurrences is not None)
        memory = backend.memory_for_pages(searched.codes.size)
        read_bases = estimate_query_bases(options.read_paths)
        index = plan_index(
            source,
            IndexOptions(second_length, kind, options.memory),
            options.threads,
            memory,
            len(BOTH_STRANDS) * (UNKNOWN_READ_BASES if read_bases is None else read_bases),
        )
        describe_plan(index, passes.first.seed_length, backend.name, context)
        return self.search(index, backend, passes.first, second_length)

    def _groups_of(self, reads: ReadStream[ReadBlock]) -> tuple[ReadGroup | None, Sequence[bytes]]:
        """Return the read group of the run, if reads may need it, and the lines of the others."""
        options, lines = self._options, reads.reader.read_groups
        own = options.read_group
        if not lines or own is None:
            return own, lines
        if not reads.reader.needs_own_group:
            return None, lines
        check_groups(lines, own)
        return own, lines

    def facts(
        self,
        source: Reference | IndexFile,
        reads: ReadStream[ReadBlock],
        checksums: Sequence[str] = (),
        compressor: Compressor | None = None,
    ) -> OutputContext:
        """Return the context of the output files, as soon as a block is read."""
        options = self._options
        own, lines = self._groups_of(reads)
        reference = reference_of(source)
        circular = np.flatnonzero(circular_records(reference, options.circular))
        if isinstance(source, IndexFile):
            circular = source.circular
        return OutputContext(
            *(reference, options.read_paths, options.threads, options.command, SamOptions(own)),
            checksums=checksums,
            input_groups=[*lines, *options.style.header_bytes],
            sort=options.sort,
            compressor=compressor,
            records=options.style,
            warn=self._context.warn,
            circular=circular.tolist(),
            # A device compresses few chunks at a time, and threads wait for it.
            executor=self._context.executor if compressor is None else None,
        )

    def open_indexes(self, reference: Reference, stack: ExitStack) -> list[OutputFile | None]:
        """Open the files of the indexes of sorted outputs."""
        options = self._options
        return [
            None if path is None else stack.enter_context(OutputFile(path))
            for path in (index_path(target, reference, options.sort) for target in options.outputs)
        ]

    def open_sink(
        self, facts: OutputContext, files: list[OutputFile], stack: ExitStack
    ) -> AlignmentSink[Any]:
        """Return the sink of alignments, of the index of a sorted BAM, and of unmapped reads."""
        indexes, stats = self.open_indexes(facts.reference, stack), self._context.stats
        outputs, unmapped = self._options.outputs, self._options.unmapped
        sink = open_sink(outputs, files[: len(outputs)], facts, stats, RowKind.READS, indexes)
        stack.callback(sink.close)
        if unmapped:
            from mummergpu.output.alignments.unmapped_fastq import UnmappedFastq

            sinks = [sink]
            for number, target in enumerate(unmapped):
                emit = writer_of(files[len(outputs) + number], stats)
                opening = OpenRequest(target, facts, emit, stats)
                made = UnmappedFastq(number if len(unmapped) == 2 else None)
                sinks.append(opening.byte_sink(made))
                stack.callback(sinks[-1].close)
            sink = SeveralSinks(sinks)
        return sink


class MappedReads:
    """Counts mapped reads, and writes their alignments."""

    def __init__(
        self, sink: AlignmentSink[Any], stats: Stats, options: MapOptions, reference: Reference
    ) -> None:
        self._sink = sink
        self._stats = stats
        self._writes_xa = options.writes_xa
        self._style = reference, options.style
        self._summary = empty_summary()

    def prepare(self, block: ReadBlock, columns: AlignmentColumns) -> tuple[Any, MappingSummary]:
        """Prepare the alignments of a block for `write`; any thread may call this."""
        written = fold(columns) if self._writes_xa else columns
        with self._stats.stage("summary"):
            summary = summary_of(written.rows if isinstance(written, FoldedColumns) else written)
        return self._sink.prepare(block, apply_style(written, block, *self._style)), summary

    def write(self, prepared: tuple[Any, MappingSummary]) -> None:
        """Write prepared alignments; one thread calls this, block after block."""
        alignments, summary = prepared
        self._sink.write(alignments)
        self._summary += summary

    def finish(self) -> None:
        """Write what follows the last block, and report the counts."""
        self._sink.finish()
        self._stats.mapping = self._summary
        self._stats.add(
            mapped_reads=self._summary.mapped, properly_paired_reads=self._summary.proper
        )


def compressor_on_device(backend: Backend[Any], stats: Stats, stack: ExitStack) -> Compressor:
    """Return a bgzf compressor on the device of a backend; the stack frees its memory.

    Raise `OptionError` if the backend has no device, and `LibraryError` if nvCOMP does not work.
    """
    if backend.name != "cuda":
        raise OptionError("gpu_compression", f"needs a GPU, and the backend is '{backend.name}'")
    from mummergpu.cuda.nvcomp import load_nvcomp
    from mummergpu.matching.backends.cuda_streams import CudaStreamsBackend
    from mummergpu.output.bytes.device_compression import BGZF_PROGRAM, DeviceBgzfCompressor

    deflater = load_nvcomp()
    assert isinstance(backend, CudaStreamsBackend)
    with backend.device.current():
        program = backend.program(BGZF_PROGRAM)
    compressor = DeviceBgzfCompressor(backend.device, program, deflater, stats)
    stack.callback(compressor.close)
    return compressor


TEMPLATES_OF_LENGTHS: Final = 1 << 16
"""The number of first templates whose lengths choose the seed length."""

SHORT_READS: Final = 0.1
"""The share of the first reads that may be shorter than the length for which seeds are chosen."""

LEAST_MAPPED: Final = 30
"""Shorter reads cannot align with the default scores, so they do not count."""


def shortest_seed(file: IndexFile) -> int:
    """Return the minimum length of the matches that an index file finds."""
    header = file.header
    if header.search != KmerOptions.search:
        raise OptionError(
            "reference",
            f"the index '{file.path}' has suffix trees, and reads are mapped with one of k-mers: "
            "make one with 'mummergpu index --search kmer'",
        )
    return header.sampling.shortest_match


def usual_length(first: Iterable[ReadBlock]) -> int:
    """Return the `SHORT_READS` quantile of read lengths; 0 if there are no reads.

    Seeds for the median would lose the shorter half of reads whose lengths differ much.
    """
    lengths = np.concatenate([np.zeros(0, np.int64), *map(_mapped_lengths, first)])
    lengths = lengths[lengths >= LEAST_MAPPED]
    return int(np.quantile(lengths, SHORT_READS, method="lower")) if lengths.size else 0


def _mapped_lengths(block: ReadBlock) -> Int64Array:
    """Return the lengths of the reads of which all bases are searched."""
    lengths, written = np.diff(block.offsets), np.diff(block.as_written.offsets)
    mapped: Int64Array = lengths[lengths == written]
    return mapped


def choose_seed_length(
    asked: int | None,
    first: Iterable[ReadBlock],
    shortest: int,
    name: str,
    warn: Callable[[str], None],
) -> int:
    """Return the minimum length of seeds: that of the user, or one that suits the reads.

    `shortest` is the minimum match length of the index, 1 if it is not built yet; a warning names
    the file `name` if these reads need shorter seeds.
    """
    if asked is not None:
        if asked < shortest:
            raise OptionError(
                "seed_length",
                f"the index '{name}' finds no matches of less than {shortest} bases; make one "
                f"with 'mummergpu index -l {asked}'",
            )
        return asked
    length = seed_length(usual_length(first))
    if length < shortest:
        warn(
            f"the index '{name}' finds matches of {shortest} bases and more, and these reads are "
            f"mapped better with those of {length}: make an index with 'mummergpu index -l "
            f"{length}'"
        )
    return max(length, shortest)
