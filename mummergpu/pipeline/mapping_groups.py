"""Maps all reads to an index that is loaded as a whole, or in one group of pages after the other.

A read needs all of its matches before a place is chosen. If the index has several groups, reads are
searched on each group, and temporary files keep their matches (`block_search_loop`): first the
pairs for the estimate of insert sizes, then all reads, then those of the second pass. The output is
the same as with one group.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Condition
from typing import Final, TypeVar, cast

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.alignments.columns import AlignmentColumns, replace_reads
from mummergpu.mapping.candidates.candidates import NUMBERS, Candidates
from mummergpu.mapping.placing.insert_size import LIBRARY, PairSizes
from mummergpu.mapping.placing.second_pass import DoubtfulReads, part_of_reads
from mummergpu.matching.search import BlockSearch
from mummergpu.pipeline.block_search_loop import MOST_ROWS_IF_LIMITED, BlockSearchLoop, FusedSearch
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.mapping_search import MappingSearch
from mummergpu.pipeline.progress import QueryProgress
from mummergpu.pipeline.spill import SpilledQueries
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.sequence.mems import BlockMems, match_count

Result = TypeVar("Result")

Prepare = Callable[[ReadBlock, AlignmentColumns], Result]
"""Makes the result of a block from its alignments; threads of the pool call it."""

MOST_ROWS: Final = 1 << 22
"""The most matches of the reads that a thread maps at a time. Each may become a candidate of about
70 bytes."""

CANDIDATES_BYTES: Final = 256 << 20
CANDIDATES_BYTES_PER_THREAD: Final = 16 << 20
CANDIDATE_BYTES: Final = 8 + 4 * NUMBERS
"""If the memory of a run is limited, all candidates take at most `CANDIDATES_BYTES` and the second
number per thread, half of the allowance beyond the limit (`memory`); a lone task may take more."""

_STRANDS: Final = 2


FirstPass = tuple[ReadBlock, AlignmentColumns, DoubtfulReads]
"""A block, its alignments after the first pass, and the reads to be mapped again."""

FoundAgain = tuple[ReadBlock, BlockMems]
"""Some reads that are mapped again, and their matches of the second pass."""


class MemoryGate:
    """Makes tasks wait until the memory that they need is free.

    A task that needs more than the whole waits until it is alone. So no task waits for one that has
    not begun.

    Parameters
    ----------
    size : int or None
        The total, in any unit; None for no limit.
    """

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def taken(self, size: int) -> Generator[None]:
        """Wait until `size` is free, and hold it while the ``with`` block runs."""
        if self._size is None:
            yield
            return
        most = self._size - size
        with self._changed:
            self._changed.wait_for(lambda: self._taken == 0 or self._taken <= most)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


class SpilledAlignments(SpilledQueries):
    """A temporary file with blocks of reads, their alignments, and which reads are mapped again."""

    def write_alignments(
        self, block: ReadBlock, columns: AlignmentColumns, doubtful: DoubtfulReads
    ) -> None:
        """Append a block with its alignments, and the reads to be mapped again."""
        self.write_block(block)
        self.write(*columns, doubtful.numbers)
        self.write(*doubtful.candidates)

    def read_alignments(self) -> Iterator[FirstPass]:
        """Yield all blocks with their alignments, starting with the first."""
        self.rewind()
        for index in range(self.block_count):
            block = self._read_block(index)
            assert isinstance(block, ReadBlock)
            columns = AlignmentColumns(*(self.read() for _ in AlignmentColumns._fields))
            numbers = self.read()
            candidates = Candidates(*(self.read() for _ in Candidates._fields))
            yield block, columns, DoubtfulReads(numbers, candidates)


class ReadMapping:
    """Maps the reads of a run, while all pages are loaded, or one group after the other.

    If `in_parts`, several threads call `results`, each for a part of the reads; so all threads have
    blocks from the start, which need not be small.
    """

    def __init__(
        self,
        search: MappingSearch,
        context: RunContext,
        progress: QueryProgress,
        is_limited: bool = False,
        in_parts: bool = False,
    ) -> None:
        bytes_of_all = CANDIDATES_BYTES + context.threads * CANDIDATES_BYTES_PER_THREAD
        self._max_rows = MOST_ROWS_IF_LIMITED if is_limited else MOST_ROWS
        self._candidates = MemoryGate(bytes_of_all // CANDIDATE_BYTES if is_limited else None)
        self._search = search
        self._context = context
        self._progress = progress
        self._is_whole = search.group_count == 1
        if self._is_whole:
            search.load_group(0)
        self._mapper = search.mapper()
        self._first = self._loop(search.first, progress, not in_parts)
        self._begins_at_last = False

    def template_sizes(
        self, parts: Sequence[ReadBlock], groups: Sequence[bytes]
    ) -> list[Int64Array]:
        """Return the insert sizes of pairs (`insert_size.measure_templates`).

        Library numbers are those of `ReadBlock.libraries`.
        """

        def measure(block: QueryBlock, mems: BlockMems) -> Int64Array:
            with self._candidates.taken(match_count(mems)):
                reads = cast(ReadBlock, block)
                sizes = self._mapper.insert_sizes(reads, mems)
                sizes[LIBRARY] = reads.libraries(groups)[sizes[LIBRARY]]
            return sizes

        silent = QueryProgress(lambda _: None, _STRANDS)
        # The parts are small already.
        loop = self._loop(self._search.first, silent, False)
        return [*self._searched(loop, iter(parts), measure)]

    def results(
        self, blocks: Iterator[ReadBlock], sizes: PairSizes, prepare: Prepare[Result]
    ) -> Generator[Result]:
        """Map all reads, and yield the results of `prepare` in order.

        A thread of the pool calls `prepare` with a block, or a part of one, and its alignments.
        """
        blocks = sizes.reverse_complemented(blocks)
        if not self._is_whole and self._search.second is not None:
            yield from self._in_two_passes(blocks, sizes, prepare)
            return

        def map_and_prepare(block: QueryBlock, mems: BlockMems) -> Result:
            reads = cast(ReadBlock, block)
            with self._mapping_of(mems):
                columns = self._mapper.map_block(reads, mems, sizes)
            return prepare(reads, columns)

        fused: FusedSearch[Result] | None = None
        if self._is_whole:
            fused = self._search.fused_search(self._mapper, sizes, prepare)
        yield from self._searched(self._first, blocks, map_and_prepare, fused)

    @contextmanager
    def _mapping_of(self, mems: BlockMems) -> Generator[None]:
        """Wait for memory for the candidates of the matches, then time the mapping."""
        with self._candidates.taken(match_count(mems)), self._context.stats.stage("mapping"):
            yield

    def _in_two_passes(
        self, blocks: Iterator[ReadBlock], sizes: PairSizes, prepare: Prepare[Result]
    ) -> Generator[Result]:
        """Search all groups for the matches of all reads, then for those of the second pass."""
        self._progress.expect_groups(0, self._search.group_count)
        with SpilledAlignments() as first, SpilledQueries() as again:
            bases = self._map_first(blocks, sizes, first, again)
            second = self._search_again(again, bases)
            with closing(second):
                yield from self._map_again(first, second, sizes, prepare)

    def _map_first(
        self,
        blocks: Iterator[ReadBlock],
        sizes: PairSizes,
        first: SpilledAlignments,
        again: SpilledQueries,
    ) -> int:
        """Map all reads by the matches of the first pass, and write their alignments to `first`.

        `again` receives the reads to map again; their number of bases is returned.
        """

        def map_once(block: QueryBlock, mems: BlockMems) -> FirstPass:
            reads = cast(ReadBlock, block)
            with self._mapping_of(mems):
                return reads, *self._mapper.map_once(reads, mems, sizes)

        # This thread writes the blocks in order, while others map the next ones.
        bases = 0
        with closing(self._searched(self._first, blocks, map_once)) as results:
            for block, columns, doubtful in results:
                first.write_alignments(block, columns, doubtful)
                if doubtful.numbers.size:
                    part = part_of_reads(block, doubtful.numbers)
                    again.write_block(part)
                    bases += part.base_count
        return bases

    def _search_again(self, again: SpilledQueries, bases: int) -> Generator[FoundAgain]:
        """Yield the reads that are mapped again with their matches, in the order of the reads."""
        second = self._search.second
        assert second is not None

        def keep(block: QueryBlock, mems: BlockMems) -> FoundAgain:
            reads = cast(ReadBlock, block)
            return reads, second.chosen(mems, reads)

        if again.block_count:
            progress = QueryProgress(self._context.progress.tell, _STRANDS)
            progress.expect_groups(self._search.group_count, 0)
            progress.read(bases, 1.0)
            loop = self._loop(second.search, progress)
            yield from self._searched(loop, again.read_blocks(), keep)

    def _map_again(
        self,
        first: SpilledAlignments,
        second: Iterator[FoundAgain],
        sizes: PairSizes,
        prepare: Prepare[Result],
    ) -> Generator[Result]:
        """Yield the results of all blocks, with the alignments of the second pass."""

        def map_and_prepare(task: tuple[FirstPass, list[FoundAgain]]) -> Result:
            (block, columns, doubtful), found = task
            begin = 0
            # Reads of a block that were searched in parts are mapped in the same parts.
            for reads, mems in found:
                some = doubtful.part(begin, begin + reads.query_count)
                begin += reads.query_count
                part = part_of_reads(block, some.numbers)
                with self._mapping_of(mems):
                    other = self._mapper.map_again(part, some.candidates, mems, sizes)
                columns = replace_reads(columns, some.numbers, other)
            return prepare(block, columns)

        tasks, context = _with_second(first, second), self._context
        yield from ordered_results(context.executor, context.window, tasks, map_and_prepare)

    def _loop(
        self, search: BlockSearch, progress: QueryProgress, maps: bool = True
    ) -> BlockSearchLoop:
        return BlockSearchLoop(search, self._context, progress, max_rows=self._max_rows, maps=maps)

    def _searched(
        self,
        loop: BlockSearchLoop,
        blocks: Iterator[QueryBlock],
        prepare: Callable[[QueryBlock, BlockMems], Result],
        fused: FusedSearch[Result] | None = None,
    ) -> Generator[Result]:
        """Search blocks on all groups; yield the result of each with all of its matches.

        A search begins with the group with which the previous search ended: it is loaded already.
        """
        count = self._search.group_count
        order = range(count)[::-1] if self._begins_at_last else range(count)
        self._begins_at_last = not self._begins_at_last

        def load(number: int) -> None:
            self._search.load_group(order[number])

        yield from loop.results(count, load, blocks, prepare, fused)


def _with_second(
    first: SpilledAlignments, second: Iterator[FoundAgain]
) -> Iterator[tuple[FirstPass, list[FoundAgain]]]:
    """Yield all blocks with the results of both passes; the second ones may come in parts."""
    for block, columns, doubtful in first.read_alignments():
        found: list[FoundAgain] = []
        left = doubtful.numbers.size
        while left > 0:
            found.append(next(second))
            left -= found[-1][0].query_count
        yield (block, columns, doubtful), found
    # The search records the last reads as done only when the next result is requested.
    assert next(second, None) is None
