"""What each policy does: the percent change of a stage's time when the policy is switched on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.runtime.arrays import Float64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.timings import Timings

CONFIDENCE: Final = 0.95
"""The confidence of all intervals."""

FASTER: Final = "faster"
SLOWER: Final = "slower"
MIXED: Final = "depends on the other policies"
NOISE: Final = "within the noise"
UNCLEAR: Final = "not clear, as the noise is not known"

FLAG_NAMES: Final = {letter: name for name, letter in LETTERS.items()}
"""The name of the flag of each letter."""


@frozen
class Pair:
    """Two layouts that differ in one policy.

    Attributes
    ----------
    off, on : Policy
        The layout without the policy and the one with it.
    percent : float
        The change of the time from the first to the second, in percent of the first.
    """

    off: Policy
    on: Policy
    percent: float


@frozen
class PolicyEffect:
    """The effect of one policy on one stage over all pairs of layouts that differ in it alone.

    Attributes
    ----------
    pairs : tuple of Pair
        The pairs, at least one.
    mean, median, lower_quartile, upper_quartile : float
        Of the changes in percent; positive if the policy makes the stage slower.
    low, high : float or None
        The confidence interval of the mean in percent; None for a single pair.
    noise : float or None
        The coefficient of variation of the control's runs in percent, None if it is not known.
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
    def is_within_noise(self) -> bool:
        """Whether the mean change is smaller than the noise of the machine."""
        return self.noise is not None and abs(self.mean) < self.noise

    @property
    def verdict(self) -> str:
        """The effect in words: `FASTER`, `SLOWER`, `MIXED`, `NOISE` or `UNCLEAR`.

        A mean is clear if its interval does not hold zero, or for a single pair if it is greater
        than twice the noise: a change is made of two times, so that its own noise is greater than
        theirs. Without a clear mean the effect is `MIXED` if the middle half of the changes reaches
        beyond twice the noise.
        """
        noise = self.noise or 0.0
        if self.low is not None and self.high is not None:
            clear = self.low * self.high > 0
        else:
            clear = self.noise is not None and abs(self.mean) > 2 * noise
        if clear and not self.is_within_noise:
            return FASTER if self.mean < 0 else SLOWER
        if self.noise is None:
            return UNCLEAR
        quartile = max(abs(self.lower_quartile), abs(self.upper_quartile))
        return NOISE if quartile <= 2 * noise else MIXED


def flag_name(letter: str) -> str:
    """Return the name of a policy in words, such as ``tree texture``."""
    return FLAG_NAMES[letter].replace("two_", "two-").replace("_", " ")


def switched(policy: Policy, letter: str, on: bool) -> Policy:
    """Return a policy with one flag switched on or off."""
    return replace(policy, **{FLAG_NAMES[letter]: on})


def is_on(policy: Policy, letter: str) -> bool:
    """Return whether a flag of a policy is on."""
    return bool(getattr(policy, FLAG_NAMES[letter]))


def pairs_of(timings: Timings, letter: str, stage: str) -> tuple[Pair, ...]:
    """Return the pairs of layouts that differ in one policy and both have a time above zero."""
    pairs = []
    for policy in timings.policies:
        if is_on(policy, letter):
            continue
        other = switched(policy, letter, True)
        off, on = timings.of(policy, stage), timings.of(other, stage)
        if off > 0 and on > 0:
            pairs.append(Pair(policy, other, 100 * (on / off - 1)))
    return tuple(pairs)


def policy_effect(timings: Timings, letter: str, stage: str) -> PolicyEffect | None:
    """Return the effect of one policy on one stage (`timings.ALL_STAGES`).

    It is None if no two layouts differ in this policy alone.
    """
    pairs = pairs_of(timings, letter, stage)
    if not pairs:
        return None
    changes = np.array([pair.percent for pair in pairs])
    lower, median, upper = (float(value) for value in np.percentile(changes, (25, 50, 75)))
    interval = mean_interval(changes)
    low, high = interval if interval else (None, None)
    noise = timings.noise_of(stage)
    percent = None if noise is None else 100 * noise
    mean = float(changes.mean())
    return PolicyEffect(letter, stage, pairs, mean, median, lower, upper, low, high, percent)


def policy_effects(timings: Timings, stage: str) -> tuple[PolicyEffect, ...]:
    """Return the effects of all policies on one stage, in the order ``QRTmrtn``."""
    effects = (policy_effect(timings, letter, stage) for letter in LETTERS.values())
    return tuple(effect for effect in effects if effect)


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
    """Return how many standard errors the interval of `CONFIDENCE` reaches to each side."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
