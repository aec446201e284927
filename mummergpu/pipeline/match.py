"""The main job: read the reference and the queries, find the matches, and write them.

The reference is cut into pages, and each page gets a table of its k-mers or a suffix tree.
One thread reads the queries in blocks. A thread of a pool searches a block on every page, and
then merges and filters its matches and formats them as text; some backends make the text
themselves. The main thread writes the text of the blocks in the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.index.kmer_index import UNKNOWN_QUERY_BASES
from mummergpu.index.options import KmerOptions
from mummergpu.index.reference_index import BuildWork, ReferenceIndex
from mummergpu.index.tree.page import TreePage
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.query_stream import QueryStream
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.open_backend import likely_block_bases
from mummergpu.matching.options import DeviceOptions
from mummergpu.matching.search import BlockSearch
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.matches.sink import MatchSink
from mummergpu.output.open_sink import RunFacts, check_targets, open_sink
from mummergpu.pipeline.backend_choice import choose_backend
from mummergpu.pipeline.backend_opening import start_to_open
from mummergpu.pipeline.found_matches import FoundMatches, summary_bytes
from mummergpu.pipeline.options import MatchOptions
from mummergpu.pipeline.page_progress import PageProgress
from mummergpu.pipeline.passes import GroupPasses
from mummergpu.pipeline.plan import choose_block_size, describe_plan, plan_index
from mummergpu.pipeline.query_progress import QueryProgress
from mummergpu.pipeline.query_volume import estimate_query_bases
from mummergpu.pipeline.reference_source import open_source
from mummergpu.pipeline.shortcut import TextShortcut
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import NullProgress, Phase, Work
from mummergpu.runtime.stats import Stats

SinkOpener = Callable[
    [Reference, list[OutputFile], ThreadPoolExecutor, Backend[Any]], MatchSink[Any]
]
"""A function that returns what receives the matches, from the reference, the open output files, the
threads of the run and the backend."""

TreeText = Callable[[Iterable[TreePage]], Iterator[bytes | TextArray]]
"""A function that yields the text of the trees of some pages."""


def run(
    options: MatchOptions,
    stats: Stats,
    progress: NullProgress,
    notice: Callable[[str], None],
    warn: Callable[[str], None],
    open_own_sink: SinkOpener | None = None,
) -> None:
    """Find the matches of all queries, and write them.

    Parameters
    ----------
    options : MatchOptions
        The files and options of the run.
    stats : Stats
        Collects counts, bytes and times.
    progress : Progress or NullProgress
        Shows how many pages and reads are done.
    notice : callable
        Receives progress messages, shown with -v.
    warn : callable
        Receives warnings; any thread may call it.
    open_own_sink : callable, optional
        Opens what receives the matches, in place of what writes them in their own formats.

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    with stats.stage("end_to_end"), ExitStack() as stack:
        outputs = [stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        executor = ThreadPoolExecutor(options.threads, thread_name_prefix="match")
        job = _MatchJob(options, executor, stats, progress, notice, warn)
        opening = job.start_to_open(stack)
        check_targets(options.outputs, options.picture)
        reading = stack.enter_context(ReadingThreads(options.threads))
        queries = stack.enter_context(job.query_stream(reading))
        progress.tell(Work(Phase.READING_REFERENCE))
        source = job.open_source(reading)
        reference = source.reference if isinstance(source, IndexFile) else source
        tree_files = _open_tree_files(options, reference, stack)
        backend = opening.result()
        index = job.plan_index(source, reference, backend)
        loader = PageLoader(index, backend, tree_files, executor, options.threads, stats, progress)
        if open_own_sink is None:
            sink = job.open_sink(reference, backend, outputs)
        else:
            sink = open_own_sink(reference, outputs, executor, backend)
        stack.callback(sink.close)
        found = FoundMatches(options, reference, sink, stats)
        search = job.block_search(reference, index, backend, found)
        results = GroupPasses(search, executor, options.threads, stats, job.done).results(
            len(index.groups),
            loader.load_group,
            queries.blocks(options.search.block_size or backend.sizes.block_bases),
            found.prepare,
            TextShortcut(search, found.prepare_text),
        )
        with closing(results):
            for prepared in results:
                found.write(prepared)
                del prepared
        found.finish()
        # All tasks are done. The threads end before this does, for the sake of programs in Python.
        executor.shutdown()


class _MatchJob:
    """The steps that prepare a run; `run` describes the parameters."""

    def __init__(
        self,
        options: MatchOptions,
        executor: ThreadPoolExecutor,
        stats: Stats,
        progress: NullProgress,
        notice: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        self._options = options
        self._executor = executor
        self._stats = stats
        self._notice = notice
        self._warn = warn
        self._has_index = is_index(options.reference_path)
        self._query_bases = _estimate_searched_bases(options)
        self._device = self._choose_device()
        self.done = QueryProgress(progress.tell, len(options.search.strands))

    def _choose_device(self) -> DeviceOptions:
        """Return the options of the backend, with the backend that is probably the fastest."""
        device = self._options.device
        name = choose_backend(self._options, self._has_index, self._query_bases)
        if name == device.backend:
            return device
        self._notice("too little work for a GPU to be faster than the processor: backend cpu")
        return replace(device, backend=name)

    def start_to_open(self, stack: ExitStack) -> Future[Backend[Any]]:
        """Begin to open the backend; the stack closes it."""
        kind = self._options.index.kind
        return start_to_open(stack, self._executor, kind, self._device, self._stats, self._notice)

    def query_stream(self, reading: ReadingThreads) -> QueryStream:
        """Return what reads the queries; the caller enters it."""
        options = self._options
        paths = options.query_paths
        likely = likely_block_bases(options.index.kind, self._device)
        block_size = choose_block_size(options.search.block_size, paths, options.threads, likely)
        rules = QueryRules(options.any_letters, options.no_empty, self._warn, options.paired)
        return QueryStream(paths, block_size, self._stats, self.done.read, rules, reading)

    def open_source(self, reading: ReadingThreads) -> Reference | IndexFile:
        """Return the reference or its index file."""
        options = self._options
        with self._stats.stage("ref_from_disk"):
            return open_source(
                options.reference_path,
                self._has_index,
                options.verify,
                options.any_letters,
                self._executor,
                reading,
            )

    def plan_index(
        self, source: Reference | IndexFile, reference: Reference, backend: Backend[Any]
    ) -> ReferenceIndex[Any]:
        """Return the index to search, with its pages in groups that fit into memory."""
        options, threads = self._options, self._options.threads
        query_bases = self._query_bases
        if query_bases is None:
            query_bases = len(options.search.strands) * UNKNOWN_QUERY_BASES
        memory = backend.memory_for_pages(reference.codes.size)
        other_bytes = summary_bytes(options, reference)
        wanted = options.index
        if isinstance(wanted.kind, KmerOptions):
            kind = replace(wanted.kind, unique_strands=options.unique_strands)
            wanted = replace(wanted, kind=kind)
        index = plan_index(source, wanted, threads, memory, query_bases, other_bytes)
        minimum_length = options.search.minimum_length
        describe_plan(index, minimum_length, threads, backend.name, self._stats, self._notice)
        if warning := index.slow_search_warning():
            self._warn(warning)
        return index

    def open_sink(
        self, reference: Reference, backend: Backend[Any], outputs: list[OutputFile]
    ) -> MatchSink[Any]:
        """Return what writes the matches; the caller closes it."""
        options = self._options
        picture = replace(options.picture, what=options.search.in_words)
        facts = RunFacts(
            *(reference, options.query_paths, options.style, backend.sizes.most_rows),
            *(options.threads, options.command, options.sam, picture),
        )
        return open_sink(options.outputs, outputs, facts, self._stats)

    def block_search(
        self,
        reference: Reference,
        index: ReferenceIndex[Any],
        backend: Backend[Any],
        found: FoundMatches,
    ) -> BlockSearch:
        """Return what searches a block of queries."""
        search = self._options.search
        return BlockSearch(
            backend,
            reference.codes,
            search.strands,
            search.minimum_length,
            index.search_length,
            found.row_format(len(index.groups)),
            self.done.searched,
        )


class PageLoader:
    """Loads one group of pages into the backend, in place of the group before.

    Parameters
    ----------
    index : KmerIndex or TreeIndex
        The index that has the pages.
    backend : Backend
        Loads the pages and searches them.
    tree_files : list of tuple of OutputFile and callable
        The files that show the trees, each with the function that makes its text.
    executor : concurrent.futures.ThreadPoolExecutor
        Runs the tasks that build the pages.
    threads : int
        The number of its threads.
    stats : Stats
        Collects times, numbers and bytes.
    progress : Progress or NullProgress
        Shows how many pages are ready.
    """

    def __init__(
        self,
        index: ReferenceIndex[Any],
        backend: Backend[Any],
        tree_files: list[tuple[OutputFile, TreeText]],
        executor: ThreadPoolExecutor,
        threads: int,
        stats: Stats,
        progress: NullProgress,
    ) -> None:
        self._index = index
        self._backend = backend
        self._tree_files = tree_files
        self._executor = executor
        self._threads = threads
        self._stats = stats
        self._progress = PageProgress(progress.tell, index.pages)
        self._progress.begin()

    def load_group(self, number: int) -> None:
        """Build or read the pages of a group, and load them into the backend."""
        # Two groups together would not fit into memory.
        self._backend.release_pages()
        # Not kept: a circle of references would hold the index until a garbage collection.
        told = self._progress.page_is_ready, self._progress.share_of_next
        work = BuildWork(self._executor, self._threads, self._stats, *told)
        pages = self._index.load_pages(self._index.groups[number], work)
        for file, text in self._tree_files:
            for piece in text(pages):
                file.write(piece)
        self._backend.load_pages(pages, self._index.search_length)


def _estimate_searched_bases(options: MatchOptions) -> int | None:
    """Return about how many bases the queries have on all strands; None if that is unknown."""
    bases = estimate_query_bases(options.query_paths)
    return None if bases is None else len(options.search.strands) * bases


def _open_tree_files(
    options: MatchOptions, reference: Reference, stack: ExitStack
) -> list[tuple[OutputFile, TreeText]]:
    """Return the files that show the trees, each with the function that makes its text."""
    if options.dot_path is None and options.dump_tree_path is None:
        return []
    from mummergpu.index.tree.text import check_dot_size, dot_text, table_text

    if options.dot_path is not None:
        check_dot_size(reference)
    wanted = ((options.dot_path, dot_text), (options.dump_tree_path, table_text))
    return [
        (stack.enter_context(OutputFile(path)), text) for path, text in wanted if path is not None
    ]
