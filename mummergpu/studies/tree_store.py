"""The trees of a study: each is grown once, ordered in both ways, and flattened on demand."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from mummergpu.index.pages import Page
from mummergpu.index.tree.flatten import TreePage, flatten_tree, order_nodes
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.ukkonen import GrownTree, grow_tree
from mummergpu.index.tree_index import TreeIndex, page_codes, tree_bytes
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.memory import free_memory
from mummergpu.sequence.codes import BREAK

SHARE_OF_MEMORY: Final = 0.8
"""The share of free memory that flat trees may take together."""

MapFunction = Callable[..., Iterable[Any]]


class TreeStore:
    """Keeps the grown trees of all pages, and flattens them in any layout.

    `build_seconds` is what growing them took, summed over the pages.
    """

    def __init__(self, reference: Reference, pages: list[Page], map_function: MapFunction) -> None:
        self.pages = pages
        self._reference = reference
        self._map = map_function
        warm_up()
        timed = list(map_function(self._grow, pages))
        self._grown = [grown for grown, _ in timed]
        self.build_seconds = sum(seconds for _, seconds in timed)
        self._orders: dict[bool, tuple[list[Int32Array], float]] = {}

    def flatten(self, layout: Layout) -> tuple[list[TreePage], dict[str, float]]:
        """Return the pages with their trees in a layout, and the seconds of the stages.

        These are ``build``, ``order`` and ``flatten``, summed over the pages.
        """
        orders, order_seconds = self._ordered(layout.node_reordering)
        timed = list(self._map(partial(self._flatten, layout), self.pages, self._grown, orders))
        seconds = {
            "build": self.build_seconds,
            "order": order_seconds,
            "flatten": sum(seconds for _, seconds in timed),
        }
        return [page for page, _ in timed], seconds

    def _ordered(self, reordered: bool) -> tuple[list[Int32Array], float]:
        if reordered not in self._orders:
            timed = list(self._map(partial(_order, reordered), self._grown))
            self._orders[reordered] = (
                [order for order, _ in timed],
                sum(each for _, each in timed),
            )
        return self._orders[reordered]

    def _grow(self, page: Page) -> tuple[GrownTree, float]:
        began = time.perf_counter()
        grown = grow_tree(page_codes(self._reference, page))
        return grown, time.perf_counter() - began

    def _flatten(
        self, layout: Layout, page: Page, grown: GrownTree, order: Int32Array
    ) -> tuple[TreePage, float]:
        codes = self._reference.codes
        base_before = int(codes[page.begin - 1]) if page.begin > 0 else BREAK
        began = time.perf_counter()
        tree = flatten_tree(grown, order, layout, base_before)
        return TreePage(page, tree, codes), time.perf_counter() - began


def layouts_that_fit(index: TreeIndex) -> int:
    """Return how many layouts of all pages of an index fit in free memory together, at least 1."""
    leaves = index.reference.base_count
    layout_bytes = sum(
        tree_bytes(page.end - page.begin, leaves, index.layout) for page in index.pages
    )
    return max(1, int(free_memory() * SHARE_OF_MEMORY) // max(1, layout_bytes))


def warm_up() -> None:
    """Build a tiny tree in every layout, so that no compilation is timed later."""
    some = random.Random(1)
    codes = np.append(np.array(some.choices(range(4), k=200), dtype=np.uint8), np.uint8(BREAK))
    grown = grow_tree(codes)
    for reordered in (False, True):
        order = order_nodes(grown, reordered)
        for wide in (False, True):
            for merged, flat in product((False, True), repeat=2):
                flatten_tree(grown, order, Layout(merged, flat, flat, reordered, wide), BREAK)


def _order(reordered: bool, grown: GrownTree) -> tuple[Int32Array, float]:
    began = time.perf_counter()
    order = order_nodes(grown, reordered)
    return order, time.perf_counter() - began
