"""The processors of this machine: how many a process may use, and of what kind they are."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Final

_NO_QUOTA: Final = 1 << 20
_FILES_OF_1: Final[tuple[str, ...]] = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
_FILES_OF_2: Final[tuple[str, ...]] = ("cpu.max",)

_DESCRIPTION: Final = "/proc/cpuinfo"
_ENOUGH_OF_IT: Final = 8192
"""The bytes to read of that file: it describes the first processor in fewer of them."""


def processor_count() -> int:
    """Return how many processors this process may use: those of its affinity and its quota.

    Where the system does not say, such as macOS, all processors of the machine count.
    """
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    return min(count, _quota("/"))


def _quota(root: str) -> int:
    """Return how many processors the quotas of cgroups leave to this process, rounded up."""
    groups = cgroup_folders(root, "cpu")
    shares = (_share(folder, _FILES_OF_2 if is_2 else _FILES_OF_1) for folder, is_2 in groups)
    return math.ceil(min(shares, default=_NO_QUOTA))


def cgroup_folders(root: str, controller: str) -> Iterator[tuple[str, bool]]:
    """Yield the folders that may limit this process, and whether they are of version 2 of cgroups.

    A container may see its group as the topmost one, or under its name on the host: every group of
    the path counts, of both versions. Not all of the folders exist.
    """
    try:
        with open(f"{root}proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    folder = f"{root}sys/fs/cgroup"
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0":
            mounts = {folder, f"{folder}/unified"}
        elif controller in controllers.split(","):
            mounts = {f"{folder}/{controller}", f"{folder}/{controllers}"}
        else:
            continue
        names = [name for name in path.split("/") if name not in ("", "..")]
        for depth in range(len(names) + 1):
            for mount in mounts:
                yield "/".join((mount, *names[:depth])), number == "0"


def _share(group: str, files: tuple[str, ...]) -> float:
    """Return the processors of a cgroup: its quota of time in each period."""
    try:
        quota, period = map(
            float, " ".join(map(file_text, (f"{group}/{one}" for one in files))).split()
        )
    except (OSError, ValueError):
        # There is no such group, or no quota: "max" is no number.
        return _NO_QUOTA
    return quota / period if quota > 0 and period > 0 else _NO_QUOTA


def file_text(path: str) -> str:
    """Return the text of a file of the system."""
    with open(path, encoding="ascii") as file:
        return file.read()


def first_processor() -> dict[bytes, bytes]:
    """Return the system's description of the first processor; the others are taken to be alike.

    `OSError` if the system describes no processors, `ValueError` if the description is not
    complete.
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
