"""The registers and the occupancy of each kernel of each layout, and its visits of nodes."""

from __future__ import annotations

from statistics import median
from typing import Final

from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.timings import PROFILE, TIMED_KINDS, policy_order
from mummergpu.studies.records import Sweep
from mummergpu.studies.subject import KernelRecord

_PRINT_KERNELS: Final = ("count_mems", "write_mems")
"""The two passes of the paper's print kernel: the first counts the matches, the second writes."""


@frozen
class KernelFacts:
    """One kernel under one policy; what is unknown is None.

    Attributes
    ----------
    milliseconds : float or None
        The median device time of the timed runs.
    registers, local_bytes, shared_bytes : int or None
        Registers and bytes of local memory of a thread, shared bytes of a block.
    occupancy : float or None
        The resident threads of a multiprocessor as a share of the most it supports.
    visits_per_second, limit : float or None
        Visited nodes of a profiled run over the median time, and the random reads that the device
        makes in a second.
    """

    policy: Policy
    kernel: str
    milliseconds: float | None
    registers: int | None
    local_bytes: int | None
    shared_bytes: int | None
    occupancy: float | None
    visits_per_second: float | None
    limit: float | None


def kernel_facts(sweep: Sweep) -> tuple[KernelFacts, ...]:
    """Return what is known of each kernel under each policy; nothing on the processor."""
    runs: dict[tuple[str, Policy], list[tuple[str, KernelRecord]]] = {}
    for run in sweep.runs:
        for name, record in run.kernels.items():
            key = name, Policy.from_code(run.policy)
            runs.setdefault(key, []).append((run.kind, record))
    keys = sorted(runs, key=lambda key: (key[0], policy_order(key[1])))
    return tuple(_facts(sweep, *key, runs[key]) for key in keys)


def registers_of_print(facts: tuple[KernelFacts, ...], policy: Policy) -> int | None:
    """Return the most registers that a pass of the print kernel needs under a policy."""
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
