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

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.genomes.format import AlignedQueries, GenomeFormat
from mummergpu.output.genomes.operation_text import cigar_texts, mismatch_texts
from mummergpu.output.records.header import binary_header, check_queries, sam_header
from mummergpu.output.records.sam_options import ReadGroup, SamOptions
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array
from mummergpu.sequence.codes import CodeArray, decode

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


MOST_OPERATIONS: Final = 65_535
"""The most operations that the field of a row can count."""

_FIELDS: Final = struct.Struct("<iiBBHHHiiii")
_SIZE: Final = struct.Struct("<i")
_SKIP: Final = 3
_UNKNOWN: Final = b"\xff"

_SETS: Final = np.array([1, 2, 4, 8, 15], dtype=np.uint8)
"""The bases that each code can be, a bit for each of A, C, G and T."""


class GenomeBam(GenomeFormat):
    """Turns genome alignments into the content of BAM, which is compressed elsewhere.

    Parameters
    ----------
    read_group : ReadGroup or None
        The read group of all queries.
    command : str
        The command line of the run; empty if there is none.
    query_path : str
        The files of the queries, for errors.
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
        qualities: MappingQualities | None = None,
    ) -> None:
        self._reference = reference
        self._qualities = qualities or MappingQualities(reference)
        self._header = sam_header(reference, SamOptions(read_group), command)
        self._group = b"" if read_group is None else b"RGZ%b\0" % read_group.name.encode()
        self._ids = self._header.record_ids.tolist()
        self._query_path = query_path

    @property
    def needs_bases(self) -> bool:
        """True: the rows have the bases of the queries."""
        return True

    def head(self) -> bytes:
        """Return the header, in text and in binary form."""
        return binary_header(self._header, self._reference)

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
            yield _binary_row(row, self._ids[row.record], self._group)


def _binary_row(row: GenomeRecord, record_id: int, group: bytes) -> bytes:
    """Return a row with its size; `group` is the tag of its read group."""
    operations = _with_clips(row)
    tags = b"NMi%bMDZ%b\0ASi%b" % (_SIZE.pack(row.errors), row.mismatches, _SIZE.pack(row.score))
    tags += group
    if row.others:
        tags += b"SAZ%b\0" % row.others
    if operations.size > MOST_OPERATIONS:
        tags += b"CGBI" + _SIZE.pack(operations.size) + operations.tobytes()
        bases = row.codes.size << 4 | SOFT_CLIP, (row.end - row.position) << 4 | _SKIP
        operations = np.array(bases, dtype="<u4")
    fields = _FIELDS.pack(
        record_id,
        row.position,
        len(row.name) + 1,
        row.quality,
        _bin_of(row.position, row.end),
        operations.size,
        row.flag,
        row.codes.size,
        -1,
        -1,
        0,
    )
    parts = (fields, row.name, b"\0", operations.tobytes(), _packed(row.codes))
    size = sum(map(len, parts)) + row.codes.size + len(tags)
    return b"".join((_SIZE.pack(size), *parts, _UNKNOWN * row.codes.size, tags))


def _with_clips(row: GenomeRecord) -> UInt32Array:
    """Return the operations with the bases of the query that are left out."""
    before, after = ([size << 4 | row.clip] if size else [] for size in row.clips)
    return np.concatenate((before, row.operations, after)).astype("<u4")


def _packed(codes: CodeArray) -> bytes:
    """Return bases as BAM has them: two in a byte."""
    bases = np.zeros(codes.size + codes.size % 2, dtype=np.uint8)
    bases[: codes.size] = _SETS[codes]
    pairs: ByteArray = bases[::2] << np.uint8(4) | bases[1::2]
    return pairs.tobytes()


def _bin_of(begin: int, end: int) -> int:
    """Return the smallest bin that has a range of a record (section 5.3), as far as 16 bits go."""
    last = end - 1
    for shift in (14, 17, 20, 23, 26):
        if begin >> shift == last >> shift:
            return (((1 << 29 - shift) - 1) // 7 + (begin >> shift)) & 0xFFFF
    return 0
