"""The main job: read, match, print, write.

A reference is cut into pages, and every page gets a suffix tree. Queries are read in
blocks; each block is matched against every page by one thread of a pool, its matches are
merged, filtered and turned into text. One thread reads the blocks, and the main thread writes
their text in the order in which they were read. As many pages stand in memory as fit; if not
all do, the queries pass over one group of pages after the other (paper, section 2.2), and the
matches on all groups but the last wait in temporary files. Where no trees are asked for, a
page gets a table of its k-mers instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from mummergpu.index.file import IndexFile
from mummergpu.index.format import is_index
from mummergpu.index.kmer_page import SampledPage, build_sampled_pages
from mummergpu.index.pages import Page
from mummergpu.index.tree.page import IndexedPage
from mummergpu.input.queries import QueryBlock
from mummergpu.input.query_stream import QueryStream
from mummergpu.input.reference import Reference, read_reference
from mummergpu.matching.backends.interface import Backend
from mummergpu.matching.columns import MemColumns
from mummergpu.matching.filter import keep_long, keep_unique
from mummergpu.matching.long_queries import (
    PartMems,
    Pieces,
    cut_queries,
    has_long_query,
    join_parts,
    owned_mems,
)
from mummergpu.matching.merge import merge_pages
from mummergpu.matching.open_backend import choose_backend, likely_block_bases
from mummergpu.matching.options import MatchOptions, Uniqueness
from mummergpu.output.mummer import MummerFormatter, TextStyle
from mummergpu.output.number_text import TextArray
from mummergpu.pipeline.plan import (
    Plan,
    choose_block_size,
    describe_plan,
    make_plan,
    plan_of_index,
)
from mummergpu.pipeline.spill import SpilledMems, SpilledQueries
from mummergpu.runtime.ordered_map import work_in_order
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.progress import NullProgress
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import CodeArray, Strand, reverse_complement_each

TASKS_AHEAD = 2
"""How many blocks more than there are threads are under way at once."""

PARTS_OF_TASK = 2
"""Long queries that make more parts than this are the work of all threads together."""

UNBOUNDED = 1 << 62
"""More rows than can be."""

MOST_SPILL_FILES = 16
"""So many files of earlier matches are open at most before they are merged into one."""

BlockMems = dict[Strand, MemColumns]
TreeText = Callable[[Iterable[IndexedPage]], Iterator[bytes | TextArray]]


@dataclass(frozen=True)
class Task:
    """A block, and its matches on groups of pages that have been searched.

    Attributes
    ----------
    block : QueryBlock
        The queries.
    groups : list of BlockMems
        Matches in the order of the groups.
    searched : bool
        Whether those on the group that is searched now are among them.
    """

    block: QueryBlock
    groups: list[BlockMems]
    searched: bool = False


def run(
    options: MatchOptions,
    stats: Stats,
    progress: NullProgress,
    notice: Callable[[str], None],
) -> None:
    """Do the main job.

    Parameters
    ----------
    options : MatchOptions
        What to do.
    stats : Stats
        Takes counts, bytes and times.
    progress : Progress or NullProgress
        Is told about pages and reads.
    notice : callable
        Takes lines for people who want to know more.

    Raises
    ------
    MummergpuError
        For whatever the user can mend.
    """
    with stats.stage("end_to_end"), OutputFile(options.output_path) as output:
        with ExitStack() as stack:
            executor = ThreadPoolExecutor(options.threads, thread_name_prefix="match")
            # A device takes as long to open as a reference to read.
            opening = executor.submit(choose_backend, options, stats, notice)
            stack.callback(_close, opening)
            # Running tasks are left to end by themselves after a failure.
            stack.callback(executor.shutdown, wait=False, cancel_futures=True)
            block_size = choose_block_size(options, likely_block_bases(options))
            queries = stack.enter_context(
                QueryStream(options.query_paths, block_size, stats, progress.reads)
            )
            with stats.stage("ref_from_disk"):
                path = options.reference_path
                index = IndexFile(path) if is_index(path) else None
                reference = read_reference(path) if index is None else index.reference
            if options.dot_path is not None:
                from mummergpu.output.tree_text import check_dot_size

                check_dot_size(reference)
            backend = opening.result()
            if index is None:
                plan = make_plan(options, reference, backend.tree_memory)
            else:
                plan = plan_of_index(options, index, backend.tree_memory)
            describe_plan(plan, options, reference, backend.name, stats, notice)
            job = _Job(options, plan, reference, index, backend, executor, stats, progress)
            job.search_all(queries, output, stack)


def _close(opening: Future[Backend[Any]]) -> None:
    """Close a backend, if there is one."""
    if opening.exception() is None:
        opening.result().close()


class _Job:
    """The state of one run that its steps share."""

    def __init__(
        self,
        options: MatchOptions,
        plan: Plan,
        reference: Reference,
        index: IndexFile | None,
        backend: Backend[Any],
        executor: ThreadPoolExecutor,
        stats: Stats,
        progress: NullProgress,
    ) -> None:
        self.options = options
        self.plan = plan
        self.reference = reference
        self.index = index
        self.backend = backend
        self.sizes = backend.sizes
        self.executor = executor
        self.stats = stats
        self.progress = progress
        style = TextStyle(
            options.forward_coordinates,
            options.four_columns,
            options.show_query_lengths,
            options.show_sequences,
        )
        self.formatter = MummerFormatter(reference, style)
        self.window = options.threads + TASKS_AHEAD
        self.pages_built = 0

    def search_all(self, stream: QueryStream, output: OutputFile, stack: ExitStack) -> None:
        """Pass the queries over every group of pages; write during the last pass."""
        tree_files = self.open_tree_files(stack)
        read = stream.blocks(self.options.block_size or self.sizes.block_bases)
        queries: SpilledQueries | None = None
        spilled: list[SpilledMems] = []
        for number, group in enumerate(self.plan.groups):
            indexed = self.build(group)
            for tree_file, text in tree_files:
                for piece in text(indexed):  # type: ignore[arg-type]
                    tree_file.write(piece)
            self.backend.hold(indexed, self.plan.search_length)
            del indexed
            blocks = read if queries is None else queries.read_blocks()
            if number == len(self.plan.groups) - 1:
                self.write_last(blocks, spilled, output)
                return
            if queries is None:
                queries = stack.enter_context(SpilledQueries())
                blocks = self.spill_blocks(blocks, queries)
            earlier = spilled if len(spilled) == MOST_SPILL_FILES else []
            file = stack.enter_context(SpilledMems())
            self.spill(blocks, earlier, file)
            for merged in earlier:
                merged.close()
            spilled = [*([] if earlier else spilled), file]

    def open_tree_files(self, stack: ExitStack) -> list[tuple[OutputFile, TreeText]]:
        """Return the files that show trees, each with what makes its text."""
        dot_path, table_path = self.options.dot_path, self.options.dump_tree_path
        if dot_path is None and table_path is None:
            return []
        from mummergpu.output.tree_text import dot_text, table_text

        return [
            (stack.enter_context(OutputFile(path)), text)
            for path, text in ((dot_path, dot_text), (table_path, table_text))
            if path is not None
        ]

    def build(self, group: Sequence[Page]) -> list[IndexedPage] | list[SampledPage]:
        """Build the trees or tables of a group of pages, or take them from the index."""

        def built() -> None:
            self.pages_built += 1
            self.progress.pages(self.pages_built, len(self.plan.pages))

        if self.index is not None:
            return self.index.load(group, self.stats, built)
        if self.plan.kmer_length:
            return build_sampled_pages(
                self.reference,
                group,
                self.plan.kmer_length,
                self.plan.scratch_bytes,
                self.stats,
                self.executor.map,
                built,
            )
        from mummergpu.index.tree.build import build_pages

        return build_pages(
            self.reference,
            group,
            self.plan.layout,
            self.stats,
            self.executor,
            built,
            self.options.builder,
        )

    def spill_blocks(
        self, blocks: Iterator[QueryBlock], queries: SpilledQueries
    ) -> Iterator[QueryBlock]:
        """Pass blocks on, keeping a copy for the next pass."""
        for block in blocks:
            queries.write_block(block)
            yield block

    def tasks(self, blocks: Iterator[QueryBlock], spilled: Sequence[SpilledMems]) -> Iterator[Task]:
        """Yield each block with its matches from the files.

        Blocks that one thread would be busy with for long are searched here, by the main
        thread with the help of the whole pool: a task of the pool must not wait for another.
        """
        strands = self.options.strands
        for block in blocks:
            groups = [{s: file.read_columns() for s in strands} for file in spilled]
            searched = has_long_query(block, PARTS_OF_TASK * self.sizes.part_bases)
            if searched:
                mems = self.find_mems(block, UNBOUNDED, self.executor.map)
                assert mems is not None
                groups.append(mems)
            yield Task(block, groups, searched)

    def spill(
        self,
        blocks: Iterator[QueryBlock],
        spilled: Sequence[SpilledMems],
        file: SpilledMems,
    ) -> None:
        """Match all blocks against one group of pages, keep the matches for later."""

        def search(task: Task) -> BlockMems | None:
            if task.searched:
                return self.merged(task.groups)
            mems = self.find_mems(task.block, UNBOUNDED)
            return None if mems is None else self.merged([*task.groups, mems])

        def keep(mems: BlockMems) -> None:
            for strand in self.options.strands:
                file.write_columns(mems[strand])

        tasks = self.tasks(blocks, spilled)
        work_in_order(self.executor, self.window, tasks, search, keep)
        file.rewind()

    def write_last(
        self,
        blocks: Iterator[QueryBlock],
        spilled: Sequence[SpilledMems],
        output: OutputFile,
    ) -> None:
        """Match all blocks against the last group, add the earlier matches, write."""

        def search(task: Task) -> Iterator[TextArray] | None:
            if task.searched:
                return self.as_text(task.block, task.groups)
            # Matches that have waited in a file belong to the whole block.
            whole = bool(task.groups) or task.block.query_count == 1
            mems = self.find_mems(task.block, UNBOUNDED if whole else self.sizes.most_rows)
            return None if mems is None else self.as_text(task.block, [*task.groups, mems])

        def halves(task: Task) -> list[Task]:
            return [Task(half, []) for half in task.block.halves()]

        def write(text: Iterator[TextArray]) -> None:
            for piece in text:
                with self.stats.stage("results_to_disk"):
                    output.write(piece)
                self.stats.add_bytes(output=piece.size)
                self.formatter.take_back(piece)

        tasks = self.tasks(blocks, spilled)
        work_in_order(self.executor, self.window, tasks, search, write, halves)

    def find_mems(
        self, block: QueryBlock, most: int, spread: Callable[..., Iterable[PartMems]] = map
    ) -> BlockMems | None:
        """Return the matches of a block on the held pages, or None if they are too many.

        The parts of long queries are searched by `spread`, which is a kind of map.
        """
        mems = {}
        in_pieces = has_long_query(block, self.sizes.long_query)
        for strand in self.options.strands:
            codes = block.codes
            if strand is Strand.REVERSE:
                codes = reverse_complement_each(block.codes, block.offsets)
            columns: MemColumns | None
            if in_pieces:
                columns = self.find_in_pieces(block, codes, spread)
            else:
                columns = self.backend.find_mems(block, codes, most)
            if columns is None:
                return None
            most -= columns.count
            if self.plan.search_length < self.options.minimum_length:
                columns = keep_long(columns, self.options.minimum_length)
            mems[strand] = columns
        return mems

    def find_in_pieces(
        self, block: QueryBlock, codes: CodeArray, spread: Callable[..., Iterable[PartMems]]
    ) -> MemColumns:
        """Return the matches of a block with long queries, found piece by piece."""

        def search(part: Pieces) -> PartMems:
            queries = part.as_block(codes)
            found = self.backend.find_mems(queries, queries.codes, UNBOUNDED)
            assert found is not None
            return owned_mems(part, found, block.offsets, codes, self.reference.codes)

        pieces = cut_queries(block.offsets, self.plan.search_length - 1, self.sizes.piece_bases)
        return join_parts(list(spread(search, pieces.parts(self.sizes.part_bases))))

    def merged(self, groups: Sequence[BlockMems]) -> BlockMems:
        """Return the matches of a block on several groups of pages together."""
        with self.stats.stage("coords_to_buffers"):
            return {
                strand: merge_pages([group[strand] for group in groups])
                for strand in self.options.strands
            }

    def as_text(self, block: QueryBlock, groups: Sequence[BlockMems]) -> Iterator[TextArray]:
        """Return the text of a block's matches, made at once unless there are too many."""
        uniqueness = self.options.uniqueness
        mems = self.merged(groups)
        if uniqueness is not Uniqueness.ALL:
            with self.stats.stage("coords_to_buffers"):
                in_query = uniqueness is Uniqueness.IN_BOTH
                mems = {strand: keep_unique(mems[strand], in_query) for strand in mems}
        matches = sum(columns.count for columns in mems.values())
        self.stats.add(matches=matches)
        text = self.formatter.format_block(block, mems)
        if matches > self.sizes.most_rows:
            return text
        with self.stats.stage("format"):
            return iter(list(text))
