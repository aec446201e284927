"""Long queries, searched in pieces so that one chromosome keeps all cores busy.

A piece owns a range of starts and reports the matches that start there. The backend searches
the piece as a query of its own. One more base in front shows whether a match could start
earlier; the overlap after the owned starts is long enough for every match to be found::

    query    ......................................................
    piece            b[ owned starts         ]overlap
    next piece                              b[ owned starts         ]overlap

A match that reaches the end of its piece is extended in the whole query. So every match is
reported once, in full and in order, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mummergpu.input.blocks.queries import OffsetArray, QueryBlock
from mummergpu.matching.row_order import ColumnArray
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.sequence.codes import MARGIN, CodeArray, empty_with_margins
from mummergpu.sequence.extension import extend_match
from mummergpu.sequence.mems import MemColumns, new_columns


@dataclass(frozen=True)
class Pieces:
    """Pieces of the queries of a block, in order; each array has one int64 for each piece.

    `begins` and `ends` bound the starts that a piece owns, and `text_begins` and `text_ends` the
    bases that are searched for it, all as positions in the block.
    """

    queries: OffsetArray
    begins: OffsetArray
    ends: OffsetArray
    text_begins: OffsetArray
    text_ends: OffsetArray

    @property
    def owned_bases(self) -> int:
        """The number of starts that all pieces own."""
        return int((self.ends - self.begins).sum())

    def parts(self, part_bases: int) -> Iterator[Pieces]:
        """Yield the pieces in groups of about `part_bases` bases; one thread searches a group."""
        before = np.concatenate(([0], np.cumsum(self.text_ends - self.text_begins)))
        first = 0
        while first < self.queries.size:
            end = int(np.searchsorted(before, before[first] + part_bases))
            end = min(max(end, first + 1), self.queries.size)
            part = slice(first, end)
            yield Pieces(
                self.queries[part],
                self.begins[part],
                self.ends[part],
                self.text_begins[part],
                self.text_ends[part],
            )
            first = end

    def as_block(self, codes: CodeArray) -> QueryBlock:
        """Return the pieces, on the strand of `codes`, as a block of queries without names."""
        offsets = np.concatenate(([0], np.cumsum(self.text_ends - self.text_begins)))
        padded = empty_with_margins(int(offsets[-1]))
        gather(codes, self.text_begins, offsets, padded[MARGIN:])
        no_names = np.zeros(offsets.size, dtype=np.int64)
        return QueryBlock(0, padded, offsets, np.empty(0, dtype=np.uint8), no_names)


def has_long_query(block: QueryBlock, bases: int) -> bool:
    """Return whether a block has a query of more than `bases` bases."""
    return block.base_count > bases and block.longest > bases


def cut_queries(offsets: OffsetArray, overlap: int, piece_bases: int) -> Pieces:
    """Cut the queries of a block into pieces, at least one each.

    A piece owns at most `piece_bases` starts; `overlap` bases after them are searched too, which
    are the minimum match length minus 1.
    """
    counts = np.maximum(1, -(-np.diff(offsets) // piece_bases))
    queries = np.repeat(np.arange(counts.size), counts)
    number = np.arange(queries.size) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = offsets[queries] + number * piece_bases
    ends = np.minimum(begins + piece_bases, offsets[queries + 1])
    text_begins = begins - (number > 0)
    text_ends = np.minimum(ends + overlap, offsets[queries + 1])
    return Pieces(queries, begins, ends, text_begins, text_ends)


@jit_without_refcounts
def gather(
    codes: CodeArray, text_begins: OffsetArray, offsets: OffsetArray, texts: CodeArray
) -> None:
    """Copy the text of each piece to its offset."""
    for piece in range(text_begins.size):
        shift = text_begins[piece] - offsets[piece]
        for place in range(offsets[piece], offsets[piece + 1]):
            texts[place] = codes[place + shift]


@dataclass(frozen=True)
class PartMems:
    """The matches of some pieces of a block, and how many of them each query has."""

    counts: OffsetArray
    columns: tuple[ColumnArray, ColumnArray, ColumnArray]


def owned_mems(
    part: Pieces,
    found: MemColumns,
    offsets: OffsetArray,
    codes: CodeArray,
    joined_reference: CodeArray,
) -> PartMems:
    """Turn the matches of pieces, each searched as a query, into matches of their queries.

    They are all matches that start in an owned range, at their full length.
    """
    counts = np.zeros(offsets.size - 1, dtype=np.int64)
    columns = new_columns(found.count)
    filled = take_owned(
        part.queries,
        part.begins,
        part.ends,
        part.text_begins,
        part.text_ends,
        (found.offsets, found.query_starts, found.reference_starts, found.lengths),
        offsets,
        codes,
        joined_reference,
        counts,
        columns,
    )
    starts, reference_starts, lengths = columns
    return PartMems(counts, (starts[:filled], reference_starts[:filled], lengths[:filled]))


@jit_without_refcounts
def take_owned(
    queries: OffsetArray,
    begins: OffsetArray,
    ends: OffsetArray,
    text_begins: OffsetArray,
    text_ends: OffsetArray,
    found: tuple[ColumnArray, ColumnArray, ColumnArray, ColumnArray],
    offsets: OffsetArray,
    codes: CodeArray,
    joined_reference: CodeArray,
    counts: OffsetArray,
    taken: tuple[ColumnArray, ColumnArray, ColumnArray],
) -> int:
    """Write the matches that start in owned ranges; return how many there are."""
    found_offsets, found_starts, found_reference_starts, found_lengths = found
    starts, reference_starts, lengths = taken
    filled = 0
    for piece in range(queries.size):
        query = queries[piece]
        for row in range(found_offsets[piece], found_offsets[piece + 1]):
            start = text_begins[piece] + found_starts[row]
            if start < begins[piece] or start >= ends[piece]:
                continue
            length = found_lengths[row]
            if start + length == text_ends[piece]:
                length = extend_match(
                    joined_reference,
                    codes,
                    start,
                    offsets[query + 1],
                    found_reference_starts[row],
                    length,
                )
            starts[filled] = start - offsets[query]
            reference_starts[filled] = found_reference_starts[row]
            lengths[filled] = length
            counts[query] += 1
            filled += 1
    return filled


def join_parts(parts: Sequence[PartMems]) -> MemColumns:
    """Join the matches of all parts of a block, in the order of the pieces."""
    counts = np.sum([part.counts for part in parts], axis=0, dtype=np.int64)
    columns = [np.concatenate(column) for column in zip(*(p.columns for p in parts), strict=True)]
    starts, reference_starts, lengths = columns
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    return MemColumns(offsets, starts, reference_starts, lengths)
