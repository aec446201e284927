"""How a run is divided: pages, the layout of their trees, groups that fit the memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mummergpu.errors import OptionError
from mummergpu.index import group_pages
from mummergpu.layout import MAXIMUM_PAGE_BASES, Layout
from mummergpu.reference import Page, Reference, plan_pages
from mummergpu.settings import MatchOptions
from mummergpu.stats import Stats


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
        How the trees lie in memory.
    search_length : int
        The fewest bases of the matches that pages are searched for.
    """

    pages: list[Page]
    groups: list[list[Page]]
    page_size: int
    layout: Layout
    search_length: int


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
    return min(options.minimum_length, (options.page_size + 1) // 2)


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
        The most bytes of trees that the backend can hold at once besides the memory of the
        host; None if that is all there is.

    Returns
    -------
    Plan
        The same for the same options, reference and free memory.

    Raises
    ------
    OptionError
        If no page can be as large as was asked for.
    """
    if options.page_size > MAXIMUM_PAGE_BASES:
        raise OptionError(
            "--page-size", f"24-bit addresses allow at most {MAXIMUM_PAGE_BASES} bases (8M)"
        )
    length = search_length(options)
    layout = Layout.of(options.policy)
    pages = plan_pages(reference.codes.size, options.page_size, length - 1)
    groups = group_pages(pages, options.memory, options.threads, layout, most_tree_bytes)
    return Plan(pages, groups, options.page_size, layout, length)


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
        policy=options.policy.code,
        minimum_length=options.minimum_length,
        threads=options.threads,
        page_size=plan.page_size,
        page_groups=len(plan.groups),
    )
    notice(
        f"reference of {bases:,} bases in {records:,} records, {len(plan.pages)} pages in "
        f"{len(plan.groups)} groups; backend {backend}, policy {options.policy.code}, "
        f"{options.threads} threads"
    )
