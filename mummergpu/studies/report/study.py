"""A sweep with all that the parts of a report compute from it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from mummergpu.index.tree.policy import DEFAULT_POLICY, NO_POLICY, Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.words import counted
from mummergpu.studies.analysis.kernel_facts import KernelFacts, kernel_facts
from mummergpu.studies.analysis.paper import DEFAULT_CODE, FIRST_VERSION_CODE
from mummergpu.studies.analysis.timings import (
    KERNELS,
    TOTAL,
    Missing,
    Ranking,
    Timings,
    missing_of,
    ranking_of,
    timings_of,
)
from mummergpu.studies.records import Sweep
from mummergpu.studies.report.words import stage_words

FASTEST: Final = "the fastest"
SLOWEST: Final = "the slowest"

CONTROL_POLICY: Final = Policy.from_code(NO_POLICY)


@frozen
class NamedLayout:
    """A layout that a report mentions by its part, such as ``default``."""

    part: str
    policy: Policy


@frozen
class Study:
    """A sweep and what follows from it.

    Attributes
    ----------
    title : str
        Its workload and device, unlike that of any other study of the report.
    ranking : Ranking
        Its layouts by the time of `stage`.
    """

    sweep: Sweep
    title: str
    timings: Timings
    ranking: Ranking
    facts: tuple[KernelFacts, ...]
    missing: Missing

    @property
    def stage(self) -> str:
        """The stage by which its layouts are compared."""
        return self.ranking.stage

    @property
    def is_gpu(self) -> bool:
        """Whether a GPU was measured."""
        return self.sweep.setup.machine.backend == "cuda"

    @property
    def noise_percent(self) -> float | None:
        """The noise of `stage` in percent, None if it is not known."""
        noise = self.timings.noise_of(self.stage)
        return None if noise is None else 100 * noise

    @property
    def measured_on(self) -> str:
        """How often and how many layouts were measured, for captions."""
        counts = self.timings.run_counts
        least, most = min(counts, default=0), Counter(counts).most_common(1)
        usual = most[0][0] if most else 0
        runs = counted(usual, "run")
        few = f" (at least {least})" if least < usual else ""
        layouts = counted(len(self.timings.policies), "layout")
        return f"medians of {runs}{few} of {layouts}"


def make_studies(sweeps: Sequence[Sweep]) -> tuple[Study, ...]:
    """Return the studies of sweeps, each with a title of its own."""
    return tuple(_study(sweep, title) for sweep, title in zip(sweeps, _titles(sweeps), strict=True))


def named_layouts(study: Study) -> tuple[NamedLayout, ...]:
    """Return the layouts of note that were measured, the fastest first and the slowest last."""
    ranked = study.ranking.policies
    if not ranked:
        return ()
    known = (
        NamedLayout("our default", DEFAULT_POLICY),
        NamedLayout("the control", CONTROL_POLICY),
        NamedLayout("MUMmerGPU 2.0's default", Policy.from_code(DEFAULT_CODE)),
        NamedLayout("MUMmerGPU 1.0's layout", Policy.from_code(FIRST_VERSION_CODE)),
    )
    middle = tuple(one for one in known if one.policy in ranked)
    return (NamedLayout(FASTEST, ranked[0]), *middle, NamedLayout(SLOWEST, ranked[-1]))


def captioned(text: str, studies: Sequence[Study]) -> str:
    """Return a caption that ends with what the studies measured and on what."""
    titles: dict[str, list[str]] = {}
    for study in studies:
        titles.setdefault(study.measured_on, []).append(study.title)
    measured = (f"{'; '.join(names)}: {words}" for words, names in titles.items())
    return f"{text} Measured: {'. '.join(measured)}."


def compared(study: Study) -> str:
    """Return in words which time a study's layouts are compared by."""
    if study.stage == KERNELS:
        return "the kernels (match, print and ordering)"
    return "the search" if study.stage == TOTAL else f"the {stage_words(study.stage)}"


def _study(sweep: Sweep, title: str) -> Study:
    timings = timings_of(sweep)
    wanted = (KERNELS, TOTAL) if sweep.setup.machine.backend == "cuda" else (TOTAL, KERNELS)
    stage = next((one for one in wanted if one in timings.stages), wanted[0])
    ranking = ranking_of(timings, stage)
    return Study(sweep, title, timings, ranking, kernel_facts(sweep), missing_of(sweep))


def _titles(sweeps: Sequence[Sweep]) -> list[str]:
    """Return the workload and device of each sweep, and what tells apart those with the same."""
    titles = [f"{one.setup.input.name}, {one.setup.machine.device}" for one in sweeps]
    further: tuple[Callable[[Sweep], str], ...] = (
        lambda one: f"{one.setup.input.address_bits}-bit nodes",
        lambda one: f"pages of {one.setup.input.page_size:,} bases",
        lambda one: str(one.folder),
    )
    for words in further:
        more = [words(sweep) for sweep in sweeps]
        alike = [{m for m, other in zip(more, titles, strict=True) if other == t} for t in titles]
        titles = [
            f"{title}, {word}" if len(different) > 1 else title
            for title, word, different in zip(titles, more, alike, strict=True)
        ]
    return titles


@frozen
class CommonLayout:
    """A layout that several sweeps measured.

    Attributes
    ----------
    mean_ratio : float
        The geometric mean of its times, each divided by the fastest of its sweep.
    """

    policy: Policy
    mean_ratio: float
    worst_ratio: float


def common_layouts(studies: Sequence[Study]) -> tuple[CommonLayout, ...]:
    """Return the layouts that all sweeps measured, the best first; none for a single sweep."""
    if len(studies) < 2:
        return ()
    found = []
    for policy in studies[0].ranking.policies:
        ratios = [study.ranking.ratio_of(policy) for study in studies]
        known = [ratio for ratio in ratios if ratio is not None]
        if len(known) == len(studies):
            mean = float(np.exp(np.mean(np.log(known))))
            found.append(CommonLayout(policy, mean, max(known)))
    return tuple(sorted(found, key=lambda one: one.mean_ratio))
