"""Measures every combination of policies on one data set: the study of the paper's section 4.

The queries are read once, each tree is grown once, and each layout is flattened once. The runs
are made in a random order, with runs of the control between them. Each run's matches must be those
of the control. A sweep that was interrupted goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.index.options import TreeOptions
from mummergpu.index.pages import Page
from mummergpu.index.tree.flatten import TreePage
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.index.tree_index import TreeIndex, tree_bytes
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.progress import Messages
from mummergpu.studies.combinations import CONTROL, PlannedRun, by_layout, order_of_visits
from mummergpu.studies.data_set import DataSet
from mummergpu.studies.measurement import Measurer
from mummergpu.studies.records import SweepInput, SweepRun, SweepSetup
from mummergpu.studies.searcher import StudySearcher
from mummergpu.studies.subject import StudyRun
from mummergpu.studies.sweep_folder import SweepFolder
from mummergpu.studies.sweeping import Sweeping, still_missing
from mummergpu.studies.tree_store import TreeStore, layouts_that_fit
from mummergpu.version import __version__

DEVICE_ROUNDS: Final = 2
"""How often each combination is visited on a GPU. A visit copies the trees to the device, which
takes longer than the search."""


@frozen
class SweepOptions:
    """What a sweep measures, and how often.

    Attributes
    ----------
    policies : tuple of str
        The codes of the combinations, with the control among them.
    control_runs : int
        The further runs of the control.
    seed : int
        The start of the random order.
    profile : bool
        Whether one further run of each combination counts the visited nodes, on a GPU.
    trees : TreeOptions
        The pages and the format of the trees; its policy is not used.
    """

    policies: tuple[str, ...]
    runs: int = 5
    control_runs: int = 10
    seed: int = 1
    profile: bool = False
    threads: int = 1
    trees: TreeOptions = field(default_factory=TreeOptions)


def sweep(
    data: DataSet,
    options: SweepOptions,
    searcher: StudySearcher,
    folder: Path,
    progress: Messages,
) -> int:
    """Measure all combinations of policies on a data set; return how many runs were made now.

    The folder is made if need be; runs of the same sweep that it has already are not repeated.
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

    page_bytes = tree_bytes(_largest(index.pages), data.reference.base_count, index.layout)
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


def _largest(pages: list[Page]) -> int:
    return max(page.end - page.begin for page in pages)


def _batches(layouts: list[Layout], fitting: int) -> list[list[Layout]]:
    """Divide the layouts into batches whose trees fit in memory, with room for one more.

    The orders of the nodes, and what a search needs, take less than that.
    """
    at_once = max(1, fitting - 1)
    return [layouts[first : first + at_once] for first in range(0, len(layouts), at_once)]
