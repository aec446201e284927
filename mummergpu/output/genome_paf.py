"""Genome alignments as PAF, the table of minimap2: a line for each, with tabs between the fields.

The fields are: name, length, start and end of the query; the strand; name, length, start and end of
the record of the reference; the number of equal bases and that of all columns, gaps included; and
the mapping quality: 255, which means that it is not known. Starts and ends are 0-based and
half-open; those of the query are on its forward strand. Further fields are the differences (NM:i),
the score (AS:i), and the alignment (cg:Z).
"""

from __future__ import annotations

from collections.abc import Iterator

from mummergpu.input.reference import Reference
from mummergpu.output.genome_format import AlignedQueries, GenomeFormat
from mummergpu.output.operation_text import cigar_texts

_LINE = b"%b\t%d\t%d\t%d\t%b\t%b\t%d\t%d\t%d\t%d\t%d\t255\tNM:i:%d\tAS:i:%d\tcg:Z:%b\n"


class GenomePaf(GenomeFormat):
    """Turns genome alignments into PAF.

    Parameters
    ----------
    reference : Reference
        The reference.
    """

    def __init__(self, reference: Reference) -> None:
        self._names = reference.names
        self._lengths = reference.record_lengths.tolist()

    def format_queries(self, queries: AlignedQueries) -> Iterator[bytes]:
        """Yield a line for each alignment (`GenomeFormat.format_queries`)."""
        columns = queries.alignments
        cigars, offsets = cigar_texts(columns.cigars, columns.cigar_offsets)
        text, ends = cigars.tobytes(), offsets.tolist()
        begins, forward_ends = queries.forward_ends()
        lengths = queries.lengths.tolist()
        numbers = zip(
            columns.queries.tolist(),
            begins.tolist(),
            forward_ends.tolist(),
            columns.strands.tolist(),
            columns.records.tolist(),
            columns.reference_starts.tolist(),
            columns.reference_ends.tolist(),
            columns.columns_of_each.tolist(),
            columns.errors.tolist(),
            columns.scores.tolist(),
            strict=True,
        )
        for row, (query, begin, end, strand, record, *places, length, errors, score) in enumerate(
            numbers
        ):
            yield _LINE % (
                queries.names[query],
                lengths[query],
                begin,
                end,
                b"-" if strand else b"+",
                self._names[record],
                self._lengths[record],
                *places,
                length - errors,
                length,
                errors,
                score,
                text[ends[row] : ends[row + 1]],
            )
