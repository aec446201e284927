"""Genome alignments as PAF, the table of minimap2: a line for each, with tabs between the fields.

The fields are: name, length, start and end of the query; the strand; name, length, start and end of
the record of the reference; the number of equal bases and that of all columns, gaps included; and
the mapping quality. Starts and ends are 0-based and half-open; those of the query are on its
forward strand. Further fields are the differences (NM:i), the score (AS:i), whether the alignment
is primary or supplementary (tp:A:P) or secondary (tp:A:S), the alignment (cg:Z) and, if it is asked
for, its differences with their bases (cs:Z). The lines come in the order of the queries;
``paftools.js call`` wants them sorted by record and start: ``sort -k6,6 -k8,8n``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.genomes.format import AlignedQueries, GenomeFormat
from mummergpu.output.genomes.operation_text import change_texts, cigar_texts

_FIELDS = b"%b\t%d\t%d\t%d\t%b\t%b\t%d\t%d\t%d\t%d\t%d\t%d\tNM:i:%d\tAS:i:%d\ttp:A:%b\tcg:Z:%b"


class GenomePaf(GenomeFormat):
    """Turns genome alignments into PAF.

    Parameters
    ----------
    with_changes : bool, default False
        Whether each line ends with cs:Z, in its short form.
    qualities : MappingQualities or None
        Tells the mapping qualities; None to have one for this file.
    """

    def __init__(
        self,
        reference: Reference,
        with_changes: bool = False,
        qualities: MappingQualities | None = None,
    ) -> None:
        self._reference = reference
        self._qualities = qualities or MappingQualities(reference)
        self._with_changes = with_changes
        self._names = reference.names
        self._lengths = reference.record_lengths.tolist()

    @property
    def needs_bases(self) -> bool:
        """Whether lines end with cs:Z."""
        return self._with_changes

    def format_queries(self, queries: AlignedQueries) -> Iterator[bytes]:
        """Yield a line for each alignment (`GenomeFormat.format_queries`)."""
        columns = queries.alignments
        cigars, offsets = cigar_texts(columns.cigars, columns.cigar_offsets)
        text, ends = cigars.tobytes(), offsets.tolist()
        changes, change_ends = b"", [0]
        if self._with_changes:
            change_text, change_offsets = change_texts(columns, queries.bases(self._reference))
            changes, change_ends = change_text.tobytes(), change_offsets.tolist()
        begins, forward_ends = queries.forward_ends()
        lengths = queries.lengths.tolist()
        is_secondary = (queries.roles == int(SamFlag.SECONDARY)).tolist()
        qualities = self._qualities.of(columns).tolist()
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
            yield _FIELDS % (
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
                qualities[row],
                errors,
                score,
                b"S" if is_secondary[row] else b"P",
                text[ends[row] : ends[row + 1]],
            )
            if self._with_changes:
                yield b"\tcs:Z:%b" % changes[change_ends[row] : change_ends[row + 1]]
            yield b"\n"
