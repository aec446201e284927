"""The times of a sweep as a table: a row for each layout, a column for each stage."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from mummergpu.index.tree.policy import NO_POLICY, Policy
from mummergpu.runtime.arrays import Float64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.records import STAGES, Sweep, SweepRun

FloatArray = Float64Array

KERNELS: Final = "kernels"
TOTAL: Final = "total"

ALL_STAGES: Final = (*STAGES, KERNELS, TOTAL)
"""The stages of the records, and two sums. ``kernels`` is the sum of ``match``, ``print`` and
``ordering``. ``total`` is ``upload`` and ``search``: all that a user waits for once the trees are
made. The making of the trees is left out because it happens once for any number of queries, and
would hide the rest."""

MADE_ONCE: Final = ("build", "order", "flatten")
"""The stages that took place once for a layout; their spread says nothing about noise."""

RUN: Final = "run"
CONTROL: Final = "control"
PROFILE: Final = "profile"
TIMED_KINDS: Final = (RUN, CONTROL)
"""The kinds of runs whose times count."""

_ORDER: Final = "QRTmrtn"


@frozen
class Timings:
    """The median times of a sweep, and the noise of its machine.

    Attributes
    ----------
    stages : tuple of str
        Those of `ALL_STAGES` that were measured.
    seconds : ndarray, dtype=float64, shape=(n_policies, n_stages)
        The median over the runs in seconds; NaN where a stage was not measured.
    run_counts : tuple of int
        The number of timed runs of each policy.
    noise : ndarray, dtype=float64, shape=(n_stages,)
        The coefficient of variation of the control's runs; NaN where it is not known, because the
        stage took place once or the control ran fewer than two times.
    """

    policies: tuple[Policy, ...]
    stages: tuple[str, ...]
    seconds: FloatArray
    run_counts: tuple[int, ...]
    noise: FloatArray
    noise_runs: int

    @cached_property
    def _rows(self) -> dict[Policy, int]:
        return {policy: row for row, policy in enumerate(self.policies)}

    def column(self, stage: str) -> FloatArray:
        """Return the seconds of a stage by policy; NaN everywhere if it was not measured."""
        if stage not in self.stages:
            return np.full(len(self.policies), np.nan)
        column: FloatArray = self.seconds[:, self.stages.index(stage)]
        return column

    def of(self, policy: Policy, stage: str) -> float:
        """Return the median seconds of a stage under a policy; NaN if it was not measured."""
        row = self._rows.get(policy)
        return float("nan") if row is None else float(self.column(stage)[row])

    def noise_of(self, stage: str) -> float | None:
        """Return the coefficient of variation of a stage, None if it is not known."""
        if stage not in self.stages:
            return None
        noise = float(self.noise[self.stages.index(stage)])
        return None if np.isnan(noise) else noise


@frozen
class Ranking:
    """Layouts in the order of their times.

    Attributes
    ----------
    policies : tuple of Policy
        The policies, the fastest first; those without a time above zero are left out.
    seconds : ndarray, dtype=float64, shape=(n_policies,)
        Their median times in seconds.
    """

    stage: str
    policies: tuple[Policy, ...]
    seconds: FloatArray

    @property
    def ratios(self) -> FloatArray:
        """The times, each divided by that of the fastest."""
        ratios: FloatArray = self.seconds / self.seconds[0]
        return ratios

    def ratio_of(self, policy: Policy) -> float | None:
        """Return how many times as long a policy takes as the fastest; None if not measured."""
        if policy not in self.policies:
            return None
        return float(self.ratios[self.policies.index(policy)])


@frozen
class Missing:
    """What a sweep lacks because it was interrupted.

    Attributes
    ----------
    made, planned : int
        The number of runs that were made and planned, of all kinds.
    codes : tuple of str
        The policies without any timed run.
    """

    made: int
    planned: int
    codes: tuple[str, ...]

    @property
    def runs(self) -> int:
        """The number of runs that are missing."""
        return max(self.planned - self.made, 0)


def timings_of(sweep: Sweep) -> Timings:
    """Return the median times of a sweep, without runs of kind ``profile``.

    Counting nodes costs time. The sums `KERNELS` and `TOTAL` are made for each run before the
    median is taken.
    """
    timed: dict[Policy, list[SweepRun]] = {}
    for run in sweep.runs:
        if run.kind in TIMED_KINDS:
            timed.setdefault(Policy.from_code(run.policy), []).append(run)
    policies = tuple(sorted(timed, key=policy_order))
    found = {stage for runs in timed.values() for run in runs for stage in stage_seconds(run)}
    stages = tuple(stage for stage in ALL_STAGES if stage in found)
    tables = [_seconds_by_run(timed[policy], stages) for policy in policies]
    seconds = np.array([_medians(table) for table in tables]).reshape(len(policies), len(stages))
    counts = tuple(len(timed[policy]) for policy in policies)
    control = control_of(sweep)
    runs = timed.get(control, [])
    noise = _variation(_seconds_by_run(runs, stages), stages)
    return Timings(policies, stages, seconds, counts, noise, len(runs))


def stage_seconds(run: SweepRun) -> dict[str, float]:
    """Return the seconds of a run by stage, with `KERNELS` and `TOTAL` where they are known."""
    seconds = dict(run.seconds)
    if "match" in seconds:
        seconds[KERNELS] = run.kernel_seconds
    if "search" in seconds:
        seconds[TOTAL] = seconds["search"] + seconds.get("upload", 0.0)
    return seconds


def control_of(sweep: Sweep) -> Policy:
    """Return the policy that is repeated to see the noise: the paper's control, as a rule."""
    codes = (run.policy for run in sweep.runs if run.kind == CONTROL)
    return Policy.from_code(next(codes, NO_POLICY))


def policy_order(policy: Policy) -> tuple[int, tuple[int, ...]]:
    """Return the key that sorts policies: by the number of letters, then in their order."""
    letters = tuple(_ORDER.index(letter) for letter in letters_of(policy))
    return len(letters), letters


def letters_of(policy: Policy) -> str:
    """Return the letters of the flags that are on; nothing for the control."""
    return "" if policy.code == NO_POLICY else policy.code


def ranking_of(timings: Timings, stage: str) -> Ranking:
    """Return the layouts in the order of their times in a stage, the fastest first."""
    column = timings.column(stage)
    rows = [int(row) for row in np.argsort(column, kind="stable") if column[row] > 0]
    return Ranking(stage, tuple(timings.policies[row] for row in rows), column[rows])


def missing_of(sweep: Sweep) -> Missing:
    """Return what a sweep lacks of the runs that its setup plans."""
    setup = sweep.setup
    planned = len(setup.policies) * (setup.runs + int(setup.profile)) + setup.control_runs
    timed = {run.policy for run in sweep.runs if run.kind in TIMED_KINDS}
    absent = tuple(code for code in setup.policies if code not in timed)
    return Missing(len(sweep.runs), planned, absent)


def _seconds_by_run(runs: list[SweepRun], stages: tuple[str, ...]) -> FloatArray:
    """Return an array of shape (n_runs, n_stages) with NaN where a run lacks a stage."""
    found = [stage_seconds(run) for run in runs]
    rows = [[seconds.get(stage, np.nan) for stage in stages] for seconds in found]
    return np.array(rows, dtype=np.float64).reshape(len(runs), len(stages))


def _medians(table: FloatArray) -> list[float]:
    """Return the median of each column without its NaNs; NaN for a column of NaNs alone."""
    columns = [column[~np.isnan(column)] for column in table.T]
    return [float(np.median(column)) if len(column) else float("nan") for column in columns]


def _variation(table: FloatArray, stages: tuple[str, ...]) -> FloatArray:
    """Return the standard deviation of each column divided by its mean; NaN if unknown."""
    variation = np.full(len(stages), np.nan)
    for number, stage in enumerate(stages):
        column = table[:, number]
        column = column[~np.isnan(column)]
        if stage not in MADE_ONCE and len(column) > 1 and column.mean() > 0:
            variation[number] = column.std(ddof=1) / column.mean()
    return variation
