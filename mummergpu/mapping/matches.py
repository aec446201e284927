"""The matches that mapping begins with, whatever search has found them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mummergpu.sequence.codes import Strand


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
