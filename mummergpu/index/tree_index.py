"""The index of the tree search: planning, building, writing and reading it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.index.file import IndexFile, section_name
from mummergpu.index.format import IndexHeader, PageEntry
from mummergpu.index.options import TreeOptions
from mummergpu.index.pages import Page, groups_built_within, plan_pages
from mummergpu.index.reference_index import BuildFacts, BuildWork, StorableIndex
from mummergpu.index.tree.flatten import TreePage, flatten_tree, order_nodes
from mummergpu.index.tree.layout import MAX_PAGE_BASES, MAX_WIDE_PAGE_BASES, Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.index.tree.ukkonen import grow_tree
from mummergpu.index.writer import SectionWriter
from mummergpu.input.reference import Reference
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK, CodeArray

BUILD_BYTES_PER_BASE: Final = 16
BUILD_BYTES_PER_LEAF: Final = 49
"""The memory that building a tree takes besides the flat tree, per base of the page and per
leaf. Each base that can match has a leaf."""


class TreeIndex(StorableIndex[TreePage]):
    """Pages with suffix trees (`reference_index.StorableIndex`).

    Pages overlap by the search length minus one base.
    """

    search: ClassVar[str] = TreeOptions.search

    def __init__(
        self,
        reference: Reference,
        groups: list[list[Page]],
        page_size: int,
        search_length: int,
        layout: Layout,
        policy: Policy,
        file: IndexFile | None = None,
    ) -> None:
        super().__init__(reference, groups, page_size, search_length, file)
        self.layout = layout
        self.policy = policy

    @classmethod
    def plan(
        cls,
        reference: Reference,
        options: TreeOptions,
        minimum_length: int,
        budget: MemoryBudget,
        threads: int,
    ) -> TreeIndex:
        """Divide a reference into pages, and the pages into groups; no tree is built yet.

        The plan depends on the arguments only. A page size that no format allows raises
        `OptionError`.
        """
        check_page_size(options)
        length = search_length(options.page_size, minimum_length)
        bases = reference.codes.size
        leaves = reference.base_count
        room = max(0, budget.host - reference.padded_codes.nbytes)
        page_size = options.page_size
        if page_size is None:
            page_size = largest_pages(options, bases, leaves, length - 1, room, budget.device)
        wide = options.address_bits == 32 or min(page_size, bases) > MAX_PAGE_BASES
        layout = Layout.of(options.policy, wide)
        groups = groups_built_within(
            plan_pages(bases, page_size, length - 1),
            room,
            threads,
            lambda page: tree_bytes(page.end - page.begin, leaves, layout),
            lambda page: build_bytes(page.end - page.begin, leaves),
            budget.device,
        )
        return cls(reference, groups, page_size, length, layout, options.policy)

    @classmethod
    def from_file(
        cls, file: IndexFile, policy: Policy, minimum_length: int, budget: MemoryBudget
    ) -> TreeIndex:
        """Divide the pages of an index file into groups: one, unless memory is too small for it.

        A policy that needs a layout other than that of the file raises `OptionError`; textures need
        none.
        """
        header = file.header
        if Layout.of(policy, file.layout.wide) != file.layout:
            raise OptionError(
                "policy", f"the index '{file.path}' is laid out for '{header.policy}'"
            )
        if len(file.pages) > 1:
            # The overlap finds matches of `search_length` bases, which include all longer ones.
            minimum_length = min(minimum_length, header.search_length)
        return cls(
            file.reference,
            file.groups_within(budget),
            header.page_size,
            minimum_length,
            file.layout,
            policy,
            file,
        )

    def load_pages(self, group: Sequence[Page], work: BuildWork) -> list[TreePage]:
        """Return pages with their trees (`reference_index.ReferenceIndex.load_pages`)."""
        if self.file is None:
            return build_pages(
                self.reference, group, self.layout, work.stats, work.executor, work.page_is_ready
            )
        self.file.bring_in(group)
        loaded = []
        for page in group:
            tree = self.file.tree(page)
            loaded.append(TreePage(page, tree, self.reference.codes, self.file.path))
            work.stats.add(tree_nodes=tree.node_count, tree_leaves=tree.leaf_count)
            work.stats.add_bytes(trees=tree.byte_count)
            work.page_is_ready()
        return loaded

    def write_pages(self, writer: SectionWriter, work: BuildWork) -> Iterator[PageEntry]:
        """Build one tree per thread at a time, and write each."""
        for group in self.groups:
            for first in range(0, len(group), work.threads):
                loaded = self.load_pages(group[first : first + work.threads], work)
                while loaded:
                    yield self._write_page(writer, loaded.pop(0), work)

    def _write_page(self, writer: SectionWriter, loaded: TreePage, work: BuildWork) -> PageEntry:
        page, tree = loaded.page, loaded.tree
        with work.stats.stage("results_to_disk"):
            writer.write(section_name(page.index, "nodes"), tree.nodes)
            if not self.layout.merged_tree:
                writer.write(section_name(page.index, "children"), tree.children)
            writer.write(section_name(page.index, "reference"), tree.reference)
        return PageEntry(page.begin, page.end, page.owned_end, tree.node_count, tree.leaf_count)

    def header(self, build: BuildFacts) -> IndexHeader:
        """Return the header of a file that holds the index."""
        return replace(
            super().header(build),
            search_length=self.search_length,
            policy=self.policy.code,
            address_bits=self.layout.address_bits,
        )

    def settings(self) -> dict[str, Any]:
        """Return the report's facts about the index."""
        return {"policy": self.policy.code, "address_bits": self.layout.address_bits}

    def describe(self) -> str:
        """Describe the search in a few words."""
        bits = self.layout.address_bits
        return f"tree search, policy {self.policy.code}, {bits}-bit addresses"

    def peak_bytes(self, group: Sequence[Page], threads: int) -> int:
        """Return the most bytes that a group's trees and their construction take."""
        if self.file is not None:
            return sum(self.file.page_bytes(page.index) for page in group)
        leaves = self.reference.base_count
        sizes = [page.end - page.begin for page in group]
        building = sorted((build_bytes(size, leaves) for size in sizes), reverse=True)
        trees = sum(tree_bytes(size, leaves, self.layout) for size in sizes)
        return trees + sum(building[:threads])


def tree_bytes(bases: int, leaves: int, layout: Layout) -> int:
    """Return the most bytes of a page's flat tree: two nodes for each leaf, and the bases.

    `leaves` are the bases of the whole reference that can match.
    """
    return min(bases, leaves) * (layout.max_bytes_per_base - 1) + bases


def build_bytes(bases: int, leaves: int) -> int:
    """Return the bytes that building a page's tree takes besides the flat tree."""
    return bases * BUILD_BYTES_PER_BASE + min(bases, leaves) * BUILD_BYTES_PER_LEAF


def search_length(page_size: int | None, minimum_length: int) -> int:
    """Return the length of the shortest matches that a page is searched for.

    That is the minimum match length, or about half a page if that is less: matches are followed
    across the ends of pages, so they can be longer than a page. Pages overlap by this length minus
    one base.
    """
    page_size = MAX_PAGE_BASES if page_size is None else page_size
    return min(minimum_length, (page_size + 1) // 2)


def check_page_size(options: TreeOptions) -> None:
    """Refuse pages that are too large for the addresses of the chosen format, or of any."""
    if options.page_size is None:
        return
    if options.page_size > MAX_WIDE_PAGE_BASES:
        raise OptionError("page_size", f"a page can have at most {MAX_WIDE_PAGE_BASES} bases (1G)")
    if options.address_bits == 24 and options.page_size > MAX_PAGE_BASES:
        raise OptionError("address_bits", f"24 allow pages of at most {MAX_PAGE_BASES} bases (8M)")


def largest_pages(
    options: TreeOptions,
    bases: int,
    leaves: int,
    overlap: int,
    memory: int,
    device_memory: int | None = None,
) -> int:
    """Return the page size that cuts a reference into the fewest pages that memory allows.

    Too little memory never makes a page smaller than the paper's. Larger pages all have about the
    same size, so that no memory stays idle. `leaves` are the bases of the reference that can match.
    """
    if bases <= MAX_PAGE_BASES or options.address_bits == 24:
        return MAX_PAGE_BASES
    layout = Layout.of(options.policy, wide=True)

    def fits(page_bases: int) -> bool:
        tree = tree_bytes(page_bases, leaves, layout)
        if device_memory is not None and tree > device_memory:
            return False
        return tree + build_bytes(page_bases, leaves) <= memory

    fitting = min(bases, layout.max_bases)
    if not fits(fitting):
        low, high = MAX_PAGE_BASES, fitting
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        fitting = low
    if fitting == MAX_PAGE_BASES:
        return fitting
    count = -(-(bases - overlap) // (fitting - overlap))
    return -(-(bases - overlap) // count) + overlap


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
