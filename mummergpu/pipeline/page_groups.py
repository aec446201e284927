"""Pages divided into groups that fit the memory together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from mummergpu.index.pages import Page
from mummergpu.index.tree.layout import Layout

BUILD_BYTES_PER_BASE: Final = 65
"""What building a page takes besides its flat tree: at most two nodes a base again."""


def group_pages(
    pages: Sequence[Page],
    memory: int,
    threads: int,
    layout: Layout,
    device_memory: int | None = None,
) -> list[list[Page]]:
    """Divide the pages into groups whose trees fit the memory together.

    Parameters
    ----------
    pages : sequence of Page
        All pages of a reference.
    memory : int
        About how many bytes the trees of a group and their construction may take.
    threads : int
        How many pages are built at the same time.
    layout : Layout
        How the trees lie in memory.
    device_memory : int or None
        How many bytes the trees of a group may take on a device, where they are not built;
        None without a device.

    Returns
    -------
    list of list of Page
        At least one page each, in the order of the reference.
    """
    most_tree_bytes = memory if device_memory is None else device_memory
    groups: list[list[Page]] = []
    trees = building = 0
    for page in pages:
        bases = page.end - page.begin
        tree = bases * layout.most_bytes_per_base
        trees += tree
        if groups and len(groups[-1]) < threads:
            building += bases * BUILD_BYTES_PER_BASE
        if not groups or trees > most_tree_bytes or trees + building > memory:
            groups.append([])
            trees, building = tree, bases * BUILD_BYTES_PER_BASE
        groups[-1].append(page)
    return groups


def groups_within(
    pages: Sequence[Page], most: int, bytes_of: Callable[[Page], int]
) -> list[list[Page]]:
    """Divide pages into groups of at most so many bytes, or of one page.

    Parameters
    ----------
    pages : sequence of Page
        In the order of the reference.
    most : int
        The most bytes of a group of several pages.
    bytes_of : callable
        Returns the bytes of a page.

    Returns
    -------
    list of list of Page
        At least one page each, in the same order.
    """
    groups: list[list[Page]] = []
    taken = 0
    for page in pages:
        size = bytes_of(page)
        if not groups or taken + size > most:
            groups.append([])
            taken = 0
        groups[-1].append(page)
        taken += size
    return groups
