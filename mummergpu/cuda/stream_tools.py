"""What work on a stream of a device takes, for those who continue the work of others there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mummergpu.cuda.device import Device, Program, Stream
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.workspace import Workspace
from mummergpu.runtime.stats import Stats


@dataclass(frozen=True)
class StreamTools:
    """What works on one block at a time.

    Attributes
    ----------
    device : Device
        The device, which is current in the calling thread.
    stream : Stream
        Runs the kernels.
    workspace : Workspace
        Provides memory for the block and what is made of it.
    staging : Staging
        Copies to and from the device.
    load_program : callable
        Returns a program, compiled and loaded.
    stats : Stats
        Collects times and bytes.
    """

    device: Device
    stream: Stream
    workspace: Workspace
    staging: Staging
    load_program: Callable[[ProgramSource], Program]
    stats: Stats
