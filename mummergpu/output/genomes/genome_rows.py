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
from mummergpu.output.genomes.format import AlignedQueries
from mummergpu.output.genomes.operation_text import change_texts
from mummergpu.output.records.base_pairs import AlignedReads, with_equal_bases
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

Cigars = tuple[UInt32Array, Int64Array]
"""The operations of all rows, as BAM packs them, and where those of each begin."""


class GenomeRows:
    """Turns alignments of genomes into rows (`rows.RowMaker`).

    Parameters
    ----------
    qualities : MappingQualities or None
        Tells the mapping qualities; None to have one for this file.
    with_bases : bool
        Whether SAM has the bases of the queries, and MD, which tells those of the reference.
    with_changes : bool
        Whether PAF has the differences with their bases (cs:Z), in their short form.
    equal_bases : bool
        Whether operations tell equal bases from different ones (= and X).
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
        """Yield all rows of the alignments of some queries (`RowMaker`).

        Raises
        ------
        ValueError
            If the queries have come without bases that are needed.
        """
        changes = NO_TEXTS
        if self._with_changes:
            changes = change_texts(alignments, block.bases(self._reference))
        rows = self._rows(block, alignments)
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
            np.empty(0, dtype=np.uint8),
            False,
            np.empty(0, dtype=np.uint8),
            np.empty(0, dtype=np.int64),
        )

    def _rows(self, queries: AlignedQueries, columns: GenomeAlignments) -> RecordRows:
        count = columns.count
        flags = np.where(columns.strands != 0, int(SamFlag.REVERSE), 0) | queries.roles
        before = columns.query_starts
        after = queries.lengths[columns.queries] - columns.query_ends
        is_primary = flags & _NOT_PRIMARY == 0
        clips = np.where(is_primary, CigarOperation.SOFT_CLIP, CigarOperation.HARD_CLIP)
        own = columns.cigars, columns.cigar_offsets
        # Both have the same arrays unless some parts are told of shortly.
        whole = parts = _clipped(own, before, after, clips)
        told = AlignmentColumns(
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
        if self._equal_bases:
            # The same loop as for reads, which have clips as these rows have them.
            codes = writable(queries.kept_block.padded_codes)
            offsets = np.cumsum([0, *queries.lengths], dtype=np.int64)
            told = with_equal_bases(
                told, AlignedReads(offsets, codes, ReferenceColumns.of(self._reference))
            )
            parts = told.cigars, told.cigar_offsets
        has_short = _have_short_parts(columns, flags & int(SamFlag.SECONDARY) == 0)
        if has_short.any():
            parts = _clipped(_shortened(columns, has_short), before, after, clips)
        return RecordRows(
            *(told.reads, told.flags, told.records, told.positions, told.qualities),
            *(told.cigar_offsets, told.cigars, parts[1], parts[0]),
            *(told.template_lengths, told.mate_rows, told.scores, told.second_scores),
            told.edit_distances,
        )


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
    """Return which rows are of queries with so many parts that whole CIGARs would take much room.

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
    """Return CIGARs, some of which tell of one match and one gap, as those of minimap2 do.

    The gap is what is longer, the query or the reference.
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
