"""Genome alignments as SAM, with the rows of `records`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.genomes.format import AlignedQueries, GenomeFormat
from mummergpu.output.genomes.records import SOFT_CLIP, GenomeRecord, records_of
from mummergpu.output.records.sam_header import check_queries, sam_header
from mummergpu.output.records.sam_options import ReadGroup, SamOptions
from mummergpu.sequence.codes import decode

_ROW: Final = b"%b\t%d\t%b\t%d\t%d\t%b\t*\t0\t0\t%b\t*\tNM:i:%d%b\tAS:i:%d%b%b\n"
_NO_BASES: Final = b"*"


class GenomeSam(GenomeFormat):
    """Turns genome alignments into SAM.

    Parameters
    ----------
    read_group : ReadGroup or None
        The read group of all queries.
    command : str
        The command line of the run; empty if there is none.
    query_path : str
        The files of the queries, for errors.
    with_bases : bool, default True
        Whether rows have the bases of the queries, and MD, which tells those of the reference.
    qualities : MappingQualities or None
        Tells the mapping qualities; None to have one for this file.

    Raises
    ------
    InputError
        If the format allows no record of such a name or length in a reference.
    """

    def __init__(
        self,
        reference: Reference,
        read_group: ReadGroup | None,
        command: str,
        query_path: str,
        with_bases: bool = True,
        qualities: MappingQualities | None = None,
    ) -> None:
        self._reference = reference
        self._qualities = qualities or MappingQualities(reference)
        self._header = sam_header(reference, SamOptions(read_group), command)
        self._group = b"" if read_group is None else b"\tRG:Z:%b" % read_group.name.encode()
        self._query_path = query_path
        self._with_bases = with_bases

    @property
    def needs_bases(self) -> bool:
        """True: the rows have the bases of the queries, or are made as if they had."""
        return True

    def head(self) -> bytes:
        """Return the header."""
        return self._header.text

    def format_queries(self, queries: AlignedQueries) -> Iterator[bytes]:
        """Yield a row for each alignment (`GenomeFormat.format_queries`).

        Raises
        ------
        InputError
            If the format allows no query of such a name or length.
        """
        assert queries.block is not None
        check_queries(queries.block, self._query_path)
        for row in records_of(queries, self._reference, self._qualities):
            before, after = (_clip_text(row, size) for size in row.clips)
            yield _ROW % (
                row.name,
                row.flag,
                self._reference.names[row.record],
                row.position + 1,
                row.quality,
                before + row.cigar + after,
                decode(row.codes) if self._with_bases else _NO_BASES,
                row.errors,
                b"\tMD:Z:%b" % row.mismatches if self._with_bases else b"",
                row.score,
                self._group,
                b"\tSA:Z:%b" % row.others if row.others else b"",
            )


def _clip_text(row: GenomeRecord, size: int) -> bytes:
    """Return the operation that leaves bases of the query out, or nothing."""
    if size == 0:
        return b""
    return b"%d%b" % (size, b"S" if row.clip == SOFT_CLIP else b"H")
