"""Alignments of genomes as the rows of SAM, BAM, CRAM and PAF.

An alignment is a row. The best one of its query is primary; it has the whole query, of which the
bases that are not aligned are clipped softly. Those of other bases are supplementary, and the
others are secondary (`AlignedQueries.roles`); they have their own bases only. Primary and
supplementary rows name each other in SA. The rows of a query come in the order of the alignments; a
query without alignments has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, CigarOperation, SamFlag
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.bytes.texts import RecordTexts
from mummergpu.output.genomes.sink import AlignedQueries
from mummergpu.output.records.base_pairs import AlignedReads, change_texts, with_equal_bases
from mummergpu.output.records.rows import (
    NO_PLACES,
    NO_TEXTS,
    ReadColumns,
    RecordRows,
    ReferenceColumns,
    RowFields,
    WrittenRows,
)
from mummergpu.runtime.arrays import BoolArray, Int64Array, UInt32Array
from mummergpu.runtime.jit import writable

MAX_TAG_BYTES: Final = 1 << 20
"""About how many bytes of SA a query may have in all rows, with whole CIGARs."""

_NOT_PRIMARY: Final = int(SamFlag.SECONDARY | SamFlag.SUPPLEMENTARY)

_NO_LETTERS: Final = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint8)
"""Alignments of genomes have N for every letter that stands for several bases."""

Cigars = tuple[UInt32Array, Int64Array]
"""The operations of all rows, as BAM packs them, and where those of each begin."""


class GenomeRows:
    """Turns alignments of genomes into rows (`rows.RowMaker`).

    Without `qualities`, the file has mapping qualities of its own. `with_bases` says whether SAM
    has the bases of the queries, and MD; `with_changes` whether PAF has cs:Z; `equal_bases` whether
    operations distinguish = from X.
    """

    def __init__(
        self,
        reference: Reference,
        qualities: MappingQualities | None = None,
        with_bases: bool = True,
        with_changes: bool = False,
        equal_bases: bool = False,
    ) -> None:
        self._reference = reference
        self._qualities = qualities or MappingQualities(reference)
        self.fields = RowFields(with_bases, True, with_bases)
        self._with_changes = with_changes
        self._equal_bases = equal_bases

    @property
    def needs_bases(self) -> bool:
        """Whether rows have bases of the queries, or differences from them."""
        return self.fields.bases or self._with_changes or self._equal_bases

    def written_rows(
        self, block: AlignedQueries, alignments: GenomeAlignments
    ) -> Iterator[WrittenRows]:
        """Yield all rows of some queries (`RowMaker`); ValueError if needed bases were not kept."""
        rows, changes = self._rows(block, alignments)
        yield WrittenRows(self._queries(block), rows, NO_PLACES, alignments.count, changes=changes)

    def _queries(self, queries: AlignedQueries) -> ReadColumns:
        codes = np.empty(0, dtype=np.uint8)
        if self.fields.bases:
            codes = writable(queries.kept_block.padded_codes)
        return ReadColumns(
            np.cumsum([0, *queries.lengths], dtype=np.int64),
            np.frombuffer(bytearray(b"".join(queries.names)), dtype=np.uint8),
            np.cumsum([0, *map(len, queries.names)], dtype=np.int64),
            codes,
        )

    def _rows(
        self, queries: AlignedQueries, columns: GenomeAlignments
    ) -> tuple[RecordRows, RecordTexts]:
        count = columns.count
        flags = np.where(columns.strands != 0, int(SamFlag.REVERSE), 0) | queries.roles
        before = columns.query_starts
        after = queries.lengths[columns.queries] - columns.query_ends
        is_primary = flags & _NOT_PRIMARY == 0
        clips = np.where(is_primary, CigarOperation.SOFT_CLIP, CigarOperation.HARD_CLIP)
        own = columns.cigars, columns.cigar_offsets
        # Both have the same arrays unless SA has short CIGARs.
        whole = parts = _clipped(own, before, after, clips)
        rows = AlignmentColumns(
            writable(columns.queries),
            flags.astype(np.uint16),
            columns.records.astype(np.int32),
            writable(columns.reference_starts),
            writable(self._qualities.of(columns)),
            *(whole[1], whole[0]),
            np.zeros(count, dtype=np.int32),
            np.full(count, NO_ROW, dtype=np.int64),
            columns.scores.astype(np.int32),
            np.empty(0, dtype=np.int32),
            columns.errors.astype(np.int32),
        )
        changes = NO_TEXTS
        if self._equal_bases or self._with_changes:
            # The same loops as for reads, which have clips as these rows have them.
            codes = writable(queries.kept_block.padded_codes)
            offsets = np.cumsum([0, *queries.lengths], dtype=np.int64)
            reference = ReferenceColumns.of(self._reference)._replace(letters=_NO_LETTERS)
            bases = AlignedReads(offsets, codes, reference)
            if self._equal_bases:
                rows = with_equal_bases(rows, bases)
                parts = rows.cigars, rows.cigar_offsets
            if self._with_changes:
                changes = change_texts(rows, bases)
        has_short = _have_short_parts(columns, flags & int(SamFlag.SECONDARY) == 0)
        if has_short.any():
            parts = _clipped(_shortened(columns, has_short), before, after, clips)
        written = RecordRows(**rows._asdict(), part_offsets=parts[1], part_cigars=parts[0])
        return written, changes


def _clipped(own: Cigars, before: Int64Array, after: Int64Array, kinds: Int64Array) -> Cigars:
    """Return CIGARs with the bases of the query that are left out before and after them."""
    cigars, offsets = own
    sizes = np.diff(offsets)
    has_before, has_after = before > 0, after > 0
    clipped_offsets = np.zeros_like(offsets)
    np.cumsum(sizes + has_before + has_after, out=clipped_offsets[1:])
    begins, ends = clipped_offsets[:-1], clipped_offsets[1:]
    clipped = np.empty(clipped_offsets[-1], dtype=np.uint32)
    clipped[begins[has_before]] = (before << 4 | kinds)[has_before]
    clipped[ends[has_after] - 1] = (after << 4 | kinds)[has_after]
    moved = np.repeat(begins + has_before - offsets[:-1], sizes)
    clipped[moved + np.arange(cigars.size)] = cigars
    return clipped, clipped_offsets


def _have_short_parts(columns: GenomeAlignments, is_part: BoolArray) -> BoolArray:
    """Return which rows are of queries whose many parts need short CIGARs in SA.

    SA would have them in all rows of the query.
    """
    lengths = columns.cigars >> np.uint32(4)
    operation_bytes = 1 + np.maximum(1, np.searchsorted(_POWERS_OF_TEN, lengths, side="right"))
    ends = np.concatenate(([0], np.cumsum(operation_bytes)))[columns.cigar_offsets]
    counts = np.bincount(columns.queries[is_part], minlength=1)
    sizes = np.bincount(columns.queries[is_part], np.diff(ends)[is_part], minlength=1)
    has_short: BoolArray = ((counts > 1) & (counts * sizes > MAX_TAG_BYTES))[columns.queries]
    return has_short


_POWERS_OF_TEN: Final = 10 ** np.arange(10, dtype=np.int64)


def _shortened(columns: GenomeAlignments, is_short: BoolArray) -> Cigars:
    """Return CIGARs, some of which are short: one match and one gap, as those of minimap2.

    The gap is the longer of the query and the reference.
    """
    bases = columns.query_ends - columns.query_starts
    longer = bases - (columns.reference_ends - columns.reference_starts)
    operations = []
    for row, (begin, end) in enumerate(pairwise(columns.cigar_offsets.tolist())):
        if not is_short[row]:
            operations.append(columns.cigars[begin:end])
            continue
        gap = int(longer[row])
        kind = CigarOperation.INSERTION if gap > 0 else CigarOperation.DELETION
        match = min(int(bases[row]), int(bases[row]) - gap) << 4
        short = [match, abs(gap) << 4 | kind] if gap else [match]
        operations.append(np.array(short, dtype=np.uint32))
    return np.concatenate(operations), np.cumsum([0, *map(len, operations)], dtype=np.int64)
