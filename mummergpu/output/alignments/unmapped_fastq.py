"""The FASTQ of reads without a place, whose mates have none either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.records.qualities import NO_QUALITY
from mummergpu.mapping.alignments.columns import FoldedColumns, SamFlag, WrittenColumns
from mummergpu.output.bytes.texts import QueryColumns
from mummergpu.output.sink import Format
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import jit, writable
from mummergpu.sequence.codes import LETTERS, MARGIN, CodeArray

_LETTERS: Final = np.frombuffer(bytearray(LETTERS), dtype=np.uint8)
_SIGNS: Final = len("@\n\n+\n\n")
_AT, _PLUS, _LINE_END, _FIRST_QUALITY = b"@+\n!"
_DEFAULT_QUALITY: Final = ord("B") - ord("!")
"""The quality of bases that have none, as of ``samtools fastq``."""


class UnmappedFastq(Format[ReadBlock, WrittenColumns]):
    """FASTQ of the templates without any place: of mate 0 or 1 of pairs, or of all reads (None)."""

    def __init__(self, mate: int | None) -> None:
        self._mate = mate

    def format_block(self, block: ReadBlock, rows: WrittenColumns) -> Iterator[ByteArray]:
        """Yield the text of a block (`Format.format_block`)."""
        if self._mate is not None and not block.paired:
            raise OptionError("unmapped", "two files are for pairs, and there are single reads")
        chosen = _without_place(block, rows)
        if self._mate is not None:
            chosen = chosen[chosen % 2 == self._mate]
        if chosen.size == 0:
            return
        written = block.as_written
        lengths, names = np.diff(written.offsets), np.diff(block.name_offsets)
        size = int((2 * lengths[chosen] + names[chosen] + _SIGNS).sum())
        text = np.empty(size, dtype=np.uint8)
        reads = QueryColumns(
            writable(written.offsets), writable(block.names), writable(block.name_offsets)
        )
        codes, qualities = writable(written.padded_codes), writable(written.qualities)
        filled = write_reads(chosen, reads, codes, qualities, _LETTERS, text)
        assert filled == size
        yield text


def _without_place(block: ReadBlock, rows: WrittenColumns) -> Int64Array:
    """Return the reads that are placed nowhere, and whose mates are not either."""
    columns = rows.rows if isinstance(rows, FoldedColumns) else rows
    is_placed = np.zeros(block.query_count, dtype=np.bool_)
    is_placed[columns.reads[columns.flags & SamFlag.UNMAPPED == 0]] = True
    if block.paired:
        is_placed = np.repeat(is_placed[0::2] | is_placed[1::2], 2)
    return np.flatnonzero(~is_placed)


@jit
def write_reads(
    chosen: Int64Array,
    reads: QueryColumns,
    codes: CodeArray,
    qualities: ByteArray,
    letters: ByteArray,
    text: ByteArray,
) -> int:
    """Write some reads as FASTQ; return how many bytes that are."""
    at = 0
    for number in range(chosen.size):
        read = chosen[number]
        begin, end = reads.offsets[read], reads.offsets[read + 1]
        text[at] = _AT
        at += 1
        for place in range(reads.name_offsets[read], reads.name_offsets[read + 1]):
            text[at] = reads.names[place]
            at += 1
        text[at] = _LINE_END
        at += 1
        for place in range(begin, end):
            text[at] = letters[codes[MARGIN + place]]
            at += 1
        text[at], text[at + 1], text[at + 2] = _LINE_END, _PLUS, _LINE_END
        at += 3
        for place in range(begin, end):
            quality = qualities[place]
            text[at] = _FIRST_QUALITY + (_DEFAULT_QUALITY if quality == NO_QUALITY else quality)
            at += 1
        text[at] = _LINE_END
        at += 1
    return at
