"""The index of a reference: its pages, each with its flat suffix tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.layout import Layout
from mummergpu.reference import Page, Reference
from mummergpu.sequence import BREAK, CodeArray
from mummergpu.stats import Stats
from mummergpu.tree.flatten import FlatTree, flatten_tree
from mummergpu.tree.order import order_nodes
from mummergpu.tree.suffix_array import grow_sorted_tree
from mummergpu.tree.ukkonen import GrownTree, grow_tree

BUILD_BYTES_PER_BASE: Final = 65
"""What building a page takes besides its flat tree: at most two nodes a base again."""

BUILDERS: Final[dict[str, Callable[[CodeArray], GrownTree]]] = {
    "ukkonen": grow_tree,
    "sa": grow_sorted_tree,
}
"""What makes a tree of the codes of a page: the same tree, each of them."""


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


def page_codes(reference: Reference, page: Page) -> CodeArray:
    """Return the codes of a page with a break behind the last.

    Parameters
    ----------
    reference : Reference
        The reference.
    page : Page
        One of its pages.

    Returns
    -------
    ndarray, dtype=uint8, shape=(page.end - page.begin + 1,)
        A copy.
    """
    return np.append(reference.codes[page.begin : page.end], np.uint8(BREAK))


def build_page(
    reference: Reference, page: Page, layout: Layout, stats: Stats, builder: str = "ukkonen"
) -> IndexedPage:
    """Grow, order and flatten the suffix tree of one page.

    Parameters
    ----------
    reference : Reference
        The reference.
    page : Page
        One of its pages.
    layout : Layout
        How the tree is to lie in memory.
    stats : Stats
        Takes the time of the three stages.
    builder : str
        What grows the tree: a name of `BUILDERS`.

    Returns
    -------
    IndexedPage
        The page, ready to be searched.

    Raises
    ------
    OptionError
        If the builder needs a library that is not installed.
    """
    grow = BUILDERS[builder]
    with stats.stage("tree_construction"):
        grown = grow(page_codes(reference, page))
    with stats.stage("tree_reorder"):
        order = order_nodes(grown, layout.node_reordering)
    base_before = int(reference.codes[page.begin - 1]) if page.begin > 0 else BREAK
    with stats.stage("tree_flatten"):
        tree = flatten_tree(grown, order, layout, base_before)
    return IndexedPage(page, tree, reference.codes)


def build_pages(
    reference: Reference,
    pages: Sequence[Page],
    layout: Layout,
    stats: Stats,
    executor: Executor,
    built: Callable[[], None],
    builder: str = "ukkonen",
) -> list[IndexedPage]:
    """Build the trees of several pages side by side.

    Parameters
    ----------
    reference : Reference
        The reference.
    pages : sequence of Page
        Which of its pages to build.
    layout : Layout
        How the trees are to lie in memory.
    stats : Stats
        Takes the times, and the numbers of nodes and bytes.
    executor : concurrent.futures.Executor
        Runs the work, a page a task.
    built : callable
        Called after each page.
    builder : str
        What grows the trees: a name of `BUILDERS`.

    Returns
    -------
    list of IndexedPage
        In the order of `pages`.
    """
    futures = [
        executor.submit(build_page, reference, page, layout, stats, builder) for page in pages
    ]
    indexed = []
    try:
        for future in futures:
            indexed.append(future.result())
            built()
    finally:
        for future in futures:
            future.cancel()
    for page in indexed:
        stats.add(tree_nodes=page.tree.node_count, tree_leaves=page.tree.leaf_count)
        stats.add_bytes(trees=page.tree.byte_count)
    return indexed
