"""Collects matches for a picture, which is drawn and written when the last match has come."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from mummergpu.drawing.colours import IDENTITY
from mummergpu.drawing.coverage import CoverageCounter
from mummergpu.drawing.groups import no_identities
from mummergpu.drawing.lengths import LengthCounter
from mummergpu.drawing.picture import (
    PAGE,
    PictureStyle,
    coverage_file,
    dots_file,
    lengths_file,
    require_matplotlib,
)
from mummergpu.drawing.records import JoinedNames, Records
from mummergpu.drawing.segments import Segments
from mummergpu.drawing.style import hush
from mummergpu.errors import OptionError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.bytes.files import STANDARD_INPUT
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.matches.match_table import MatchTable, match_tables
from mummergpu.output.sink import Emit, MatchSink, made_or_left
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems

MOST_SEGMENTS: Final = 1 << 22
"""So many matches are kept: more than a picture has pixels, in some 130 megabytes."""


@frozen
class SegmentColumns:
    """Matches as columns of the same length.

    Attributes
    ----------
    reference_positions, query_positions : ndarray, dtype=int64
        0-based, on the axes of the joined records.
    lengths : ndarray, dtype=int64
        In bases.
    is_reverse : ndarray, dtype=bool
        Whether the reverse complement of the query matches.
    """

    reference_positions: Int64Array
    query_positions: Int64Array
    lengths: Int64Array
    is_reverse: BoolArray

    def chosen(self, choice: BoolArray) -> SegmentColumns:
        """Return the matches whose element of `choice`, a bool array, is true."""
        return SegmentColumns(
            self.reference_positions[choice],
            self.query_positions[choice],
            self.lengths[choice],
            self.is_reverse[choice],
        )

    def longer_than(self, length: int) -> SegmentColumns:
        """Return the matches that are longer than a number of bases."""
        return self.chosen(self.lengths > length) if length else self


class SegmentStore:
    """Keeps the longest of the matches that it gets; of matches as long, the first.

    Attributes
    ----------
    longest_dropped : int
        No match of this length or a smaller one will be kept any more.
    """

    def __init__(self, most: int = MOST_SEGMENTS) -> None:
        self._most = most
        self._parts: list[SegmentColumns] = []
        self._count = 0
        self.longest_dropped = 0

    def add(self, columns: SegmentColumns) -> None:
        """Take matches, in the order of the output."""
        columns = columns.longer_than(self.longest_dropped)
        if columns.lengths.size:
            self._parts.append(columns)
            self._count += columns.lengths.size
        if self._count > self._most + self._most // 4:
            self._drop_shortest()

    def columns(self) -> SegmentColumns:
        """Return the matches that are kept, in the order in which they came."""
        if self._count > self._most:
            self._drop_shortest()
        self._join(np.ones(self._count, dtype=np.bool_))
        return self._parts[0]

    def _drop_shortest(self) -> None:
        lengths = np.concatenate([part.lengths for part in self._parts])
        limit = int(np.partition(lengths, lengths.size - self._most)[lengths.size - self._most])
        stays = lengths > limit
        equal = np.flatnonzero(lengths == limit)
        stays[equal[: self._most - int(np.count_nonzero(stays))]] = True
        del lengths, equal
        self._join(stays)
        self._count = self._most
        self.longest_dropped = limit

    def _join(self, choice: BoolArray) -> None:
        """Put the chosen matches into one part, column by column to save memory."""
        parts = self._parts

        def join(column: str) -> npt.NDArray[Any]:
            ends = np.cumsum([part.lengths.size for part in parts]).tolist()
            pieces = [
                getattr(part, column)[choice[end - part.lengths.size : end]]
                for part, end in zip(parts, ends, strict=True)
            ]
            return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)

        joined = SegmentColumns(
            join("reference_positions"),
            join("query_positions"),
            join("lengths"),
            join("is_reverse").astype(np.bool_),
        )
        self._parts = [joined]


Part = TypeVar("Part")
"""What a thread makes of a table of matches, and the collector adds up."""

_ENDS_OF_COMPRESSIONS: Final = frozenset((".gz", ".bgz", ".zst", ".bz2", ".xz"))
_ENDS_OF_FORMATS: Final = frozenset(
    (".fa", ".fna", ".fasta", ".fas", ".fq", ".fastq", ".sam", ".bam", ".cram")
)

MOST_QUERIES: Final = 1 << 20
"""So many queries have a place on the axis of a dot plot."""


class Collector(ABC, Generic[Part]):
    """Collects matches for one kind of picture."""

    @abstractmethod
    def part(self, block: QueryBlock, table: MatchTable) -> Part:
        """Return what `add` needs of a table of matches; any thread may call this."""

    @abstractmethod
    def add(self, block: QueryBlock, parts: Iterable[Part]) -> None:
        """Take the matches of a block; blocks come in the order of the input."""

    @abstractmethod
    def picture(self, style: PictureStyle, file_format: str) -> bytes:
        """Return the picture of all matches as a file."""


CountedSegments = tuple[int, SegmentColumns]
"""The number of matches of a table, and those that are long enough to be kept."""


class DotCollector(Collector[CountedSegments]):
    """Collects the longest matches, and the names and lengths of the first queries."""

    def __init__(self, references: Records, title: str) -> None:
        self._references = references
        self._title = title
        self._store = SegmentStore()
        self._query_count = 0
        self._base_count = 0
        self._match_count = 0
        self._lengths: list[Int64Array] = []
        self._names: list[ByteArray] = []
        self._name_lengths: list[Int64Array] = []

    def part(self, block: QueryBlock, table: MatchTable) -> CountedSegments:
        """Return the matches, with positions on the axis of the block's queries."""
        columns = SegmentColumns(
            self._references.offsets[table.records] + table.reference_starts,
            block.offsets[table.queries] + table.query_starts,
            table.lengths,
            table.is_reverse,
        )
        # What is too short by now will stay so.
        return table.count, columns.longer_than(self._store.longest_dropped)

    def add(self, block: QueryBlock, parts: Iterable[CountedSegments]) -> None:
        """Take the matches of a block (`Collector.add`)."""
        room = max(0, MOST_QUERIES - self._query_count)
        end = block.offsets[min(room, block.query_count)]
        for count, columns in parts:
            self._match_count += count
            if end < block.base_count:
                columns = columns.chosen(columns.query_positions < end)
            places = columns.query_positions + self._base_count
            self._store.add(replace(columns, query_positions=places))
        self._base_count += int(end)
        self._query_count += block.query_count
        if not room:
            return
        self._lengths.append(np.diff(block.offsets[: room + 1]))
        self._name_lengths.append(np.diff(block.name_offsets[: room + 1]))
        self._names.append(block.names[: block.name_offsets[min(room, block.query_count)]].copy())

    def picture(self, style: PictureStyle, file_format: str) -> bytes:
        """Return the dot plot as a file."""
        names = np.concatenate([np.empty(0, dtype=np.uint8), *self._names])
        ends = np.cumsum(np.concatenate([np.zeros(1, dtype=np.int64), *self._name_lengths]))
        lengths = np.concatenate([np.empty(0, dtype=np.int64), *self._lengths])
        columns = self._store.columns()
        segments = Segments(
            self._references,
            Records(JoinedNames(names, ends), lengths, self._title),
            columns.reference_positions,
            columns.query_positions,
            columns.lengths,
            columns.is_reverse,
            self._match_count,
            self._query_count,
        )
        return dots_file(segments, style, file_format)


class CoverageCollector(Collector[CoverageCounter]):
    """Counts matched bases along the reference."""

    def __init__(self, references: Records) -> None:
        self._references = references
        self._counter = CoverageCounter(references)

    def part(self, block: QueryBlock, table: MatchTable) -> CoverageCounter:
        """Return the counts of a table."""
        counter = CoverageCounter(self._references)
        positions = self._references.offsets[table.records] + table.reference_starts
        counter.add(positions, table.lengths, table.is_reverse)
        return counter

    def add(self, block: QueryBlock, parts: Iterable[CoverageCounter]) -> None:
        """Add the counts of a block."""
        for counter in parts:
            self._counter.merge(counter)

    def picture(self, style: PictureStyle, file_format: str) -> bytes:
        """Return the coverage as a file."""
        return coverage_file(self._counter, style, file_format)


class LengthCollector(Collector[LengthCounter]):
    """Counts matches by length."""

    def __init__(self) -> None:
        self._counter = LengthCounter()

    def part(self, block: QueryBlock, table: MatchTable) -> LengthCounter:
        """Return the counts of a table."""
        counter = LengthCounter()
        counter.add(table.lengths)
        return counter

    def add(self, block: QueryBlock, parts: Iterable[LengthCounter]) -> None:
        """Add the counts of a block."""
        for counter in parts:
            self._counter.merge(counter)

    def picture(self, style: PictureStyle, file_format: str) -> bytes:
        """Return the histogram as a file."""
        return lengths_file(self._counter, style, file_format)


def check_picture(path: str, style: PictureStyle | None = None) -> None:
    """Refuse a picture of exact matches that cannot be made here."""
    if style is not None and style.colouring == IDENTITY:
        raise no_identities()
    if _file_format_of(path) != PAGE:
        hush()
        require_matplotlib("a picture")
    elif style is not None and style.kind != "dots":
        raise OptionError("kind", f"a page shows dots; write {style.kind} to .png, .svg or .pdf")


def _file_format_of(path: str) -> str:
    return os.path.splitext(path)[1].lower().removeprefix(".")


class PictureSink(MatchSink[tuple[QueryBlock, Iterator[Any]]]):
    """Draws the matches of a run."""

    def __init__(
        self,
        path: str,
        emit: Emit,
        reference: Reference,
        query_paths: Sequence[str],
        style: PictureStyle | None,
        stats: Stats,
        max_rows: int,
    ) -> None:
        style = style or PictureStyle()
        check_picture(path, style)
        self._file_format = _file_format_of(path)
        self._emit = emit
        self._stats = stats
        self._max_rows = max_rows
        self._lookup = record_lookup(reference.record_starts, reference.codes.size)
        queries = ", ".join(map(file_title, query_paths))
        reference_title = file_title(reference.path)
        self._style = replace(style, title=style.title or f"{queries} against {reference_title}")
        names = tuple(name.decode(errors="replace") for name in reference.names)
        records = Records(names, reference.record_lengths, reference_title)
        self._collector = _collector(style.kind, records, queries)

    def prepare(self, block: QueryBlock, mems: BlockMems) -> tuple[QueryBlock, Iterator[Any]]:
        """Return what the picture needs of a block's matches (`Sink.prepare`)."""
        tables = match_tables(block, mems, self._lookup)
        parts = (self._collector.part(block, table) for table in tables)
        return block, made_or_left(parts, mems, self._max_rows, self._stats)

    def write(self, prepared: tuple[QueryBlock, Iterator[Any]]) -> None:
        """Collect the matches of a block."""
        self._collector.add(*prepared)

    def finish(self) -> None:
        """Draw the picture, and write it."""
        with self._stats.stage("format"):
            picture = self._collector.picture(self._style, self._file_format)
        self._emit(picture)


def file_title(path: str) -> str:
    """Return the name of a file as a title: without its folder, and the ends of known formats."""
    if path == STANDARD_INPUT:
        return "standard input"
    name = os.path.basename(path)
    for ends in (_ENDS_OF_COMPRESSIONS, _ENDS_OF_FORMATS):
        stem, suffix = os.path.splitext(name)
        if stem and suffix.lower() in ends:
            name = stem
    return name


def _collector(kind: str, references: Records, queries: str) -> Collector[Any]:
    if kind == "coverage":
        return CoverageCollector(references)
    return LengthCollector() if kind == "lengths" else DotCollector(references, queries)
