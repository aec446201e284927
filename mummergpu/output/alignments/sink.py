"""What receives the alignments of a run: any thread prepares them, one thread writes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from mummergpu.mapping.alignments.folded_columns import ToldColumns
from mummergpu.output.alignments.arrays import ReadsWithQualities
from mummergpu.output.alignments.format import AlignmentFormat
from mummergpu.output.bytes.compressed_stream import CompressedStream
from mummergpu.output.bytes.compression import Compressor, Piece
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

Prepared = TypeVar("Prepared")

Emit = Callable[[Piece], None]
"""Receives bytes as they shall be in a file."""


class AlignmentSink(ABC, Generic[Prepared]):
    """Receives the alignments of all blocks of reads, in the order of the blocks."""

    @abstractmethod
    def prepare(self, reads: ReadsWithQualities, columns: ToldColumns) -> Prepared:
        """Prepare the alignments of a block for `write`; any thread may call this."""

    @abstractmethod
    def write(self, prepared: Prepared) -> None:
        """Write prepared alignments; one thread calls this, block after block."""

    @abstractmethod
    def finish(self) -> None:
        """Write what follows the last block; the thread that writes calls this."""

    @abstractmethod
    def close(self) -> None:
        """Release what the sink holds, at the end and after a failure."""


def writer_of(output: OutputFile, stats: Stats) -> Emit:
    """Return what writes bytes to a file, and counts them."""

    def emit(piece: Piece) -> None:
        with stats.stage("results_to_disk"):
            output.write(piece)
        stats.add_bytes(output=len(piece))

    return emit


class AlignmentByteSink(AlignmentSink[list[TextArray]]):
    """Writes alignments in the order of the reads."""

    def __init__(
        self,
        made: AlignmentFormat,
        emit: Emit,
        stats: Stats,
        compressor: Compressor | None = None,
        threads: int = 1,
    ) -> None:
        self._format = made
        self._emit = emit
        self._stats = stats
        self._stream: CompressedStream | None = None
        if compressor is not None:
            self._stream = CompressedStream(compressor, threads, emit, self._format.take_back)
        self._write([made.head()])

    def prepare(self, reads: ReadsWithQualities, columns: ToldColumns) -> list[TextArray]:
        """Return the bytes of a block (`AlignmentSink.prepare`)."""
        with self._stats.stage("format"):
            return list(self._format.format_block(reads, columns))

    def write(self, prepared: list[TextArray]) -> None:
        """Write the bytes of a block (`AlignmentSink.write`)."""
        self._write(prepared)

    def finish(self) -> None:
        """Write the end of the compression."""
        if self._stream is not None:
            self._stream.finish()

    def close(self) -> None:
        """End the threads that compress."""
        if self._stream is not None:
            self._stream.close()

    def _write(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if self._stream is None:
                self._emit(piece)
                self._format.take_back(piece)
            else:
                self._stream.add(piece)
