"""Search the queries on one group of pages after the other (paper, section 2.2).

A group is as many pages as fit into memory. If there are several groups, all queries are searched
on each group, and temporary files keep the matches on all groups but the last.

Blocks of queries are large, to keep threads out of each other's way: between two blocks a thread
runs Python code, for which all threads share one lock. But a block with too many matches is
searched in vain, and once more in halves; so blocks are cut by the number of matches that the
queries before had.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import chain, repeat
from typing import Final, TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.search import UNBOUNDED, BlockSearch
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.fused_search import FusedSearch
from mummergpu.pipeline.query_progress import QueryProgress
from mummergpu.pipeline.spill import SpilledMems, SpilledQueries
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.ordered_map import ordered_map, ordered_results
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import BlockMems, match_count

SAFETY: Final = 4.0
"""How many times as many matches as expected must fit."""

SAFETY_OF_SMALL: Final = 1.5
"""How many times as many must fit in parts that are smaller than the first one."""

FORGETTING: Final = 0.75
"""What is left of the highest density when a part with fewer matches has been searched."""


LEAST_SHARE: Final = 64
"""Where there are very many matches, parts are so many times as small as the first one: to search
one in vain costs as much as all the matches that fit."""


MOST_ROWS_IF_LIMITED: Final = 1 << 19
"""The most matches of a part where the memory of a run is limited: what a run may take for each
thread holds them, and what is made of them."""


class BlockParts:
    """Cuts blocks into parts, by the number of matches of the parts before; any thread may add."""

    def __init__(self, sizes: WorkSizes) -> None:
        self._trial_bases = sizes.trial_bases
        self._max_rows = sizes.max_rows
        self._density: float | None = None
        self._lock = threading.Lock()

    def add(self, bases: int, rows: int) -> None:
        """Take into account how many matches a part had."""
        density = rows / max(bases, 1)
        with self._lock:
            kept = 0.0 if self._density is None else self._density * FORGETTING
            self._density = max(density, kept)

    def parts(self, block: QueryBlock) -> Iterator[QueryBlock]:
        """Yield the queries of a block in parts, in order; no query is cut."""
        while block.base_count > self.max_bases() and block.can_be_cut:
            first, block = block.split_at(self.max_bases())
            yield first
        yield block

    def max_bases(self) -> int:
        """Return about how many bases a part should have now."""
        density = self._density
        if density is None:
            return self._trial_bases
        fitting = self._max_rows / (density + 1e-9)
        # Small parts wait for each other more often than their matches fail to fit.
        expected = max(fitting / SAFETY, min(self._trial_bases, fitting / SAFETY_OF_SMALL))
        return max(self._trial_bases // LEAST_SHARE, 1, int(expected))


MOST_SPILL_FILES: Final = 16
"""Most spill files open at once; beyond it they are merged into one."""

Result = TypeVar("Result")


@frozen
class Task:
    """A block of queries, and its matches on the groups of pages searched so far.

    Attributes
    ----------
    block : QueryBlock
        The queries.
    groups : list of BlockMems
        The matches on each group whose spill file is read, in the order of the groups.
    earlier_rows : int
        About how many matches there are on all groups before.
    searched : bool
        Whether `groups` already has the matches on the group that is loaded now.
    """

    block: QueryBlock
    groups: list[BlockMems]
    earlier_rows: int = 0
    searched: bool = False

    def halves(self) -> list[Task]:
        """Return the task in two, each with its share of the matches."""
        halves, begin = [], 0
        for block in self.block.halves():
            end = begin + block.query_count
            groups: list[BlockMems] = [
                {s: one.part(begin, end) for s, one in mems.items()} for mems in self.groups
            ]
            halves.append(Task(block, groups, self.earlier_rows // 2))
            begin = end
        return halves


class SpilledGroup:
    """What temporary files keep when a group has been searched: queries, and matches on it.

    The blocks are those of the group before, or parts of them.
    """

    def __init__(self, stack: ExitStack, strands: Sequence[Strand]) -> None:
        self.queries = stack.enter_context(SpilledQueries())
        self.mems = stack.enter_context(SpilledMems(strands))
        self.rows: list[int] = []
        """How many matches each block has on all groups so far."""

    def keep(self, block: QueryBlock, mems: BlockMems, rows: int) -> None:
        """Append a block, its matches, and their number with those on other groups."""
        self.queries.write_block(block)
        self.mems.write_mems(mems)
        self.rows.append(rows)


class GroupPasses:
    """Searches all blocks of queries on all groups of pages.

    Parameters
    ----------
    search : BlockSearch
        Searches a block on the loaded group.
    context : RunContext
        The threads of the run, and whom it tells.
    progress : QueryProgress
        Learns which blocks are done.
    cuts_blocks : bool
        Whether blocks are cut by the number of their matches (`BlockParts`): then it varies from
        run to run which queries come together.
    max_rows : int, optional
        The most matches of a part, if fewer than suit the backend.
    """

    def __init__(
        self,
        search: BlockSearch,
        context: RunContext,
        progress: QueryProgress,
        cuts_blocks: bool = True,
        max_rows: int = UNBOUNDED,
    ) -> None:
        self._search = search
        sizes = search.sizes
        self._sizes = replace(sizes, max_rows=min(sizes.max_rows, max_rows))
        self._cuts_blocks = cuts_blocks
        self._executor, self._window = context.executor, context.window
        self._stats = context.stats
        self._progress = progress

    def results(
        self,
        group_count: int,
        load_group: Callable[[int], None],
        blocks: Iterator[QueryBlock],
        prepare: Callable[[QueryBlock, BlockMems], Result],
        fused: FusedSearch[Result] | None = None,
    ) -> Generator[Result]:
        """Search all blocks on all groups of pages, and yield what is prepared of each block.

        Parameters
        ----------
        group_count : int
            The number of groups, at least 1.
        load_group : callable
            Loads the group with the given number, in place of the group before.
        blocks : iterator of QueryBlock
            The queries; the iterator is read once.
        prepare : callable
            Receives a block and all its matches; a thread of the pool calls it.
        fused : FusedSearch or None
            Prepares the blocks that suit it in place of `prepare`; threads of the pool call it.

        Yields
        ------
        Result
            What `prepare` or `fused` returns, in the order of the blocks. When the next one
            is asked for, a block counts as done.
        """
        spilled: list[SpilledMems] = []
        before: SpilledGroup | None = None
        parts = BlockParts(self._sizes)

        def tell(bases: int, rows: int) -> None:
            # The groups to come are taken to have as many matches each.
            parts.add(bases, group_count * rows)

        with ExitStack() as stack:
            for number in range(group_count):
                load_group(number)
                self._progress.begin_group(number, group_count)
                if before is not None:
                    blocks = before.queries.read_blocks()
                rows = () if before is None else before.rows
                if number == group_count - 1:
                    yield from self._search_last(blocks, spilled, rows, prepare, fused)
                    return
                if before is None and self._cuts_blocks:
                    blocks = (part for block in blocks for part in parts.parts(block))
                # Open files are few: from time to time, this search merges all before it.
                merged = spilled if len(spilled) == MOST_SPILL_FILES else []
                kept = SpilledGroup(stack, self._search.strands)
                self._search_and_spill(self._tasks(blocks, merged, rows), kept, tell)
                for file in (*merged, *([before.queries] if before else [])):
                    file.close()
                spilled = [*([] if merged else spilled), kept.mems]
                before = kept

    def _tasks(
        self, blocks: Iterator[QueryBlock], spilled: Sequence[SpilledMems], rows: Sequence[int]
    ) -> Iterator[Task]:
        """Yield each block with its matches from the spill files.

        A block that would keep one thread busy for long is searched here: the main thread shares
        it among all threads of the pool. A task of the pool could not do that, because it must
        not wait for another task.
        """
        for file in spilled:
            file.rewind()
        for block, earlier in zip(blocks, chain(rows, repeat(0)), strict=False):
            groups = [file.read_mems(block.query_count) for file in spilled]
            searched = self._search.needs_all_threads(block)
            if searched:
                mems = self._search.find_mems(block, UNBOUNDED, self._executor.map)
                assert mems is not None
                groups.append(mems)
            yield Task(block, groups, earlier, searched)

    def _find(self, task: Task) -> BlockMems | None:
        """Return the matches of a task on the loaded group; None if its block has to be cut.

        All matches of a block, on all groups, will be in memory together.
        """
        if not task.block.can_be_cut:
            return self._search.find_mems(task.block)
        left = self._sizes.max_rows - task.earlier_rows
        return self._search.find_mems(task.block, max(1, left))

    def _search_and_spill(
        self, tasks: Iterator[Task], kept: SpilledGroup, tell: Callable[[int, int], None]
    ) -> None:
        """Search all blocks on one group of pages, and write them and their matches to files.

        `tell` receives the bases of each block, and how many matches it has there.
        """

        def search(task: Task) -> tuple[QueryBlock, BlockMems, int] | None:
            if task.searched:
                found = match_count(task.groups[-1])
                return task.block, self._merge(task.groups), task.earlier_rows + found
            mems = self._find(task)
            if mems is None:
                return None
            found = match_count(mems)
            tell(task.block.base_count, found)
            merged = self._merge([*task.groups, mems])
            return task.block, merged, task.earlier_rows + found

        def keep(found: tuple[QueryBlock, BlockMems, int]) -> None:
            kept.keep(*found)
            self._progress.done(found[0])

        ordered_map(self._executor, self._window, tasks, search, keep, Task.halves)

    def _search_last(
        self,
        blocks: Iterator[QueryBlock],
        spilled: Sequence[SpilledMems],
        rows: Sequence[int],
        prepare: Callable[[QueryBlock, BlockMems], Result],
        fused: FusedSearch[Result] | None,
    ) -> Generator[Result]:
        """Search all blocks on the last group, and merge the matches on the earlier groups."""
        parts = BlockParts(self._sizes)

        def search(task: Task) -> tuple[QueryBlock, Result] | None:
            block = task.block
            if task.searched:
                return block, prepare(block, self._merge(task.groups))
            if fused is not None and not spilled and fused.suits(block):
                prepared = fused.prepared(block)
                if prepared is not None:
                    return block, prepared[0]
                if block.can_be_cut:
                    return None
            mems = self._find(task)
            # None has the block cut in halves, each of which is searched again.
            if mems is None:
                return None
            parts.add(block.base_count, match_count(mems))
            return block, prepare(block, self._merge([*task.groups, mems]))

        if self._cuts_blocks and not spilled:
            blocks = (part for block in blocks for part in self._parts(block, parts))
        tasks = self._tasks(blocks, spilled, rows)
        results = ordered_results(self._executor, self._window, tasks, search, Task.halves)
        with closing(results):
            for block, result in results:
                yield result
                self._progress.done(block)
                del result

    def _parts(self, block: QueryBlock, parts: BlockParts) -> Iterator[QueryBlock]:
        """Yield a block in parts, unless all threads will search it together."""
        if self._search.needs_all_threads(block):
            yield block
        else:
            yield from parts.parts(block)

    def _merge(self, groups: Sequence[BlockMems]) -> BlockMems:
        with self._stats.stage("coords_to_buffers"):
            return self._search.merge_groups(groups)
