"""Tells the processors of this machine: how many a process may use, and what the first one is."""

from __future__ import annotations

import os
from typing import Final

_DESCRIPTION: Final = "/proc/cpuinfo"
_ENOUGH_OF_IT: Final = 8192
"""The bytes to read of that file: it describes the first processor in fewer of them."""


def processor_count() -> int:
    """Return how many processors this process may use.

    Where the system does not tell that, such as macOS, all processors of the machine count.
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


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
