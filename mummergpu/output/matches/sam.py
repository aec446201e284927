"""Matches as SAM: a line for each match, and one for each query without a match.

A match is an alignment with ``=`` for its bases and soft clips for the rest of the query, such as
``5S31=4S``. The longest match of a query is its primary alignment, the others are secondary
(`sam_rows`). The tags tell that no base differs (NM), the length of the match (AS), how many
matches the query has on both strands (NH), and the number of this one (HI).

Sequences are on the forward strand of the reference. They are those that are searched: letters in
upper case, N for all that is not a base, and T for U. The qualities of reads are not kept for the
search, so the field for them is ``*``; secondary alignments have no sequence either, as usual,
unless the options ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import RecordLookup, Reference, record_at
from mummergpu.output.bytes.number_text import MOST_DIGITS, SMALL, put_one_number, put_small
from mummergpu.output.bytes.sequence_text import write_bases
from mummergpu.output.bytes.text_arrays import PIECE_BYTES, RecordTexts
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
    STATE_SIZE,
    TIES_LEFT,
    UNMAPPED,
    MatchRecords,
    begin_query,
    flag_of,
    hits_of,
    new_state,
)
from mummergpu.output.records.sam_fields import put_name
from mummergpu.output.records.sam_options import SamOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.mems import BlockMems


def _constant(text: bytes) -> tuple[TextArray, int]:
    return np.frombuffer(bytearray(text.ljust(2 * OVERSHOOT)), dtype=np.uint8), len(text)


def _word(text: bytes) -> int:
    """Return a text of at most seven bytes as a word, with its size in the highest byte."""
    return int.from_bytes(text, "little") | len(text) << 56


def _clip_words() -> Any:
    words = [_word(b"%dS" % number if number else b"") for number in range(SMALL)]
    return np.array(words, dtype=np.uint64)


_CLIP_WORDS: Final = _clip_words()
_LENGTH_WORDS: Final = np.array(
    [_word(b"%d=" % number) for number in range(SMALL)], dtype=np.uint64
)
_SIZE_SHIFT: Final[Any] = np.uint64(56)
_CLIP: Final = np.uint8(ord("S"))
_EQUAL: Final = np.uint8(ord("="))
_STAR: Final = np.uint8(ord("*"))
_QUALITY: Final = np.frombuffer(b"\t255\t   ", dtype="<u8")[0]
_QUALITY_BYTES: Final = 5
_NO_MATE, _NO_MATE_BYTES = _constant(b"\t*\t0\t0\t")
_SCORES, _SCORES_BYTES = _constant(b"\t*\tNM:i:0\tAS:i:")
_SECONDARY_SCORES, _SECONDARY_SCORES_BYTES = _constant(b"\t*\t0\t0\t*\t*\tNM:i:0\tAS:i:")
_HITS: Final = np.frombuffer(b"\tNH:i:  ", dtype="<u8")[0]
_NUMBER: Final = np.frombuffer(b"\tHI:i:  ", dtype="<u8")[0]
_TAG_BYTES: Final = len("\tNH:i:")
_HITS_TEXTS: Final = [b"\tNH:i:%d\tHI:i:" % number for number in range(SMALL)]
_HITS_WORDS: Final = np.array([int.from_bytes(one[:8], "little") for one in _HITS_TEXTS], np.uint64)
_HITS_ENDS: Final = np.array([_word(one[8:]) for one in _HITS_TEXTS], np.uint64)
_NO_PLACE, _NO_PLACE_BYTES = _constant(b"\t%d\t*\t0\t0\t*\t*\t0\t0\t" % UNMAPPED)
_NO_QUALITIES: Final = np.frombuffer(b"\t*", dtype="<u2")[0]

FLAGS: Final = (0, REVERSE, SECONDARY, SECONDARY + REVERSE)
"""The flags of matches, in the order of their texts for each record."""

FLAG_COUNT: Final = len(FLAGS)

OTHER_BYTES: Final = 9 * MOST_DIGITS + len(
    "\t\t\t\t255\tS=S\t*\t0\t0\t*\t*\tNM:i:0\tAS:i:\tNH:i:\tHI:i:"
)
"""The most bytes of a line besides the names, the bases and what all lines end with."""


@inline_without_refcounts
def put_hits(text: TextArray, at: int, count: int, number: int) -> int:
    """Write the number of matches of a query, and the number of one of them; return the end."""
    if count < SMALL:
        store(text, at, _HITS_WORDS[as_index(count)])
        return put_small(text, _put_word(text, at + 8, _HITS_ENDS[as_index(count)]), number)
    store(text, at, _HITS)
    at = put_small(text, at + _TAG_BYTES, count)
    store(text, at, _NUMBER)
    return put_small(text, at + _TAG_BYTES, number)


@inline_without_refcounts
def _put_word(text: TextArray, at: int, word: np.uint64) -> int:
    """Write the text that a word holds; return where it ends."""
    store(text, at, word)
    return at + as_int64(word >> _SIZE_SHIFT)


@inline_without_refcounts
def _put_clip(text: TextArray, at: int, count: int) -> int:
    """Write how many bases are clipped, nothing for none; return where it ends."""
    if count < SMALL:
        return _put_word(text, at, _CLIP_WORDS[as_index(count)])
    at = put_small(text, at, count)
    store(text, at, _CLIP)
    return at + 1


@inline_without_refcounts
def place_of(lookup: RecordLookup, joined_position: int) -> tuple[int, int]:
    """Return the record of a position and the position in it, 1-based."""
    record = record_at(lookup.starts, lookup.buckets, lookup.bucket_shift, joined_position)
    return record, joined_position - lookup.starts[as_index(record)] + 1


@inline_without_refcounts
def write_record(
    text: TextArray,
    at: int,
    records: RecordTexts,
    record: int,
    kind: int,
    position: int,
) -> int:
    """Write a flag, the name of a record, the position in it and the mapping quality.

    Returns where the text ends.
    """
    entry = FLAG_COUNT * record + kind
    begin, end = records.offsets[as_index(entry)], records.offsets[as_index(entry + 1)]
    at = put_one_number(text, copy_padded(text, at, records.texts, begin, end), position)
    store(text, at, _QUALITY)
    return at + _QUALITY_BYTES


@inline_without_refcounts
def write_cigar(text: TextArray, at: int, before: int, length: int, after: int) -> int:
    """Write the CIGAR of a match; return where it ends."""
    at = _put_clip(text, at, before)
    if length < SMALL:
        return _put_clip(text, _put_word(text, at, _LENGTH_WORDS[as_index(length)]), after)
    at = put_small(text, at, length)
    store(text, at, _EQUAL)
    return _put_clip(text, at + 1, after)


@inline_without_refcounts
def write_part(
    text: TextArray,
    at: int,
    padded_codes: CodeArray,
    bounds: tuple[int, int],
    base: int,
    is_reverse: bool,
) -> tuple[int, int]:
    """Write the bases of a query from `base` on, as far as there is room.

    Returns where the text ends and the first base that is not written.
    """
    begin, end = bounds
    count = min(end - begin - base, text.size - OVERSHOOT - at)
    at = write_bases(text, at, padded_codes, begin, end, base, count, is_reverse)
    return at, base + count


@inline_without_refcounts
def begin_bases(text: TextArray, at: int) -> int:
    """Write the fields between the CIGAR and the bases; return where they end."""
    return copy_padded(text, at, _NO_MATE, 0, _NO_MATE_BYTES)


@inline_without_refcounts
def write_scores(text: TextArray, at: int, has_bases: bool, length: int) -> int:
    """Write the fields after the bases, or after the CIGAR if there are none, up to the score."""
    if has_bases:
        at = copy_padded(text, at, _SCORES, 0, _SCORES_BYTES)
    else:
        at = copy_padded(text, at, _SECONDARY_SCORES, 0, _SECONDARY_SCORES_BYTES)
    return put_small(text, at, length)


@inline_without_refcounts
def begin_unmapped(text: TextArray, at: int, is_empty: bool) -> int:
    """Write the fields between the name and the bases of a query without a match."""
    at = copy_padded(text, at, _NO_PLACE, 0, _NO_PLACE_BYTES)
    store(text, at, _STAR)
    return at + is_empty


@inline_without_refcounts
def end_unmapped(text: TextArray, at: int) -> int:
    """Write the fields after the bases of a query without a match; return where they end."""
    store(text, at, _NO_QUALITIES)
    return at + 2


NEXT_BASE: Final = STATE_SIZE
"""The element of the state with the first base that is not written, after those of `sam_rows`."""

NO_BASE: Final = -1
"""The next base of a line that has not begun."""


class SamBlock(NamedTuple):
    """What the loop needs to write the lines of a block.

    Attributes
    ----------
    line_end : ndarray, dtype=uint8
        What all lines end with, the tag of the read group first.
    end_bytes : int
        The bytes of it; `OVERSHOOT` more follow.
    with_bases : bool
        Whether secondary alignments have bases, too.
    """

    matches: MatchBlock
    line_end: TextArray
    end_bytes: int
    with_bases: bool


@inline_without_refcounts
def _write_unmapped(
    text: TextArray, at: int, block: SamBlock, query: int, base: int, last_start: int
) -> tuple[int, int]:
    """Write the line of a query without a match from `base` on, as far as there is room.

    Returns where it ends, and the next base.
    """
    queries = block.matches.queries
    bounds = queries.offsets[as_index(query)], queries.offsets[as_index(query + 1)]
    if base == NO_BASE:
        at = put_name(text, at, queries.names, queries.name_offsets, query)
        at = begin_unmapped(text, at, bounds[0] == bounds[1])
        base = 0
    at, base = write_part(text, at, block.matches.codes, bounds, base, False)
    if base < bounds[1] - bounds[0] or at > last_start:
        return at, base
    at = end_unmapped(text, at)
    return copy_padded(text, at, block.line_end, 0, block.end_bytes), NO_BASE


@inline_without_refcounts
def _write_rows(
    text: TextArray, at: int, state: Int64Array, block: SamBlock, query: int, last_start: int
) -> int:
    """Write the lines of a query with matches from `state` on, as far as there is room.

    Returns where they end, and updates `state`. A long query may go on in the next text.
    """
    queries, (forward, reverse) = block.matches.queries, block.matches.rows
    own_hits = hits_of(block.matches.rows, query)
    bounds = queries.offsets[as_index(query)], queries.offsets[as_index(query + 1)]
    count, longest, least = state[MATCHES], state[LONGEST], state[LEAST]
    query_length = bounds[1] - bounds[0]
    place, base = state[NEXT_ROW], state[NEXT_BASE]
    hits, ties_left, has_primary = state[HITS], state[TIES_LEFT], state[HAS_PRIMARY]
    while place < count and at <= last_start:
        strand = as_int64(place >= own_hits.forward_count)
        own = reverse if strand == 1 else forward
        row = place + (own_hits.reverse_begin if strand == 1 else own_hits.forward_begin)
        length = own.lengths[as_index(row)]
        has_bases = True
        # A line that the last text had no room for goes on with its bases.
        if base == NO_BASE:
            flag = flag_of(length, longest, least, ties_left, has_primary)
            if flag == NO_ROW:
                place += 1
                continue
            record, position = place_of(block.matches.lookup, own.reference_starts[as_index(row)])
            clip = own.query_starts[as_index(row)]
            ties_left -= length == least
            has_primary |= flag == 0
            hits += 1
            at = put_name(text, at, queries.names, queries.name_offsets, query)
            kind = 2 * (flag != 0) + strand
            at = write_record(text, at, block.matches.records, record, kind, position)
            at = write_cigar(text, at, clip, length, query_length - clip - length)
            has_bases = block.with_bases or flag == 0
            if has_bases:
                at = begin_bases(text, at)
                base = 0
        if has_bases:
            at, base = write_part(text, at, block.matches.codes, bounds, base, strand == 1)
            if base < query_length or at > last_start:
                break
            base = NO_BASE
        at = write_scores(text, at, has_bases, length)
        at = put_hits(text, at, count, hits)
        at = copy_padded(text, at, block.line_end, 0, block.end_bytes)
        place += 1
    state[NEXT_ROW], state[NEXT_BASE] = place, base
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = hits, ties_left, has_primary
    return at


@jit_without_refcounts
def write_sam(
    text: TextArray, state: Int64Array, block: SamBlock, heap: Int64Array, row_bytes: int
) -> int:
    """Write lines from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    query_count = block.matches.queries.offsets.size - 1
    query = state[NEXT_QUERY]
    last_start = text.size - OVERSHOOT - row_bytes
    at = 0
    while query < query_count and at <= last_start:
        if state[NEXT_ROW] == NOT_BEGUN:
            begin_query(state, heap, block.matches.rows, query)
            state[NEXT_ROW] = 0
        if state[MATCHES] == 0:
            at, base = _write_unmapped(text, at, block, query, state[NEXT_BASE], last_start)
            state[NEXT_BASE] = base
            if base != NO_BASE:
                break
        else:
            at = _write_rows(text, at, state, block, query, last_start)
            if state[NEXT_ROW] < state[MATCHES]:
                break
        state[NEXT_ROW] = NOT_BEGUN
        query += 1
    state[NEXT_QUERY] = query
    return at


class SamFormat(MatchRecords):
    """Turns matches into SAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        options: SamOptions,
        command: str,
        query_path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        texts = (b"\t%d\t%b\t" % (flag, name) for name in reference.names for flag in FLAGS)
        super().__init__(
            *(reference, texts, options, command, b"\tRG:Z:%b", b"\n", query_path, piece_bytes)
        )
        self._most_bytes = OTHER_BYTES + self._end_bytes + self._longest_record

    def head(self) -> bytes:
        """Return the header."""
        return self._header.text

    def format_block(self, block: QueryBlock, matches: BlockMems) -> Iterator[TextArray]:
        """Yield the lines of a block's matches in pieces (`Format.format_block`)."""
        arrays = SamBlock(
            self._match_block(block, matches), self._end, self._end_bytes, self._with_bases
        )
        heap = self._hit_heap(matches)
        row_bytes = self._most_bytes + int(np.diff(block.name_offsets).max(initial=0))
        state = new_state(NO_BASE)

        def fill(text: TextArray) -> int:
            return write_sam(text, state, arrays, heap, row_bytes)

        yield from self._pieces(block, state, row_bytes, fill)
