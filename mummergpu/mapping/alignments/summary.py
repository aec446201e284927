"""Counts the outcome of mapping: mapped, paired, insert sizes, mapping qualities."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, SamFlag, new_columns
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_int64, jit

MAX_INSERT: Final = 1 << 14
"""Insert sizes of at least this are counted together."""

QUALITIES: Final = 256
"""The values of a mapping quality."""

_COUNTS: Final = 9
"""The fields of a `MappingSummary` that are single numbers."""

_PAIRED: Final = int(SamFlag.PAIRED)
_PROPER_PAIR: Final = int(SamFlag.PROPER_PAIR)
_UNMAPPED: Final = int(SamFlag.UNMAPPED)
_MATE_UNMAPPED: Final = int(SamFlag.MATE_UNMAPPED)
_FIRST: Final = int(SamFlag.FIRST)
_SECONDARY: Final = int(SamFlag.SECONDARY)
_SUPPLEMENTARY: Final = int(SamFlag.SUPPLEMENTARY)
_NOT_PRIMARY: Final = _SECONDARY | _SUPPLEMENTARY

Counts = Int64Array


@frozen
class MappingSummary:
    """The outcome of mapping some reads; the sum of two summaries is that of all reads of both.

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
    inserts : ndarray, dtype=int64, shape=(MAX_INSERT + 1,)
        The proper pairs of each insert size, the last element counting those of `MAX_INSERT` and
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
        sums = (getattr(self, one.name) + getattr(other, one.name) for one in fields(self))
        return MappingSummary(*sums)

    def insert_quantile(self, share: float) -> int | None:
        """Return the smallest insert size that at least this share of the pairs do not exceed.

        It is at most `MAX_INSERT`, and None if there is no proper pair.
        """
        ends = np.cumsum(self.inserts)
        if ends[-1] == 0:
            return None
        return int(np.searchsorted(ends, max(1, int(np.ceil(share * ends[-1])))))

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as plain numbers, lists and dictionaries, for JSON."""
        quality_counts = np.trim_zeros(self.qualities, "b").tolist()
        sizes = np.arange(MAX_INSERT)
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
    return summary_of(new_columns(0, 0))


def summary_of(columns: AlignmentColumns) -> MappingSummary:
    """Count the alignments of a block."""
    counts = np.zeros(_COUNTS, dtype=np.int64)
    qualities = np.zeros(QUALITIES, dtype=np.int64)
    inserts = np.zeros(MAX_INSERT + 1, dtype=np.int64)
    count_alignments(columns, counts, qualities, inserts)
    reads, mapped, paired, proper, both, single, other, secondary, supplementary = counts.tolist()
    return MappingSummary(
        *(reads, mapped, paired, proper, both, single, other, secondary, supplementary),
        *(qualities, inserts),
    )


@jit
def count_alignments(
    columns: AlignmentColumns, counts: Counts, quality_counts: Counts, insert_counts: Counts
) -> None:
    """Add alignments to distributions and to counts, which are in the order of `MappingSummary`."""
    flags, records, mate_rows = columns.flags, columns.records, columns.mate_rows
    for row in range(flags.size):
        flag = as_int64(flags[row])
        counts[7] += flag & _SECONDARY != 0
        counts[8] += flag & _SUPPLEMENTARY != 0
        # All other counts are of reads, which have one primary row each.
        if flag & _NOT_PRIMARY:
            continue
        is_mapped = flag & _UNMAPPED == 0
        is_paired = flag & _PAIRED != 0
        has_mapped_mate = is_paired and flag & _MATE_UNMAPPED == 0
        is_proper = is_mapped and is_paired and flag & _PROPER_PAIR != 0
        counts[0] += 1
        counts[1] += is_mapped
        counts[2] += is_paired
        counts[3] += is_proper
        if is_mapped:
            quality_counts[as_int64(columns.qualities[row])] += 1
            if has_mapped_mate:
                mate = mate_rows[row]
                mate_record = NO_ROW if mate == NO_ROW else as_int64(records[mate])
                counts[4] += 1
                counts[6] += mate_record != as_int64(records[row])
            elif is_paired:
                counts[5] += 1
        if is_proper and flag & _FIRST:
            insert_counts[min(abs(as_int64(columns.template_lengths[row])), MAX_INSERT)] += 1
