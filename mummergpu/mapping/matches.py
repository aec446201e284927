"""The matches that mapping begins with, whatever search has found them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from mummergpu.sequence.codes import Strand

if TYPE_CHECKING:
    from mummergpu.cuda.stream_tools import StreamTools


class Matches(Protocol):
    """The matches of a block of reads on one strand, as `matching.columns.MemColumns` has them."""

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where the rows of each read begin, and where those of the last one end."""

    @property
    def query_starts(self) -> npt.NDArray[np.int64]:
        """Where each match begins in its read, 0-based, on the strand that was searched."""

    @property
    def reference_starts(self) -> npt.NDArray[np.int64]:
        """Where each match begins in the joined reference, 0-based."""

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The bases of each match."""


BlockMems = Mapping[Strand, Matches]
"""The matches of a block on both strands."""


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
