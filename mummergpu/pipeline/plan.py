"""How a run is divided: the index of its reference in groups of pages, and blocks of queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_index import KmerIndex
from mummergpu.index.options import IndexOptions, KmerOptions, TreeOptions
from mummergpu.index.reference_index import ReferenceIndex
from mummergpu.input.queries import bytes_of
from mummergpu.input.reference import Reference
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats

BLOCKS_OF_THREAD: Final = 4
"""How many blocks of queries each thread is to have, if they are not too small then."""

SMALLEST_PART_OF_BLOCK: Final = 8
"""No block is smaller than this part of the largest, however few the queries are."""


def plan_index(
    source: Reference | IndexFile,
    options: IndexOptions,
    threads: int,
    device_memory: int | None = None,
) -> ReferenceIndex[Any]:
    """Divide what is searched into pages, and the pages into groups.

    Parameters
    ----------
    source : Reference or IndexFile
        A reference to be indexed, or the file that holds its index.
    options : IndexOptions
        How the index is to be built, or what the file must be.
    threads : int
        How many pages are built at the same time.
    device_memory : int or None
        The most bytes of pages that a device can hold at once; None without a device.

    Returns
    -------
    KmerIndex or TreeIndex
        The same for the same source, options and free memory. Nothing is built yet.

    Raises
    ------
    OptionError
        If the pages cannot be as large as was asked for, if another index file would be
        needed, or if the limit of memory is too low.
    """
    budget = MemoryBudget.of(options.memory, device_memory)
    if isinstance(source, IndexFile):
        index = _open_index(source, options, budget)
    else:
        index = _new_index(source, options, budget, threads)
    index.check_memory(budget, threads)
    return index


def _new_index(
    reference: Reference, options: IndexOptions, budget: MemoryBudget, threads: int
) -> ReferenceIndex[Any]:
    length, kind = options.minimum_length, options.kind
    if isinstance(kind, KmerOptions):
        return KmerIndex.plan(reference, kind, length, budget)
    # A search of tables needs nothing of trees.
    from mummergpu.index.tree_index import TreeIndex

    return TreeIndex.plan(reference, kind, length, budget, threads)


def _open_index(
    file: IndexFile, options: IndexOptions, budget: MemoryBudget
) -> ReferenceIndex[Any]:
    length, kind = options.minimum_length, options.kind
    if kind.search != file.header.search:
        raise OptionError("--search", f"the index '{file.path}' is for '{file.header.search}'")
    if not isinstance(kind, TreeOptions):
        return KmerIndex.from_file(file, length, budget)
    from mummergpu.index.tree_index import TreeIndex

    return TreeIndex.from_file(file, kind.policy, length, budget)


def choose_block_size(
    asked: int | None, query_paths: Sequence[str], threads: int, most_bases: int
) -> int:
    """Return about how many bases make a block of queries.

    Parameters
    ----------
    asked : int or None
        What the user asks for.
    query_paths : sequence of str
        The files of queries, whose sizes count.
    threads : int
        Number of working threads.
    most_bases : int
        What the backend likes.

    Returns
    -------
    int
        What was asked for; else what the backend likes, or less where the queries are few, so
        that all threads have some blocks.
    """
    if asked is not None:
        return asked
    total = bytes_of(query_paths)
    if total is None:
        return most_bases
    # A byte of a file is about a base.
    fair = total // (BLOCKS_OF_THREAD * threads)
    return min(most_bases, max(fair, most_bases // SMALLEST_PART_OF_BLOCK))


def describe_plan(
    index: ReferenceIndex[Any],
    minimum_length: int,
    threads: int,
    backend: str,
    stats: Stats,
    notice: Callable[[str], None],
) -> None:
    """Tell people and the report what is about to be done.

    Parameters
    ----------
    index : KmerIndex or TreeIndex
        What is searched, in its pages and groups.
    minimum_length : int
        The fewest bases of a match.
    threads : int
        Number of working threads.
    backend : str
        The name of the backend.
    stats : Stats
        Takes the numbers and settings.
    notice : callable
        Takes a line for people.
    """
    reference = index.reference
    records = len(reference.names)
    bases = int(reference.record_lengths.sum())
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
    notice(
        f"reference of {bases:,} bases in {records:,} records, {len(index.pages)} pages in "
        f"{len(index.groups)} groups; backend {backend}, {index.describe()}, {threads} threads"
    )
