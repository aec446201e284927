"""Plan a run: divide the index into pages and groups of pages, and choose the block size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, Final

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_index import UNKNOWN_QUERY_BASES, KmerIndex
from mummergpu.index.kmer_plan import KmerCost
from mummergpu.index.options import IndexOptions, KmerOptions, TreeOptions
from mummergpu.index.reference_index import ReferenceIndex, StorableIndex
from mummergpu.input.bytes.files import bytes_of_files
from mummergpu.input.circular_records import original_of
from mummergpu.input.reference import Reference
from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.words import pluralize

BLOCKS_OF_THREAD: Final = 4
"""The number of blocks of queries per thread, if the blocks are large enough then."""

SMALLEST_PART_OF_BLOCK: Final = 8
"""The smallest block size is the largest block size divided by this number."""


def plan_index(
    source: Reference | IndexFile,
    options: IndexOptions,
    threads: int,
    device_memory: int | None = None,
    query_bases: int = UNKNOWN_QUERY_BASES,
    other_bytes: int = 0,
) -> ReferenceIndex[Any]:
    """Divide the reference into pages, and the pages into groups; build no page yet.

    The same source, options and free memory give the same plan. `threads` pages are built at the
    same time. `device_memory` limits the pages that a device holds at once. `query_bases` is the
    approximate number of bases on all searched strands. `other_bytes` are the part of the memory
    limit that is not for the index.

    Raises
    ------
    OptionError
        If the index file contradicts the options, or if pages or the memory limit have a wrong
        size.
    """
    whole = MemoryBudget.of(options.memory, device_memory)
    budget = replace(whole, host=max(0, whole.host - other_bytes))
    if isinstance(source, IndexFile):
        stored = _storable_index(source, options, budget, threads, query_bases)
        index = minimizers_beside(stored, options, budget, query_bases) or stored
    else:
        index = _minimizers(source, options, budget, query_bases) or _storable_index(
            source, options, budget, threads, query_bases
        )
    index.check_memory(whole, threads, other_bytes)
    return index


def plan_storable_index(
    source: Reference | IndexFile, options: IndexOptions, threads: int
) -> StorableIndex[Any]:
    """Divide the reference as `plan_index` does, for an index that outlives the run."""
    budget = MemoryBudget.of(options.memory)
    index = _storable_index(source, options, budget, threads, UNKNOWN_QUERY_BASES)
    index.check_memory(budget, threads)
    if isinstance(index, KmerIndex):
        # Reads may be mapped to this index later.
        index.chooses_seeds = True
    return index


def minimizers_beside(
    stored: StorableIndex[Any], options: IndexOptions, budget: MemoryBudget, query_bases: int
) -> ReferenceIndex[Any] | None:
    """Return the plan of a minimizer index for a reference that already has an index, or None.

    None if matches that are not unique are wanted, too, or if the search of the existing index is
    expected to end before a table of minimizers is built and searched.
    """
    if not isinstance(stored, KmerIndex):
        return None
    if _minimizers(stored.reference, options, budget, query_bases, KmerCost(0.0, inf)) is None:
        return None
    kept = stored.expected_cost_of_repeats()
    return _minimizers(stored.reference, options, budget, query_bases, kept)


def _minimizers(
    reference: Reference,
    options: IndexOptions,
    budget: MemoryBudget,
    query_bases: int,
    kept: KmerCost | None = None,
) -> ReferenceIndex[Any] | None:
    """Return an index of minimizers if one is expected to be the best, else None."""
    kind = options.kind
    if not isinstance(kind, KmerOptions) or not kind.unique_strands:
        return None
    from mummergpu.index.minimizer_index import MinimizerIndex

    length = options.minimum_length
    return MinimizerIndex.plan(reference, kind, length, budget, query_bases, kept)


def _storable_index(
    source: Reference | IndexFile,
    options: IndexOptions,
    budget: MemoryBudget,
    threads: int,
    query_bases: int,
) -> StorableIndex[Any]:
    """Return the index of a file, or a new one that a file could hold."""
    if isinstance(source, IndexFile):
        return _open_index(source, options, budget, query_bases)
    reference, length, kind = source, options.minimum_length, options.kind
    if isinstance(kind, KmerOptions):
        planned = KmerIndex.plan(reference, kind, length, budget, query_bases)
        planned.only_unique = kind.unique_strands > 0
        planned.chooses_seeds = kind.chooses_seeds
        return planned
    # Imported here: the k-mer search does not need the modules of the trees.
    from mummergpu.index.tree_index import TreeIndex

    return TreeIndex.plan(reference, kind, length, budget, threads)


def _open_index(
    file: IndexFile, options: IndexOptions, budget: MemoryBudget, query_bases: int
) -> StorableIndex[Any]:
    length, kind = options.minimum_length, options.kind
    if kind.search != file.header.search:
        raise OptionError(
            "reference",
            f"the index '{file.path}' is for '{file.header.search}': make one with "
            f"'mummergpu index --search {kind.search}'",
        )
    if not isinstance(kind, TreeOptions):
        opened = KmerIndex.from_file(file, length, budget, query_bases)
        opened.only_unique = kind.unique_strands > 0
        opened.chooses_seeds = kind.chooses_seeds
        return opened
    from mummergpu.index.tree_index import TreeIndex

    return TreeIndex.from_file(file, kind.policy, length, budget)


def choose_block_size(
    asked: int | None, query_paths: Sequence[str], threads: int, max_bases: int
) -> int:
    """Return the approximate number of bases in a block of queries.

    It is `asked` if given; otherwise the best size of the backend, or less if there are few
    queries, so that every thread gets some blocks.
    """
    if asked is not None:
        return asked
    # A byte counts as a base: a block of FASTQ, which has two bytes for each, takes as long to pass
    # from thread to thread, and half as long to search.
    total = bytes_of_files(query_paths)
    if total is None:
        return max_bases
    fair = total // (BLOCKS_OF_THREAD * threads)
    return min(max_bases, max(fair, max_bases // SMALLEST_PART_OF_BLOCK))


def describe_plan(
    index: ReferenceIndex[Any], minimum_length: int, backend: str, context: RunContext
) -> None:
    """Report the plan of a run as a message and in the statistics; warn of a slow search."""
    reference = original_of(index.reference)
    records = len(reference.names)
    bases = int(reference.record_lengths.sum())
    stats, threads = context.stats, context.threads
    stats.add(reference_records=records, reference_bases=bases, pages=len(index.pages))
    stats.set(
        backend=backend,
        minimum_length=minimum_length,
        threads=threads,
        page_size=index.page_size,
        page_groups=len(index.groups),
        search=index.search,
        **index.settings(),
    )
    context.notice(
        f"reference of {pluralize(bases, 'base')} in {pluralize(records, 'record')}, "
        f"{pluralize(len(index.pages), 'page')} in {pluralize(len(index.groups), 'group')}; "
        f"backend {backend}, {index.describe()}, {pluralize(threads, 'thread')}"
    )
    for warning in (index.slow_search_warning(), index.memory_warning):
        if warning:
            context.warn(warning)
