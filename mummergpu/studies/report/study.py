"""A sweep with the facts that the sections of a report need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from mummergpu.index.tree.policy import DEFAULT_POLICY, NO_POLICY, Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.words import pluralize
from mummergpu.studies.records import Sweep
from mummergpu.studies.report.page import stage_words
from mummergpu.studies.report.paper import DEFAULT_CODE, FIRST_VERSION_CODE
from mummergpu.studies.report.timings import (
    KERNELS,
    TOTAL,
    KernelFacts,
    Ranking,
    Timings,
    kernel_facts,
    ranking_of,
    timings_of,
)

FASTEST: Final = "the fastest"
SLOWEST: Final = "the slowest"
CONTROL_POLICY: Final = Policy.from_code(NO_POLICY)


@frozen
class Study:
    """A sweep, a title that no other study of the report has, and its layouts by time."""

    sweep: Sweep
    title: str
    timings: Timings
    ranking: Ranking
    facts: tuple[KernelFacts, ...]

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
        """The noise of `stage` in percent, None if it is unknown."""
        noise = self.timings.noise_of(self.stage)
        return None if noise is None else 100 * noise

    @property
    def compared_by(self) -> str:
        """The time that its layouts are compared by, in words."""
        if self.stage == KERNELS:
            return "the kernels (match, print and ordering)"
        return "the search" if self.stage == TOTAL else f"the {stage_words(self.stage)}"

    @property
    def measured_on(self) -> str:
        """The numbers of its runs and layouts, for captions."""
        counts = self.timings.run_counts
        least, most = min(counts, default=0), Counter(counts).most_common(1)
        usual = most[0][0] if most else 0
        few = f" (at least {least})" if least < usual else ""
        layouts = pluralize(len(self.timings.policies), "layout")
        return f"medians of {pluralize(usual, 'run')}{few} of {layouts}"

    def named_layouts(self) -> tuple[tuple[str, Policy], ...]:
        """Return the measured layouts of note with their names, from the fastest to the slowest."""
        ranked = self.ranking.policies
        if not ranked:
            return ()
        known = (
            ("our default", DEFAULT_POLICY),
            ("the control", CONTROL_POLICY),
            ("MUMmerGPU 2.0's default", Policy.from_code(DEFAULT_CODE)),
            ("MUMmerGPU 1.0's layout", Policy.from_code(FIRST_VERSION_CODE)),
        )
        middle = (one for one in known if one[1] in ranked)
        return ((FASTEST, ranked[0]), *middle, (SLOWEST, ranked[-1]))


def make_studies(sweeps: Sequence[Sweep]) -> tuple[Study, ...]:
    """Return the studies of sweeps, each with a title of its own."""
    return tuple(_study(sweep, title) for sweep, title in zip(sweeps, _titles(sweeps), strict=True))


def captioned(text: str, studies: Sequence[Study]) -> str:
    """Return a caption that ends with the measurements of the studies."""
    titles: dict[str, list[str]] = {}
    for study in studies:
        titles.setdefault(study.measured_on, []).append(study.title)
    measured = (f"{'; '.join(names)}: {words}" for words, names in titles.items())
    return f"{text} Measured: {'. '.join(measured)}."


def best_common_layout(studies: Sequence[Study]) -> tuple[Policy, float, float] | None:
    """Return the layout that loses least over all sweeps, None for a single sweep.

    With it come the geometric mean and the greatest of its times, each divided by the fastest of
    its sweep.
    """
    found = []
    for policy in studies[0].ranking.policies if len(studies) > 1 else ():
        ratios = [study.ranking.ratio_of(policy) for study in studies]
        known = [ratio for ratio in ratios if ratio is not None]
        if len(known) == len(studies):
            found.append((policy, float(np.exp(np.mean(np.log(known)))), max(known)))
    return min(found, key=lambda one: one[1], default=None)


def _study(sweep: Sweep, title: str) -> Study:
    timings = timings_of(sweep)
    wanted = (KERNELS, TOTAL) if sweep.setup.machine.backend == "cuda" else (TOTAL, KERNELS)
    stage = next((one for one in wanted if one in timings.stages), wanted[0])
    return Study(sweep, title, timings, ranking_of(timings, stage), kernel_facts(sweep))


def _titles(sweeps: Sequence[Sweep]) -> list[str]:
    """Return the workload and device of each sweep, with a distinction where they are equal."""
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
