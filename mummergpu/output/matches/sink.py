"""What receives the matches of a run: any thread prepares them, one thread writes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.block_text import BlockText, RowFormat
from mummergpu.output.bytes.compressed_stream import CompressedStream
from mummergpu.output.bytes.compression import Compressor, Piece
from mummergpu.output.matches.block_format import BlockFormat
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems, match_count

Prepared = TypeVar("Prepared")
Made = TypeVar("Made")


class MatchSink(ABC, Generic[Prepared]):
    """Receives the matches of all blocks of queries, in the order of the blocks."""

    @abstractmethod
    def prepare(self, block: QueryBlock, mems: BlockMems) -> Prepared:
        """Prepare the matches of a block for `write`; any thread may call this."""

    @abstractmethod
    def write(self, prepared: Prepared) -> None:
        """Write prepared matches; one thread calls this, block after block."""

    def finish(self) -> None:
        """Write what follows the matches of the last block; the thread that writes calls this."""

    def close(self) -> None:
        """Release what the sink holds, at the end and after a failure."""
        return None

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return the format of text that a backend may make in place of columns, None for none."""
        return None

    def prepare_text(self, text: BlockText) -> Prepared:
        """Prepare text that a backend has made as `row_format` says; any thread may call this."""
        raise TypeError("this sink takes no text")


def made_or_left(
    pieces: Iterator[Made], mems: BlockMems, most_rows: int, stats: Stats
) -> Iterator[Made]:
    """Make what a sink needs of a block now, unless the block has so many matches."""
    if match_count(mems) > most_rows:
        return pieces
    with stats.stage("format"):
        return iter(list(pieces))


class ByteSink(MatchSink[Iterator[Piece]]):
    """Turns matches into the bytes of a format, and writes them to a file."""

    def __init__(
        self,
        made: BlockFormat,
        output: OutputFile,
        stats: Stats,
        most_rows: int,
        compressor: Compressor | None = None,
        threads: int = 1,
    ) -> None:
        self._format = made
        self._output = output
        self._stats = stats
        self._most_rows = most_rows
        self._stream: CompressedStream | None = None
        if compressor is not None:
            self._stream = CompressedStream(compressor, threads, self._emit, self._format.take_back)
        self._write([made.head()])

    def prepare(self, block: QueryBlock, mems: BlockMems) -> Iterator[Piece]:
        """Return the bytes of a block's matches in pieces (`MatchSink.prepare`)."""
        pieces = self._format.format_block(block, mems)
        return made_or_left(pieces, mems, self._most_rows, self._stats)

    def write(self, prepared: Iterator[Piece]) -> None:
        """Write the bytes of a block (`MatchSink.write`)."""
        self._write(prepared)

    def finish(self) -> None:
        """Write the end of the format and of the compression."""
        self._write([self._format.tail()])
        if self._stream is not None:
            self._stream.finish()

    def close(self) -> None:
        """End the threads that compress."""
        if self._stream is not None:
            self._stream.close()

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return the format of text that a backend may make in place of columns."""
        return self._format.row_format(with_columns)

    def prepare_text(self, text: BlockText) -> Iterator[Piece]:
        """Return text that a backend has made (`MatchSink.prepare_text`)."""
        return iter(text.pieces)

    def _write(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if self._stream is None:
                self._emit(piece)
                self._format.take_back(piece)
            else:
                self._stream.add(piece)

    def _emit(self, piece: Piece) -> None:
        """Write bytes as they shall be in the file."""
        with self._stats.stage("results_to_disk"):
            self._output.write(piece)
        self._stats.add_bytes(output=len(piece))


class SeveralSinks(MatchSink[list[Any]]):
    """Passes all matches to several sinks."""

    def __init__(self, sinks: Sequence[MatchSink[Any]]) -> None:
        self._sinks = sinks

    def prepare(self, block: QueryBlock, mems: BlockMems) -> list[Any]:
        """Return what each sink has prepared (`MatchSink.prepare`)."""
        return [sink.prepare(block, mems) for sink in self._sinks]

    def write(self, prepared: list[Any]) -> None:
        """Let each sink write (`MatchSink.write`)."""
        for sink, own in zip(self._sinks, prepared, strict=True):
            sink.write(own)

    def finish(self) -> None:
        """Let each sink finish."""
        for sink in self._sinks:
            sink.finish()

    def close(self) -> None:
        """Close each sink."""
        for sink in self._sinks:
            sink.close()
