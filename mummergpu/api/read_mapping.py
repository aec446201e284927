"""Opens what maps reads to an index that stays in memory, as a whole or group by group."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import StringIO
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from mummergpu.api.engine import Engine
from mummergpu.input.queries import QueryBlock
from mummergpu.input.read_block import ReadBlock
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.placing.pair_sizes import PairSizes
from mummergpu.matching.options import DeviceOptions, SearchOptions
from mummergpu.matching.search import BlockMems
from mummergpu.pipeline.mapping_groups import MappingWork, Prepare, ReadMapping, open_mapping
from mummergpu.pipeline.mapping_passes import SecondSearch
from mummergpu.pipeline.mapping_search import MappingSearch
from mummergpu.pipeline.query_progress import QueryProgress
from mummergpu.runtime.progress import NullProgress, Work
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand

Result = TypeVar("Result")

_STRANDS = (Strand.FORWARD, Strand.REVERSE)


@contextmanager
def open_read_mapping(
    engine: Engine, options: MappingOptions, second_length: int, device: DeviceOptions
) -> Iterator[ReadMapping]:
    """Open what maps reads to the index of an engine.

    Parameters
    ----------
    engine : Engine
        Has the index, a table of k-mers.
    options : MappingOptions
        How the first pass maps.
    second_length : int
        The length of the shortest matches of the second pass.
    device : DeviceOptions
        Where to search.

    Yields
    ------
    ReadMapping
        Other searches of the index run at the same time if it has one group of pages; else they
        wait for the end.
    """
    kept = engine.kept_index(engine.options.minimum_length)
    if kept.has_one_group:
        yield _MappingToKeptPages(engine, options, second_length, device)
        return
    threads, stats = device.threads, Stats()
    with engine.lend_backend(device, engine.options.minimum_length) as backend:
        executor = ThreadPoolExecutor(threads, thread_name_prefix="mummergpu")
        try:
            search = MappingSearch(
                kept.plan,
                backend,
                options,
                second_length,
                executor,
                threads,
                stats,
                NullProgress(StringIO()),
                _ignore_part,
            )
            done = QueryProgress(_ignore, len(_STRANDS))
            yield open_mapping(MappingWork(search, executor, threads, stats, _ignore, done))
        finally:
            # Searches that are under way read the pages, which must not go before they end.
            executor.shutdown(wait=True, cancel_futures=True)


class _MappingToKeptPages:
    """Maps reads to pages that stay in memory, beside other searches."""

    def __init__(
        self, engine: Engine, options: MappingOptions, second_length: int, device: DeviceOptions
    ) -> None:
        engine.prepare(device.threads)
        kept = engine.kept_index(engine.options.minimum_length)
        assert kept.pages is not None
        find_more = None
        if second_length < options.seed_length:
            second = SecondSearch(engine.reference, second_length, Stats())
            second.load_pages(kept.pages)
            find_more = second.find_mems
        self._mapper = BlockMapper(engine.reference, options, find_more)
        self._engine = engine
        self._device = device
        self._search = SearchOptions(options.seed_length, _STRANDS)

    def template_sizes(self, parts: Sequence[ReadBlock]) -> list[npt.NDArray[np.int64]]:
        """Return the sizes of the templates of pairs (`ReadMapping`)."""

        def measure(block: QueryBlock, mems: BlockMems) -> npt.NDArray[np.int64]:
            return self._mapper.insert_sizes(cast(ReadBlock, block), mems)

        device = self._device
        return list(
            self._engine.results(iter(parts), self._search, device, device.threads, measure)
        )

    def results(
        self, blocks: Iterator[ReadBlock], sizes: PairSizes, prepare: Prepare[Result]
    ) -> Generator[Result]:
        """Map all reads, and yield what is prepared of their alignments (`ReadMapping`)."""

        def map_and_prepare(block: QueryBlock, mems: BlockMems) -> Result:
            reads = cast(ReadBlock, block)
            return prepare(reads, self._mapper.map_block(reads, mems, sizes))

        device = self._device
        yield from self._engine.results(
            blocks, self._search, device, device.threads, map_and_prepare
        )


def _ignore(_work: Work) -> None:
    """Report no progress."""


def _ignore_part(_block: QueryBlock, _bases: int) -> None:
    """Report nothing when a part of a long read is searched."""
