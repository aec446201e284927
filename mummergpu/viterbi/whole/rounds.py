"""The rounds in which a whole matrix is computed: the blocks of an anti-diagonal at a time.

Blocks of an anti-diagonal depend on those before only, never on each other (Du, Yin and Bader
2010, section IV A, where a block is a single cell).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen


@frozen
class RoundPlan:
    """A matrix that is cut into blocks of so many rows and columns.

    Both sequences have 1 base or more.
    """

    length: int
    reference_length: int
    block_rows: int
    block_columns: int

    @property
    def strips(self) -> int:
        """The number of rows of blocks."""
        return -(-self.length // self.block_rows)

    @property
    def column_blocks(self) -> int:
        """The number of columns of blocks."""
        return -(-self.reference_length // self.block_columns)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self.strips + self.column_blocks - 1

    @property
    def max_blocks(self) -> int:
        """The most blocks of a round."""
        return min(self.strips, self.column_blocks)

    def first_strip(self, number: int) -> int:
        """Return the first strip that has a block in a round."""
        return max(0, number - self.column_blocks + 1)

    def block_count(self, number: int) -> int:
        """Return the number of blocks of a round."""
        return min(number, self.strips - 1) - self.first_strip(number) + 1

    @cached_property
    def first_blocks(self) -> Int64Array:
        """The blocks before each round, and all blocks: ndarray, dtype=int64, shape=(rounds + 1,).

        The blocks of a round follow each other, and the rounds do.
        """
        counts = [self.block_count(number) for number in range(self.rounds)]
        return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
