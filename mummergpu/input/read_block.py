"""Reads that are mapped together: queries with base qualities, in pairs or not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mummergpu.input.qualities import NO_QUALITY
from mummergpu.input.queries import QueryBlock
from mummergpu.input.record_arrays import Records

QualityArray = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ReadBlock(QueryBlock):
    """Reads with their qualities; whatever searches a `QueryBlock` searches this too.

    Names have no ``/1`` or ``/2`` at their ends.

    Attributes
    ----------
    base_qualities : ndarray, dtype=uint8, shape=(n_bases,)
        The qualities on Phred's scale, 0 to 93, at the indices of `codes`. All of a read that has
        none are `qualities.NO_QUALITY`.
    paired : bool
        Whether reads 2i and 2i + 1 are mates, the first and the second of a template.
    """

    base_qualities: QualityArray = field(kw_only=True)
    paired: bool = field(default=False, kw_only=True)

    @classmethod
    def of_records(cls, records: Records, paired: bool) -> ReadBlock:
        """Return records as a block with index 0, in the same arrays.

        Parameters
        ----------
        records : Records
            They have qualities.
        paired : bool
            Whether two and two of them are mates.
        """
        return cls(
            0,
            records.padded_codes,
            records.offsets,
            records.names,
            records.name_offsets,
            base_qualities=records.qualities,
            paired=paired,
        )

    @property
    def pair_count(self) -> int:
        """The number of pairs, 0 if the reads are not paired."""
        return self.query_count // 2 if self.paired else 0

    @property
    def can_be_cut(self) -> bool:
        """Whether there are two templates or more: mates are mapped together."""
        return self.query_count > self._reads_of_template

    @property
    def has_qualities(self) -> bool:
        """Whether any base has a quality."""
        return bool(self.base_qualities.min(initial=NO_QUALITY) != NO_QUALITY)

    def numbered(self, index: int, file_number: int) -> ReadBlock:
        """Return the same reads as another block of the input."""
        return replace(self, index=index, file_number=file_number)

    def halves(self) -> tuple[ReadBlock, ReadBlock]:
        """Return the first and the second half of the reads, as views of their arrays.

        The mates of several pairs stay together. Those of a single pair, whose matches alone may
        be too many for a device, become single reads: that is good for a search only.
        """
        middle = self.query_count // 2
        if self.query_count > 2:
            middle -= middle % self._reads_of_template
        return self.part(0, middle), self.part(middle, self.query_count)

    def split_at(self, bases: int) -> tuple[ReadBlock, ReadBlock]:
        """Return the first reads, of about so many bases, and the others; see `QueryBlock`.

        The mates of several pairs stay together, as `halves` has it.
        """
        end = int(np.searchsorted(self.offsets, bases))
        if self.query_count > 2:
            step = self._reads_of_template
            end = min(max(end + end % step, step), self.query_count - step)
        else:
            end = min(max(end, 1), self.query_count - 1)
        return self.part(0, end), self.part(end, self.query_count)

    def part(self, first: int, end: int) -> ReadBlock:
        """Return some of the reads, as views of the arrays.

        Parameters
        ----------
        first, end : int
            The half-open range of the reads.

        Returns
        -------
        ReadBlock
            It has the same index. It is paired if the block is, and the range parts no mates.
        """
        block = super().part(first, end)
        return ReadBlock(
            block.index,
            block.padded_codes,
            block.offsets,
            block.names,
            block.name_offsets,
            block.file_number,
            base_qualities=self.base_qualities[self.offsets[first] : self.offsets[end]],
            paired=self.paired and first % 2 == 0 and end % 2 == 0,
        )

    @property
    def _reads_of_template(self) -> int:
        return 2 if self.paired else 1
