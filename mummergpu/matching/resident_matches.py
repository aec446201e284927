"""Matches that are still on the device that found them, and what else is there for their users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mummergpu.cuda.device import Device, Program, Stream
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.workspace import Workspace
from mummergpu.matching.backends.stream_searcher import DeviceMems
from mummergpu.runtime.stats import Stats


@dataclass(frozen=True)
class DeviceTools:
    """What works on one block of queries at a time.

    Attributes
    ----------
    device : Device
        The device, which is current in the calling thread.
    stream : Stream
        Runs the kernels; those that find the matches are queued already.
    workspace : Workspace
        Provides memory, and has that of the block.
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


@dataclass(frozen=True)
class ResidentMatches:
    """The matches of a block on both strands, on the device.

    They are valid until the function that receives them returns.

    Attributes
    ----------
    tools : DeviceTools
        What works on the block.
    query_count : int
        The number of queries.
    offsets : int
        The address of the array that says where each query begins in the block.
    forward_planes, reverse_planes : int
        The addresses of the bases of the queries and of their reverse complements, as bit planes.
    reference : int
        The address of the bases of the joined reference, as bit planes.
    forward, reverse : DeviceMems
        The matches on each strand, those of a query by their starts in the query.
    """

    tools: DeviceTools
    query_count: int
    offsets: int
    forward_planes: int
    reverse_planes: int
    reference: int
    forward: DeviceMems
    reverse: DeviceMems
