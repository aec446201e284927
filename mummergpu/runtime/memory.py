"""How much memory there is to take: the machine's, or the container's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MEMORY_FACTS: Final = "/proc/meminfo"
_OWN_CGROUPS: Final = "/proc/self/cgroup"
_CGROUPS: Final = "/sys/fs/cgroup"

_UNLIMITED: Final = 1 << 62
"""Version 1 writes a number near 2**63 where there is no limit."""


PROCESS_BYTES: Final = 512 << 20
"""A run may take this much memory besides its limit: for the interpreter, the libraries, the
compiled code and the blocks of queries that are under way."""

PROCESS_BYTES_PER_THREAD: Final = 32 << 20
"""And this much for each thread."""


@dataclass(frozen=True)
class MemoryBudget:
    """How much memory an index may take.

    Attributes
    ----------
    host : int
        The most bytes for the reference, its index and the construction of that.
    device : int or None
        The most bytes for the pages that stand in the memory of a device together; None
        without a device.
    is_limit : bool
        Whether the user has set the host's part, so that no run may exceed it.
    """

    host: int
    device: int | None = None
    is_limit: bool = False

    @classmethod
    def of(cls, limit: int | None, device: int | None = None) -> MemoryBudget:
        """Return the budget under a limit in bytes; without one, half of what is free."""
        if limit is None:
            return cls(free_memory() // 2, device)
        return cls(limit, device, is_limit=True)


def free_memory() -> int:
    """Return how much memory can be taken without pushing out what is in use.

    Returns
    -------
    int
        In bytes; what the kernel calls available, or half of all where it does not say. In a
        container it is no more than what the limits of its control groups leave.
    """
    return min([_available_memory(), *_left_in_cgroups(Path(_OWN_CGROUPS), Path(_CGROUPS))])


def _available_memory() -> int:
    try:
        with open(_MEMORY_FACTS, "rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _left_in_cgroups(own: Path, mounted: Path) -> Iterator[int]:
    """Yield what each limit on this process's control groups leaves, in bytes.

    Parameters
    ----------
    own : Path
        The file that names the groups of this process, a line a hierarchy.
    mounted : Path
        Where the hierarchies are mounted: version 2 itself, version 1 in ``memory`` below.
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
    """Yield what a group and all groups above it leave.

    Inside a container the group's own name may be that of the host, where nothing is mounted;
    then the root of what is mounted is the container's group.
    """
    group = root / name.lstrip("/")
    while True:
        limit = _number_in(group / limit_file)
        if limit is not None and limit < _UNLIMITED:
            used = _number_in(group / usage_file) or 0
            # Cached pages of files count as used, and are given up when memory is short.
            used -= _statistic(group / "memory.stat", reclaimable)
            yield max(0, limit - max(0, used))
        if group == root or root not in group.parents:
            return
        group = group.parent


def _number_in(path: Path) -> int | None:
    """Return the number that a file holds; None for the word "max", or without the file."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _statistic(path: Path, name: str) -> int:
    """Return a number of a file of names and numbers, 0 if it has none of that name."""
    try:
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) == 2 and words[0] == name:
                return int(words[1])
    except (OSError, ValueError):
        pass
    return 0
