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
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_index import UNKNOWN_QUERY_BASES
from mummergpu.index.options import KmerOptions
from mummergpu.index.reference_index import ReferenceIndex
from mummergpu.input.blocks.queries import QueryBlock, QueryRules
from mummergpu.input.blocks.reader import ReadStream, query_reader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference
from mummergpu.matching.backends.interface import Backend, BlockText, RowFormat
from mummergpu.matching.filter import keep_unique
from mummergpu.matching.open_backend import likely_block_bases
from mummergpu.matching.options import DeviceOptions, Uniqueness
from mummergpu.matching.search import UNBOUNDED, BlockSearch
from mummergpu.output.open_sink import check_targets, open_sink
from mummergpu.output.sink import MatchSink, OutputContext
from mummergpu.pipeline.backend_choice import TOO_LITTLE_WORK, backend_of_search, searched_bases
from mummergpu.pipeline.block_search_loop import MOST_ROWS_IF_LIMITED, BlockSearchLoop
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.open_search import OpenSearch, open_source, reference_of, start_to_open
from mummergpu.pipeline.options import MatchOptions
from mummergpu.pipeline.plan import choose_block_size, describe_plan, plan_index
from mummergpu.pipeline.progress import PageProgress, QueryProgress
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems, match_count

if TYPE_CHECKING:
    from mummergpu.matching.summary import MatchSummary

Result = TypeVar("Result")

SinkOpener = Callable[[Reference, list[OutputFile], Backend[Any], RunContext], MatchSink[Any]]
"""Opens a sink of matches, from the reference, the open output files and the backend."""


def run(
    options: MatchOptions, context: RunContext, open_own_sink: SinkOpener | None = None
) -> None:
    """Find the matches of all queries, and write them.

    Parameters
    ----------
    options : MatchOptions
        The files and options of the run.
    context : RunContext
        The threads of the run, its statistics and messages.
    open_own_sink : callable, optional
        Opens another sink in place of those for the formats of matches.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    with context.stats.stage("end_to_end"), ExitStack() as stack:
        # Files that cannot be written are reported before anything is read.
        outputs = [stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        job = MatchJob(options, context)
        opening = job.start_to_open(stack)
        check_targets(options.outputs, options.picture)
        reading = stack.enter_context(ReadingThreads(options.threads))
        # From here on, queries are read while the reference is read and the pages are built.
        queries = stack.enter_context(job.query_stream(reading))
        source = open_source(options, context, reading, any_letters=options.any_letters)
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
        # For a device, its own memory limits the matches per step.
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
                # Otherwise the text of this block would stay in memory until the next one comes.
                del prepared
        found.finish()
        # All tasks are done. The threads end before `run` returns, for Python programs.
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
        """Return the device options, with the backend that is expected to be the fastest."""
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
        """Return a stream of the queries, which the caller enters."""
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
        """Return the sink of the matches, which the caller closes."""
        facts = self.facts(reference, backend.sizes.max_rows)
        return open_sink(self._options.outputs, outputs, facts, self._context.stats)

    def facts(self, reference: Reference, max_rows: int) -> OutputContext:
        """Return the context of the files of matches."""
        options = self._options
        picture = replace(options.picture, what=options.search.in_words)
        return OutputContext(
            *(reference, options.query_paths, options.threads, options.command),
            *(options.sam, options.style, picture, max_rows),
            warn=self._context.warn,
        )


class TextSearch(Generic[Result]):
    """Prepares the text of matches that a backend has formatted (`FusedSearch`)."""

    def __init__(
        self, search: BlockSearch, prepare: Callable[[QueryBlock, BlockText], Result]
    ) -> None:
        self._search = search
        self._prepare = prepare

    def suits(self, block: QueryBlock) -> bool:
        """Return whether the backend can format the matches of a block."""
        return self._search.makes_text(block)

    def prepared(self, block: QueryBlock) -> tuple[Result] | None:
        """Return a block's text, prepared to be written."""
        text = self._search.find_text(block)
        return None if text is None else (self._prepare(block, text),)


class MatchWriter:
    """Writes the matches of blocks; any thread prepares them, one thread writes them."""

    def __init__(
        self, options: MatchOptions, reference: Reference, sink: MatchSink[Any], stats: Stats
    ) -> None:
        self._uniqueness = options.search.uniqueness
        self._sink = sink
        self._stats = stats
        self._summary = _new_summary(options, reference, stats)

    def row_format(self, group_count: int) -> RowFormat | None:
        """Return the text format that a backend may write itself; None if columns are needed.

        Filters need columns, and so does merging the matches on several groups.
        """
        if self._uniqueness is not Uniqueness.ALL or group_count > 1:
            return None
        return self._sink.row_format(with_columns=self._summary is not None)

    def prepare(self, block: QueryBlock, mems: BlockMems) -> Any:
        """Prepare the matches of a block for `write`; any thread may call this."""
        mems = filter_mems(mems, self._uniqueness, self._stats)
        self._stats.add(matches=match_count(mems))
        if self._summary is not None:
            self._summary.add(block, mems)
        return self._sink.prepare(block, mems)

    def prepare_text(self, block: QueryBlock, text: BlockText) -> Any:
        """Prepare text that a backend has formatted; any thread may call this."""
        self._stats.add(matches=text.count)
        if self._summary is not None:
            self._summary.add(block, text.mems)
        return self._sink.prepare_text(text)

    def write(self, prepared: Any) -> None:
        """Write prepared matches; one thread calls this, block after block."""
        self._sink.write(prepared)

    def finish(self) -> None:
        """Write what follows the last block, and report the summary."""
        self._sink.finish()
        if self._summary is not None:
            self._summary.report()


def summary_bytes(options: MatchOptions, reference: Reference) -> int:
    """Return the bytes of the summary of the matches, 0 if the options ask for none."""
    if not options.summary:
        return 0
    from mummergpu.matching import summary

    return summary.summary_bytes(reference.codes.size)


def filter_mems(mems: BlockMems, uniqueness: Uniqueness, stats: Stats) -> BlockMems:
    """Return the matches that pass the uniqueness filter."""
    if uniqueness is Uniqueness.ALL:
        return mems
    with stats.stage("coords_to_buffers"):
        in_query = uniqueness is Uniqueness.IN_BOTH
        return {strand: keep_unique(columns, in_query) for strand, columns in mems.items()}


def _new_summary(options: MatchOptions, reference: Reference, stats: Stats) -> MatchSummary | None:
    if not options.summary:
        return None
    from mummergpu.matching.summary import MatchSummary

    strands = options.search.strands
    return MatchSummary(reference.codes.size, options.query_paths, strands, stats)
