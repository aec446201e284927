"""The percent change of a stage's time when a policy is switched on, alone and with another."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.runtime.arrays import Float64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.report.timings import Timings

_CONFIDENCE: Final = 0.95

FASTER: Final = "faster"
SLOWER: Final = "slower"
MIXED: Final = "depends on the other policies"
NOISE: Final = "within the noise"
UNCLEAR: Final = "not clear, as the noise is not known"

_FLAG_NAMES: Final = {letter: name for name, letter in LETTERS.items()}


@frozen
class Pair:
    """Two layouts that differ in one policy, and the change from the first to the second."""

    off: Policy
    on: Policy
    percent: float


@frozen
class PolicyEffect:
    """The effect of one policy on one stage over all pairs of layouts that differ in it alone.

    Changes are in percent, positive if the policy makes the stage slower. `low` and `high` are the
    confidence interval of the mean (None for a single pair), `noise` is the coefficient of
    variation of the control's runs (None if unknown).
    """

    letter: str
    stage: str
    pairs: tuple[Pair, ...]
    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float
    low: float | None
    high: float | None
    noise: float | None

    @property
    def least(self) -> float:
        """The lowest change in percent."""
        return min(pair.percent for pair in self.pairs)

    @property
    def most(self) -> float:
        """The highest change in percent."""
        return max(pair.percent for pair in self.pairs)

    @property
    def verdict(self) -> str:
        """The effect in words: `FASTER`, `SLOWER`, `MIXED`, `NOISE` or `UNCLEAR`."""
        noise = self.noise or 0.0
        # A mean is clear if its interval excludes zero. A single pair has no interval: its change
        # is made of two times, so it must exceed twice the noise of one.
        if self.low is not None and self.high is not None:
            is_clear = self.low * self.high > 0
        else:
            is_clear = self.noise is not None and abs(self.mean) > 2 * noise
        if is_clear and abs(self.mean) >= noise:
            return FASTER if self.mean < 0 else SLOWER
        if self.noise is None:
            return UNCLEAR
        quartile = max(abs(self.lower_quartile), abs(self.upper_quartile))
        return NOISE if quartile <= 2 * noise else MIXED


@frozen
class Interaction:
    """The difference of two policies together from the product of their effects, in percent.

    `squares` counts the settings of the other policies that have all four times. `noise` is twice
    the coefficient of variation of a run, as four independent times enter; None if unknown.
    """

    first: str
    second: str
    squares: int
    percent: float
    noise: float | None

    @property
    def is_within_noise(self) -> bool:
        """Whether it is smaller than the noise of the machine."""
        return self.noise is not None and abs(self.percent) < self.noise


def flag_name(letter: str) -> str:
    """Return the name of a policy in words, such as ``tree texture``."""
    return _FLAG_NAMES[letter].replace("two_", "two-").replace("_", " ")


def policy_effect(timings: Timings, letter: str, stage: str) -> PolicyEffect | None:
    """Return the effect of one policy on one stage; None if no two layouts differ in it alone."""
    pairs = []
    for policy in timings.policies:
        if not _is_on(policy, letter):
            other = _switched_on(policy, letter)
            off, on = timings.of(policy, stage), timings.of(other, stage)
            if off > 0 and on > 0:
                pairs.append(Pair(policy, other, 100 * (on / off - 1)))
    if not pairs:
        return None
    changes = np.array([pair.percent for pair in pairs])
    lower, median, upper = (float(value) for value in np.percentile(changes, (25, 50, 75)))
    low, high = mean_interval(changes) or (None, None)
    noise = timings.noise_of(stage)
    percent = None if noise is None else 100 * noise
    mean = float(changes.mean())
    return PolicyEffect(letter, stage, tuple(pairs), mean, median, lower, upper, low, high, percent)


def policy_effects(timings: Timings, stage: str) -> tuple[PolicyEffect, ...]:
    """Return the effects of all policies on one stage, in the order ``QRTmrtn``."""
    effects = (policy_effect(timings, letter, stage) for letter in LETTERS.values())
    return tuple(effect for effect in effects if effect)


def interactions(timings: Timings, stage: str) -> tuple[Interaction, ...]:
    """Return the interactions of every two policies for which there are times."""
    noise = timings.noise_of(stage)
    found = []
    for first, second in combinations(LETTERS.values(), 2):
        changes = []
        for policy in timings.policies:
            if _is_on(policy, first) or _is_on(policy, second):
                continue
            other = _switched_on(policy, second)
            corners = (policy, _switched_on(policy, first), other, _switched_on(other, first))
            times = [timings.of(corner, stage) for corner in corners]
            if all(time > 0 for time in times):
                none, one, another, both = np.log(times)
                changes.append((both - another) - (one - none))
        if changes:
            percent = 100 * float(np.expm1(np.mean(changes)))
            spread = None if noise is None else 200 * noise
            found.append(Interaction(first, second, len(changes), percent, spread))
    return tuple(found)


def mean_interval(values: Float64Array) -> tuple[float, float] | None:
    """Return the confidence interval of a mean by Student's t; None for fewer than two values.

    Every time takes part in one pair only, so the errors of measurement of the pairs are
    independent.
    """
    if len(values) < 2:
        return None
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    half = t_quantile(len(values) - 1) * error
    return mean - half, mean + half


def t_quantile(degrees: int) -> float:
    """Return the half-width of the confidence interval in standard errors."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + _CONFIDENCE) / 2))


def _switched_on(policy: Policy, letter: str) -> Policy:
    return replace(policy, **{_FLAG_NAMES[letter]: True})


def _is_on(policy: Policy, letter: str) -> bool:
    return bool(getattr(policy, _FLAG_NAMES[letter]))
