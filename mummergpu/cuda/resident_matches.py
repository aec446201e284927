"""Matches that are still on the device that found them."""

from __future__ import annotations

from collections.abc import Callable

from mummergpu.cuda.device import Program
from mummergpu.cuda.program import ProgramSource
from mummergpu.cuda.stream_worker import StreamWorker
from mummergpu.runtime.frozen import frozen


@frozen
class DeviceMems:
    """The MEMs of a block on one strand, on the device.

    Attributes
    ----------
    query_offsets : int
        The address of the array that says where the rows of each query begin and end.
    columns : tuple of int
        The addresses of the query starts, the reference starts and the lengths.
    seeds : int
        The address of `MemColumns.seeds`; 0 if no match is left out.
    """

    query_offsets: int
    columns: tuple[int, int, int]
    count: int
    seeds: int = 0

    @property
    def arguments(self) -> tuple[int, int, int, int]:
        """The kernel arguments that describe the rows."""
        return self.query_offsets, *self.columns


@frozen
class ResidentMatches:
    """The matches of a block on both strands, on the device, and what works with them there.

    They are valid until the function that receives them returns.

    Attributes
    ----------
    offsets : int
        The address of the array that says where each query begins in the block.
    forward_planes, reverse_planes : int
        The addresses of the bases of the queries and of their reverse complements, as bit planes.
    reference : int
        The address of the bases of the joined reference, as bit planes.
    forward, reverse : DeviceMems
        The matches on each strand, those of a query by their starts in the query.
    """

    worker: StreamWorker
    load_program: Callable[[ProgramSource], Program]
    query_count: int
    offsets: int
    forward_planes: int
    reverse_planes: int
    reference: int
    forward: DeviceMems
    reverse: DeviceMems
