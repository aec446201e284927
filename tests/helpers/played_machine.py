"""A machine with a GPU as it looks to the command, and files for the command.

What is played: the driver and the libraries that are looked for, the device, and the compiler
of the kernels.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from helpers.oracle import reverse_complement
from helpers.sequences import random_bases, write_numbered
from helpers.watched_device import WatchedDevice
from mummergpu.cuda.driver import DeviceFacts, DriverFacts
from mummergpu.cuda.requirements import CompilerFacts, CudaFacts
from mummergpu.matching import open_cuda as opening
from mummergpu.runtime.optional_imports import Library

GIB = 1 << 30
H200 = DeviceFacts(0, "NVIDIA H200", (9, 0), 132, 140 * GIB, 139 * GIB, None)
SOUND = CudaFacts(
    DriverFacts((13, 0), (H200,), None),
    Library("pycuda", "2026.1", None),
    Library("cuda-bindings", "13.0.1", None),
    CompilerFacts((13, 5), (75, 80, 90, 100), None),
)
NO_DRIVER = replace(SOUND, driver=DriverFacts(None, (), "no NVIDIA driver (not found)"))
NO_PYCUDA = replace(SOUND, pycuda=Library("pycuda", None, "not installed"))
BROKEN_PYCUDA = replace(SOUND, pycuda=Library("pycuda", "2026.1", "cannot be imported: why"))
NO_LIBRARY = replace(
    NO_PYCUDA,
    bindings=Library("cuda-bindings", None, "not installed"),
    compiler=CompilerFacts(None, (), "cuda-bindings cannot be imported"),
)
BARE = replace(NO_LIBRARY, driver=NO_DRIVER.driver)


@dataclass
class Machine:
    """A machine with a GPU as it looks to the command; what was done with it."""

    patch: pytest.MonkeyPatch
    libraries: list[str] = field(default_factory=list)
    memory_bytes: int = GIB
    numbers: list[int] = field(default_factory=list)
    folders: list[Path | None] = field(default_factory=list)
    devices: list[WatchedDevice] = field(default_factory=list)
    prepare: Callable[[WatchedDevice], None] = lambda device: None

    def looks(self, facts):
        self.patch.setattr(opening, "driver_facts", lambda: facts.driver)
        self.patch.setattr(opening, "cuda_facts", lambda measure_memory, library: facts)

    def at_launch(self, act):
        """Let something happen before each launch, which is given the device and the kernel."""

        def prepare(device):
            device.before_launch = lambda kernel: act(device, kernel)

        self.prepare = prepare

    def opener(self, library):
        """Return what opens a device, and note the library that it is opened through."""

        def open_device(number):
            self.libraries.append(library)
            return self.open_device(number)

        return open_device

    def open_device(self, number):
        self.numbers.append(number)
        self.devices.append(WatchedDevice(self.memory_bytes))
        self.prepare(self.devices[-1])
        return self.devices[-1]


def write_files(folder):
    """Write six records with repeats in common, reads of them, and queries that are long."""
    made = random.Random(6)

    def bases(count):
        return random_bases(made, count)

    repeat = bases(70)
    turned = reverse_complement(repeat)
    records = [bases(400) + made.choice((repeat, turned)) + bases(430) for _ in range(6)]
    records[2] = records[2][:300] + "N" * 7 + records[2][300:] + "ACT" * 30
    joined = "".join(records)

    def read():
        begin = made.randrange(len(joined) - 90)
        text = list(joined[begin : begin + made.randrange(20, 90)])
        for place in range(len(text)):
            if made.random() < 0.03:
                text[place] = made.choice(["N", "", "A", "GC"])
        return made.choice((str, reverse_complement))("".join(text))

    reads = [*(read() for _ in range(60)), repeat, "ACT" * 20, "", "ACG"]
    long = list(joined)
    for place in range(0, len(long), 211):
        long[place] = made.choice("ACGTN")
    other = reverse_complement("".join(long[100:]) + repeat)
    write_numbered(folder / "r.fa", "r", records)
    write_numbered(folder / "one.fa", "single", [joined])
    write_numbered(folder / "q.fa", "q", reads)
    write_numbered(folder / "long.fa", "g", [reads[0], "".join(long), reads[1], other])
    middle = "".join(long[700:2300])
    write_numbered(folder / "middle.fa", "m", [reads[0], middle, reverse_complement(middle)])
