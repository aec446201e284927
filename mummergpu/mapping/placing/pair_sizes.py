"""The sizes of templates, as compiled functions take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mummergpu.mapping.placing.evidence import UNIT
from mummergpu.mapping.placing.insert_sizes import InsertSizes
from mummergpu.runtime.arrays import Int32Array


@dataclass(frozen=True)
class PairSizes:
    """What `InsertSizes` mean for the compiled functions.

    Attributes
    ----------
    sizes : InsertSizes or None
        The distribution; None if no pairs are proper.
    first : int
        The smallest size that has a penalty.
    penalties : ndarray, dtype=int32
        The penalty of each size from `first` on, in units.
    """

    sizes: InsertSizes | None
    first: int
    penalties: Int32Array

    @classmethod
    def of_sizes(cls, sizes: InsertSizes | None, unpaired: int) -> PairSizes:
        """Return the penalties of a distribution."""
        if sizes is None:
            return cls(None, 0, np.zeros(1, dtype=np.int32))
        return cls(sizes, *sizes.penalties(unpaired, UNIT))

    @property
    def proper(self) -> tuple[int, int]:
        """The sizes of proper pairs."""
        return (0, 0) if self.sizes is None else (self.sizes.least, self.sizes.most)

    @property
    def last(self) -> int:
        """The largest size that has a penalty; 0 if no pairs are proper."""
        return 0 if self.sizes is None else self.first + self.penalties.size - 1
