"""How much memory there is to take."""

from __future__ import annotations

import os


def free_memory() -> int:
    """Return how much memory can be taken without pushing out what is in use.

    Returns
    -------
    int
        In bytes; what the kernel calls available, or half of all where it does not say.
    """
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
