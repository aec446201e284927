"""Measures every combination of policies on one data set: the study of the paper's section 4.

The queries are read once, each tree is grown once, and each layout is flattened once. The runs
are made in a random order, with runs of the control between them. Each run's matches must be those
of the control. An interrupted sweep resumes where it stopped.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.index.options import TreeOptions
from mummergpu.index.pages import Page
from mummergpu.index.tree.flatten import TreePage, flatten_tree, order_nodes
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.index.tree.ukkonen import GrownTree, grow_tree
from mummergpu.index.tree_index import TreeIndex, page_codes, tree_bytes
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.memory import MemoryBudget, free_memory
from mummergpu.runtime.progress import Messages
from mummergpu.sequence.codes import BREAK
from mummergpu.studies.combinations import CONTROL, PlannedRun, by_layout, order_of_visits
from mummergpu.studies.data_set import DataSet
from mummergpu.studies.measurement import Measurer
from mummergpu.studies.records import StudyRun, SweepInput, SweepRun, SweepSetup
from mummergpu.studies.searcher import StudySearcher
from mummergpu.studies.sweeping import SweepFolder, Sweeping, still_missing
from mummergpu.version import __version__

DEVICE_ROUNDS: Final = 2
"""The visits of each combination on a GPU. A visit copies the trees to the device, which
takes longer than the search."""


@frozen
class SweepOptions:
    """The policies that a sweep measures, and the number of runs."""

    policies: tuple[str, ...]  # The codes of the combinations, with the control among them
    runs: int = 5
    control_runs: int = 10  # The further runs of the control
    seed: int = 1
    # Whether one further run of each combination counts the visited nodes, on a GPU.
    profile: bool = False
    threads: int = 1
    # The pages and the format of the trees; its policy is not used.
    trees: TreeOptions = field(default_factory=TreeOptions)


def sweep(
    data: DataSet, options: SweepOptions, searcher: StudySearcher, folder: Path, progress: Messages
) -> int:
    """Measure all combinations of policies on a data set; return the number of new runs.

    The folder is made if it is missing; runs of the same sweep that it has are not repeated.
    `InputError` is raised if it holds a sweep of something else, or a damaged one, `BackendError`
    if a combination finds other matches than the control, and `OptionError` if the trees do not fit
    in memory.
    """
    with ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(options.threads))
        index = _plan(data, options, searcher)
        layouts = by_layout(options.policies, index.layout.wide)
        records = stack.enter_context(SweepFolder(folder))
        setup = _setup(data, options, searcher, index, executor, records)
        records.begin(setup)
        rounds = options.runs
        if searcher.is_device:
            searcher.compile_programs(options.policies, index.layout.wide, options.profile)
            rounds = min(options.runs, DEVICE_ROUNDS)
        profile = options.profile and searcher.is_device
        visits = order_of_visits(
            options.policies, options.runs, rounds, options.control_runs, options.seed, profile
        )
        missing = still_missing(visits, records)
        if not missing:
            return 0
        progress.write_line(f"mummergpu: {data.name}: building {_pages(len(index.pages))} of trees")
        store = TreeStore(data.reference, index.pages, executor.map)
        measurer = Measurer(searcher, data, index.search_length, executor)
        total = sum(map(len, visits))
        done = total - sum(map(len, missing))
        bench = _TreeBench(measurer, store, index.layout.wide)
        made = Sweeping(data.name, bench, records, progress, done, total)
        batches = _batches(list(layouts), layouts_that_fit(index))
        for batch in batches:
            codes = {code for layout in batch for code in layouts[layout]}
            of_batch = [visit for visit in missing if visit[0].policy in codes]
            if not of_batch:
                continue
            progress.write_line(f"mummergpu: {data.name}: laying them out in {len(batch)} ways")
            bench.flatten(visit[0].policy for visit in of_batch)
            made.measure(of_batch, (CONTROL,))
        return made.count


class _TreeBench:
    """Searches trees, which lie flat in the layouts of the visits to come."""

    def __init__(self, measurer: Measurer, store: TreeStore, wide: bool) -> None:
        self._measurer = measurer
        self._store = store
        self._wide = wide
        self._flat: dict[Layout, tuple[list[TreePage], dict[str, float]]] = {}
        self._seconds: dict[str, float] = {}

    @property
    def backend_name(self) -> str:
        return self._measurer.backend_name

    def flatten(self, codes: Iterable[str]) -> None:
        """Lay out the trees for some combinations, which fit in memory together."""
        self._flat.clear()
        for layout in dict.fromkeys(map(self._layout, codes)):
            self._flat[layout] = self._store.flatten(layout)

    def load(self, policy: str, profile: bool) -> None:
        pages, self._seconds = self._flat[self._layout(policy)]
        self._measurer.load(policy, pages, profile)

    def run(self, planned: PlannedRun, position: int) -> SweepRun:
        return self._measurer.run(planned, position, self._seconds)

    def fault(self, run: StudyRun, control: str | None) -> str | None:
        assert isinstance(run, SweepRun)
        if control is None or run.digest == control:
            return None
        return f"finds {run.mems:,} matches that are not those of the control; please report this"

    def _layout(self, code: str) -> Layout:
        return Layout.of(Policy.from_code(code), self._wide)


def _plan(data: DataSet, options: SweepOptions, searcher: StudySearcher) -> TreeIndex:
    """Divide the reference into pages, which must fit in memory together."""
    device_memory = searcher.backend.memory_for_pages(data.reference.codes.size)
    budget = MemoryBudget.of(None, device_memory)
    index = TreeIndex.plan(
        data.reference, options.trees, data.minimum_length, budget, options.threads
    )
    if len(index.groups) > 1:
        raise OptionError(
            "page_size",
            f"the trees of '{data.name}' do not fit in memory together, as a sweep needs; "
            "use a smaller reference",
        )
    return index


def _setup(
    data: DataSet,
    options: SweepOptions,
    searcher: StudySearcher,
    index: TreeIndex,
    executor: ThreadPoolExecutor,
    records: SweepFolder,
) -> SweepSetup:
    from mummergpu.index.format import digest_of

    largest = max(page.end - page.begin for page in index.pages)
    page_bytes = tree_bytes(largest, data.reference.base_count, index.layout)
    known = records.setup
    gathers = (
        known.machine.gathers_per_second
        if known is not None
        else searcher.gathers_per_second(page_bytes, options.threads, executor.map)
    )
    return SweepSetup(
        program=f"mummergpu {__version__}",
        date=datetime.now(UTC).date().isoformat() if known is None else known.date,
        policies=options.policies,
        runs=options.runs,
        control_runs=options.control_runs,
        seed=options.seed,
        profile=options.profile,
        input=SweepInput(
            name=data.name,
            reference_digest=digest_of(data.reference, executor.map),
            query_digest=data.query_digest(),
            reference_bases=int(data.reference.record_lengths.sum()),
            reference_records=len(data.reference.names),
            query_bases=data.query_bases,
            query_count=data.query_count,
            median_query_length=data.median_query_length,
            minimum_length=data.minimum_length,
            strands=tuple(strand.name.lower() for strand in data.strands),
            pages=len(index.pages),
            page_size=index.page_size,
            address_bits=index.layout.address_bits,
        ),
        machine=searcher.machine(options.threads, gathers),
    )


def _pages(count: int) -> str:
    return "one page" if count == 1 else f"{count} pages"


def _batches(layouts: list[Layout], fitting: int) -> list[list[Layout]]:
    """Divide the layouts into batches whose trees fit in memory, with room for one more.

    The orders of the nodes and the memory of a search take less than that.
    """
    at_once = max(1, fitting - 1)
    return [layouts[first : first + at_once] for first in range(0, len(layouts), at_once)]


SHARE_OF_MEMORY: Final = 0.8
"""The share of free memory that flat trees may take together."""

MapFunction = Callable[..., Iterable[Any]]


class TreeStore:
    """Keeps the grown trees of all pages, and flattens them in any layout.

    `build_seconds` is the time to grow them, summed over the pages.
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
    """Return the number of layouts of all pages that fit in free memory together, at least 1."""
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
