"""Opens devices for the benchmarks, and measures how fast one follows random addresses."""

from __future__ import annotations

import os

from mummergpu.cuda.device import Device
from mummergpu.cuda.device_library import AUTO, device_opener
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.requirements import cuda_facts, library_to_use
from mummergpu.studies.gathers import device_gathers

VARIABLE = "DEVICE_LIBRARY"
"""The variable of the environment, with the values of ``--device-library``."""


def open_device(number: int) -> Device:
    """Return a device; end the benchmark if its library is not there."""
    wanted = os.environ.get(VARIABLE, AUTO)
    library = library_to_use(cuda_facts(False, wanted), wanted)
    if library is None:
        raise SystemExit(f"{wanted} cannot be used; mummergpu doctor says why")
    return device_opener(library)(number)


def gather_rates(table_bytes: int, runs: int) -> dict[str, float]:
    """Return the random records a second of a table of so many bytes; medians of runs.

    Each record names the next one, which is the ceiling of a search that goes from node to node.
    """
    device = open_device(0)
    try:
        return device_gathers(device, KernelCache(None, print), table_bytes, runs)
    finally:
        device.close()
