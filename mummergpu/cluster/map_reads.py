"""Maps reads on the workers of a cluster, with the same output bytes as on one machine.

Workers read parts of files that can be cut. This process reads all other files, and sends blocks of
reads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

from mummergpu.cluster.connection import (
    OpenCluster,
    check_files,
    check_folders,
    check_versions,
    open_cluster,
)
from mummergpu.cluster.flow import Flow, Steps
from mummergpu.cluster.joined_files import JoinedFiles, PreparedFiles
from mummergpu.cluster.options import ClusterOptions
from mummergpu.cluster.worker import (
    FoundRows,
    PartReport,
    begin_to_import,
    begin_to_open,
    device_of_process,
    find,
    forget,
    pack,
    report,
    sizes_of,
)
from mummergpu.errors import InputError, OptionClashError
from mummergpu.index.options import KmerOptions
from mummergpu.input.blocks.file_cuts import UncutError, cut_source, is_cuttable
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.blocks.read_files import MateFiles, ReadFile, ReadSource
from mummergpu.input.blocks.reader import LongReads
from mummergpu.input.bytes.files import bytes_of_files
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.mapping.alignments.summary import empty_summary
from mummergpu.mapping.options import MAX_READ_BASES
from mummergpu.mapping.placing.insert_size import Libraries, PairSizes
from mummergpu.output.formats import RowKind
from mummergpu.output.open_sink import check_targets
from mummergpu.output.options import SamOptions
from mummergpu.output.sink import OutputContext
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.libraries import LibraryEstimate, Measure
from mummergpu.pipeline.map_options import MapOptions
from mummergpu.pipeline.map_reads import (
    TEMPLATES_OF_LENGTHS,
    FileJob,
    MappedReads,
    Passes,
    most_block_bases,
)
from mummergpu.pipeline.mapping_groups import ReadMapping
from mummergpu.pipeline.open_search import open_source, reference_of, start_to_open, waiting_threads
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase, Work
from mummergpu.runtime.stats import Stats

PART_BYTES: Final = 1 << 26
MIN_PART_BYTES: Final = 1 << 22
PARTS_OF_THREAD: Final = 2
"""The most and the least approximate text bytes of a part, and how many parts a thread gets at
least. All threads of a worker map its parts together; for each one, they wait for the lock of the
interpreter more often."""

SENT_BASES: Final = 1 << 22
"""The bases of a block of reads that is sent."""


class _NotCutError(Exception):
    """A part is wrong: the files have to be read from the beginning to the end."""


class PartOfReads(NamedTuple):
    """Reads for a worker: a part of a numbered source, or a block."""

    source: ReadSource | None
    block: ReadBlock | None = None
    number: int = 0


class FirstReads(NamedTuple):
    """Pairs for a worker that measures insert sizes, and the read groups of libraries."""

    blocks: Sequence[ReadBlock]
    groups: Sequence[bytes]


@frozen
class MapWork:
    """The description of a run for workers (`worker.RowWork`).

    The paths of `options` are the same everywhere. `libraries` is None while insert sizes are
    measured. `sam` and `input_groups` are those of `OutputContext`.
    """

    token: str
    options: MapOptions
    passes: Passes
    sam: SamOptions
    input_groups: Sequence[bytes]
    compressions: tuple[str | None, ...]
    folders: tuple[str | None, ...]
    libraries: Libraries | None = None

    def open(self, threads: int, number: int | None) -> MapFinder:
        """Load the index."""
        return MapFinder(self, threads, number)


class MapFinder:
    """Maps parts on a worker."""

    def __init__(self, work: MapWork, threads: int, number: int | None) -> None:
        device = device_of_process(work.options.device, threads, number)
        self._options = replace(work.options, threads=threads, device=device)
        self._stats = Stats()
        self._context = RunContext(threads, self._stats, waiting_threads=waiting_threads(device))
        self._lock = threading.Lock()
        self._stack = ExitStack()
        with ExitStack() as failure:
            failure.callback(self._stack.close)
            self._mapping = self._load(work)
            failure.pop_all()

    def _load(self, work: MapWork) -> ReadMapping:
        options, context = self._options, self._context
        most = most_block_bases(options.threads)
        opening = start_to_open(context, self._stack, KmerOptions(), options.device, most)
        self._reading = self._stack.enter_context(ReadingThreads(1))
        source = open_source(options, context, self._reading, maps_reads=True)
        job = FileJob(options, context)
        search = job.open_search(source, work.passes, opening.result())
        facts = OutputContext(
            *(reference_of(source), options.read_paths, 1, options.command, work.sam),
            input_groups=work.input_groups,
            sort=options.sort,
            records=options.style,
        )
        self._reference = facts.reference
        self._files = PreparedFiles(options.outputs, facts, RowKind.READS)
        self._stack.callback(self._files.close)
        self._is_whole = search.group_count == 1
        return job.mapping(search, in_parts=True)

    def find(self, work: MapWork, part: PartOfReads | FirstReads) -> Any:
        """Return the alignments of a part, or the insert sizes of the first reads."""
        # Groups of pages take turns in memory.
        with nullcontext() if self._is_whole else self._lock:
            if isinstance(part, FirstReads):
                return self._mapping.template_sizes(part.blocks, part.groups)
            if part.source is None:
                assert part.block is not None
                return self._mapped(work, iter([part.block]), Stats())
            stats = Stats()
            options = replace(self._options, sources=(part.source,), no_empty=False)
            job = FileJob(options, replace(self._context, stats=stats))
            with job.read_stream(self._reading) as reads:
                numbered = (replace(one, file_number=part.number) for one in reads.blocks())
                found = self._mapped(work, numbered, stats)
                own = found.report._replace(long_reads=reads.reader.long_reads)
                return FoundRows(found.rows, own)

    def _mapped(self, work: MapWork, blocks: Iterator[ReadBlock], stats: Stats) -> FoundRows:
        assert work.libraries is not None
        sizes = PairSizes.of_libraries(work.libraries, self._options.unpaired)
        mapped = MappedReads(self._files.sink, self._stats, self._options, self._reference)
        summary = empty_summary()
        prepared = []
        with closing(self._mapping.results(blocks, sizes, mapped.prepare)) as results:
            for rows, of_rows in results:
                prepared.append(rows)
                summary += of_rows
        files = self._files.joined(prepared)
        stats.add_totals(self._stats.taken())
        return FoundRows(files, PartReport(sizes_of(files), stats.taken(), summary))

    def close(self) -> None:
        """Release the index."""
        self._context.executor.shutdown(wait=True, cancel_futures=True)
        self._stack.close()


def run(options: MapOptions, context: RunContext, cluster: ClusterOptions) -> None:
    """Map all reads, and write their alignments, as `pipeline.map_reads.run` does.

    Raises
    ------
    MummergpuError
        If the input, the options or the cluster are at fault.
    """
    check_targets(options.outputs, None, options.sort)
    if options.gpu_compression:
        raise OptionClashError("gpu_compression", "cluster", "workers compress with processors")
    if options.unmapped:
        raise OptionClashError("unmapped", "cluster", "workers write alignments only")
    with context.stats.stage("end_to_end"), open_cluster(cluster, context.notice) as opened:
        check_versions(opened)
        # Both take longer than what this process does meanwhile.
        opened.start_on_all(begin_to_import, __name__)
        is_cut = is_cuttable(options.sources)
        try:
            _Run(options, context, opened).run(is_cut)
        except _NotCutError:
            context.notice("the files of reads cannot be cut: this process reads them")
            _Run(options, context, opened).run(False)


class _Run:
    """One pass over all reads."""

    def __init__(self, options: MapOptions, context: RunContext, cluster: OpenCluster) -> None:
        self._options = options
        self._context = context
        self._cluster = cluster
        self._summary = empty_summary()
        self._long_reads = LongReads()
        self._stats = Stats()

    def run(self, is_cut: bool) -> None:
        """Map all reads; if files are cut, workers read them."""
        options, context = self._options, self._context
        with ExitStack() as stack:
            files = [stack.enter_context(OutputFile(target.path)) for target in options.outputs]
            # Output to a pipe cannot be taken back if a cut turns out to be wrong.
            is_cut = is_cut and all(file.is_file for file in files)
            paths = [options.reference_path, *(options.read_paths if is_cut else ())]
            check_files(self._cluster, [os.path.abspath(path) for path in paths])
            if not is_cut:
                context.notice("this process reads the reads, and sends them to the workers")
            reading = stack.enter_context(ReadingThreads(options.threads))
            # Workers count the reads in the files that they read.
            own = replace(context, stats=Stats()) if is_cut else context
            stack.callback(own.executor.shutdown, wait=False, cancel_futures=True)
            job = FileJob(replace(options, block_size=options.block_size or SENT_BASES), own)
            reads = stack.enter_context(job.read_stream(reading))
            source = open_source(options, context, reading, True, maps_reads=True)
            checksums = job.start_checksums(source)
            first = reads.first_templates(TEMPLATES_OF_LENGTHS)
            passes = job.plan_passes(source, first)
            facts = job.facts(source, reads, checksums.result())
            indexes = job.open_indexes(facts.reference, stack)
            joined = JoinedFiles(
                *(options.outputs, files, facts, context.stats, RowKind.READS, indexes, stack)
            )
            check_folders(self._cluster, [one for one in joined.folders if one is not None])
            work = MapWork(
                *(os.urandom(8).hex(), _everywhere(options), passes),
                *(facts.sam, tuple(facts.input_groups)),
                *(joined.compressions, joined.folders),
            )
            stack.callback(self._cluster.tell_all, forget, work.token)
            self._cluster.start_on_all(begin_to_open, work)
            libraries = LibraryEstimate(options, reads, self._measure(work)).libraries(context)
            work = replace(work, libraries=libraries)
            parts = self._cut_parts() if is_cut else _sent_parts(reads.blocks())
            self._write(work, parts, joined, is_cut)
        self._report(is_cut)

    def _measure(self, work: MapWork) -> Measure:
        """Return a function that measures pairs on a worker: this process needs no index."""

        def measure(parts: Sequence[ReadBlock], groups: Sequence[bytes]) -> Sequence[Int64Array]:
            flow = Flow(self._cluster, work, Steps(find))
            ((measured, _),) = flow.results([FirstReads(parts, groups)])
            return cast("Sequence[Int64Array]", measured)

        return measure

    def _write(
        self, work: MapWork, parts: Iterator[PartOfReads], joined: JoinedFiles, is_cut: bool
    ) -> None:
        """Write the results of all parts."""
        flow = Flow(self._cluster, work, Steps(find, report, pack), joined.begins)
        total = bytes_of_files(self._options.read_paths)
        done = 0
        try:
            with closing(flow.results(self._counted(parts))) as results:
                for part, packed in results:
                    joined.write(packed)
                    self._summary += part.summary
                    self._long_reads = self._long_reads.with_others(part.long_reads)
                    self._stats.add_totals(part.totals)
                    done += self._bytes.pop(0)
                    share = done / total if total and is_cut else None
                    work_done = Work(Phase.READS, (self._summary.reads,), 0, share)
                    self._context.progress.tell(work_done)
        except (InputError, UncutError) as error:
            if is_cut:
                raise _NotCutError from error
            raise
        joined.finish()

    def _counted(self, parts: Iterator[PartOfReads]) -> Iterator[PartOfReads]:
        """Yield parts, and record their bytes."""
        self._bytes: list[int] = []
        for part in parts:
            source = part.source
            ranges = () if source is None else cast("ReadFile | MateFiles", source).parts
            self._bytes.append(sum(one.end.at - one.begin.at for one in ranges if one))
            yield part

    def _cut_parts(self) -> Iterator[PartOfReads]:
        total = bytes_of_files(self._options.read_paths) or 0
        wanted = total // (PARTS_OF_THREAD * max(1, self._cluster.thread_count))
        for number, source in enumerate(self._options.sources):
            size = max(MIN_PART_BYTES, min(PART_BYTES, wanted)) // len(source.paths)
            for part in cut_source(_found_everywhere(source), size):
                yield PartOfReads(part, number=number)

    def _report(self, is_cut: bool) -> None:
        stats, summary = self._context.stats, self._summary
        stats.add_totals(self._stats.taken())
        stats.mapping = summary
        stats.add(mapped_reads=summary.mapped, properly_paired_reads=summary.proper)
        stats.set(backend="cluster", workers=len(self._cluster.workers))
        if self._long_reads.reads and is_cut:
            self._context.warn(self._long_reads.warning(MAX_READ_BASES))


def _sent_parts(blocks: Iterator[ReadBlock]) -> Iterator[PartOfReads]:
    for block in blocks:
        yield PartOfReads(None, block)


def _everywhere(options: MapOptions) -> MapOptions:
    """Return the options as any machine can take them."""
    reference = os.path.abspath(options.reference_path)
    sources = tuple(_found_everywhere(source) for source in options.sources)
    return replace(options, reference_path=reference, sources=sources, insert_sizes=None)


def _found_everywhere(source: ReadSource) -> ReadSource:
    """Return a source with absolute paths; one that only this process reads stays as it is."""
    if isinstance(source, ReadFile) and source.path != "-":
        return replace(source, path=os.path.abspath(source.path))
    if isinstance(source, MateFiles) and "-" not in source.paths:
        first, second = map(os.path.abspath, source.paths)
        return replace(source, first=first, second=second)
    # Reads in memory stay in this process; only their name is sent.
    return ReadFile(source.paths[0])
