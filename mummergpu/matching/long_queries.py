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
from typing import NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import QueryCodes
from mummergpu.matching.filter import keep_unique
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import MARGIN, CodeArray, empty_with_margins
from mummergpu.sequence.extension import extend_match
from mummergpu.sequence.mems import MemColumns, MemRows, join_rows, new_rows


class Pieces(NamedTuple):
    """Pieces of the queries of a block, in order; each array has one int64 for each piece.

    `begins` and `ends` bound the starts that a piece owns, and `text_begins` and `text_ends` the
    bases that are searched for it, all as positions in the block.
    """

    queries: Int64Array
    begins: Int64Array
    ends: Int64Array
    text_begins: Int64Array
    text_ends: Int64Array

    @property
    def owned_bases(self) -> int:
        """The number of starts that all pieces own."""
        return int((self.ends - self.begins).sum())

    def parts(self, batch_bases: int) -> Iterator[Pieces]:
        """Yield the pieces in groups of about `batch_bases` bases; one thread searches a group."""
        before = np.concatenate(([0], np.cumsum(self.text_ends - self.text_begins)))
        first = 0
        while first < self.queries.size:
            end = int(np.searchsorted(before, before[first] + batch_bases))
            end = min(max(end, first + 1), self.queries.size)
            part = slice(first, end)
            yield Pieces(*(column[part] for column in self))
            first = end

    @property
    def can_be_cut(self) -> bool:
        """Whether there is more than one start to own."""
        return self.queries.size > 1 or self.owned_bases > 1

    def halves(self, overlap: int) -> tuple[Pieces, Pieces]:
        """Return the pieces in two parts, in order; `overlap` is that of `cut_queries`."""
        if self.queries.size > 1:
            middle = self.queries.size // 2
            return Pieces(*(column[:middle] for column in self)), Pieces(
                *(column[middle:] for column in self)
            )
        at = (self.begins + self.ends) // 2
        first = self._replace(ends=at, text_ends=np.minimum(at + overlap, self.text_ends))
        return first, self._replace(begins=at, text_begins=at - 1)

    def as_block(self, codes: CodeArray) -> QueryBlock:
        """Return the pieces, on the strand of `codes`, as a block of queries without names."""
        offsets = np.concatenate(([0], np.cumsum(self.text_ends - self.text_begins)))
        padded = empty_with_margins(int(offsets[-1]))
        gather(codes, self.text_begins, offsets, padded[MARGIN:])
        no_names = np.zeros(offsets.size, dtype=np.int64)
        names = np.empty(0, dtype=np.uint8)
        return QueryBlock(0, padded, offsets, names, no_names, continues=True)


def has_long_query(block: QueryBlock, bases: int) -> bool:
    """Return whether a block has a query of more than `bases` bases."""
    return block.base_count > bases and block.longest > bases


def cut_queries(offsets: Int64Array, overlap: int, piece_bases: int) -> Pieces:
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


@jit
def gather(
    codes: CodeArray, text_begins: Int64Array, offsets: Int64Array, texts: CodeArray
) -> None:
    """Copy the text of each piece to its offset."""
    for piece in range(text_begins.size):
        shift = text_begins[piece] - offsets[piece]
        for place in range(offsets[piece], offsets[piece + 1]):
            texts[place] = codes[place + shift]


class PartMems(NamedTuple):
    """The matches of some pieces of a block, and how many of them each query has."""

    counts: Int64Array
    rows: MemRows


def owned_mems(
    part: Pieces, found: MemColumns, queries: QueryCodes, joined_reference: CodeArray
) -> PartMems:
    """Turn the matches of pieces, each searched as a query, into matches of their queries.

    They are all matches that start in an owned range, at their full length.
    """
    mems = PartMems(np.zeros(queries.offsets.size - 1, dtype=np.int64), new_rows(found.count))
    filled = take_owned(part, found.offsets, found.rows, queries, joined_reference, mems)
    return mems._replace(rows=MemRows(*(column[:filled] for column in mems.rows)))


@jit
def take_owned(
    pieces: Pieces,
    offsets: Int64Array,
    found: MemRows,
    queries: QueryCodes,
    joined_reference: CodeArray,
    taken: PartMems,
) -> int:
    """Write the matches that start in owned ranges; return how many there are."""
    rows = taken.rows
    filled = 0
    for piece in range(pieces.queries.size):
        query = pieces.queries[piece]
        for row in range(offsets[piece], offsets[piece + 1]):
            start = pieces.text_begins[piece] + found.query_starts[row]
            if start < pieces.begins[piece] or start >= pieces.ends[piece]:
                continue
            length = found.lengths[row]
            # A match that reaches the end of its piece may go on in the next one.
            if start + length == pieces.text_ends[piece]:
                length = extend_match(
                    joined_reference,
                    queries.codes,
                    start,
                    queries.offsets[query + 1],
                    found.reference_starts[row],
                    length,
                )
            rows.query_starts[filled] = start - queries.offsets[query]
            rows.reference_starts[filled] = found.reference_starts[row]
            rows.lengths[filled] = length
            taken.counts[query] += 1
            filled += 1
    return filled


def join_parts(parts: Sequence[PartMems]) -> MemColumns:
    """Join the matches of all parts of a block, in the order of the pieces."""
    counts = np.sum([part.counts for part in parts], axis=0, dtype=np.int64)
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    return MemColumns(offsets, *join_rows(part.rows for part in parts))


def keep_witnesses(parts: Sequence[PartMems]) -> PartMems:
    """Join parts, and leave out matches that do not decide which ones are unique."""
    kept = keep_unique(join_parts(parts), keeps_witnesses=True)
    return PartMems(np.diff(kept.offsets), kept.rows)
