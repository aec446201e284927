"""The facts about the machine of a study: its device, and the versions of its software."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import TYPE_CHECKING, Final

from mummergpu.cuda.driver import DeviceFacts, driver_facts
from mummergpu.runtime.memory import total_memory
from mummergpu.studies.records import SweepMachine

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device

_LIBRARIES: Final = ("numpy", "numba")
_CUDA_LIBRARIES: Final = ("cuda-bindings", "nvidia-cuda-nvrtc")
"""The libraries of every GPU, besides the one that it is used through."""


def processor_name() -> str:
    """Return the name of the processor as the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def processor_facts(threads: int, gathers_per_second: dict[str, float]) -> SweepMachine:
    """Return the facts about the processor."""
    return SweepMachine(
        backend="cpu",
        device=processor_name(),
        architecture=platform.machine(),
        memory_bytes=total_memory(),
        multiprocessors=0,
        threads=threads,
        clocks_megahertz={},
        versions=_versions(_LIBRARIES),
        gathers_per_second=gathers_per_second,
    )


def device_facts(
    number: int, device: Device, threads: int, gathers_per_second: dict[str, float]
) -> SweepMachine:
    """Return the facts about a GPU, which is current in the calling thread."""
    driver = driver_facts()
    libraries = dict.fromkeys((*_LIBRARIES, device.library, *_CUDA_LIBRARIES))
    versions = _versions(tuple(libraries))
    if driver.cuda_version is not None:
        versions["driver's CUDA"] = ".".join(map(str, driver.cuda_version))
    versions |= _kernel_driver()
    facts = next((each for each in driver.devices if each.number == number), None)
    return SweepMachine(
        backend="cuda",
        device=device.name,
        architecture=device.architecture,
        memory_bytes=device.memory()[1],
        multiprocessors=0 if facts is None else facts.multiprocessors,
        threads=threads,
        clocks_megahertz={} if facts is None else _clocks(facts),
        versions=versions,
        gathers_per_second=gathers_per_second,
    )


def _clocks(facts: DeviceFacts) -> dict[str, float]:
    clocks = {
        "multiprocessors": facts.clock_kilohertz / 1000,
        "memory": facts.memory_clock_kilohertz / 1000,
    }
    return {name: clock for name, clock in clocks.items() if clock}


def _kernel_driver() -> dict[str, str]:
    """Return the version of NVIDIA's driver in the kernel, if the system has it."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            words = file.readline().split()
    except OSError:
        return {}
    numbers = [word for word in words if word[0].isdigit() and "." in word]
    return {"driver": numbers[0]} if numbers else {}


def _versions(libraries: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of Python, of the system and of installed libraries."""
    found = {"python": platform.python_version(), "system": platform.platform(terse=True)}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found
