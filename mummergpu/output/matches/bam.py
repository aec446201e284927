"""BAM: the rows of SAM in binary form (SAM format specification, section 4.2).

What is made here is the content of the file; `compression.BgzfCompressor` makes the file of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_at
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, copy_padded, store
from mummergpu.output.matches.match_table import MatchBlock
from mummergpu.output.matches.sam_rows import (
    HAS_PRIMARY,
    HITS,
    LEAST,
    LONGEST,
    MATCHES,
    NEXT_QUERY,
    NEXT_ROW,
    NO_ROW,
    NOT_BEGUN,
    REVERSE,
    SECONDARY,
    TIES_LEFT,
    UNMAPPED,
    MatchRecords,
    begin_query,
    flag_of,
    hits_of,
    new_state,
)
from mummergpu.output.records.bam_fields import (
    NAME_AT,
    Place,
    pack_bases,
    write_fixed_fields,
    write_name,
    write_no_qualities,
    write_tag,
)
from mummergpu.output.records.header import binary_header
from mummergpu.output.records.sam_options import SamOptions
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    writable,
)
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.mems import BlockMems

_MOST_CIGAR_BYTES: Final = 12
_MOST_TAG_BYTES: Final = 4 * 7
FIXED_BYTES: Final = NAME_AT + 2 + _MOST_CIGAR_BYTES + _MOST_TAG_BYTES
"""The most bytes of a record without its name, its bases and its read group."""

_MAPPED: Final = 0xFF
"""The mapping quality of an alignment: not known."""

_SOFT_CLIP, _EQUAL = 4, 7

_NM, _AS, _NH, _HI = (int.from_bytes(tag, "little") for tag in (b"NM", b"AS", b"NH", b"HI"))


class BamBlock(NamedTuple):
    """What the loop needs to write the records of a block.

    Attributes
    ----------
    record_ids : ndarray, dtype=int32
        The number of each record of the reference in the header.
    group : ndarray, dtype=uint8
        The tag of the read group, with `OVERSHOOT` bytes after it.
    with_bases : bool
        Whether secondary alignments have bases, too.
    """

    matches: MatchBlock
    record_ids: Int32Array
    group: TextArray
    group_bytes: int
    with_bases: bool


class _Alignment(NamedTuple):
    """A match as a row: its place, its bases, those before it, and its numbers for NH and HI."""

    place: Place
    length: int
    clip: int
    hit_count: int
    hit_number: int


@inline_without_refcounts
def _write_operation(text: TextArray, at: int, length: int, operation: int) -> int:
    """Write an operation of the CIGAR unless it has no base; return where it ends."""
    if length == 0:
        return at
    store(text, at, np.uint32(length << 4 | operation))
    return at + 4


@inline_without_refcounts
def _write_record(
    text: TextArray, at: int, block: BamBlock, query: int, flag: int, row: _Alignment
) -> int:
    """Write a record; return where it ends."""
    queries = block.matches.queries
    begin = queries.offsets[as_index(query)]
    length = queries.offsets[as_index(query + 1)] - begin
    bases = 0 if flag & SECONDARY and not block.with_bases else length
    name = at + NAME_AT
    cigar = write_name(text, name, queries.names, queries.name_offsets, query)
    end = cigar
    is_mapped = flag & UNMAPPED == 0
    if is_mapped:
        end = _write_operation(text, end, row.clip, _SOFT_CLIP)
        end = _write_operation(text, end, row.length, _EQUAL)
        end = _write_operation(text, end, length - row.clip - row.length, _SOFT_CLIP)
    operations = (end - cigar) >> 2
    if bases:
        is_reverse = flag & REVERSE != 0
        end = pack_bases(text, end, block.matches.codes, MARGIN + begin, length, is_reverse)
        end = write_no_qualities(text, end, length)
    if is_mapped:
        end = write_tag(text, end, _NM, 0)
        end = write_tag(text, end, _AS, row.length)
        end = write_tag(text, end, _NH, row.hit_count)
        end = write_tag(text, end, _HI, row.hit_number)
    end = copy_padded(text, end, block.group, 0, block.group_bytes)
    # The fields of fixed size come first, but tell how long those behind them are.
    store(text, at, np.uint32(end - at - 4))
    write_fixed_fields(
        text,
        at,
        row.place,
        max(row.length, 1),
        cigar - name,
        _MAPPED if is_mapped else 0,
        flag,
        operations,
        bases,
        (-1, -1),
        0,
    )
    return end


@inline_without_refcounts
def _write_rows(
    text: TextArray, at: int, state: Int64Array, block: BamBlock, query: int, last_start: int
) -> int:
    """Write the records of a query with matches from `state` on, as far as there is room.

    Returns where they end, and updates `state`.
    """
    lookup, (forward, reverse) = block.matches.lookup, block.matches.rows
    own_hits = hits_of(block.matches.rows, query)
    count, longest, least = state[MATCHES], state[LONGEST], state[LEAST]
    # What the choice depends on stays in registers during a query.
    place = state[NEXT_ROW]
    hits, ties_left, has_primary = state[HITS], state[TIES_LEFT], state[HAS_PRIMARY]
    while place < count and at <= last_start:
        strand = as_int64(place >= own_hits.forward_count)
        own = reverse if strand == 1 else forward
        row = place + (own_hits.reverse_begin if strand == 1 else own_hits.forward_begin)
        place += 1
        length = own.lengths[as_index(row)]
        flag = flag_of(length, longest, least, ties_left, has_primary)
        if flag == NO_ROW:
            continue
        ties_left -= length == least
        has_primary |= flag == 0
        hits += 1
        position = own.reference_starts[as_index(row)]
        record = record_at(lookup.starts, lookup.buckets, lookup.bucket_shift, position)
        position -= lookup.starts[as_index(record)]
        found = (as_int64(block.record_ids[as_index(record)]), position)
        # On the strand that was searched, the query lies as the reference does.
        alignment = _Alignment(found, length, own.query_starts[as_index(row)], count, hits)
        at = _write_record(text, at, block, query, flag + REVERSE * strand, alignment)
    state[NEXT_ROW] = place
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = hits, ties_left, has_primary
    return at


@jit_without_refcounts
def write_match_records(
    text: TextArray, state: Int64Array, block: BamBlock, heap: Int64Array
) -> int:
    """Write the records of a block from `state` on, until it ends or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    queries = block.matches.queries
    query = state[NEXT_QUERY]
    at = 0
    while query < queries.offsets.size - 1:
        # A record begins only where the longest one of its query fits.
        bases = queries.offsets[as_index(query + 1)] - queries.offsets[as_index(query)]
        name = queries.name_offsets[as_index(query + 1)] - queries.name_offsets[as_index(query)]
        row_bytes = FIXED_BYTES + name + bases + ((bases + 1) >> 1) + block.group_bytes
        last_start = text.size - OVERSHOOT - row_bytes
        if at > last_start:
            break
        if state[NEXT_ROW] == NOT_BEGUN:
            begin_query(state, heap, block.matches.rows, query)
            state[NEXT_ROW] = 0
        if state[MATCHES] == 0:
            nothing = _Alignment((-1, -1), 0, 0, 0, 0)
            at = _write_record(text, at, block, query, UNMAPPED, nothing)
        else:
            at = _write_rows(text, at, state, block, query, last_start)
            if state[NEXT_ROW] < state[MATCHES]:
                break
        state[NEXT_ROW] = NOT_BEGUN
        query += 1
    state[NEXT_QUERY] = query
    return at


PIECE_BYTES: Final = 16 * BGZF_BLOCK_BYTES
"""The records of a block are made in pieces of at most about this size."""


class BamFormat(MatchRecords):
    """Turns the matches of query blocks into the content of BAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        options: SamOptions,
        command: str,
        query_path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(
            *(reference, (), options, command, b"RGZ%b\0", b"", query_path, piece_bytes)
        )
        self._head = binary_header(self._header, reference)
        self._record_ids = writable(self._header.record_ids)

    def head(self) -> bytes:
        """Return the header, in text and in binary form."""
        return self._head

    def format_block(self, block: QueryBlock, matches: BlockMems) -> Iterator[TextArray]:
        """Yield whole records of a block's matches in pieces (`Format.format_block`)."""
        arrays = BamBlock(
            self._match_block(block, matches),
            *(self._record_ids, self._end, self._end_bytes, self._with_bases),
        )
        longest = FIXED_BYTES + self._end_bytes
        longest += int(np.diff(block.name_offsets).max(initial=0))
        longest += 3 * (int(np.diff(block.offsets).max(initial=0)) + 1) // 2
        heap = self._hit_heap(matches)
        state = new_state()

        def fill(text: TextArray) -> int:
            return write_match_records(text, state, arrays, heap)

        yield from self._pieces(block, state, longest, fill)
