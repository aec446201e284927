"""One layout for several sweeps: what each loses against the fastest of every sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mummergpu.index.tree.policy import Policy
from mummergpu.studies.report.study import Study


@dataclass(frozen=True)
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
