"""Tells the processors of this machine: how many a process may use, and what the first one is."""

from __future__ import annotations

import math
import os
from typing import Final

_NO_QUOTA: Final = 1 << 20
_FILES_OF_1: Final[tuple[str, ...]] = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
_FILES_OF_2: Final[tuple[str, ...]] = ("cpu.max",)

_DESCRIPTION: Final = "/proc/cpuinfo"
_ENOUGH_OF_IT: Final = 8192
"""The bytes to read of that file: it describes the first processor in fewer of them."""


def processor_count() -> int:
    """Return how many processors this process may use: those of its affinity and its quota.

    Where the system does not tell that, such as macOS, all processors of the machine count.
    """
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    return min(count, _quota("/"))


def _quota(root: str) -> int:
    """Return how many processors the quotas of cgroups leave to this process, rounded up.

    A container may see its group as the topmost one, or under its name on the host: every group of
    the path that is there counts, of both versions of cgroups.
    """
    try:
        with open(f"{root}proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return _NO_QUOTA
    folder, least = f"{root}sys/fs/cgroup", float(_NO_QUOTA)
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            mounts, files = (folder, f"{folder}/unified"), _FILES_OF_2
        elif "cpu" in controllers.split(","):
            mounts, files = (f"{folder}/cpu", f"{folder}/{controllers}"), _FILES_OF_1
        else:
            continue
        names = [name for name in path.split("/") if name not in ("", "..")]
        for depth in range(len(names) + 1):
            for mount in mounts:
                least = min(least, _share("/".join((mount, *names[:depth])), files))
    return math.ceil(least)


def _share(group: str, files: tuple[str, ...]) -> float:
    """Return the processors of a cgroup: its quota of time in each period."""
    try:
        texts = []
        for name in files:
            with open(f"{group}/{name}", encoding="ascii") as file:
                texts.append(file.read())
        quota, period = map(float, " ".join(texts).split())
    except (OSError, ValueError):
        # There is no such group, or no quota: "max" is no number.
        return _NO_QUOTA
    return quota / period if quota > 0 and period > 0 else _NO_QUOTA


def first_processor() -> dict[bytes, bytes]:
    """Return what the system tells of the first processor; the others are taken to be like it.

    Raises
    ------
    OSError
        If the system describes no processors in that file.
    ValueError
        If the description is not complete.
    """
    descriptor = os.open(_DESCRIPTION, os.O_RDONLY | os.O_CLOEXEC)
    try:
        first, separator, _ = os.read(descriptor, _ENOUGH_OF_IT).partition(b"\n\n")
    finally:
        os.close(descriptor)
    if not separator:
        raise ValueError("the description of the processor is not complete")
    lines = dict(line.partition(b":")[::2] for line in first.splitlines())
    return {name.strip(): value.strip() for name, value in lines.items()}
