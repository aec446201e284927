"""Measures the free memory of the machine, or of the container."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.processors import cgroup_folders, file_text

_MEMORY_FACTS: Final = "/proc/meminfo"
_FILES_OF_1: Final = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_FILES_OF_2: Final = ("memory.max", "memory.current", "inactive_file")

_UNLIMITED: Final = 1 << 62
"""Control groups of version 1 report a number near 2**63 if there is no limit."""


# Parameters of glibc's `mallopt`.
_TRIM_THRESHOLD: Final = -1
_MOST_MAPPINGS: Final = -4

ASSUMED_MEMORY: Final = 4 << 30
"""The memory of a machine whose system does not say."""

PROCESS_BYTES: Final = 512 << 20
"""The memory that a run may take besides its limit: for the interpreter, the libraries, the
compiled code and the blocks of queries in work."""

PROCESS_BYTES_PER_THREAD: Final = 32 << 20
"""The further memory that a run may take for each thread."""


@frozen
class MemoryBudget:
    """The bytes that an index may take.

    `host` is for the reference, its index and the construction of the index, and must not be
    exceeded if the user set it (`is_limit`). `device` is for all pages in the memory of a device
    together; None without a device.
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
    In a container, they are at most the bytes that the limits of its control groups leave.
    """
    return min([_available_memory(), *_left_in_cgroups("/")])


def total_memory() -> int:
    """Return how many bytes the machine has; `ASSUMED_MEMORY` if the system does not say."""
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
    with suppress(OSError), open(_MEMORY_FACTS, "rb") as file:
        for line in file:
            if line.startswith(b"MemAvailable:"):
                return 1024 * int(line.split()[1])
    return total_memory() // 2


def _left_in_cgroups(root: str) -> Iterator[int]:
    """Yield the bytes that each limit on this process's control groups leaves."""
    for folder, is_2 in cgroup_folders(root, "memory"):
        limit_file, usage_file, reclaimable = _FILES_OF_2 if is_2 else _FILES_OF_1
        limit = _number_in(f"{folder}/{limit_file}")
        if limit is not None and limit < _UNLIMITED:
            used = _number_in(f"{folder}/{usage_file}") or 0
            # Cached file pages count as used, but the kernel frees them when memory is short.
            used -= _number_in(f"{folder}/memory.stat", f"{reclaimable} ") or 0
            yield max(0, limit - max(0, used))


def _number_in(path: str, name: str = "") -> int | None:
    """Return the number in the line of a file after a name; None if there is no such number."""
    with suppress(OSError, ValueError):
        for line in file_text(path).splitlines():
            if line.startswith(name):
                return int(line.removeprefix(name))
    return None
