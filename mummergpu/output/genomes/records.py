"""The rows of SAM and BAM for genome alignments: what both formats tell of an alignment.

An alignment is a row. The best one of its query is primary; it has the whole query, of which the
bases that are not aligned are clipped softly. Those of other bases are supplementary, and the
others are secondary (`AlignedQueries.roles`); they have their own bases only. Primary and
supplementary rows name each other in SA. The rows of a query come in the order of the alignments; a
query without alignments has none.

The writers for reads (`alignments.sam_rows`, `alignments.bam_rows`) have pieces of fixed room and
65,535 operations at most; so the few but long rows of genomes are put together here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.genomes.difference_text import mismatch_texts
from mummergpu.output.genomes.format import AlignedQueries
from mummergpu.output.genomes.operation_text import cigar_texts
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array
from mummergpu.sequence.codes import CodeArray

SOFT_CLIP: Final = 4
HARD_CLIP: Final = 5
NO_NAME: Final = b"*"
NOT_PRIMARY: Final = int(SamFlag.SECONDARY | SamFlag.SUPPLEMENTARY)

MOST_TAG_BYTES: Final = 1 << 20
"""About how many bytes of SA a query may have in all rows, with whole CIGARs."""


@dataclass(frozen=True)
class GenomeRecord:
    """A row.

    Attributes
    ----------
    name : bytes
        The query.
    flag : int
        The flags.
    quality : int
        The mapping quality.
    record : int
        The record of the reference, counted from 0.
    position, end : int
        The first base there, 0-based, and the one after the last.
    clip : int
        `SOFT_CLIP` or `HARD_CLIP`.
    clips : tuple of int
        The bases of the query before and after those that are aligned.
    operations : ndarray, dtype=uint32
        The operations without the clips, as BAM packs them.
    cigar : bytes
        The same as text.
    codes : ndarray, dtype=uint8
        The bases that are written, on the strand of the reference.
    errors, score : int
        The differences (NM), and the score (AS).
    mismatches : bytes
        The value of MD.
    others : bytes
        The value of SA; empty for none.
    """

    name: bytes
    flag: int
    quality: int
    record: int
    position: int
    end: int
    clip: int
    clips: tuple[int, int]
    operations: UInt32Array
    cigar: bytes
    codes: CodeArray
    errors: int
    score: int
    mismatches: bytes
    others: bytes


def records_of(
    queries: AlignedQueries, reference: Reference, qualities: MappingQualities
) -> Iterator[GenomeRecord]:
    """Yield the row of each alignment."""
    columns, bases = queries.alignments, queries.bases(reference)
    cigars, cigar_ends = cigar_texts(columns.cigars, columns.cigar_offsets)
    mismatches, mismatch_ends = mismatch_texts(columns, bases)
    errors = columns.errors
    flags = np.where(columns.strands != 0, int(SamFlag.REVERSE), 0) | queries.roles
    mapped = qualities.of(columns)
    texts = [cigars[begin:end].tobytes() for begin, end in pairwise(cigar_ends.tolist())]
    others = _other_parts(queries, reference, flags, mapped, texts)
    for row in range(columns.count):
        query, strand = int(columns.queries[row]), int(columns.strands[row])
        begin, end = int(columns.query_starts[row]), int(columns.query_ends[row])
        clips = begin, int(queries.lengths[query]) - end
        first = int(bases.query_begins[row])
        last = first + end - begin
        is_primary = not flags[row] & NOT_PRIMARY
        if is_primary:
            first, last = first - clips[0], last + clips[1]
        yield GenomeRecord(
            queries.names[query] or NO_NAME,
            int(flags[row]),
            int(mapped[row]),
            int(columns.records[row]),
            int(columns.reference_starts[row]),
            int(columns.reference_ends[row]),
            SOFT_CLIP if is_primary else HARD_CLIP,
            clips,
            columns.cigars[columns.cigar_offsets[row] : columns.cigar_offsets[row + 1]],
            texts[row],
            bases.queries[strand][first:last],
            int(errors[row]),
            int(columns.scores[row]),
            mismatches[mismatch_ends[row] : mismatch_ends[row + 1]].tobytes(),
            others.get(row, b""),
        )


def _other_parts(
    queries: AlignedQueries,
    reference: Reference,
    flags: Int64Array,
    qualities: ByteArray,
    cigars: list[bytes],
) -> dict[int, bytes]:
    """Return the value of SA of each row that has one: the primary row comes first.

    If a query has so many parts that whole CIGARs would take much room in all of them, they tell
    of matches and of what is longer, the query or the reference, as those of minimap2 do.
    """
    columns = queries.alignments
    parts = np.flatnonzero(flags & int(SamFlag.SECONDARY) == 0)
    borders = np.flatnonzero(np.diff(columns.queries[parts], prepend=-1, append=-1))
    found = {}
    for first, end in pairwise(borders.tolist()):
        rows = parts[first:end].tolist()
        rows.sort(key=lambda row: bool(flags[row] & NOT_PRIMARY))
        if len(rows) == 1:
            continue
        is_short = len(rows) * sum(len(cigars[row]) for row in rows) > MOST_TAG_BYTES
        texts = []
        for row in rows:
            begin, end_ = int(columns.query_starts[row]), int(columns.query_ends[row])
            after = int(queries.lengths[columns.queries[row]]) - end_
            cigar = _short_cigar(columns, row) if is_short else cigars[row]
            texts.append(
                b"%b,%d,%b,%b%b%b,%d,%d;"
                % (
                    reference.names[columns.records[row]],
                    columns.reference_starts[row] + 1,
                    b"-" if columns.strands[row] else b"+",
                    b"%dS" % begin if begin else b"",
                    cigar,
                    b"%dS" % after if after else b"",
                    qualities[row],
                    columns.errors[row],
                )
            )
        for number, row in enumerate(rows):
            found[row] = b"".join(texts[:number] + texts[number + 1 :])
    return found


def _short_cigar(columns: GenomeAlignments, row: int) -> bytes:
    """Return a CIGAR of one match and one gap."""
    bases = int(columns.query_ends[row] - columns.query_starts[row])
    longer = bases - int(columns.reference_ends[row] - columns.reference_starts[row])
    if longer == 0:
        return b"%dM" % bases
    return b"%dM%d%b" % (min(bases, bases - longer), abs(longer), b"I" if longer > 0 else b"D")
