"""Finds matches of queries, or aligns them, on the workers of a cluster.

This process reads the queries and sends them in blocks. Workers format matches as text; but they
send alignments of genomes, because some formats and filters need all of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any, Final

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
    device_of_process,
    find,
    forget,
    pack,
    report,
    sizes_of,
)
from mummergpu.errors import OptionClashError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.mapping.genomes.aligner import GenomeAligner
from mummergpu.output.formats import RowKind
from mummergpu.output.genomes.sink import AlignedQueries, GenomeSink
from mummergpu.output.open_sink import check_targets
from mummergpu.output.sink import MatchSink
from mummergpu.pipeline.align_genomes import open_genome_sink, warn_of_delta
from mummergpu.pipeline.align_options import AlignOptions
from mummergpu.pipeline.block_search_loop import BlockSearchLoop
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.match import MatchJob, MatchWriter
from mummergpu.pipeline.open_search import KeptIndex, OpenSearch, open_source, reference_of
from mummergpu.pipeline.options import MatchOptions
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import Phase, Work
from mummergpu.runtime.stats import Stats, StatsTotals
from mummergpu.viterbi.recurrence.model import AlignmentMethod

SENT_BASES: Final = 1 << 22
"""The bases of a block that is sent, unless a query has more."""

_NO_ROWS: Final = 1 << 62


@frozen
class QueryWork:
    """The description of a run for workers (`worker.RowWork`).

    `aligned` are the options of alignments, None to write matches. `with_bases` means that
    alignments are written with the bases of the queries.
    """

    token: str
    options: MatchOptions
    aligned: AlignOptions | None = None
    with_bases: bool = False
    compressions: tuple[str | None, ...] = ()
    folders: tuple[str | None, ...] = ()

    def open(self, threads: int, number: int | None) -> MatchFinder:
        """Load the index."""
        return (MatchFinder if self.aligned is None else AlignmentFinder)(self, threads, number)


class MatchFinder:
    """Finds the matches of blocks on a worker."""

    def __init__(self, work: QueryWork, threads: int, number: int | None) -> None:
        device = device_of_process(work.options.device, threads, number)
        self._options = replace(work.options, threads=threads, device=device)
        self._stats = Stats()
        self._context = RunContext(threads, self._stats)
        self._lock = threading.Lock()
        self._stack = ExitStack()
        with ExitStack() as failure:
            failure.callback(self._stack.close)
            self._load(work)
            failure.pop_all()

    def _load(self, work: QueryWork) -> None:
        job = MatchJob(self._options, self._context)
        opening = job.start_to_open(self._stack)
        with ReadingThreads(self._options.threads) as reading:
            letters = self._options.any_letters
            source = open_source(self._options, self._context, reading, any_letters=letters)
        reference, backend = reference_of(source), opening.result()
        index = job.plan_index(source, reference, backend)
        self._groups = len(index.groups)
        self._opened = OpenSearch(index, backend, index.search_length, KeptIndex(index))
        search = self._opened.block_search(self._options.search, None, job.done.searched)
        self._loop = BlockSearchLoop(search, self._context, job.done)
        self._reference = reference
        self._open_files(work, job, backend.sizes.max_rows)

    def _open_files(self, work: QueryWork, job: MatchJob, max_rows: int) -> None:
        facts = job.facts(self._reference, max_rows)
        self._files = PreparedFiles(self._options.outputs, facts, RowKind.MATCHES)
        self._stack.callback(self._files.close)

    def find(self, work: QueryWork, part: QueryBlock) -> Any:
        """Return the text of a block."""
        stats = Stats()
        files = self._files.joined(self._results(part, self._files.sink, stats))
        stats.add_totals(self._stats.taken())
        return FoundRows(files, PartReport(sizes_of(files), stats.taken()))

    def _results(self, block: QueryBlock, sink: MatchSink[Any], stats: Stats) -> Iterator[Any]:
        """Yield the matches of a block as prepared by a sink."""
        found = MatchWriter(self._options, self._reference, sink, stats)
        with self._opened.exclusive():
            results = self._loop.results(
                self._groups,
                lambda number: self._opened.load_group(number, self._context),
                iter([block]),
                found.prepare,
            )
            with closing(results):
                yield from results

    def close(self) -> None:
        """Release the index."""
        self._context.executor.shutdown(wait=True, cancel_futures=True)
        self._stack.close()


class AlignmentFinder(MatchFinder):
    """Aligns blocks on a worker."""

    def _open_files(self, work: QueryWork, job: MatchJob, max_rows: int) -> None:
        assert work.aligned is not None
        aligner = GenomeAligner(self._reference, work.aligned.genomes)
        nowhere = PreparedFiles((), job.facts(self._reference, max_rows), RowKind.GENOMES)
        map_function = self._context.executor.map
        self._sink = GenomeSink(
            *(aligner, work.aligned.kept, nowhere.sink, self._stats, map_function)
        )

    def find(self, work: QueryWork, part: QueryBlock) -> Any:
        """Return the alignments of a block, and their counts and times."""
        stats = Stats()
        results = self._results(part, self._sink, stats)
        # All threads align one block together.
        with self._lock:
            queries = [self._sink.aligned(prepared, work.with_bases) for prepared in results]
        stats.add_totals(self._stats.taken())
        return queries, stats.taken()


def run_match(options: MatchOptions, context: RunContext, cluster: ClusterOptions) -> None:
    """Find the matches of all queries, and write them, as `pipeline.match.run` does.

    Raises
    ------
    MummergpuError
        If the input, the options or the cluster are at fault.
    """
    check_targets(options.outputs, options.picture)
    if options.summary:
        raise OptionClashError("multiqc", "cluster", "workers do not count that")
    if any(target.format == "plot" for target in options.outputs):
        raise OptionClashError("format=plot", "cluster", "one machine draws pictures")
    with context.stats.stage("end_to_end"), _Run(options, context, cluster) as run:
        files = [run.stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        facts = run.job.facts(run.reference, _NO_ROWS)
        joined = JoinedFiles(
            *(options.outputs, files, facts, context.stats, RowKind.MATCHES, (), run.stack)
        )
        check_folders(run.cluster, [one for one in joined.folders if one is not None])
        work = QueryWork(os.urandom(8).hex(), run.everywhere(options))
        work = replace(work, compressions=joined.compressions, folders=joined.folders)
        for part, packed in run.results(work, Steps(find, report, pack), joined.begins):
            joined.write(packed)
            context.stats.add_totals(part.totals)
        joined.finish()


def run_align(options: AlignOptions, context: RunContext, cluster: ClusterOptions) -> None:
    """Align all queries, and write the alignments, as `pipeline.align_genomes.run` does.

    Raises
    ------
    MummergpuError
        If the input, the options or the cluster are at fault.
    """
    if options.method is not AlignmentMethod.TILE:
        method = f"method={options.method.value}"
        raise OptionClashError(method, "cluster", "one machine aligns from end to end")
    check_targets(options.outputs)
    anchors = options.anchors
    with context.stats.stage("end_to_end"), _Run(anchors, context, cluster) as run:
        files = [run.stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        aligner = GenomeAligner(run.reference, options.genomes)
        sink = open_genome_sink(options, run.reference, files, aligner, context)
        run.stack.callback(sink.close)
        everywhere = run.everywhere(anchors)
        aligned = replace(options, reference_path=everywhere.reference_path)
        work = QueryWork(os.urandom(8).hex(), everywhere, aligned, sink.needs_bases)
        for found, _ in run.results(work, Steps(find)):
            _take(sink, context, *found)
        sink.finish()
    warn_of_delta(options, context)


def _take(
    sink: GenomeSink, context: RunContext, queries: Sequence[AlignedQueries], totals: StatsTotals
) -> None:
    context.stats.add_totals(totals)
    for one in queries:
        sink.take(one)


class _Run:
    """The common part of both jobs: a cluster, the reference, and queries read by this process."""

    def __init__(self, options: MatchOptions, context: RunContext, cluster: ClusterOptions) -> None:
        self.stack = ExitStack()
        self._options = replace(options, search=_small_blocks(options), summary=False)
        self._context = context
        self._asked = cluster

    def __enter__(self) -> _Run:
        with ExitStack() as failure:
            failure.push(self.stack)
            self._open()
            failure.pop_all()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self.stack.__exit__(*error)

    def _open(self) -> None:
        options, context, stack = self._options, self._context, self.stack
        self.cluster: OpenCluster = stack.enter_context(open_cluster(self._asked, context.notice))
        check_versions(self.cluster)
        check_files(self.cluster, [os.path.abspath(options.reference_path)])
        stack.callback(context.executor.shutdown, wait=False, cancel_futures=True)
        reading = stack.enter_context(ReadingThreads(options.threads))
        self.job = MatchJob(options, context)
        self._queries = stack.enter_context(self.job.query_stream(reading))
        source = open_source(options, context, reading, any_letters=options.any_letters)
        self.reference = reference_of(source)

    def everywhere(self, options: MatchOptions) -> MatchOptions:
        """Return options with a path of the reference that is the same everywhere."""
        path = os.path.abspath(options.reference_path)
        return replace(options, reference_path=path, summary=False)

    def results(
        self, work: QueryWork, steps: Steps, begins: Sequence[int] = ()
    ) -> Generator[tuple[Any, Any]]:
        """Yield the report and the packed rows of each block of queries, in order."""
        self.stack.callback(self.cluster.tell_all, forget, work.token)
        stats, total = self._context.stats, self._queries.reader.bytes_total
        flow = Flow(self.cluster, work, steps, begins)
        with closing(flow.results(self._queries.blocks())) as results:
            for found in results:
                yield found
                reader = self._queries.reader
                share = reader.bytes_read / total if total else None
                done = Work(Phase.READS, (stats.counts.get("queries", 0),), 0, share)
                self._context.progress.tell(done)
        stats.set(backend="cluster", workers=len(self.cluster.workers))


def _small_blocks(options: MatchOptions) -> Any:
    return replace(options.search, block_size=options.search.block_size or SENT_BASES)
