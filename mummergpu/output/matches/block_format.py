"""What every format of bytes is: a head, the matches of block after block, and a tail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.block_text import RowFormat
from mummergpu.output.bytes.compression import Piece
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns


class BlockFormat(ABC):
    """A format of matches that is made block by block; several threads may share one."""

    def head(self) -> bytes:
        """Return what comes before the matches of the first block."""
        return b""

    @abstractmethod
    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[Piece]:
        """Yield the bytes of a block's matches, in pieces of bounded size."""

    def tail(self) -> bytes:
        """Return what follows the matches of the last block."""
        return b""

    def take_back(self, piece: Piece) -> None:
        """Receive a piece that nothing will read again, so that its memory can be reused."""
        return None

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return what a backend must know to make the same bytes; None if it cannot."""
        return None
