"""Text that a backend makes of the matches of a block, in place of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from mummergpu.matching.merge import join_blocks
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns

TextArray = ByteArray


@frozen
class RowFormat:
    """What a backend must know to write headers and rows as the formatter of the output does.

    Attributes
    ----------
    record_starts : ndarray, dtype=int64, shape=(n_records,)
        Where each record begins in the joined reference.
    buckets : ndarray, dtype=int32
        The last record that starts at or before each bucket of positions, and one bucket more.
    bucket_shift : int
        The binary logarithm of the positions in a bucket.
    record_names : ndarray, dtype=uint8
        The names of the records, one after the other.
    record_name_offsets : ndarray, dtype=int64, shape=(n_records + 1,)
        Where each name begins, and where the last one ends.
    head_bytes : int
        The bytes before the numbers of a row: the record's name and the blanks around it, or 0
        if rows have no names.
    forward_coordinates : bool
        Whether query positions of reverse matches are given on the forward strand.
    show_query_lengths : bool
        Whether headers end with the length of the query.
    piece_bytes : int
        The most bytes of a piece of text.
    new_piece : callable
        Returns an array for a piece of the given size, at most `piece_bytes`; any thread may call
        it.
    with_columns : bool
        Whether the matches are also needed as columns.
    """

    record_starts: Int64Array
    buckets: Int32Array
    bucket_shift: int
    record_names: TextArray
    record_name_offsets: Int64Array
    head_bytes: int
    forward_coordinates: bool
    show_query_lengths: bool
    piece_bytes: int
    new_piece: Callable[[int], TextArray]
    with_columns: bool = False


@frozen
class BlockText:
    """The text of a block's matches.

    Attributes
    ----------
    pieces : sequence of ndarray, dtype=uint8
        The text, from one piece to the next; a line may lie in two pieces.
    mems : mapping of Strand to MemColumns
        The matches as columns, on each strand that was searched, if the format asks for them; else
        empty.
    """

    pieces: Sequence[TextArray]
    count: int
    mems: Mapping[Strand, MemColumns] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of the text."""
        return sum(piece.size for piece in self.pieces)


def join_texts(one: BlockText, other: BlockText) -> BlockText:
    """Append the text of a block to that of the block before it."""
    mems = {strand: join_blocks(one.mems[strand], other.mems[strand]) for strand in one.mems}
    return BlockText([*one.pieces, *other.pieces], one.count + other.count, mems)
