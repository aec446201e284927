"""Receivers of the rows of a run, and the facts of the run that they may use.

The rows are matches of queries, alignments of reads, or alignments of genomes; they come block by
block, in the order of the input. Any thread prepares them, one thread writes them. A format of
bytes makes text of them, and `ByteSink` writes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.matching.backends.interface import BlockText, RowFormat
from mummergpu.output.bytes.compression import CompressedStream, Compressor, compressor_of
from mummergpu.output.bytes.texts import OVERSHOOT, Piece, PiecePool, TextArray
from mummergpu.output.options import RecordStyle, SamOptions
from mummergpu.output.targets import BGZF, OutputTarget
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.words import say_nothing
from mummergpu.sequence.mems import BlockMems, match_count

if TYPE_CHECKING:
    from mummergpu.drawing.picture import PictureStyle
    from mummergpu.mapping.genomes.mapping_quality import MappingQualities
    from mummergpu.output.options import SortOptions, TextStyle
    from mummergpu.output.records.header import AlignmentHead


Block = TypeVar("Block")
Rows = TypeVar("Rows")
Prepared = TypeVar("Prepared")
Made = TypeVar("Made")

Emit = Callable[[Piece], None]
"""Receives bytes as they shall be in a file."""


class Sink(ABC, Generic[Block, Rows, Prepared]):
    """Receives the rows of all blocks, in the order of the blocks."""

    @abstractmethod
    def prepare(self, block: Block, rows: Rows) -> Prepared:
        """Prepare the rows of a block for `write`; any thread may call this."""

    @abstractmethod
    def write(self, prepared: Prepared) -> None:
        """Write prepared rows; one thread calls this, block after block."""

    def finish(self) -> None:
        """Write what follows the rows of the last block; the thread that writes calls this."""

    def close(self) -> None:
        """Release the resources of the sink, at the end and after a failure."""
        return None

    @property
    def needs_bases(self) -> bool:
        """Whether blocks of genomes must keep the bases of their queries."""
        return False

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return the format of text that a backend may make in place of rows, None for none."""
        return None

    def prepare_text(self, text: BlockText) -> Prepared:
        """Prepare text that a backend has made as `row_format` says; any thread may call this."""
        raise TypeError("this sink takes no text")


MatchSink = Sink[QueryBlock, BlockMems, Prepared]
"""A sink of matches."""


class Format(ABC, Generic[Block, Rows]):
    """A format of bytes that is made block by block; several threads may share one."""

    def head(self) -> bytes:
        """Return the bytes before the rows of the first block."""
        return b""

    @abstractmethod
    def format_block(self, block: Block, rows: Rows) -> Iterator[Piece]:
        """Yield the bytes of the rows of a block, in pieces of bounded size.

        A piece has whole lines or records, and stays unchanged until `take_back` gets it.
        """

    def tail(self) -> Iterator[bytes]:
        """Yield what follows the rows of the last block, in pieces."""
        return iter(())

    def take_back(self, piece: Piece) -> None:
        """Receive a piece that nothing will read again, so that its memory can be reused.

        Pieces of `row_format` come back too.
        """
        return None

    @property
    def needs_bases(self) -> bool:
        """Whether blocks of genomes must keep the bases of their queries."""
        return False

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return the format for a backend that makes the same bytes; None if it cannot."""
        return None


class PieceFormat(Format[Block, Rows]):
    """A format whose pieces lie in memory that is used again."""

    def __init__(self, piece_bytes: int) -> None:
        self._pool = PiecePool(piece_bytes)

    def _piece(self, needed: int, fill: Callable[[TextArray], int]) -> TextArray:
        """Return the text that `fill` writes, with room for `needed` bytes, or for a piece."""
        text = self._pool.room_for(max(needed, self._pool.piece_bytes))
        filled = fill(text)
        # Wide stores are not among what numba checks.
        assert filled <= text.size - OVERSHOOT
        return text[:filled]

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`Format.take_back`)."""
        self._pool.take_back(piece)


def materialize_if_small(
    pieces: Iterator[Made], mems: BlockMems, max_rows: int, stats: Stats
) -> Iterator[Made]:
    """Make what a sink needs of the matches of a block now, unless there are more than `max_rows`.

    Those are left to `Sink.write`, so that memory never holds all of them.
    """
    if match_count(mems) > max_rows:
        return pieces
    with stats.stage("format"):
        return iter(list(pieces))


def writer_of(output: OutputFile, stats: Stats) -> Emit:
    """Return a function that writes bytes to a file, and counts them."""

    def emit(piece: Piece) -> None:
        with stats.stage("results_to_disk"):
            output.write(piece)
        stats.add_bytes(output=len(piece))

    return emit


class ByteSink(Sink[Block, Rows, Iterator[Piece]]):
    """Turns rows into the bytes of a format, and writes them in the order of the blocks.

    `emit` receives the bytes of the file (`writer_of`), which `compressor` compresses with
    `threads` threads, those of `executor` if there is one. The bytes of a block with more than
    `max_rows` matches are made only while they are written, so that memory never holds all of them;
    None for rows that are no matches.
    """

    def __init__(
        self,
        made: Format[Block, Rows],
        emit: Emit,
        stats: Stats,
        compressor: Compressor | None = None,
        threads: int = 1,
        max_rows: int | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._format = made
        self._emit = emit
        self._stats = stats
        self._max_rows = max_rows
        self._stream: CompressedStream | None = None
        if compressor is not None:
            take_back = made.take_back
            self._stream = CompressedStream(compressor, threads, emit, stats, take_back, executor)
        self._write([made.head()])

    @property
    def needs_bases(self) -> bool:
        """Whether the format needs the bases of the queries."""
        return self._format.needs_bases

    def prepare(self, block: Block, rows: Rows) -> Iterator[Piece]:
        """Return the bytes of a block in pieces (`Sink.prepare`)."""
        pieces = self._format.format_block(block, rows)
        if self._max_rows is not None:
            mems: Any = rows
            return materialize_if_small(pieces, mems, self._max_rows, self._stats)
        with self._stats.stage("format"):
            return iter(list(pieces))

    def write(self, prepared: Iterator[Piece]) -> None:
        """Write the bytes of a block (`Sink.write`)."""
        self._write(prepared)

    def finish(self) -> None:
        """Write the end of the format and of the compression."""
        pieces = self._format.tail()
        # The tail of matches is a few bytes, and would seem to be a block that the host has made.
        is_timed = self._max_rows is None
        while True:
            with self._stats.stage("format") if is_timed else nullcontext():
                piece = next(pieces, None)
            if piece is None:
                break
            self._write([piece])
        if self._stream is not None:
            self._stream.finish()

    def take_back(self, piece: Piece) -> None:
        """Receive a prepared piece that has been copied in place of being written."""
        self._format.take_back(piece)

    def close(self) -> None:
        """End the threads that compress."""
        if self._stream is not None:
            self._stream.close()

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return the format of text that a backend may make in place of columns."""
        return self._format.row_format(with_columns)

    def prepare_text(self, text: BlockText) -> Iterator[Piece]:
        """Return text that a backend has made (`Sink.prepare_text`)."""
        return iter(text.pieces)

    def _write(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if self._stream is None:
                self._emit(piece)
                self._format.take_back(piece)
            else:
                self._stream.add(piece)


class SeveralSinks(Sink[Block, Rows, list[Any]]):
    """Passes all rows to several sinks."""

    def __init__(self, sinks: Sequence[Sink[Block, Rows, Any]]) -> None:
        self._sinks = sinks

    @property
    def needs_bases(self) -> bool:
        """Whether any of the sinks needs the bases of the queries."""
        return any(sink.needs_bases for sink in self._sinks)

    def prepare(self, block: Block, rows: Rows) -> list[Any]:
        """Let each sink prepare the rows (`Sink.prepare`)."""
        return [sink.prepare(block, rows) for sink in self._sinks]

    def write(self, prepared: list[Any]) -> None:
        """Let each sink write (`Sink.write`)."""
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


@frozen
class OutputContext:
    """What formats may say about the run, or need to know of it.

    `query_paths` are the files of the queries or reads, as the user named them; `command` is empty
    if there is none. Up to `max_rows` matches of a block its output may be prepared before it is
    written; None for rows that are no matches. The threads of `executor` compress, if there is one.
    `checksums` are the MD5 of each record of the
    reference (`input.reference.record_checksums`), empty if they are not known; `input_groups` are
    the lines of the read groups that tags of reads name. Without `sort`, alignments are written as
    they come; without `compressor`, a `BgzfCompressor` makes blocks of bgzf; without `qualities`,
    those of genomes are found. `with_changes` and `with_bases` are for genomes: cs:Z in PAF, and
    bases and MD in SAM. `circular` are the numbers of the circular records of the reference.
    `records` is the style of reads; genomes take `equal_bases` of it.
    """

    reference: Reference
    query_paths: tuple[str, ...]
    threads: int = 1
    command: str = ""
    sam: SamOptions = field(default_factory=SamOptions)
    style: TextStyle | None = None
    picture: PictureStyle | None = None
    max_rows: int | None = None
    checksums: Sequence[str] = ()
    input_groups: Sequence[bytes] = ()
    sort: SortOptions | None = None
    compressor: Compressor | None = None
    with_changes: bool = False
    with_bases: bool = True
    records: RecordStyle = field(default_factory=RecordStyle)
    qualities: MappingQualities | None = None
    warn: Callable[[str], None] = say_nothing
    circular: Sequence[int] = ()
    executor: Executor | None = None

    @property
    def files(self) -> str:
        """The files of the queries, for errors."""
        return ", ".join(self.query_paths)

    @property
    def max_match_rows(self) -> int:
        """`max_rows` of matches."""
        assert self.max_rows is not None
        return self.max_rows

    @property
    def head(self) -> AlignmentHead:
        """The facts of the header of SAM, BAM and CRAM."""
        from mummergpu.output.records.header import BY_COORDINATE, UNSORTED, AlignmentHead

        is_sorted = self.sort is not None and self.sort.by_coordinate
        return AlignmentHead(
            *(self.sam.read_group, self.command, BY_COORDINATE if is_sorted else UNSORTED),
            *(self.checksums, self.input_groups, self.circular),
        )


@frozen
class OpenRequest:
    """What a sink is opened with.

    `emit` receives the bytes of the file, which it compresses itself if `is_raw`; `index` is the
    open file of the index of sorted BAM or CRAM.
    """

    target: OutputTarget
    facts: OutputContext
    emit: Emit
    stats: Stats
    index: OutputFile | None = None
    is_raw: bool = False

    def byte_sink(self, made: Format[Any, Any]) -> ByteSink[Any, Any]:
        """Return a sink for the bytes of a format, compressed as the target says."""
        facts = self.facts
        compressor = None if self.is_raw else self.compressor()
        threads = facts.threads, facts.max_rows, facts.executor
        return ByteSink(made, self.emit, self.stats, compressor, *threads)

    def compressor(self) -> Compressor | None:
        """Return the compressor of the target."""
        if self.target.has_bgzf:
            return self.facts.compressor or compressor_of(BGZF)
        return compressor_of(self.target.compression)

    def of_bam(self, emit: Emit) -> OpenRequest:
        """Return the same for a BAM that goes elsewhere, without an index."""
        target = replace(self.target, format="bam")
        return replace(self, target=target, emit=emit, index=None, is_raw=False)
