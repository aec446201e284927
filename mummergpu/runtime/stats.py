"""Counters and stage timers of a run, shared by its threads.

The stages bear MUMmerGPU 2.0's names where it had the same stage. Seconds are summed over
threads, so that stages that overlap can add up to more than ``end_to_end``.
"""

from __future__ import annotations

import json
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

SCHEMA_VERSION: Final = 2
"""Raised when a key of the report changes its name or meaning."""

STAGES: Final = (
    "ref_from_disk",
    "tree_construction",
    "tree_reorder",
    "tree_flatten",
    "table_construction",
    "kernels_compiled",
    "trees_to_device",
    "queries_from_disk",
    "match_kernel",
    "print_kernel",
    "kmer_kernel",
    "coords_to_buffers",
    "format",
    "results_to_disk",
    "end_to_end",
)
"""The stages, in the order of the work. ``match_kernel`` and ``print_kernel`` are the device's
own time where there is one; ``coords_to_buffers`` orders and merges matches, ``format`` turns
them into text, ``end_to_end`` is the whole run."""


@dataclass
class Stage:
    """What one stage has cost.

    Attributes
    ----------
    seconds : float
        Wall-clock seconds, summed over the threads that worked on the stage.
    count : int
        How often the stage was run.
    peak_memory_bytes : int
        The most resident memory that the process had had when the stage last ended.
    """

    seconds: float = 0.0
    count: int = 0
    peak_memory_bytes: int = 0


@dataclass
class Kernel:
    """What one kernel of a device has cost, and what it needs.

    Attributes
    ----------
    milliseconds : float
        The device's own time, summed over launches.
    launches : int
        How often it was run.
    node_visits : int or None
        Nodes that its threads came to, where they were counted.
    resources : dict
        Registers and local bytes of a thread, shared bytes of a block, occupancy.
    """

    milliseconds: float = 0.0
    launches: int = 0
    node_visits: int | None = None
    resources: dict[str, float] = field(default_factory=dict)


class Stats:
    """Collects what a run did and what it cost; every method may be called by any thread.

    Attributes
    ----------
    stages : dict of str to Stage
        One for each of `STAGES`.
    counts : dict of str to int
        How many of what: ``queries``, ``query_bases``, ``matches``, ...
    bytes : dict of str to int
        How many bytes of what.
    kernels : dict of str to Kernel
        What ran on a device.
    settings : dict
        How the run was set up: versions, backend, policy, sizes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stages = {name: Stage() for name in STAGES}
        self.counts: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.kernels: dict[str, Kernel] = {}
        self.settings: dict[str, Any] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the block of a ``with`` statement as part of a stage.

        Parameters
        ----------
        name : str
            One of `STAGES`.

        Raises
        ------
        KeyError
            If there is no such stage.
        """
        stage = self.stages[name]
        begin = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - begin
            peak = peak_memory()
            with self._lock:
                stage.seconds += seconds
                stage.count += 1
                stage.peak_memory_bytes = max(stage.peak_memory_bytes, peak)

    def add(self, **numbers: int) -> None:
        """Add to counts, for example ``stats.add(queries=100, matches=7)``."""
        with self._lock:
            _add(self.counts, numbers)

    def add_bytes(self, **numbers: int) -> None:
        """Add to bytes, for example ``stats.add_bytes(output=4096)``."""
        with self._lock:
            _add(self.bytes, numbers)

    def add_kernel(self, name: str, stage: str, milliseconds: float) -> None:
        """Add a run of a kernel to its own account and to that of a stage.

        Parameters
        ----------
        name : str
            The kernel.
        stage : str
            One of `STAGES`.
        milliseconds : float
            The device's own time.
        """
        with self._lock:
            kernel = self.kernels.setdefault(name, Kernel())
            kernel.milliseconds += milliseconds
            kernel.launches += 1
            self.stages[stage].seconds += milliseconds / 1000
            self.stages[stage].count += 1

    def add_node_visits(self, name: str, visits: int) -> None:
        """Add to the nodes that a kernel's threads came to."""
        with self._lock:
            kernel = self.kernels.setdefault(name, Kernel())
            kernel.node_visits = (kernel.node_visits or 0) + visits

    def set_resources(self, name: str, resources: dict[str, float]) -> None:
        """Note what a kernel needs, for example ``{"registers": 32}``."""
        with self._lock:
            self.kernels.setdefault(name, Kernel()).resources = dict(resources)

    def set(self, **settings: Any) -> None:
        """Note how the run was set up, for example ``stats.set(backend="cpu")``."""
        with self._lock:
            self.settings.update(settings)

    def as_dict(self) -> dict[str, Any]:
        """Return everything collected so far, ready for JSON.

        Returns
        -------
        dict
            Keys ``schema_version``, ``settings``, ``counts``, ``bytes``, ``stages``,
            ``kernels`` and ``peak_memory_bytes``.
        """
        with self._lock:
            return {
                "schema_version": SCHEMA_VERSION,
                "settings": dict(self.settings),
                "counts": dict(self.counts),
                "bytes": dict(self.bytes),
                "stages": {name: dict(vars(stage)) for name, stage in self.stages.items()},
                "kernels": {name: dict(vars(kernel)) for name, kernel in self.kernels.items()},
                "peak_memory_bytes": peak_memory(),
            }

    def as_json(self) -> bytes:
        """Return `as_dict` as indented JSON text with a line end.

        Returns
        -------
        bytes
            ASCII text.
        """
        return json.dumps(self.as_dict(), indent=2).encode() + b"\n"

    def summary(self) -> list[str]:
        """Return a line of text for each stage that was run, for people.

        Returns
        -------
        list of str
            Name, seconds, number of runs and peak memory.
        """
        return [
            f"{name:<18} {stage.seconds:10.3f} s in {stage.count:,} runs, "
            f"peak {stage.peak_memory_bytes / 2**20:,.0f} MiB"
            for name, stage in self.stages.items()
            if stage.count
        ]


def peak_memory() -> int:
    """Return the most resident memory that the process has had so far.

    Returns
    -------
    int
        In bytes.

    Notes
    -----
    The kernel's own mark is read where there is one: what `resource` tells begins with the
    memory of the process that started this one.
    """
    with suppress(OSError), open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _add(totals: dict[str, int], numbers: dict[str, int]) -> None:
    for name, number in numbers.items():
        # numpy's integers are not JSON's.
        totals[name] = totals.get(name, 0) + int(number)
