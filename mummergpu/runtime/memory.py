"""Measures the free memory of the machine, or of the container."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mummergpu.runtime.frozen import frozen

_MEMORY_FACTS: Final = "/proc/meminfo"
_OWN_CGROUPS: Final = "/proc/self/cgroup"
_CGROUPS: Final = "/sys/fs/cgroup"

_UNLIMITED: Final = 1 << 62
"""Control groups of version 1 report a number near 2**63 if there is no limit."""


# Parameters of glibc's `mallopt`.
_TRIM_THRESHOLD: Final = -1
_MOST_MAPPINGS: Final = -4

ASSUMED_MEMORY: Final = 4 << 30
"""The memory of a machine whose system does not tell it."""

PROCESS_BYTES: Final = 512 << 20
"""The memory that a run may take besides its limit: for the interpreter, the libraries, the
compiled code and the blocks of queries in work."""

PROCESS_BYTES_PER_THREAD: Final = 32 << 20
"""The further memory that a run may take for each thread."""


@frozen
class MemoryBudget:
    """The memory that an index may take.

    Attributes
    ----------
    host : int
        The most bytes for the reference, its index and the construction of the index.
    device : int or None
        The most bytes for all pages in the memory of a device together; None without a device.
    is_limit : bool
        Whether the user set the limit of the host, which no run may then exceed.
    """

    host: int
    device: int | None = None
    is_limit: bool = False

    @classmethod
    def of(cls, limit: int | None, device: int | None = None) -> MemoryBudget:
        """Return the budget for a limit in bytes; without a limit, half of the free memory."""
        if limit is None:
            return cls(free_memory() // 2, device)
        return cls(limit, device, is_limit=True)


def free_memory() -> int:
    """Return how many bytes can be allocated without forcing used memory out.

    They are those that the kernel reports as available, or half of all memory if it reports none.
    In a container, they are at most what the limits of its control groups leave.
    """
    return min([_available_memory(), *_left_in_cgroups(Path(_OWN_CGROUPS), Path(_CGROUPS))])


def total_memory() -> int:
    """Return how many bytes the machine has; `ASSUMED_MEMORY` if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return ASSUMED_MEMORY


def keep_freed_memory() -> None:
    """Let the C library keep the memory that this process frees, for its next allocations.

    By default it returns large arrays to the system, which then clears each page of the next array.
    A job that allocates the same gigabyte again and again would spend most of its time there.
    Another C library than glibc may refuse; the memory is returned then, as usual.
    """
    with suppress(AttributeError):
        set_parameter = ctypes.CDLL(None).mallopt
        set_parameter(_MOST_MAPPINGS, 0)
        set_parameter(_TRIM_THRESHOLD, -1)


def _available_memory() -> int:
    try:
        with open(_MEMORY_FACTS, "rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return total_memory() // 2


def _left_in_cgroups(own: Path, mounted: Path) -> Iterator[int]:
    """Yield the bytes that each limit on this process's control groups leaves.

    The first file names the groups of this process. The hierarchies are mounted in the folder:
    version 2 itself, version 1 in its subfolder ``memory``.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if number == "0" and not controllers:
            names = ("memory.max", "memory.current", "inactive_file")
            yield from _left_below(mounted, name, *names)
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _left_below(mounted / "memory", name, *names)


def _left_below(
    root: Path, name: str, limit_file: str, usage_file: str, reclaimable: str
) -> Iterator[int]:
    """Yield the bytes that a group and all groups above it leave.

    Inside a container the group's name may be its name on the host, which is not mounted. The
    root of the mounted hierarchy is then the container's group.
    """
    group = root / name.lstrip("/")
    while True:
        limit = _number_in(group / limit_file)
        if limit is not None and limit < _UNLIMITED:
            used = _number_in(group / usage_file) or 0
            # Cached file pages count as used, but the kernel frees them when memory is short.
            used -= _statistic(group / "memory.stat", reclaimable)
            yield max(0, limit - max(0, used))
        if group == root or root not in group.parents:
            return
        group = group.parent


def _number_in(path: Path) -> int | None:
    """Return the number in a file; None if it holds the word "max" or does not exist."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _statistic(path: Path, name: str) -> int:
    """Return the number with a given name in a file of names and numbers, 0 if it is missing."""
    try:
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == name:
                return int(words[1])
    except (OSError, ValueError):
        pass
    return 0
