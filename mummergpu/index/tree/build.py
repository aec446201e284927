"""Builds the trees of pages: grows, orders and flattens each tree.

The code for trees has a package of its own, so that a k-mer search imports none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import numpy as np

from mummergpu.index.pages import Page
from mummergpu.index.tree.flatten import flatten_tree
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.node_order import order_nodes
from mummergpu.index.tree.page import TreePage
from mummergpu.index.tree.ukkonen import grow_tree
from mummergpu.input.reference import Reference
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK, CodeArray


def page_codes(reference: Reference, page: Page) -> CodeArray:
    """Return a copy of a page's codes, followed by a break."""
    return np.append(reference.codes[page.begin : page.end], np.uint8(BREAK))


def build_page(reference: Reference, page: Page, layout: Layout, stats: Stats) -> TreePage:
    """Grow, order and flatten the suffix tree of one page."""
    with stats.stage("tree_construction"):
        grown = grow_tree(page_codes(reference, page))
    with stats.stage("tree_reorder"):
        order = order_nodes(grown, layout.node_reordering)
    base_before = int(reference.codes[page.begin - 1]) if page.begin > 0 else BREAK
    with stats.stage("tree_flatten"):
        tree = flatten_tree(grown, order, layout, base_before)
    return TreePage(page, tree, reference.codes)


def build_pages(
    reference: Reference,
    pages: Sequence[Page],
    layout: Layout,
    stats: Stats,
    executor: Executor,
    built: Callable[[], None],
) -> list[TreePage]:
    """Build the trees of several pages in parallel, one task per page; return them in order."""
    futures = [executor.submit(build_page, reference, page, layout, stats) for page in pages]
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
