"""The matches that mapping begins with, whatever search has found them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mummergpu.cuda.stream_tools import StreamTools


class DeviceRows(Protocol):
    """The matches of a block on one strand, on a device (`stream_searcher.DeviceMems`)."""

    @property
    def query_offsets(self) -> int:
        """The address of the array that says where the rows of each read begin and end."""

    @property
    def columns(self) -> tuple[int, int, int]:
        """The addresses of the query starts, the reference starts and the lengths."""

    @property
    def count(self) -> int:
        """The number of matches."""

    @property
    def seeds(self) -> int:
        """The address of `MemColumns.seeds`; 0 if no match is left out."""


class ResidentMatches(Protocol):
    """The matches of a block on a device, as `matching.resident_matches` has them."""

    @property
    def tools(self) -> StreamTools:
        """What works on the block."""

    @property
    def query_count(self) -> int:
        """The number of reads."""

    @property
    def offsets(self) -> int:
        """The address of the array that says where each read begins in the block."""

    @property
    def forward_planes(self) -> int:
        """The address of the bases of the reads, as bit planes."""

    @property
    def reverse_planes(self) -> int:
        """The address of the bases of their reverse complements, as bit planes."""

    @property
    def reference(self) -> int:
        """The address of the bases of the joined reference, as bit planes."""

    @property
    def forward(self) -> DeviceRows:
        """The matches on the forward strand, those of a read by their starts in it."""

    @property
    def reverse(self) -> DeviceRows:
        """The matches on the reverse strand."""
