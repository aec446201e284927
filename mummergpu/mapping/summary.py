"""Counts what became of the reads: mapped, paired, insert sizes, mapping qualities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.columns import NO_ROW, AlignmentColumns, SamFlag

MOST_INSERT: Final = 1 << 14
"""Insert sizes of this and more are counted together."""

QUALITIES: Final = 256
"""The values of a mapping quality."""

_NOT_PRIMARY: Final = int(SamFlag.SECONDARY | SamFlag.SUPPLEMENTARY)

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MappingSummary:
    """What became of some reads; the sum of two summaries is that of all reads of both.

    Attributes
    ----------
    reads, mapped : int
        The reads, and those of them that are mapped.
    paired, proper, both_mapped, single, other_record : int
        The reads with a mate; those of proper pairs; those that are mapped as is their mate; those
        that are mapped while their mate is not; and those whose mate is mapped to another record.
    secondary, supplementary : int
        The alignments besides the primary ones.
    qualities : ndarray, dtype=int64, shape=(QUALITIES,)
        The mapped reads with each mapping quality.
    inserts : ndarray, dtype=int64, shape=(MOST_INSERT + 1,)
        The proper pairs of each insert size, the last element counting those of `MOST_INSERT` and
        more.
    """

    reads: int
    mapped: int
    paired: int
    proper: int
    both_mapped: int
    single: int
    other_record: int
    secondary: int
    supplementary: int
    qualities: Counts
    inserts: Counts

    def __add__(self, other: MappingSummary) -> MappingSummary:
        """Return the summary of the reads of both."""
        return MappingSummary(
            self.reads + other.reads,
            self.mapped + other.mapped,
            self.paired + other.paired,
            self.proper + other.proper,
            self.both_mapped + other.both_mapped,
            self.single + other.single,
            self.other_record + other.other_record,
            self.secondary + other.secondary,
            self.supplementary + other.supplementary,
            self.qualities + other.qualities,
            self.inserts + other.inserts,
        )

    def insert_quantile(self, share: float) -> int | None:
        """Return the smallest insert size that at least this share of the pairs do not exceed.

        Parameters
        ----------
        share : float
            From 0 to 1.

        Returns
        -------
        int or None
            In bases, at most `MOST_INSERT`; None if there is no proper pair.
        """
        ends = np.cumsum(self.inserts)
        if ends[-1] == 0:
            return None
        return int(np.searchsorted(ends, max(1, int(np.ceil(share * ends[-1])))))

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain numbers, lists and dictionaries, for JSON."""
        quality_counts = np.trim_zeros(self.qualities, "b").tolist()
        sizes = np.arange(MOST_INSERT)
        counts = self.inserts[:-1]
        pairs = int(counts.sum())
        mean = float((sizes * counts).sum() / pairs) if pairs else None
        deviation = None
        if mean is not None:
            deviation = float(np.sqrt(((sizes - mean) ** 2 * counts).sum() / pairs))
        return {
            "reads": self.reads,
            "mapped": self.mapped,
            "paired": self.paired,
            "properly_paired": self.proper,
            "mapped_with_mate": self.both_mapped,
            "singletons": self.single,
            "mate_on_other_record": self.other_record,
            "secondary": self.secondary,
            "supplementary": self.supplementary,
            "mapping_qualities": quality_counts,
            "insert_size": {
                "pairs": int(self.inserts.sum()),
                "mean": mean,
                "standard_deviation": deviation,
                "quartiles": [self.insert_quantile(share) for share in (0.25, 0.5, 0.75)],
                "longer": int(self.inserts[-1]),
                "counts": np.trim_zeros(counts, "b").tolist(),
            },
        }


def empty_summary() -> MappingSummary:
    """Return the summary of no reads."""
    qualities = np.zeros(QUALITIES, dtype=np.int64)
    inserts = np.zeros(MOST_INSERT + 1, dtype=np.int64)
    return MappingSummary(0, 0, 0, 0, 0, 0, 0, 0, 0, qualities, inserts)


def summary_of(columns: AlignmentColumns) -> MappingSummary:
    """Count the alignments of a block.

    Parameters
    ----------
    columns : AlignmentColumns
        The alignments.

    Returns
    -------
    MappingSummary
        The counts.
    """
    flags = columns.flags.astype(np.int64)
    is_primary = flags & _NOT_PRIMARY == 0
    primary = flags[is_primary]
    is_mapped = primary & SamFlag.UNMAPPED == 0
    is_paired = primary & SamFlag.PAIRED != 0
    mate_mapped = is_paired & (primary & SamFlag.MATE_UNMAPPED == 0)
    is_proper = is_mapped & is_paired & (primary & SamFlag.PROPER_PAIR != 0)
    mates = columns.mate_rows[is_primary]
    mate_records = np.where(mates == NO_ROW, NO_ROW, columns.records[mates])
    both = is_mapped & mate_mapped
    sizes = np.abs(columns.template_lengths[is_primary].astype(np.int64))
    is_counted = is_proper & (primary & SamFlag.FIRST != 0)
    return MappingSummary(
        int(primary.size),
        int(is_mapped.sum()),
        int(is_paired.sum()),
        int(is_proper.sum()),
        int(both.sum()),
        int((is_mapped & is_paired & ~mate_mapped).sum()),
        int((both & (mate_records != columns.records[is_primary])).sum()),
        int((flags & SamFlag.SECONDARY != 0).sum()),
        int((flags & SamFlag.SUPPLEMENTARY != 0).sum()),
        np.bincount(columns.qualities[is_primary][is_mapped], minlength=QUALITIES),
        np.bincount(np.minimum(sizes[is_counted], MOST_INSERT), minlength=MOST_INSERT + 1),
    )
