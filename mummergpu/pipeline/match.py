"""The main job: read the reference and the queries, find the matches, and write them.

The reference is cut into pages, and each page gets a table of its k-mers or a suffix tree.
One thread reads the queries in blocks. A thread of a pool searches a block on every page, and
then merges and filters its matches and formats them as text; some backends make the text
themselves. The main thread writes the text of the blocks in the order in which they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.index.kmer_index import UNKNOWN_QUERY_BASES
from mummergpu.index.reference_index import BuildWork, ReferenceIndex
from mummergpu.index.tree.page import TreePage
from mummergpu.input.queries import QueryRules
from mummergpu.input.query_stream import QueryStream
from mummergpu.input.reading_threads import ReadingThreads
from mummergpu.input.reference import Reference
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.open_backend import likely_block_bases
from mummergpu.matching.search import BlockSearch
from mummergpu.output.number_text import TextArray
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
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import NullProgress, Phase, Work
from mummergpu.runtime.stats import Stats

TreeText = Callable[[Iterable[TreePage]], Iterator[bytes | TextArray]]
"""A function that yields the text of the trees of some pages."""


def run(
    options: MatchOptions,
    stats: Stats,
    progress: NullProgress,
    notice: Callable[[str], None],
    warn: Callable[[str], None],
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

    Raises
    ------
    MummergpuError
        If the input, the options or the machine are at fault.
    """
    threads, search = options.threads, options.search
    kind, device = options.index.kind, options.device
    with stats.stage("end_to_end"), ExitStack() as stack:
        outputs = [stack.enter_context(OutputFile(target.path)) for target in options.outputs]
        executor = ThreadPoolExecutor(threads, thread_name_prefix="match")
        has_index = is_index(options.reference_path)
        query_bases = _estimate_searched_bases(options)
        backend_name = choose_backend(options, has_index, query_bases)
        if backend_name != device.backend:
            notice("too little work for a GPU to be faster than the processor: backend cpu")
            device = replace(device, backend=backend_name)
        opening = start_to_open(stack, executor, kind, device, stats, notice)
        check_targets(options.outputs, options.picture)
        likely = likely_block_bases(kind, device)
        block_size = choose_block_size(search.block_size, options.query_paths, threads, likely)
        rules = QueryRules(options.any_letters, options.no_empty, warn, options.paired)
        reading = stack.enter_context(ReadingThreads(threads))
        done = QueryProgress(progress.tell, len(search.strands))
        queries = stack.enter_context(
            QueryStream(options.query_paths, block_size, stats, done.read, rules, reading)
        )
        progress.tell(Work(Phase.READING_REFERENCE))
        with stats.stage("ref_from_disk"):
            source = open_source(
                options.reference_path,
                has_index,
                options.verify,
                options.any_letters,
                executor,
                reading,
            )
        reference = source.reference if isinstance(source, IndexFile) else source
        tree_files = _open_tree_files(options, reference, stack)
        backend = opening.result()
        if query_bases is None:
            query_bases = len(search.strands) * UNKNOWN_QUERY_BASES
        device_memory = backend.memory_for_pages(reference.codes.size)
        other_bytes = summary_bytes(options, reference)
        index = plan_index(source, options.index, threads, device_memory, query_bases, other_bytes)
        describe_plan(index, search.minimum_length, threads, backend.name, stats, notice)
        if warning := index.slow_search_warning():
            warn(warning)
        loader = PageLoader(index, backend, tree_files, executor, threads, stats, progress)
        most_rows = backend.sizes.most_rows
        picture = replace(options.picture, what=search.in_words)
        facts = RunFacts(
            *(reference, options.query_paths, options.style, most_rows, threads),
            *(options.command, options.sam, picture),
        )
        sink = open_sink(options.outputs, outputs, facts, stats)
        stack.callback(sink.close)
        found = FoundMatches(options, reference, sink, stats)
        block_search = BlockSearch(
            backend,
            reference.codes,
            search.strands,
            search.minimum_length,
            index.search_length,
            found.row_format(len(index.groups)),
            done.searched,
        )
        results = GroupPasses(block_search, executor, threads, stats, done).results(
            len(index.groups),
            loader.load_group,
            queries.blocks(search.block_size or backend.sizes.block_bases),
            found.prepare,
            found.prepare_text,
        )
        with closing(results):
            for prepared in results:
                found.write(prepared)
                del prepared
        found.finish()
        # All tasks are done. The threads end before this does, for the sake of programs in Python.
        executor.shutdown()


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
    from mummergpu.output.tree_text import check_dot_size, dot_text, table_text

    if options.dot_path is not None:
        check_dot_size(reference)
    wanted = ((options.dot_path, dot_text), (options.dump_tree_path, table_text))
    return [
        (stack.enter_context(OutputFile(path)), text) for path, text in wanted if path is not None
    ]
