"""What the programs of this room work with on a device."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.cuda.device import Device, Program
from mummergpu.cuda.launcher import Launcher
from mummergpu.cuda.workspace import Workspace
from mummergpu.runtime.stats import Stats
from mummergpu.viterbi.recurrence.model import Costs

STAGE: Final = "mapping"
"""The stage to which the times of the kernels are added."""


class DeviceWork:
    """Aligns sequences on a device; one thread uses it at a time, in which the device is current.

    It takes `memory` bytes of the device at most.
    """

    def __init__(
        self, device: Device, program: Program, costs: Costs, memory: int, stats: Stats
    ) -> None:
        self._device = device
        self._program = program
        self._costs = np.array(costs, dtype=np.int32)
        self._memory = memory
        self._workspace = Workspace(device, memory)
        self._stream = device.new_stream()
        self._launcher = Launcher(device, self._stream, self._workspace, stats, STAGE)

    def free(self) -> None:
        """Free all memory and the stream."""
        self._workspace.free()
        self._stream.free()
