"""The times of a sweep as a table: a row for each layout, a column for each stage."""

from __future__ import annotations

from functools import cached_property
from statistics import median
from typing import Final

import numpy as np

from mummergpu.index.tree.policy import NO_POLICY, Policy
from mummergpu.runtime.arrays import Float64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.records import STAGES, KernelRecord, ProfileSweep, Sweep, SweepRun

KERNELS: Final = "kernels"
"""The sum of ``match``, ``print`` and ``ordering``."""

TOTAL: Final = "total"
"""The sum of ``upload`` and ``search``, the time that a user waits. Trees are made once for any
number of queries, so making them does not count."""

ALL_STAGES: Final = (*STAGES, KERNELS, TOTAL)

MADE_ONCE: Final = ("build", "order", "flatten")
"""Stages that run once for a layout; their spread says nothing about noise."""

CONTROL: Final = "control"
PROFILE: Final = "profile"
TIMED_KINDS: Final = ("run", CONTROL)

_ORDER: Final = "QRTmrtn"


@frozen
class Timings:
    """The median times of a sweep, and the noise of its machine."""

    policies: tuple[Policy, ...]
    stages: tuple[str, ...]
    seconds: Float64Array  # (n_policies, n_stages): medians; NaN where a stage was not measured
    run_counts: tuple[int, ...]
    # (n_stages,): the coefficient of variation of the control's runs; NaN where it is unknown.
    noise: Float64Array
    noise_runs: int

    @cached_property
    def _rows(self) -> dict[Policy, int]:
        return {policy: row for row, policy in enumerate(self.policies)}

    def column(self, stage: str) -> Float64Array:
        """Return the seconds of a stage by policy; NaN everywhere if it was not measured."""
        if stage not in self.stages:
            return np.full(len(self.policies), np.nan)
        column: Float64Array = self.seconds[:, self.stages.index(stage)]
        return column

    def of(self, policy: Policy, stage: str) -> float:
        """Return the median seconds of a stage under a policy; NaN if it was not measured."""
        row = self._rows.get(policy)
        return float("nan") if row is None else float(self.column(stage)[row])

    def noise_of(self, stage: str) -> float | None:
        """Return the coefficient of variation of a stage, None if it is unknown."""
        if stage not in self.stages:
            return None
        noise = float(self.noise[self.stages.index(stage)])
        return None if np.isnan(noise) else noise


@frozen
class Ranking:
    """Layouts with a time above zero and their median seconds, the fastest first."""

    stage: str
    policies: tuple[Policy, ...]
    seconds: Float64Array

    @property
    def ratios(self) -> Float64Array:
        """The times, each divided by that of the fastest."""
        ratios: Float64Array = self.seconds / self.seconds[0]
        return ratios

    def ratio_of(self, policy: Policy) -> float | None:
        """Return a policy's time divided by that of the fastest; None if not measured."""
        if policy not in self.policies:
            return None
        return float(self.ratios[self.policies.index(policy)])


@frozen
class Missing:
    """The runs that an interrupted sweep made and planned, and the policies without a timed run."""

    made: int
    planned: int
    codes: tuple[str, ...]

    @property
    def runs(self) -> int:
        """The number of runs that are missing."""
        return max(self.planned - self.made, 0)


def timings_of(sweep: Sweep) -> Timings:
    """Return the median times of a sweep, without profiled runs: counting nodes takes time."""
    timed: dict[Policy, list[SweepRun]] = {}
    for run in sweep.runs:
        if run.kind in TIMED_KINDS:
            timed.setdefault(Policy.from_code(run.policy), []).append(run)
    policies = tuple(sorted(timed, key=policy_order))
    found = {stage for runs in timed.values() for run in runs for stage in _stage_seconds(run)}
    stages = tuple(stage for stage in ALL_STAGES if stage in found)
    tables = [_seconds_by_run(timed[policy], stages) for policy in policies]
    seconds = np.array([_medians(table) for table in tables]).reshape(len(policies), len(stages))
    counts = tuple(len(timed[policy]) for policy in policies)
    control = next((run.policy for run in sweep.runs if run.kind == CONTROL), NO_POLICY)
    runs = timed.get(Policy.from_code(control), [])
    noise = _variation(_seconds_by_run(runs, stages), stages)
    return Timings(policies, stages, seconds, counts, noise, len(runs))


def _stage_seconds(run: SweepRun) -> dict[str, float]:
    """Return the seconds of a run by stage, with `KERNELS` and `TOTAL` where they are known."""
    seconds = dict(run.seconds)
    if "match" in seconds:
        seconds[KERNELS] = run.kernel_seconds
    if "search" in seconds:
        seconds[TOTAL] = seconds["search"] + seconds.get("upload", 0.0)
    return seconds


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


def missing_of(sweep: Sweep | ProfileSweep) -> Missing:
    """Return the runs that the setup plans and the sweep lacks."""
    setup = sweep.setup
    planned = len(setup.policies) * (setup.runs + int(setup.profile)) + setup.control_runs
    timed = {run.policy for run in sweep.runs if run.kind in TIMED_KINDS}
    absent = tuple(code for code in setup.policies if code not in timed)
    return Missing(len(sweep.runs), planned, absent)


def _seconds_by_run(runs: list[SweepRun], stages: tuple[str, ...]) -> Float64Array:
    """Return an array of shape (n_runs, n_stages) with NaN where a run lacks a stage."""
    rows = [[_stage_seconds(run).get(stage, np.nan) for stage in stages] for run in runs]
    return np.array(rows, dtype=np.float64).reshape(len(runs), len(stages))


def _medians(table: Float64Array) -> list[float]:
    """Return the median of each column without its NaNs; NaN for a column of NaNs alone."""
    columns = [column[~np.isnan(column)] for column in table.T]
    return [float(np.median(column)) if len(column) else float("nan") for column in columns]


def _variation(table: Float64Array, stages: tuple[str, ...]) -> Float64Array:
    """Return the standard deviation of each column divided by its mean; NaN if unknown."""
    variation = np.full(len(stages), np.nan)
    for number, stage in enumerate(stages):
        column = table[:, number]
        column = column[~np.isnan(column)]
        if stage not in MADE_ONCE and len(column) > 1 and column.mean() > 0:
            variation[number] = column.std(ddof=1) / column.mean()
    return variation


_PRINT_KERNELS: Final = ("find_mems", "place_mems")
"""The kernels that do the work of the paper's print kernel, which finds matches and writes them."""


@frozen
class KernelFacts:
    """One kernel under one policy; unknown values are None."""

    policy: Policy
    kernel: str
    milliseconds: float | None  # The median device time of the timed runs
    # Registers and bytes of local memory of a thread, shared bytes of a block.
    registers: int | None
    local_bytes: int | None
    shared_bytes: int | None
    # The resident threads of a multiprocessor as a share of the most it supports.
    occupancy: float | None
    # Visited nodes of a profiled run over the median time, and the random reads that the device
    # makes in a second.
    visits_per_second: float | None
    limit: float | None


def kernel_facts(sweep: Sweep) -> tuple[KernelFacts, ...]:
    """Return the facts of each kernel under each policy; none on the processor."""
    runs: dict[tuple[str, Policy], list[tuple[str, KernelRecord]]] = {}
    for run in sweep.runs:
        for name, record in run.kernels.items():
            key = name, Policy.from_code(run.policy)
            runs.setdefault(key, []).append((run.kind, record))
    keys = sorted(runs, key=lambda key: (key[0], policy_order(key[1])))
    return tuple(_facts(sweep, *key, runs[key]) for key in keys)


def registers_of_print(facts: tuple[KernelFacts, ...], policy: Policy) -> int | None:
    """Return the most registers that a part of the print kernel needs under a policy."""
    registers = [
        one.registers
        for one in facts
        if one.policy == policy and one.kernel in _PRINT_KERNELS and one.registers is not None
    ]
    return max(registers, default=None)


def _facts(
    sweep: Sweep, kernel: str, policy: Policy, runs: list[tuple[str, KernelRecord]]
) -> KernelFacts:
    timed = [record.milliseconds for kind, record in runs if kind in TIMED_KINDS]
    visits = [
        record.node_visits
        for kind, record in runs
        if kind == PROFILE and record.node_visits is not None
    ]
    milliseconds = median(timed) if timed else None
    rate = 1000 * median(visits) / milliseconds if visits and milliseconds else None
    limits = sweep.setup.machine.gathers_per_second
    record = next((one for _, one in runs if one.registers is not None), runs[0][1])
    return KernelFacts(
        policy,
        kernel,
        milliseconds,
        record.registers,
        record.local_bytes,
        record.shared_bytes,
        record.occupancy,
        rate,
        limits.get("merged" if policy.merged_tree else "split"),
    )
