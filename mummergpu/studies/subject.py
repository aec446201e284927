"""What studies of all subjects have in common: what a subject is, and the records of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from mummergpu.runtime.frozen import frozen


@frozen
class KernelRecord:
    """The cost of one kernel in one run, and the resources that the driver reports.

    Attributes
    ----------
    milliseconds : float
        The device time, summed over launches.
    node_visits : int or None
        The number of nodes that its threads visited, if they were counted.
    registers, local_bytes, shared_bytes : int or None
        Registers and bytes of local memory of a thread, and shared bytes of a block; None if they
        were not asked for.
    occupancy : float or None
        The resident threads of a multiprocessor, as a share of the most that it supports.
    """

    milliseconds: float
    launches: int
    node_visits: int | None = None
    registers: int | None = None
    local_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None


@frozen
class StudyRun:
    """One measured run of one policy.

    Attributes
    ----------
    position : int
        The number of the run in the order of the sweep, counted from 0.
    policy : str
        The code of the policies, such as ``Tn``.
    kind : str
        ``run`` for the runs that count, ``control`` for the further runs of the control between
        them, ``profile`` for a run whose kernels count the nodes that they visit; its times do
        not count.
    repeat : int
        The number of this run among those of the same policy and kind, counted from 0.
    seconds : dict of str to float
        Seconds by stage.
    kernels : dict of str to KernelRecord
        The kernels of a GPU by name; empty on the processor.
    bytes : dict of str to int
        What was copied, and what lies in memory.
    digest : str
        The hash of all that was found.
    """

    KERNEL_STAGES: ClassVar[tuple[str, ...]] = ()

    position: int
    policy: str
    kind: str
    repeat: int
    seconds: dict[str, float]
    kernels: dict[str, KernelRecord]
    bytes: dict[str, int]
    digest: str

    @property
    def kernel_seconds(self) -> float:
        """The seconds of all kernels: the sum over `KERNEL_STAGES`."""
        return sum(self.seconds.get(stage, 0.0) for stage in self.KERNEL_STAGES)


@frozen
class SweepMachine:
    """The machine of a sweep, and the versions of what ran on it.

    Attributes
    ----------
    backend : str
        ``cpu`` or ``cuda``.
    device : str
        The name of the GPU or of the processor.
    architecture : str
        The architecture of the GPU, such as ``sm_90``, or of the processor.
    memory_bytes : int
        The memory of the device, or of the machine.
    multiprocessors : int
        Those of the GPU; 0 on the processor.
    threads : int
        The threads of the host that search.
    clocks_megahertz : dict of str to float
        The highest clocks of the device by name, where the driver tells them.
    versions : dict of str to str
        The versions of the driver, CUDA, Python and the libraries.
    gathers_per_second : dict of str to float
        How many records at random addresses the device reads in a second, each named by the one
        before it: ``merged`` for whole nodes, ``split`` for their halves in two tables. The
        table has the size of the tree of a page. Empty if it was not measured.
    """

    backend: str
    device: str
    architecture: str
    memory_bytes: int
    multiprocessors: int
    threads: int
    clocks_megahertz: dict[str, float]
    versions: dict[str, str]
    gathers_per_second: dict[str, float]

    @property
    def uses_pycuda(self) -> bool:
        """Whether the GPU is used through PyCUDA."""
        return "pycuda" in self.versions


@frozen
class StudySetup:
    """All that the runs of a sweep have in common, but for what they search.

    Attributes
    ----------
    date : str
        The day on which the sweep began, as in 2026-01-31.
    policies : tuple of str
        The codes of the policies that are measured; the control is among them.
    runs, control_runs : int
        The runs of each policy, and the further runs of the control.
    seed : int
        The start of the random order.
    """

    program: str
    date: str
    policies: tuple[str, ...]
    runs: int
    control_runs: int
    seed: int
    profile: bool
    machine: SweepMachine


@frozen
class Subject:
    """What a study is about: suffix trees, or filters of profiles.

    Attributes
    ----------
    name : str
        As in the file of a sweep.
    every : callable
        Returns the codes of all policies, in their order.
    checked : callable
        Returns the code of a policy as a sweep writes it; raises `OptionError` if it is none.
    controls : mapping of str to str
        The policy that all others are compared with, by backend.
    input_type, setup_type, run_type : type
        The records of what is searched, of what all runs have in common, and of a run.
    """

    name: str
    every: Callable[[], Sequence[str]]
    checked: Callable[[str], str]
    controls: Mapping[str, str]
    input_type: type
    setup_type: type[StudySetup]
    run_type: type[StudyRun]
