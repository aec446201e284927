"""How a run is divided: pages, the layout of their trees, groups that fit the memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile
from mummergpu.index.kmer_page import choose_kmer_length
from mummergpu.index.kmer_table import MAXIMUM_TABLE_BASES, table_bytes
from mummergpu.index.pages import Page, plan_pages
from mummergpu.index.tree.layout import MAXIMUM_PAGE_BASES, MAXIMUM_WIDE_PAGE_BASES, Layout
from mummergpu.input.queries import bytes_of
from mummergpu.input.reference import Reference
from mummergpu.matching.options import MatchOptions
from mummergpu.pipeline.page_groups import BUILD_BYTES_PER_BASE, group_pages, groups_within
from mummergpu.runtime.memory import free_memory
from mummergpu.runtime.stats import Stats

LEAST_PART_BASES: Final = 1 << 20
"""A part of a reference with a table of its own is not made smaller for want of memory."""

LEAST_SCRATCH_BYTES: Final = 1 << 24
MOST_SCRATCH_BYTES: Final = 1 << 28
SCRATCH_BYTES_PER_BASE: Final = 2
"""Bounds of the memory that building a table may take besides the table's own: most is the
larger of two. An entry has 8 bytes, so a large reference is passed over four times."""

BLOCKS_OF_THREAD: Final = 4
"""So many blocks of queries each thread is to have, if they are not too small then."""

SMALLEST_PART_OF_BLOCK: Final = 8
"""No block is smaller than such a part of the largest, for want of queries."""


@dataclass(frozen=True)
class Plan:
    """What is built and searched in which order.

    Attributes
    ----------
    pages : list of Page
        All pages of the reference.
    groups : list of list of Page
        The same pages; the trees of a group stand in memory together.
    page_size : int
        The most bases of a page.
    layout : Layout
        How the trees lie in memory; without trees it has no meaning.
    search_length : int
        The fewest bases of the matches that pages are searched for.
    kmer_length : int
        The bases of the k-mers in the pages' tables; 0 for pages with trees.
    scratch_bytes : int
        About how much memory building a table may take besides.
    """

    pages: list[Page]
    groups: list[list[Page]]
    page_size: int
    layout: Layout
    search_length: int
    kmer_length: int = 0
    scratch_bytes: int = 0


def search_length(options: MatchOptions) -> int:
    """Return the fewest bases of the matches that pages are searched for.

    Parameters
    ----------
    options : MatchOptions
        What the run is told.

    Returns
    -------
    int
        The minimum length, or about half a page if that is less: matches are followed over
        the ends of pages, so they can be longer than a page; but pages overlap by one base
        less than what is searched for.
    """
    page_size = MAXIMUM_PAGE_BASES if options.page_size is None else options.page_size
    return min(options.minimum_length, (page_size + 1) // 2)


def make_plan(
    options: MatchOptions, reference: Reference, most_tree_bytes: int | None = None
) -> Plan:
    """Divide a reference into pages, and the pages into groups.

    Parameters
    ----------
    options : MatchOptions
        What the run is told.
    reference : Reference
        The reference.
    most_tree_bytes : int or None
        The most bytes of trees that the backend can hold at once in a memory of its own; None
        if it uses that of the host.

    Returns
    -------
    Plan
        The same for the same options, reference and free memory.

    Raises
    ------
    OptionError
        If pages cannot be as large as was asked for.
    """
    memory = free_memory() // 2 if options.memory is None else options.memory
    if options.search == "sampled":
        return plan_tables(options, reference, memory, most_tree_bytes)
    check_page_size(options)
    length = search_length(options)
    bases = reference.codes.size
    page_size = options.page_size
    if page_size is None:
        page_size = largest_pages(options, bases, length - 1, memory, most_tree_bytes)
    wide = options.address_bits == 32 or min(page_size, bases) > MAXIMUM_PAGE_BASES
    layout = Layout.of(options.policy, wide)
    pages = plan_pages(bases, page_size, length - 1)
    groups = group_pages(pages, memory, options.threads, layout, most_tree_bytes)
    return Plan(pages, groups, page_size, layout, length)


def plan_tables(
    options: MatchOptions, reference: Reference, memory: int, most_device_bytes: int | None
) -> Plan:
    """Divide a reference into parts that get tables of k-mers, as few as memory allows.

    Parameters
    ----------
    options : MatchOptions
        What the run is told.
    reference : Reference
        The reference.
    memory : int
        About how many bytes the tables may take together.
    most_device_bytes : int or None
        As in `make_plan`.

    Returns
    -------
    Plan
        Its pages do not overlap: matches are extended in the whole reference.
    """
    bases = reference.codes.size
    length = options.minimum_length
    most = memory if most_device_bytes is None else min(memory, most_device_bytes)
    page_size = min(options.page_size or bases, MAXIMUM_TABLE_BASES)

    def bytes_of(page_bases: int) -> int:
        return table_bytes(page_bases, choose_kmer_length(length, page_bases))

    if options.page_size is None:
        while bytes_of(page_size) > most and page_size > LEAST_PART_BASES:
            page_size = -(-page_size // 2)
    kmer_length = choose_kmer_length(length, min(page_size, bases))
    pages = plan_pages(bases, page_size, 0)
    groups = groups_within(
        pages, most, lambda page: table_bytes(page.end - page.begin, kmer_length)
    )
    most_scratch = max(MOST_SCRATCH_BYTES, SCRATCH_BYTES_PER_BASE * min(page_size, bases))
    scratch = min(max(memory // 4, LEAST_SCRATCH_BYTES), most_scratch)
    layout = Layout.of(options.policy, False)
    return Plan(pages, groups, page_size, layout, length, kmer_length, scratch)


def plan_of_index(
    options: MatchOptions, index: IndexFile, most_device_bytes: int | None = None
) -> Plan:
    """Divide the pages of an index file into groups.

    Parameters
    ----------
    options : MatchOptions
        What the run is told.
    index : IndexFile
        The index.
    most_device_bytes : int or None
        As in `make_plan`.

    Returns
    -------
    Plan
        All pages in one group, unless the memory of a device, what is told or, without
        either, what is free is too little.

    Raises
    ------
    OptionError
        If the options need another index.
    """
    require_index(options, index)
    most = free_memory() if options.memory is None else options.memory
    if most_device_bytes is not None:
        most = most_device_bytes
    header = index.header
    groups = groups_within(index.pages, most, lambda page: index.page_bytes(page.index))
    length = options.minimum_length
    if header.search == "tree" and len(index.pages) > 1:
        # Longer matches are among those for which the pages overlap.
        length = min(length, header.search_length)
    return Plan(index.pages, groups, header.page_size, index.layout, length, header.kmer_length)


def require_index(options: MatchOptions, index: IndexFile) -> None:
    """Refuse options for which another index would be needed.

    Parameters
    ----------
    options : MatchOptions
        What the run is told.
    index : IndexFile
        The index.

    Raises
    ------
    OptionError
        Names the option, and says what the index has.
    """
    header = index.header
    if options.search != header.search:
        raise OptionError("--search", f"the index '{index.path}' is for '{header.search}'")
    if options.minimum_length < header.kmer_length:
        raise OptionError(
            "-l",
            f"the index '{index.path}' has {header.kmer_length}-mers and finds no shorter "
            f"matches; make one with 'mummergpu index -l {options.minimum_length}'",
        )
    layout = Layout.of(options.policy, index.layout.wide)
    if header.search == "tree" and layout != index.layout:
        raise OptionError("--policy", f"the index '{index.path}' is laid out for '{header.policy}'")


def choose_block_size(options: MatchOptions, most_bases: int) -> int:
    """Return about how many bases make a block of queries.

    Parameters
    ----------
    options : MatchOptions
        What the run is told; the sizes of the query files count.
    most_bases : int
        What the backend likes.

    Returns
    -------
    int
        What was asked for; else what the backend likes, or less where the queries are few, for
        all threads are to have some blocks.
    """
    if options.block_size is not None:
        return options.block_size
    total = bytes_of(options.query_paths)
    if total is None:
        return most_bases
    # A byte of a file is about a base.
    fair = total // (BLOCKS_OF_THREAD * options.threads)
    return min(most_bases, max(fair, most_bases // SMALLEST_PART_OF_BLOCK))


def check_page_size(options: MatchOptions) -> None:
    """Refuse pages that no format, or not the chosen one, has addresses for.

    Parameters
    ----------
    options : MatchOptions
        What the run is told.

    Raises
    ------
    OptionError
        Names the option that is wrong.
    """
    if options.page_size is None:
        return
    if options.page_size > MAXIMUM_WIDE_PAGE_BASES:
        raise OptionError(
            "--page-size", f"a page can have at most {MAXIMUM_WIDE_PAGE_BASES} bases (1G)"
        )
    if options.address_bits == 24 and options.page_size > MAXIMUM_PAGE_BASES:
        raise OptionError(
            "--address-bits", f"24 allow pages of at most {MAXIMUM_PAGE_BASES} bases (8M)"
        )


def largest_pages(
    options: MatchOptions,
    bases: int,
    overlap: int,
    memory: int,
    most_tree_bytes: int | None = None,
) -> int:
    """Return the page size that cuts a reference into as few pages as memory allows.

    Parameters
    ----------
    options : MatchOptions
        What the run is told; its page size does not count.
    bases : int
        The length of the joined reference.
    overlap : int
        The bases that two neighbours share.
    memory : int
        How many bytes a tree and its construction may take.
    most_tree_bytes : int or None
        As in `make_plan`.

    Returns
    -------
    int
        The most bases of a page. No page is smaller than the paper's for want of memory;
        larger ones are all about as large, so that no memory is left idle.
    """
    if bases <= MAXIMUM_PAGE_BASES or options.address_bits == 24:
        return MAXIMUM_PAGE_BASES
    layout = Layout.of(options.policy, wide=True)
    fitting = min(memory // (layout.most_bytes_per_base + BUILD_BYTES_PER_BASE), bases)
    if most_tree_bytes is not None:
        fitting = min(fitting, most_tree_bytes // layout.most_bytes_per_base)
    fitting = min(max(fitting, MAXIMUM_PAGE_BASES), layout.maximum_bases)
    if fitting == MAXIMUM_PAGE_BASES:
        return fitting
    count = -(-(bases - overlap) // (fitting - overlap))
    return -(-(bases - overlap) // count) + overlap


def describe_plan(
    plan: Plan,
    options: MatchOptions,
    reference: Reference,
    backend: str,
    stats: Stats,
    notice: Callable[[str], None],
) -> None:
    """Tell people and the report what is about to be done.

    Parameters
    ----------
    plan : Plan
        How the run is divided.
    options : MatchOptions
        What the run is told.
    reference : Reference
        The reference.
    backend : str
        The name of the backend.
    stats : Stats
        Takes the numbers and settings.
    notice : callable
        Takes a line for people.
    """
    records = len(reference.names)
    bases = int(reference.record_lengths.sum())
    stats.add(reference_records=records, reference_bases=bases, pages=len(plan.pages))
    stats.set(
        backend=backend,
        minimum_length=options.minimum_length,
        threads=options.threads,
        page_size=plan.page_size,
        page_groups=len(plan.groups),
        search=options.search,
    )
    if plan.kmer_length:
        stats.set(kmer_length=plan.kmer_length)
        how = f"sampled search of {plan.kmer_length}-mers"
    else:
        stats.set(
            policy=options.policy.code,
            address_bits=plan.layout.address_bits,
            builder=options.builder,
        )
        how = f"tree search, policy {options.policy.code}, {plan.layout.address_bits}-bit addresses"
    notice(
        f"reference of {bases:,} bases in {records:,} records, {len(plan.pages)} pages in "
        f"{len(plan.groups)} groups; backend {backend}, {how}, {options.threads} threads"
    )
