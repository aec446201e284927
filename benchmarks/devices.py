"""Opens devices for the benchmarks, through the library that the environment names."""

from __future__ import annotations

import os

from mummergpu.cuda.device import Device
from mummergpu.cuda.device_library import AUTO, device_opener
from mummergpu.cuda.requirements import cuda_facts, library_to_use

VARIABLE = "DEVICE_LIBRARY"
"""The variable of the environment, with the values of ``--device-library``."""


def open_device(number: int) -> Device:
    """Return a device; end the benchmark if its library is not there."""
    wanted = os.environ.get(VARIABLE, AUTO)
    library = library_to_use(cuda_facts(False, wanted), wanted)
    if library is None:
        raise SystemExit(f"{wanted} cannot be used; mummergpu doctor says why")
    return device_opener(library)(number)
