"""What the kernels of each layout need and reach: registers, occupancy, visits of nodes."""

from __future__ import annotations

from statistics import median
from typing import Final

from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.timings import PROFILE, TIMED_KINDS, policy_order
from mummergpu.studies.records import Sweep
from mummergpu.studies.subject import KernelRecord

MATCH_KERNEL: Final = "match_kernel"
PRINT_KERNELS: Final = ("count_mems", "write_mems")
"""The two passes of the paper's print kernel: the first counts the matches, the second writes."""

TREE_KERNELS: Final = (MATCH_KERNEL, *PRINT_KERNELS)
"""The kernels that walk the tree."""


@frozen
class KernelFacts:
    """One kernel under one policy.

    Attributes
    ----------
    milliseconds : float or None
        The median device time of the timed runs, None if there is none.
    registers, local_bytes, shared_bytes : int or None
        Registers and bytes of local memory of a thread, shared bytes of a block; None if unknown.
    occupancy : float or None
        The resident threads of a multiprocessor as a share of the most it supports.
    visits_per_second : float or None
        The nodes that the threads visited, as a profiled run counted them, over the median time of
        the runs that were timed.
    gather_share : float or None
        The visits in a second, as a share of the random reads that the device makes in a second.
    """

    policy: Policy
    kernel: str
    milliseconds: float | None
    registers: int | None
    local_bytes: int | None
    shared_bytes: int | None
    occupancy: float | None
    visits_per_second: float | None
    gather_share: float | None


def kernel_facts(sweep: Sweep) -> tuple[KernelFacts, ...]:
    """Return what is known of each kernel under each policy; nothing on the processor."""
    runs: dict[tuple[Policy, str], dict[str, list[KernelRecord]]] = {}
    for run in sweep.runs:
        kind = "timed" if run.kind in TIMED_KINDS else run.kind
        for name, record in run.kernels.items():
            kinds = runs.setdefault((Policy.from_code(run.policy), name), {})
            kinds.setdefault(kind, []).append(record)
    keys = sorted(runs, key=lambda key: (key[1], policy_order(key[0])))
    return tuple(_facts(sweep, *key, runs[key]) for key in keys)


def gather_limit(sweep: Sweep, policy: Policy) -> float | None:
    """Return how many nodes in a second the device can read under a policy, None if unknown."""
    rates = sweep.setup.machine.gathers_per_second
    return rates.get("merged" if policy.merged_tree else "split")


def facts_of(facts: tuple[KernelFacts, ...], kernel: str) -> tuple[KernelFacts, ...]:
    """Return the facts of one kernel."""
    return tuple(one for one in facts if one.kernel == kernel)


def registers_of_print(facts: tuple[KernelFacts, ...], policy: Policy) -> int | None:
    """Return the most registers that a pass of the print kernel needs under a policy."""
    registers = [
        one.registers
        for one in facts
        if one.policy == policy and one.kernel in PRINT_KERNELS and one.registers is not None
    ]
    return max(registers, default=None)


def _facts(
    sweep: Sweep, policy: Policy, kernel: str, kinds: dict[str, list[KernelRecord]]
) -> KernelFacts:
    every = [record for records in kinds.values() for record in records]
    timed = [record.milliseconds for record in kinds.get("timed", [])]
    visits = [one.node_visits for one in kinds.get(PROFILE, []) if one.node_visits is not None]
    milliseconds = median(timed) if timed else None
    rate = 1000 * median(visits) / milliseconds if visits and milliseconds else None
    limit = gather_limit(sweep, policy)
    return KernelFacts(
        policy,
        kernel,
        milliseconds,
        _known([one.registers for one in every]),
        _known([one.local_bytes for one in every]),
        _known([one.shared_bytes for one in every]),
        next((one.occupancy for one in every if one.occupancy is not None), None),
        rate,
        rate / limit if rate and limit else None,
    )


def _known(values: list[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)
