"""Searches the queries on one group of pages after the other (paper, section 2.2).

A group is as many pages as fit into memory. If there are several groups, all queries are searched
on each group, and temporary files keep the matches on all groups but the last.

Blocks of queries are large, because between two blocks a thread runs Python code, for which all
threads share one lock. But the search of a block with too many matches is wasted, and repeated in
halves; so the size of a block depends on the number of matches of earlier queries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from math import ceil
from typing import Any, Final, Protocol, TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.search import UNBOUNDED, BlockSearch
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.progress import QueryProgress
from mummergpu.pipeline.spill import SpilledMems, SpilledQueries
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.sequence.mems import BlockMems, match_count
from mummergpu.sequence.strand import Strand

SAFETY: Final = 4.0
"""A part must have room for this multiple of the expected matches."""

SAFETY_OF_SMALL: Final = 1.5
"""The same multiple for parts that are smaller than the first one."""

FORGETTING: Final = 0.75
"""The factor by which the highest density decays with each part that has fewer matches."""


LEAST_SHARE: Final = 64
"""With very many matches, parts are at most this many times smaller than the first: a wasted search
costs as much as all the matches that fit."""


LAST_PARTS: Final = 4
"""The last parts, and the first ones for a device, are at most this many times smaller than the
others, so that all threads end together. Even smaller ones would cost more than that saves."""

LEAST_CUT: Final = 1 << 19
"""The bases of the least block of which a `LAST_PARTS`th is not too small a part."""

MOST_ROWS_IF_LIMITED: Final = 1 << 19
"""The most matches of a part if the memory of a run is limited: the allowance of a thread holds
them and the results made from them."""


class BlockParts:
    """Cuts blocks into parts sized by the matches of earlier parts; any thread may call `add`."""

    def __init__(self, sizes: WorkSizes) -> None:
        self._first_batch_bases = sizes.first_batch_bases
        self._max_rows = sizes.max_rows
        self._density: float | None = None
        self._lock = threading.Lock()

    def add(self, bases: int, rows: int) -> None:
        """Record the expected number of matches of a part on all groups."""
        density = rows / max(bases, 1)
        with self._lock:
            kept = 0.0 if self._density is None else self._density * FORGETTING
            self._density = max(density, kept)

    def parts(
        self, block: QueryBlock, fair: Callable[[], int] = lambda: UNBOUNDED
    ) -> Iterator[QueryBlock]:
        """Yield the queries of a block in parts, in order; no query is cut.

        `fair` returns the most bases that let all threads begin and end together: parts are
        smaller for it, down to a `LAST_PARTS`th.
        """
        whole = max(block.base_count, min(self._first_batch_bases, LEAST_CUT))

        def most() -> int:
            usual = self.max_bases()
            return min(usual, max(fair(), min(usual, whole) // LAST_PARTS, 1))

        while block.base_count > (size := most()) and block.can_be_cut:
            # Equal parts: a small rest would cost as much of the interpreter's lock as a large one.
            first, block = block.split_at(block.base_count // ceil(block.base_count / size))
            yield first
        yield block

    def max_bases(self) -> int:
        """Return the approximate number of bases of the next part."""
        density = self._density
        if density is None:
            return self._first_batch_bases
        fitting = self._max_rows / (density + 1e-9)
        # For small parts, threads waiting for each other cost more than matches that do not fit.
        expected = max(fitting / SAFETY, min(self._first_batch_bases, fitting / SAFETY_OF_SMALL))
        return max(self._first_batch_bases // LEAST_SHARE, 1, int(expected))


MOST_SPILL_FILES: Final = 16
"""The most spill files open at once; more are merged into one."""

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)


class FusedSearch(Protocol[Made]):
    """Searches a block and prepares its result in one step; many threads may call it at once."""

    def suits(self, block: QueryBlock) -> bool:
        """Return whether a block can be searched in one step on the loaded pages."""

    def prepared(self, block: QueryBlock) -> tuple[Made] | None:
        """Return the result of a block in a tuple of one, or None if it has too many matches.

        Then it is cut; if it has only one query, its matches are found and prepared in two steps.
        """


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
        The approximate number of matches on all earlier groups.
    searched : bool
        Whether `groups` already has the matches on the group that is loaded now.
    """

    block: QueryBlock
    groups: list[BlockMems]
    earlier_rows: int = 0
    searched: bool = False

    def halves(self) -> list[Task]:
        """Return two tasks of half the block, each with its share of the matches."""
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
    """Temporary files with the queries and their matches on a group that has been searched.

    The blocks are those of the previous group, or parts of them.
    """

    def __init__(self, stack: ExitStack, strands: Sequence[Strand]) -> None:
        self.queries = stack.enter_context(SpilledQueries())
        self.mems = stack.enter_context(SpilledMems(strands))
        self.rows: list[int] = []
        """The number of matches of each block on all groups so far."""

    def keep(self, block: QueryBlock, mems: BlockMems, rows: int) -> None:
        """Append a block and its matches; `rows` also counts those on earlier groups."""
        self.queries.write_block(block)
        self.mems.write_mems(mems)
        self.rows.append(rows)


class BlockSearchLoop:
    """Searches all blocks of queries on all groups of pages.

    If `cuts_blocks`, blocks are cut by the number of their matches (`BlockParts`), so the queries
    of a block vary from run to run. `max_rows` limits the matches of a part further than the
    backend does. `maps` says that threads have far more to do with a part than a device that
    searches it. Several calls of `results`, also at the same time, learn from each other how large
    parts may be.
    """

    def __init__(
        self,
        search: BlockSearch,
        context: RunContext,
        progress: QueryProgress,
        cuts_blocks: bool = True,
        max_rows: int = UNBOUNDED,
        maps: bool = False,
    ) -> None:
        self._search = search
        sizes = search.sizes
        self._sizes = replace(sizes, max_rows=min(sizes.max_rows, max_rows))
        self._cuts_blocks = cuts_blocks
        self._parts = BlockParts(self._sizes)
        self._drawn = 0
        self._executor, self._window = context.executor, context.window
        self._threads, self._has_device = context.threads, context.waiting_threads > 0
        self._maps = maps
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
        """Search all blocks on all groups of pages; yield the result of each block, in order.

        `load_group` replaces the loaded group by the group with a number. `prepare` makes the
        result from a block and all its matches in a thread of the pool. `fused` replaces the search
        and `prepare` for the blocks that suit it, if there is one group. A block counts as done
        when the next result is requested.
        """
        spilled: list[SpilledMems] = []
        before: SpilledGroup | None = None
        if self._cuts_blocks:
            blocks = self._in_parts(blocks, group_count)
        with ExitStack() as stack:
            for number in range(group_count):
                load_group(number)
                self._progress.begin_group(number, group_count)
                is_last = number == group_count - 1
                # To limit open files, this search merges all earlier ones from time to time.
                merged = spilled if is_last or len(spilled) == MOST_SPILL_FILES else []
                kept = None if is_last else SpilledGroup(stack, self._search.strands)
                tasks = self._tasks(blocks, merged, before.rows if before else ())
                search = partial(
                    self._search_task,
                    group_count,
                    prepare if is_last else _columns,
                    fused if group_count == 1 else None,
                )
                results = ordered_results(self._executor, self._window, tasks, search, Task.halves)
                with closing(results):
                    for block, result, rows in results:
                        if kept is None:
                            yield result
                        else:
                            kept.keep(block, result, rows)
                        self._progress.done(block)
                        del result
                if kept is not None:
                    for file in (*merged, *([before.queries] if before else [])):
                        file.close()
                    spilled = [*([] if merged else spilled), kept.mems]
                    before, blocks = kept, kept.queries.read_blocks()

    def _in_parts(self, blocks: Iterator[QueryBlock], group_count: int) -> Iterator[QueryBlock]:
        """Yield blocks in parts; with one group, blocks that need all threads stay whole."""

        def fair() -> int:
            expected = self._progress.expected_bases
            left = UNBOUNDED if expected is None else max(0, expected - self._drawn)
            if self._has_device:
                # It takes as long for a small part; but it searches one after the other, and while
                # the first ones are small, threads get theirs sooner.
                left = min(left, self._drawn) if self._maps else UNBOUNDED
            return left // self._threads

        for block in blocks:
            whole = group_count == 1 and self._search.needs_all_threads(block)
            for part in (block,) if whole else self._parts.parts(block, fair):
                yield part
                self._drawn += part.base_count

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

    def _search_task(
        self,
        group_count: int,
        prepare: Callable[[QueryBlock, BlockMems], Any],
        fused: FusedSearch[Any] | None,
        task: Task,
    ) -> tuple[QueryBlock, Any, int] | None:
        """Return a block, its result, and the number of its matches on all groups so far.

        None makes the caller search the block again in halves.
        """
        block, groups, rows = task.block, task.groups, task.earlier_rows
        if task.searched:
            rows += match_count(groups[-1])
        else:
            if fused is not None and fused.suits(block):
                if (prepared := fused.prepared(block)) is not None:
                    return block, prepared[0], rows
                if block.can_be_cut:
                    return None
            # The limit is for the matches on all groups: they will be in memory together.
            most = max(1, self._sizes.max_rows - rows) if block.can_be_cut else UNBOUNDED
            mems = self._search.find_mems(block, most)
            if mems is None:
                return None
            found = match_count(mems)
            # Each later group is expected to have the same number of matches.
            self._parts.add(block.base_count, group_count * found)
            groups, rows = [*groups, mems], rows + found
        with self._stats.stage("coords_to_buffers"):
            merged = self._search.merge_groups(groups)
        return block, prepare(block, merged), rows


def _columns(_block: QueryBlock, mems: BlockMems) -> BlockMems:
    return mems
