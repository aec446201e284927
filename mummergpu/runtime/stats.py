"""Counters and stage timers of a run, shared by its threads.

A stage has the name from MUMmerGPU 2.0 if that program had the same stage. Seconds are summed over
threads, so that stages that overlap can add up to more than ``end_to_end``.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from mummergpu.runtime.words import pluralize

_MAXRSS_BYTES: Final = 1 if sys.platform == "darwin" else 1024
"""The unit of `resource.getrusage`: bytes on macOS, KiB elsewhere."""

SCHEMA_VERSION: Final = 3
"""Increased when a key of the report changes its name or meaning."""

STAGES: Final = (
    "ref_from_disk",
    "tree_construction",
    "tree_reorder",
    "tree_flatten",
    "table_construction",
    "kernels_compiled",
    "trees_to_device",
    "queries_from_disk",
    "device_search",
    "match_kernel",
    "print_kernel",
    "kmer_kernel",
    "text_kernel",
    "matches_from_device",
    "coords_to_buffers",
    "mapping",
    "profile_filters",
    "profile_msv",
    "profile_viterbi",
    "profile_forward",
    "profile_finishing",
    "model_evaluation",
    "summary",
    "format",
    "compression",
    "results_to_disk",
    "end_to_end",
)
"""The stages, in the order of the work. The stages of kernels are the device's own time if
there is a device, summed over the processes of a cluster; ``device_search`` is the time that
threads of a mapping wait for candidates from a device; ``coords_to_buffers`` orders and merges
matches, ``mapping`` makes alignments of them, ``profile_filters`` finds the proteins that may have
hits of profiles (and ``profile_msv`` and ``profile_viterbi`` are two parts of that, on the
processor), ``profile_forward`` drops most of them, ``profile_finishing`` compares the others to the
end, ``model_evaluation`` computes hidden Markov models, ``summary`` counts the results,
``format`` turns it into text or records, ``text_kernel`` does so on a device, ``compression`` makes
blocks of bgzf or frames of it, ``end_to_end`` is the whole run."""


MATCH_PARTS: Final = ("files", "strands", "match_lengths")
"""The parts of the report on matches, each a list of rows."""

MOST_SPANS: Final = 1 << 16
"""The most spans of a timeline; later ones are left out."""

PEAK_INTERVAL: Final = 0.2
"""The seconds after which the peak memory of the process is read again."""


@dataclass
class Stage:
    """The cost of one stage.

    `seconds` are wall-clock seconds, summed over the threads that worked on the stage, which ran
    `count` times. `peak_memory_bytes` is the peak resident memory of the process when it last
    ended, or up to `PEAK_INTERVAL` before. `cells` are those of dynamic programming, if they are
    counted.
    """

    seconds: float = 0.0
    count: int = 0
    peak_memory_bytes: int = 0
    cells: int = 0

    @property
    def gcups(self) -> float:
        """Billions of cells a second, on each of the threads that worked on the stage."""
        return self.cells / self.seconds / 1e9 if self.seconds else 0.0

    def as_dict(self) -> dict[str, float]:
        """Return plain numbers, for JSON: those about cells if they are counted."""
        found = dict(vars(self))
        if self.cells:
            return {**found, "gcups": self.gcups}
        del found["cells"]
        return found


@dataclass
class Kernel:
    """The cost of one device kernel over its launches, and the resources that it uses.

    `resources` are registers and local bytes a thread, shared bytes a block, occupancy;
    `node_visits` is None if they were not counted.
    """

    milliseconds: float = 0.0
    launches: int = 0
    node_visits: int | None = None
    resources: dict[str, float] = field(default_factory=dict)


@dataclass
class StatsTotals:
    """Counts, bytes and costs that another process has collected."""

    counts: dict[str, int]
    bytes: dict[str, int]
    stages: dict[str, Stage]
    kernels: dict[str, Kernel]


class CountedPart(Protocol):
    """What another folder of the package has counted, as a part of the report."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and dictionaries, for JSON."""


class CountedMatches(CountedPart, Protocol):
    """What is counted about matches (`mummergpu.matching.summary`)."""

    @property
    def queries_with_match(self) -> int:
        """The number of queries that have a match on any strand."""

    @property
    def bases_covered(self) -> int:
        """The number of bases of the reference that lie in a match."""


class _TimedStage:
    """What `Stats.stage` returns: a generator would hold the lock of the interpreter for longer."""

    __slots__ = ("_begin", "_name", "_stats")

    def __init__(self, stats: Stats, name: str) -> None:
        self._stats, self._name = stats, name

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self._stats._end_stage(self._name, self._begin)


class Stats:
    """Collects the counts and costs of a run; any thread may call every method.

    `stages` has one of each name in `STAGES`; `settings` are the configuration of the run:
    versions, backend, policy, sizes. `match_counts` are None if the run does not count matches,
    `mapping` if it maps no reads (`mapping.summary`), and `profiles` if it searches none
    (`hmm.hit_lists.HitCounts`). `is_reported` tells whether more than a `summary` is made of them.
    """

    def __init__(self) -> None:
        self.is_reported = True
        self._lock = threading.Lock()
        self.stages = {name: Stage() for name in STAGES}
        self.counts: dict[str, int] = {}
        self.bytes: dict[str, int] = {}
        self.kernels: dict[str, Kernel] = {}
        self.settings: dict[str, Any] = {}
        self._peak, self._peak_expires = 0, 0.0
        self._start = time.perf_counter()
        self._spans: list[tuple[str, str, float, float]] = []
        self.match_counts: CountedMatches | None = None
        self.mapping: CountedPart | None = None
        self.profiles: CountedPart | None = None

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Time the block of a ``with`` statement as part of a stage, one of `STAGES`."""
        return _TimedStage(self, name)

    def _end_stage(self, name: str, begin: float) -> None:
        """Record that this thread was at a stage from a time until now."""
        end = time.perf_counter()
        stage, peak, thread = self.stages[name], self._recent_peak(end), threading.current_thread()
        with self._lock:
            stage.seconds += end - begin
            stage.count += 1
            stage.peak_memory_bytes = max(stage.peak_memory_bytes, peak)
            if len(self._spans) < MOST_SPANS:
                self._spans.append((thread.name, name, begin, end))

    def _timeline(self) -> dict[str, list[str]]:
        """Return the stages of each thread: their name, and when they began and ended."""
        found: dict[str, list[str]] = {}
        for thread, name, begin, end in self._spans:
            span = f"{name} {begin - self._start:.4f} {end - self._start:.4f}"
            found.setdefault(thread, []).append(span)
        return found

    def _recent_peak(self, now: float) -> int:
        """Return the peak memory of a moment ago: the system takes milliseconds to find it."""
        if now >= self._peak_expires:
            self._peak = peak_memory()
            # Set last: until then, other threads ask the system too.
            self._peak_expires = now + PEAK_INTERVAL
        return self._peak

    def add(self, **numbers: int) -> None:
        """Add to counts, for example ``stats.add(queries=100, matches=7)``."""
        with self._lock:
            _add(self.counts, numbers)

    def add_cells(self, stage: str, cells: int) -> None:
        """Add to the cells of a stage, one of `STAGES`."""
        with self._lock:
            self.stages[stage].cells += int(cells)

    def add_bytes(self, **numbers: int) -> None:
        """Add to bytes, for example ``stats.add_bytes(output=4096)``."""
        with self._lock:
            _add(self.bytes, numbers)

    def add_kernel(self, name: str, stage: str, milliseconds: float) -> None:
        """Add a launch of a kernel to its cost and to that of a stage, in device time."""
        with self._lock:
            kernel = self.kernels.setdefault(name, Kernel())
            kernel.milliseconds += milliseconds
            kernel.launches += 1
            self.stages[stage].seconds += milliseconds / 1000
            self.stages[stage].count += 1

    def add_node_visits(self, name: str, visits: int) -> None:
        """Add to the number of nodes that a kernel's threads visited."""
        with self._lock:
            kernel = self.kernels.setdefault(name, Kernel())
            kernel.node_visits = (kernel.node_visits or 0) + visits

    def set_resources(self, name: str, resources: dict[str, float]) -> None:
        """Record the resources of a kernel, for example ``{"registers": 32}``."""
        with self._lock:
            self.kernels.setdefault(name, Kernel()).resources = dict(resources)

    def set(self, **settings: Any) -> None:
        """Record settings of the run, for example ``stats.set(backend="cpu")``."""
        with self._lock:
            self.settings.update(settings)

    def set_match_counts(self, found: CountedMatches) -> None:
        """Record the counts of the matches, once."""
        with self._lock:
            self.match_counts = found
        self.add(queries_with_match=found.queries_with_match, bases_covered=found.bases_covered)

    def taken(self) -> StatsTotals:
        """Return the totals since the last call of this, for `add_totals`."""
        with self._lock:
            stages = {name: replace(stage) for name, stage in self.stages.items() if stage.count}
            found = StatsTotals(self.counts, self.bytes, stages, self.kernels)
            self.counts, self.bytes, self.kernels = {}, {}, {}
            # Threads add their time to the same object when they leave a stage.
            for stage in self.stages.values():
                stage.seconds, stage.count, stage.cells = 0.0, 0, 0
        return found

    def add_totals(self, found: StatsTotals) -> None:
        """Add what another process has collected."""
        with self._lock:
            _add(self.counts, found.counts)
            _add(self.bytes, found.bytes)
            for name, stage in found.stages.items():
                own = self.stages[name]
                own.seconds += stage.seconds
                own.count += stage.count
                own.cells += stage.cells
                own.peak_memory_bytes = max(own.peak_memory_bytes, stage.peak_memory_bytes)
            for name, kernel in found.kernels.items():
                total = self.kernels.setdefault(name, Kernel(resources=kernel.resources))
                total.milliseconds += kernel.milliseconds
                total.launches += kernel.launches

    def as_dict(self) -> dict[str, Any]:
        """Return everything collected so far, ready for JSON."""
        with self._lock:
            found = self.match_counts
            return {
                "schema_version": SCHEMA_VERSION,
                "settings": dict(self.settings),
                "counts": dict(self.counts),
                **(found.as_dict() if found else {name: [] for name in MATCH_PARTS}),
                "mapping": self.mapping.as_dict() if self.mapping else None,
                "profiles": self.profiles.as_dict() if self.profiles else None,
                "bytes": dict(self.bytes),
                "stages": {
                    name: stage.as_dict() for name, stage in self.stages.items() if stage.count
                },
                "kernels": {name: dict(vars(kernel)) for name, kernel in self.kernels.items()},
                "timeline": self._timeline(),
                "peak_memory_bytes": peak_memory(),
            }

    def as_json(self) -> bytes:
        """Return `as_dict` as indented JSON in ASCII, with a line end."""
        return json.dumps(self.as_dict(), indent=2).encode() + b"\n"

    def summary(self) -> list[str]:
        """Return a line for the user about each stage that ran: its time, runs and peak memory."""
        return [
            f"{name:<18} {stage.seconds:10.3f} s in {pluralize(stage.count, 'run')}, "
            f"peak {stage.peak_memory_bytes / 2**20:,.0f} MiB"
            + (f", {stage.gcups:,.1f} GCUPS a thread" if stage.cells else "")
            for name, stage in self.stages.items()
            if stage.count
        ]


def peak_memory() -> int:
    """Return the peak resident memory of the process so far in bytes.

    The operating system's own record comes first, because the value of `resource` starts with the
    memory of the parent process.
    """
    with suppress(OSError), open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmHWM:"):
                return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES


def _add(totals: dict[str, int], numbers: dict[str, int]) -> None:
    for name, number in numbers.items():
        # JSON cannot hold numpy's integers.
        totals[name] = totals.get(name, 0) + int(number)
