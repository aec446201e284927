"""The index of a reference: its pages, each with its flat suffix tree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mummergpu.layout import Layout
from mummergpu.reference import Page
from mummergpu.sequence import CodeArray

if TYPE_CHECKING:
    from mummergpu.tree.flatten import FlatTree

BUILD_BYTES_PER_BASE: Final = 65
"""What building a page takes besides its flat tree: at most two nodes a base again."""


@dataclass(frozen=True)
class IndexedPage:
    """A page of a reference and its tree: what a backend is given to search.

    Attributes
    ----------
    page : Page
        Where the page lies in the joined reference.
    tree : FlatTree
        Its suffix tree.
    joined_reference : ndarray, dtype=uint8, shape=(n_bases,)
        The codes of the whole reference, shared by all pages: matches that reach the end
        of their page are followed there.
    """

    page: Page
    tree: FlatTree
    joined_reference: CodeArray


def free_memory() -> int:
    """Return how much memory can be taken without pushing out what is in use.

    Returns
    -------
    int
        In bytes; what the kernel calls available, or half of all where it does not say.
    """
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


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
