"""Results of a sweep of profile filters: medians, effects of single choices, interactions."""

from __future__ import annotations

from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from mummergpu.hmm.filter_variants import CHOICES, ThreadPolicy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.profiles.policies import FILTER_NAMES, filter_of, policy_of, with_choice
from mummergpu.studies.records import PROFILES, ProfileSweep
from mummergpu.studies.report.effects import mean_interval


@frozen
class ProfileStudy:
    """A sweep of profile filters, with the medians of its kernels."""

    sweep: ProfileSweep
    title: str  # Its profile, nodes and device
    # The median seconds of the kernels by policy, without policies that have not run.
    seconds: dict[str, float]
    # The coefficient of variation of the control's runs; None if there are too few.
    noise: float | None

    @property
    def control(self) -> str:
        """The policy that the others are compared with."""
        return PROFILES.controls[self.sweep.setup.machine.backend]

    def gcups(self, code: str) -> float:
        """Return the thousand million cells of a second: residues times nodes."""
        return self.sweep.setup.input.cells / self.seconds[code] / 1e9

    def ranked(self, kind: str) -> list[str]:
        """Return the policies of a filter, the fastest first."""
        own = [code for code in self.seconds if filter_of(policy_of(code)) == kind]
        return sorted(own, key=lambda code: self.seconds[code])

    @property
    def kinds(self) -> list[str]:
        """The filters that were measured."""
        return [kind for kind in FILTER_NAMES if self.ranked(kind)]

    def best_with(self, choice: str, letter: str, kind: str) -> str | None:
        """Return the fastest policy with a letter among those of rows; None if none ran."""
        names = {"scores": 1, "rows": 2, "tables": 3}
        found = [
            code
            for code in self.ranked(kind)
            if len(code) < len(CHOICES) and code[names[choice]] == letter
        ]
        return found[0] if found else None


def study_of(sweep: ProfileSweep) -> ProfileStudy:
    """Return a sweep with what follows from it."""
    times: dict[str, list[float]] = {}
    for run in sweep.runs:
        times.setdefault(run.policy, []).append(run.kernel_seconds)
    order = {code: number for number, code in enumerate(sweep.setup.policies)}
    seconds = {
        code: float(np.median(times[code]))
        for code in sorted(times, key=lambda one: order.get(one, 0))
    }
    given, machine = sweep.setup.input, sweep.setup.machine
    title = f"{given.name} ({given.nodes:,} nodes), {machine.device}"
    controls = [run.kernel_seconds for run in sweep.runs if run.kind == "control"]
    noise = float(np.std(controls, ddof=1) / np.mean(controls)) if len(controls) > 1 else None
    return ProfileStudy(sweep, title, seconds, noise)


class ChoiceEffect(NamedTuple):
    """What a letter does in place of another, over all pairs that differ in it alone."""

    name: str
    before: str
    after: str
    pairs: int
    # The changes of the time in percent.
    mean: float
    least: float
    greatest: float
    # The confidence interval of the mean; None for a single pair.
    low: float | None
    high: float | None


def choice_effects(study: ProfileStudy) -> list[ChoiceEffect]:
    """Return what each choice of threads does, against its basic letter; tiles apart."""
    found = []
    for name, letters in CHOICES.items():
        for tiled in (False, True):
            for before, after in combinations(letters, 2):
                changes = _changes(study, name, before, after, tiled)
                if not changes:
                    continue
                interval = mean_interval(np.array(changes)) or (None, None)
                label = f"{name} of tiles" if tiled else name
                spread = float(np.mean(changes)), min(changes), max(changes)
                found.append(ChoiceEffect(label, before, after, len(changes), *spread, *interval))
    return found


def _changes(study: ProfileStudy, name: str, before: str, after: str, tiled: bool) -> list[float]:
    changes = []
    for policy in thread_policies(study):
        if getattr(policy, name) != before or policy.is_tiled != tiled:
            continue
        other = with_choice(policy, name, after)
        if other is not None and other.code in study.seconds:
            changes.append(100 * (study.seconds[other.code] / study.seconds[policy.code] - 1))
    return changes


def thread_policies(study: ProfileStudy) -> list[ThreadPolicy]:
    """Return the policies of threads that were measured."""
    every = map(policy_of, study.seconds)
    return [one for one in every if isinstance(one, ThreadPolicy)]


class ChoiceInteraction(NamedTuple):
    """What two choices do together beyond the product of their effects, in percent."""

    first: str
    second: str
    squares: int
    percent: float


def choice_interactions(study: ProfileStudy) -> list[ChoiceInteraction]:
    """Return the interactions of every two choices, over all squares that were measured."""
    found = []
    policies = [one for one in thread_policies(study) if not one.is_tiled]
    for first, second in combinations(CHOICES, 2):
        letters = product(combinations(CHOICES[first], 2), combinations(CHOICES[second], 2))
        for (a, b), (c, d) in letters:
            logs = []
            for policy in policies:
                if (getattr(policy, first), getattr(policy, second)) != (a, c):
                    continue
                corners = [_with(policy, {first: x, second: y}) for y in (c, d) for x in (a, b)]
                times = [study.seconds.get(code, 0.0) if code else 0.0 for code in corners]
                if all(times):
                    none, one, other, both = np.log(times)
                    logs.append(both - other - one + none)
            if len(logs) > 1:
                names = f"{first} {a}→{b}", f"{second} {c}→{d}"
                percent = 100 * float(np.expm1(np.mean(logs)))
                found.append(ChoiceInteraction(*names, len(logs), percent))
    return found


def _with(policy: ThreadPolicy, letters: dict[str, str]) -> str | None:
    found: ThreadPolicy | None = policy
    for name, letter in letters.items():
        found = None if found is None else with_choice(found, name, letter)
    return None if found is None else found.code
