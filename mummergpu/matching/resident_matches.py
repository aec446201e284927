"""Matches that are still on the device that found them, and what else is there for their users."""

from __future__ import annotations

from mummergpu.cuda.stream_tools import StreamTools
from mummergpu.matching.backends.stream_searcher import DeviceMems
from mummergpu.runtime.frozen import frozen


@frozen
class ResidentMatches:
    """The matches of a block on both strands, on the device.

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

    tools: StreamTools
    query_count: int
    offsets: int
    forward_planes: int
    reverse_planes: int
    reference: int
    forward: DeviceMems
    reverse: DeviceMems
