"""The rows of SAM and BAM for genome alignments: what both formats tell of an alignment.

An alignment is a row. The one with the most bases of its query is the primary one, the first of
equal ones; it has the whole query, of which the bases that are not aligned are clipped softly. The
others are supplementary, and have their own bases only. The rows of a query come in the order of
the alignments; a query without alignments has none.

The writers for reads (`alignments.sam_rows`, `alignments.bam_rows`) have pieces of fixed room and
65,535 operations at most; so the few but long rows of genomes are put together here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.output.genomes.difference_text import mismatch_texts
from mummergpu.output.genomes.format import AlignedQueries
from mummergpu.output.genomes.operation_text import cigar_texts
from mummergpu.sequence.codes import CodeArray

SOFT_CLIP: Final = 4
HARD_CLIP: Final = 5
NO_NAME: Final = b"*"


@dataclass(frozen=True)
class GenomeRecord:
    """A row.

    Attributes
    ----------
    name : bytes
        The query.
    flag : int
        The flags.
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
    """

    name: bytes
    flag: int
    record: int
    position: int
    end: int
    clip: int
    clips: tuple[int, int]
    operations: npt.NDArray[np.uint32]
    cigar: bytes
    codes: CodeArray
    errors: int
    score: int
    mismatches: bytes


def records_of(queries: AlignedQueries, reference: Reference) -> Iterator[GenomeRecord]:
    """Yield the row of each alignment.

    Parameters
    ----------
    queries : AlignedQueries
        Queries with their bases and alignments.
    reference : Reference
        The reference.

    Yields
    ------
    GenomeRecord
        A row.
    """
    columns, bases = queries.alignments, queries.bases(reference)
    cigars, cigar_ends = cigar_texts(columns.cigars, columns.cigar_offsets)
    mismatches, mismatch_ends = mismatch_texts(columns, bases)
    is_primary = primary_alignments(columns)
    errors = columns.errors
    for row in range(columns.count):
        query, strand = int(columns.queries[row]), int(columns.strands[row])
        begin, end = int(columns.query_starts[row]), int(columns.query_ends[row])
        clips = begin, int(queries.lengths[query]) - end
        flag = int(SamFlag.REVERSE) if strand else 0
        first = int(bases.query_begins[row])
        last = first + end - begin
        if is_primary[row]:
            first, last = first - clips[0], last + clips[1]
        else:
            flag |= int(SamFlag.SUPPLEMENTARY)
        yield GenomeRecord(
            queries.names[query] or NO_NAME,
            flag,
            int(columns.records[row]),
            int(columns.reference_starts[row]),
            int(columns.reference_ends[row]),
            SOFT_CLIP if is_primary[row] else HARD_CLIP,
            clips,
            columns.cigars[columns.cigar_offsets[row] : columns.cigar_offsets[row + 1]],
            cigars[cigar_ends[row] : cigar_ends[row + 1]].tobytes(),
            bases.queries[strand][first:last],
            int(errors[row]),
            int(columns.scores[row]),
            mismatches[mismatch_ends[row] : mismatch_ends[row + 1]].tobytes(),
        )


def primary_alignments(columns: GenomeAlignments) -> npt.NDArray[np.bool_]:
    """Return which alignments have the most bases of their query; one of each query.

    Parameters
    ----------
    columns : GenomeAlignments
        The alignments of a block.

    Returns
    -------
    ndarray, dtype=bool, shape=(n_alignments,)
        Of several with as many bases, the first one.
    """
    sizes = columns.query_ends - columns.query_starts
    order = np.lexsort((np.arange(sizes.size), -sizes, columns.queries))
    firsts = np.flatnonzero(np.diff(columns.queries[order], prepend=-1))
    is_primary = np.zeros(sizes.size, dtype=np.bool_)
    is_primary[order[firsts]] = True
    return is_primary
