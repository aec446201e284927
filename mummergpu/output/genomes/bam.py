"""Genome alignments as the content of BAM, with the rows of `records`.

A row has room for 65,535 operations. If there are more, the operations are in the tag CG, and in
their place stand a soft clip of all bases and a skip of those of the reference (SAM format
specification, section 4.2.2): htslib and all that use it show the operations.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.genomes.mapping_quality import MappingQualities
from mummergpu.output.genomes.format import AlignedQueries, GenomeFormat
from mummergpu.output.genomes.records import SOFT_CLIP, GenomeRecord, records_of
from mummergpu.output.records.bam_header import binary_header
from mummergpu.output.records.sam_header import check_queries, sam_header
from mummergpu.output.records.sam_options import ReadGroup, SamOptions
from mummergpu.runtime.arrays import ByteArray, UInt32Array
from mummergpu.sequence.codes import CodeArray

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
