"""Finds the best combination of policies for a machine and a kind of work, with few runs.

All combinations begin. Each round searches with those that are left, in a random order, and drops
the slower half; the queries double from round to round while combinations become fewer (successive
halving). The last few are measured several times on all queries.

References
----------
K. Jamieson, A. Talwalkar, Non-stochastic best arm identification and hyperparameter optimization,
AISTATS 2016.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

import numpy as np

from mummergpu.errors import BackendError
from mummergpu.index.options import TreeOptions
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.page import TreePage
from mummergpu.index.tree.policy import DEFAULT_POLICY
from mummergpu.index.tree_index import TreeIndex
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.memory import MemoryBudget
from mummergpu.runtime.progress import Messages, Phase, Work
from mummergpu.studies.combinations import PlannedRun, by_layout, differing_policies
from mummergpu.studies.data_set import DataSet
from mummergpu.studies.measurement import Measurer
from mummergpu.studies.policy_choice import TunedPolicy
from mummergpu.studies.records import SweepRun
from mummergpu.studies.searcher import StudySearcher
from mummergpu.studies.tree_store import TreeStore, layouts_that_fit
from mummergpu.version import __version__

FINALISTS: Final = 4
"""The combinations that are left for the last round."""

FINAL_RUNS: Final = 5
"""The runs of each combination in the last round."""

MAX_HALVINGS: Final = 3
"""The first round searches no less than an eighth of the queries."""

RESAMPLES: Final = 2000
"""The bootstrap's samples."""


@frozen
class TunedResult:
    """The outcome of tuning.

    Attributes
    ----------
    margin : float
        How much longer the kernels take with the second best, as a share.
    gain : float
        How much less time the kernels take than with the default, as a share.
    """

    policy: TunedPolicy
    runs: int
    runner_up: str
    margin: float
    gain: float


def tune(
    data: DataSet,
    trees: TreeOptions,
    threads: int,
    searcher: StudySearcher,
    progress: Messages,
    notice: Callable[[str], None],
    seed: int = 1,
) -> TunedResult:
    """Find the combination of policies whose kernels take the least time.

    The default is always among the last. `BackendError` is raised if two combinations find
    different matches.
    """
    codes = differing_policies(searcher.backend.name)
    with ThreadPoolExecutor(threads) as executor:
        device_memory = searcher.backend.memory_for_pages(data.reference.codes.size)
        budget = MemoryBudget.of(None, device_memory)
        index = TreeIndex.plan(data.reference, trees, data.minimum_length, budget, threads)
        searcher.compile_programs(codes, index.layout.wide, profile=False)
        progress.write_line(f"mummergpu: {data.name}: building trees for {len(codes)} layouts")
        store = TreeStore(data.reference, index.pages, executor.map)
        rounds = _rounds(data, len(codes))
        total = _planned_runs(len(codes), len(rounds))
        arms = _Arms(searcher, index, store, executor, data.name, progress, total)
        some = random.Random(seed)
        for part in rounds:
            times = arms.measure(part, codes, 1, some)
            ranked = sorted(codes, key=lambda code: statistics.median(times[code]))
            codes = _best(ranked, max(FINALISTS, len(codes) // 2))
            notice(f"{data.name}: {part.query_count:,} queries; left are {' '.join(codes)}")
        times = arms.measure(data, codes, FINAL_RUNS, some)
        machine = searcher.machine(threads, {})
    best, second = sorted(codes, key=lambda code: statistics.median(times[code]))[:2]
    medians = {code: statistics.median(times[code]) for code in codes}
    policy = TunedPolicy(
        backend=machine.backend,
        device=machine.device,
        architecture=machine.architecture,
        address_bits=index.layout.address_bits,
        reference_bases=int(data.reference.record_lengths.sum()),
        query_length=data.median_query_length,
        minimum_length=data.minimum_length,
        policy=best,
        certainty=_certainty(times[best], times[second], seed),
        program=f"mummergpu {__version__}",
        date=datetime.now(UTC).date().isoformat(),
    )
    return TunedResult(
        policy,
        arms.count,
        second,
        medians[second] / medians[best] - 1,
        1 - medians[best] / medians[DEFAULT_POLICY.code],
    )


class _Arms:
    """Measures combinations, a round at a time."""

    def __init__(
        self,
        searcher: StudySearcher,
        index: TreeIndex,
        store: TreeStore,
        executor: ThreadPoolExecutor,
        name: str,
        progress: Messages,
        total: int,
    ) -> None:
        self.count = 0
        self._searcher = searcher
        self._index = index
        self._store = store
        self._executor = executor
        self._name = name
        self._progress = progress
        self._total = total
        self._flat: dict[Layout, tuple[list[TreePage], dict[str, float]]] = {}
        self._max_layouts = layouts_that_fit(index)

    def measure(
        self, data: DataSet, codes: Sequence[str], runs: int, some: random.Random
    ) -> dict[str, list[float]]:
        """Return the seconds of the kernels of each run, by combination, in random orders.

        Combinations with the same layout follow each other, and layouts stay in memory while they
        fit.
        """
        measurer = Measurer(self._searcher, data, self._index.search_length, self._executor)
        times: dict[str, list[float]] = {code: [] for code in codes}
        digests = set()
        for repeat in range(runs):
            shuffled = some.sample(codes, len(codes))
            for layout, same in by_layout(shuffled, self._index.layout.wide).items():
                if layout not in self._flat:
                    if len(self._flat) >= self._max_layouts:
                        self._flat.clear()
                    self._flat[layout] = self._store.flatten(layout)
                pages, seconds = self._flat[layout]
                for code in same:
                    measurer.load(code, pages, profile=False)
                    run = measurer.run(PlannedRun(code, "run", repeat), self.count, seconds)
                    times[code].append(run.kernel_seconds)
                    digests.add(run.digest)
                    self._step(run, len(digests))
        return times

    def _step(self, run: SweepRun, different: int) -> None:
        if different > 1:
            raise BackendError(
                self._searcher.backend.name,
                f"policy '{run.policy}' finds other matches than the others; please report this",
            )
        self.count += 1
        numbers = (self._name, self.count, self._total)
        self._progress.tell(Work(Phase.RUNS, numbers, 0, self.count / self._total))


def _rounds(data: DataSet, arms: int) -> list[DataSet]:
    """Return the data of each round but the last, the fewest queries first."""
    count = 0
    while arms > FINALISTS:
        arms = max(FINALISTS, arms // 2)
        count += 1
    parts = [data]
    while len(parts) <= min(count, MAX_HALVINGS):
        parts.append(parts[-1].halved())
    return [parts[min(number, len(parts) - 1)] for number in range(count, 0, -1)]


def _planned_runs(arms: int, rounds: int) -> int:
    total = 0
    for _ in range(rounds):
        total += arms
        arms = max(FINALISTS, arms // 2)
    return total + arms * FINAL_RUNS


def _best(ranked: Sequence[str], count: int) -> list[str]:
    """Return the first combinations of a ranking; the default always stays."""
    kept = list(ranked[:count])
    if DEFAULT_POLICY.code not in kept:
        kept[-1] = DEFAULT_POLICY.code
    return kept


def _certainty(best: Sequence[float], second: Sequence[float], seed: int) -> float:
    """Return the share of bootstrap samples in which the best is faster than the second."""
    generator = np.random.default_rng(seed)
    medians = [
        np.median(generator.choice(times, (RESAMPLES, len(times))), axis=1)
        for times in (best, second)
    ]
    return float(np.mean(medians[0] < medians[1]))
