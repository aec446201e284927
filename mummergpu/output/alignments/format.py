"""What every format of alignments of reads is, and how SAM and BAM are made in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mummergpu.input.records.tags import Tags
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.xa_columns import ToldColumns
from mummergpu.output.alignments.arrays import (
    NEEDED_BYTES,
    NEXT_ROW,
    STATE_SIZE,
    BlockArrays,
    ReadsWithQualities,
    other_places,
    padded_text,
    read_columns,
    record_texts,
    reference_columns,
    row_arrays,
)
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.piece_pool import PiecePool
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.records.header import UNSORTED, sam_header
from mummergpu.output.records.sam_options import ReadGroup, SamOptions
from mummergpu.output.sink import Format, Prepared, Sink
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.offsets import longest_of


@dataclass(frozen=True)
class AlignmentHead:
    """What the header of a file of alignments tells besides the records of the reference.

    Attributes
    ----------
    read_group : ReadGroup or None
        The read group of all reads.
    command : str
        The command line of the run; empty if there is none.
    order : str
        `header.UNSORTED` or `header.BY_COORDINATE`.
    checksums : sequence of str
        The MD5 of each record of the reference (`header.sam_header`); empty to leave them out.
    input_groups : sequence of bytes
        The lines of the read groups of reads whose tags tell them (`ReadsWithQualities`).
    """

    read_group: ReadGroup | None = None
    command: str = ""
    order: str = UNSORTED
    checksums: Sequence[str] = ()
    input_groups: Sequence[bytes] = ()


AlignmentSink = Sink[ReadsWithQualities, ToldColumns, Prepared]
"""A sink of alignments of reads."""

AlignmentFormat = Format[ReadsWithQualities, ToldColumns]
"""A format of alignments of reads."""


class PiecewiseFormat(AlignmentFormat):
    """What the formats share that a compiled loop fills, piece by piece."""

    def __init__(
        self,
        reference: Reference,
        head: AlignmentHead,
        group_tag: bytes,
        read_path: str,
        piece_bytes: int,
    ) -> None:
        group = head.read_group
        tag = b"" if group is None else group_tag % group.name.encode()
        self._header = sam_header(
            *(reference, SamOptions(group), head.command, head.order, head.checksums),
            head.input_groups,
        )
        self._read_path = read_path
        self._reference = reference_columns(reference)
        self._names = record_texts(reference.names, b"\t")
        self._name_bytes = max(map(len, reference.names))
        self._group, self._no_group = padded_text(tag), padded_text(b"")
        self._pool = PiecePool(piece_bytes)

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`Format.take_back`)."""
        self._pool.take_back(piece)

    def _block_arrays(
        self, reads: ReadsWithQualities, columns: ToldColumns, tags: Tags
    ) -> BlockArrays:
        """Return a block for a compiled loop, with the tags of the reads as the format has them."""
        longest = longest_of(writable(reads.as_written.offsets))
        return BlockArrays(
            read_columns(reads, tags),
            row_arrays(columns),
            other_places(columns),
            np.empty(longest + 2 * MARGIN, dtype=np.uint8),
            self._reference,
            self._names,
            self._name_bytes,
            self._no_group if reads.has_groups else self._group,
        )

    def _pieces(
        self, row_count: int, fill: Callable[[TextArray, Int64Array], int]
    ) -> Iterator[tuple[int, int, TextArray]]:
        """Yield pieces of the text of a block, with the half-open range of their rows."""
        state = np.zeros(STATE_SIZE, dtype=np.int64)
        while (first := int(state[NEXT_ROW])) < row_count:
            text = self._pool.room_for(max(int(state[NEEDED_BYTES]), self._pool.piece_bytes))
            if filled := fill(text, state):
                yield first, int(state[NEXT_ROW]), text[:filled]
