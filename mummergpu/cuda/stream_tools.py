"""What work on a stream of a device takes, for those who continue the work of others there."""

from __future__ import annotations

from collections.abc import Callable

from mummergpu.cuda.device import Device, Program, Stream
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.workspace import Workspace
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import Stats


@frozen
class StreamTools:
    """What works on one block at a time; the device is current in the calling thread.

    `load_program` returns a program, compiled and loaded.
    """

    device: Device
    stream: Stream
    workspace: Workspace
    staging: Staging
    load_program: Callable[[ProgramSource], Program]
    stats: Stats
