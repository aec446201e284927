"""The main job: read the reference and the queries, find the matches, and write them.

The reference is cut into pages, and each page gets a table of its k-mers or a suffix tree.
One thread reads the queries in blocks. A thread of a pool searches a block on every page, and
then merges and filters its matches and formats them as text; some backends make the text
themselves. The main thread writes the text of the blocks in the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_index import UNKNOWN_QUERY_BASES
from mummergpu.index.options import KmerOptions
from mummergpu.index.reference_index import ReferenceIndex
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.reader import ReadStream, query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.open_backend import likely_block_bases
from mummergpu.matching.options import DeviceOptions
from mummergpu.matching.search import UNBOUNDED
from mummergpu.output.open_sink import check_targets, open_sink
from mummergpu.output.sink import MatchSink, OutputContext
from mummergpu.pipeline.backend_choice import (
    TOO_LITTLE_WORK,
    backend_of_search,
    searched_bases,
)
from mummergpu.pipeline.backend_opening import start_to_open
from mummergpu.pipeline.block_search_loop import MOST_ROWS_IF_LIMITED, BlockSearchLoop
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.fused_search import TextSearch
from mummergpu.pipeline.match_writer import MatchWriter, summary_bytes
from mummergpu.pipeline.open_search import OpenSearch
from mummergpu.pipeline.options import MatchOptions
from mummergpu.pipeline.plan import choose_block_size, describe_plan, plan_index
from mummergpu.pipeline.progress import PageProgress, QueryProgress
from mummergpu.pipeline.reference_source import open_source, reference_of
from mummergpu.runtime.output_file import OutputFile

SinkOpener = Callable[[Reference, list[OutputFile], Backend[Any], RunContext], MatchSink[Any]]
"""Opens what receives the matches, from the reference, the open output files and the backend."""


def run(
    options: MatchOptions, context: RunContext, open_own_sink: SinkOpener | None = None
) -> None:
    """Find the matches of all queries, and write them.

    Parameters
    ----------
    options : MatchOptions
        The files and options of the run.
    context : RunContext
        The threads of the run, and whom it tells.
    open_own_sink : callable, optional
        Opens what receives the matches, in place of what writes them in their own formats.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    with context.stats.stage("end_to_end"), ExitStack() as stack:
        # What cannot be written is told of before anything is read.
        outputs = [stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        job = MatchJob(options, context)
        opening = job.start_to_open(stack)
        check_targets(options.outputs, options.picture)
        reading = stack.enter_context(ReadingThreads(options.threads))
        # Queries are read ahead from here on, beside the reference and the pages.
        queries = stack.enter_context(job.query_stream(reading))
        source = open_source(options, context, reading)
        reference = reference_of(source)
        backend = opening.result()
        index = job.plan_index(source, reference, backend)
        opened = OpenSearch(index, backend, index.search_length)
        ready = PageProgress(context.progress.tell, index.pages)
        if open_own_sink is None:
            sink = job.open_sink(reference, backend, outputs)
        else:
            sink = open_own_sink(reference, outputs, backend, context)
        stack.callback(sink.close)
        found = MatchWriter(options, reference, sink, context.stats)
        row_format = found.row_format(len(index.groups))
        # Its own memory bounds what a device finds at once.
        is_limited = options.index.memory is not None and backend.name == "cpu"
        max_rows = MOST_ROWS_IF_LIMITED if is_limited else UNBOUNDED
        search = opened.block_search(options.search, row_format, job.done.searched, max_rows)
        results = BlockSearchLoop(search, context, job.done, max_rows=max_rows).results(
            len(index.groups),
            lambda number: opened.load_group(number, context, ready),
            queries.blocks(options.search.block_size or backend.sizes.block_bases),
            found.prepare,
            TextSearch(search, found.prepare_text),
        )
        with closing(results):
            for prepared in results:
                found.write(prepared)
                # Else the text of this block would stay while the next one is waited for.
                del prepared
        found.finish()
        # All tasks are done. The threads end before this does, for the sake of programs in Python.
        context.executor.shutdown()


class MatchJob:
    """The steps that prepare a run."""

    def __init__(self, options: MatchOptions, context: RunContext) -> None:
        self._options = options
        self._context = context
        self._query_bases = searched_bases(options)
        self._device = self._choose_device()
        self.done = QueryProgress(context.progress.tell, len(options.search.strands))

    def _choose_device(self) -> DeviceOptions:
        """Return the options of the backend, with the backend that is probably the fastest."""
        device = self._options.device
        name = backend_of_search(self._options)
        if name == device.backend:
            return device
        self._context.notice(TOO_LITTLE_WORK)
        return replace(device, backend=name)

    def start_to_open(self, stack: ExitStack) -> Future[Backend[Any]]:
        """Begin to open the backend; the stack closes it."""
        return start_to_open(self._context, stack, self._options.index.kind, self._device)

    def query_stream(self, reading: ReadingThreads) -> ReadStream[QueryBlock]:
        """Return what reads the queries; the caller enters it."""
        options = self._options
        paths = options.query_paths
        likely = likely_block_bases(options.index.kind, self._device)
        block_size = choose_block_size(options.search.block_size, paths, options.threads, likely)
        rules = QueryRules(
            options.any_letters, options.no_empty, self._context.warn, options.paired
        )
        stats = self._context.stats
        reader = query_reader(paths, block_size, rules=rules, threads=reading)
        return ReadStream(reader, stats, self.done.read)

    def plan_index(
        self, source: Reference | IndexFile, reference: Reference, backend: Backend[Any]
    ) -> ReferenceIndex[Any]:
        """Return the index to search, with its pages in groups that fit into memory."""
        options, context = self._options, self._context
        query_bases = self._query_bases
        if query_bases is None:
            query_bases = len(options.search.strands) * UNKNOWN_QUERY_BASES
        memory = backend.memory_for_pages(reference.codes.size)
        other_bytes = summary_bytes(options, reference)
        wanted = options.index
        if isinstance(wanted.kind, KmerOptions):
            kind = replace(wanted.kind, unique_strands=options.unique_strands)
            wanted = replace(wanted, kind=kind)
        index = plan_index(source, wanted, context.threads, memory, query_bases, other_bytes)
        describe_plan(index, options.search.minimum_length, backend.name, context)
        return index

    def open_sink(
        self, reference: Reference, backend: Backend[Any], outputs: list[OutputFile]
    ) -> MatchSink[Any]:
        """Return what writes the matches; the caller closes it."""
        facts = self.facts(reference, backend.sizes.max_rows)
        return open_sink(self._options.outputs, outputs, facts, self._context.stats)

    def facts(self, reference: Reference, max_rows: int) -> OutputContext:
        """Return what the files of matches tell."""
        options = self._options
        picture = replace(options.picture, what=options.search.in_words)
        return OutputContext(
            *(reference, options.query_paths, options.threads, options.command),
            *(options.sam, options.style, picture, max_rows),
            warn=self._context.warn,
        )
