"""BAM: the rows of SAM in binary form (SAM format specification, section 4.2).

What is made here is the content of the file; `compression.BgzfCompressor` makes the file of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, Piece
from mummergpu.output.bytes.piece_pool import PiecePool
from mummergpu.output.bytes.text_arrays import QueryColumns, query_columns
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, copy_text, store
from mummergpu.output.matches.match_table import MOST_ROWS
from mummergpu.output.matches.sam_rows import (
    REVERSE,
    SECONDARY,
    UNMAPPED,
    AlignmentTable,
    alignment_tables,
)
from mummergpu.output.records.bam_fields import (
    NAME_AT,
    pack_bases,
    write_fixed_fields,
    write_name,
    write_no_qualities,
    write_tag,
)
from mummergpu.output.records.header import binary_header, check_queries, sam_header
from mummergpu.output.records.sam_options import ReadGroup, SamOptions
from mummergpu.output.sink import MatchFormat
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    writable,
)
from mummergpu.sequence.codes import MARGIN, CodeArray, Strand
from mummergpu.sequence.mems import MemColumns

# The elements of the state between two pieces.
NEXT_ROW: Final = 0

_MOST_CIGAR_BYTES: Final = 12
_MOST_TAG_BYTES: Final = 4 * 7
FIXED_BYTES: Final = NAME_AT + 2 + _MOST_CIGAR_BYTES + _MOST_TAG_BYTES
"""The most bytes of a record without its name, its bases and its read group."""

_MAPPED: Final = 0xFF
"""The mapping quality of an alignment: not known."""

_SOFT_CLIP, _EQUAL = 4, 7

_NM, _AS, _NH, _HI = (int.from_bytes(tag, "little") for tag in (b"NM", b"AS", b"NH", b"HI"))


@inline_without_refcounts
def _write_operation(text: TextArray, at: int, length: int, operation: int) -> int:
    """Write an operation of the CIGAR unless it has no base; return where it ends."""
    if length == 0:
        return at
    store(text, at, np.uint32(length << 4 | operation))
    return at + 4


@jit_without_refcounts
def write_match_records(
    text: TextArray,
    state: Int64Array,
    codes: CodeArray,
    queries: QueryColumns,
    table: AlignmentTable,
    record_ids: Int32Array,
    read_group: TextArray,
    with_bases: bool,
) -> int:
    """Write the records of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    offsets, names, name_offsets = queries
    room = text.size - OVERSHOOT
    at = 0
    row = state[NEXT_ROW]
    while row < table.flags.size:
        query = as_int64(table.queries[as_index(row)])
        flag = as_int64(table.flags[as_index(row)])
        begin = offsets[as_index(query)]
        length = offsets[as_index(query + 1)] - begin
        bases = 0 if flag & SECONDARY and not with_bases else length
        name_bytes = name_offsets[as_index(query + 1)] - name_offsets[as_index(query)]
        variable_bytes = name_bytes + bases + ((bases + 1) >> 1) + read_group.size
        if at + FIXED_BYTES + variable_bytes > room:
            break
        name = at + NAME_AT
        cigar = write_name(text, name, names, name_offsets, query)
        end = cigar
        if flag & UNMAPPED:
            place, size, quality = (-1, -1), 1, 0
        else:
            place = (
                as_int64(record_ids[table.records[as_index(row)]]),
                table.positions[as_index(row)],
            )
            size, clip, quality = table.lengths[as_index(row)], table.clips[as_index(row)], _MAPPED
            end = _write_operation(text, end, clip, _SOFT_CLIP)
            end = _write_operation(text, end, size, _EQUAL)
            end = _write_operation(text, end, length - clip - size, _SOFT_CLIP)
        operations = (end - cigar) >> 2
        if bases:
            end = pack_bases(text, end, codes, MARGIN + begin, length, flag & REVERSE != 0)
            end = write_no_qualities(text, end, length)
        if flag & UNMAPPED == 0:
            end = write_tag(text, end, _NM, 0)
            end = write_tag(text, end, _AS, table.lengths[as_index(row)])
            end = write_tag(text, end, _NH, as_int64(table.hit_counts[as_index(row)]))
            end = write_tag(text, end, _HI, as_int64(table.hit_numbers[as_index(row)]))
        end = copy_text(text, end, read_group, 0, read_group.size)
        store(text, at, np.uint32(end - at - 4))
        write_fixed_fields(
            text,
            at,
            place,
            size,
            cigar - name,
            quality,
            flag,
            operations,
            bases,
            (-1, -1),
            0,
        )
        at = end
        row += 1
    state[NEXT_ROW] = row
    return at


PIECE_BYTES: Final = 16 * BGZF_BLOCK_BYTES
"""The records of a block are made in pieces of at most about this size."""


class BamFormat(MatchFormat):
    """Turns the matches of query blocks into the content of BAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        options: SamOptions,
        command: str,
        query_path: str,
        piece_bytes: int = PIECE_BYTES,
        most_rows: int = MOST_ROWS,
    ) -> None:
        header = sam_header(reference, options, command)
        self._head = binary_header(header, reference)
        self._record_ids = writable(header.record_ids)
        self._lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._query_path = query_path
        self._most_hits = options.most_hits
        self._with_bases = options.secondary_bases
        self._read_group = _tag_of(options.read_group)
        self._pool = PiecePool(piece_bytes)
        self._most_rows = most_rows

    def head(self) -> bytes:
        """Return the header, in text and in binary form."""
        return self._head

    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[TextArray]:
        """Yield whole records of a block's matches in pieces (`Format.format_block`)."""
        check_queries(block, self._query_path)
        codes, queries = writable(block.padded_codes), query_columns(block)
        longest = FIXED_BYTES + self._read_group.size
        longest += int(np.diff(block.name_offsets).max(initial=0))
        longest += 3 * (int(np.diff(block.offsets).max(initial=0)) + 1) // 2
        room = max(longest, self._pool.piece_bytes)
        for table in alignment_tables(
            block, matches, self._lookup, self._most_hits, self._most_rows
        ):
            yield from self._records_of(table, codes, queries, room)

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`Format.take_back`)."""
        self._pool.take_back(piece)

    def _records_of(
        self, table: AlignmentTable, codes: CodeArray, queries: QueryColumns, room: int
    ) -> Iterator[TextArray]:
        """Yield the records of a table in pieces for which `room` bytes are enough."""
        state = np.zeros(1, dtype=np.int64)
        while state[NEXT_ROW] < table.row_count:
            text = self._pool.room_for(room)
            filled = write_match_records(
                text,
                state,
                codes,
                queries,
                table,
                self._record_ids,
                self._read_group,
                self._with_bases,
            )
            yield text[:filled]


def _tag_of(read_group: ReadGroup | None) -> TextArray:
    """Return the tag that puts a query into a read group; nothing for None."""
    tag = b"" if read_group is None else b"RGZ" + read_group.name.encode() + b"\0"
    return np.frombuffer(bytearray(tag), dtype=np.uint8)
