"""Collects the matches of a run, and draws them at its end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from mummergpu.drawing.colours import IDENTITY
from mummergpu.drawing.dots import no_identities
from mummergpu.drawing.picture import PictureStyle, picture_bytes, picture_format
from mummergpu.drawing.segments import Chromosomes, Segments
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.bytes.files import STANDARD_INPUT
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.matches.match_table import MatchTable, match_tables
from mummergpu.output.sink import Emit, MatchSink, materialize_if_small
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.mems import BlockMems

MOST_SEGMENTS: Final = 1 << 22
"""The matches that are kept: more than a picture has pixels, in some 130 megabytes."""


class SegmentColumns(NamedTuple):
    """Matches as columns; positions are 0-based on the axes of the joined records."""

    reference_positions: Int64Array
    query_positions: Int64Array
    lengths: Int64Array
    is_reverse: BoolArray

    def chosen(self, choice: BoolArray) -> SegmentColumns:
        """Return the matches for which `choice` is true."""
        return SegmentColumns._make(column[choice] for column in self)

    def longer_than(self, length: int) -> SegmentColumns:
        """Return the matches that are longer than a number of bases."""
        return self.chosen(self.lengths > length) if length else self


_NO_SEGMENTS: Final = SegmentColumns._make(
    np.empty(0, dtype=kind) for kind in (np.int64, np.int64, np.int64, np.bool_)
)


class SegmentStore:
    """Keeps the longest of the matches that it gets; of matches as long, the first.

    No match of `longest_dropped` bases or less will be kept any more.
    """

    def __init__(self, most: int = MOST_SEGMENTS) -> None:
        self._most = most
        self._parts = [_NO_SEGMENTS]
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
        stays = np.split(choice, np.cumsum([part.lengths.size for part in self._parts])[:-1])
        columns = (
            np.concatenate([part[own] for part, own in zip(parts, stays, strict=True)])
            for parts in zip(*self._parts, strict=True)
        )
        self._parts = [SegmentColumns._make(columns)]


_ENDS_OF_COMPRESSIONS: Final = frozenset((".gz", ".bgz", ".zst", ".bz2", ".xz"))
_ENDS_OF_FORMATS: Final = frozenset(
    (".fa", ".fna", ".fasta", ".fas", ".fq", ".fastq", ".sam", ".bam", ".cram")
)

MOST_QUERIES: Final = 1 << 20
"""The queries that have a place on the axis."""


CountedSegments = tuple[int, SegmentColumns]
"""The number of matches of a table, and those that are long enough to be kept."""

Prepared = tuple[QueryBlock, Iterable[CountedSegments]]


def check_picture(path: str, style: PictureStyle | None) -> None:
    """Refuse a picture of exact matches that cannot be drawn here."""
    if style is not None and style.colouring == IDENTITY:
        raise no_identities()
    picture_format(path)


class PictureSink(MatchSink[Prepared]):
    """Draws the longest matches of a run and its first queries."""

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
        self._file_format = picture_format(path)
        self._emit = emit
        self._stats = stats
        self._max_rows = max_rows
        self._lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._query_title = ", ".join(map(file_title, query_paths))
        title = file_title(reference.path)
        self._style = replace(style, title=style.title or f"{self._query_title} against {title}")
        names = tuple(name.decode(errors="replace") for name in reference.names)
        self._references = Chromosomes(names, reference.record_lengths, title)
        self._store = SegmentStore()
        self._query_count = 0
        self._base_count = 0
        self._match_count = 0
        self._lengths: list[Int64Array] = []
        self._names: list[ByteArray] = []
        self._name_lengths: list[Int64Array] = []
        self._named = 0

    def prepare(self, block: QueryBlock, mems: BlockMems) -> Prepared:
        """Return the matches of a block that are long enough by now (`Sink.prepare`)."""
        tables = match_tables(block, mems, self._lookup)
        parts = (self._counted(block, table) for table in tables)
        return block, materialize_if_small(parts, mems, self._max_rows, self._stats)

    def _counted(self, block: QueryBlock, table: MatchTable) -> CountedSegments:
        """Return the matches, with positions on the axis of the block's queries."""
        columns = SegmentColumns(
            self._references.offsets[table.records] + table.reference_starts,
            block.offsets[table.queries] + table.query_starts,
            table.lengths,
            table.is_reverse,
        )
        return table.lengths.size, columns.longer_than(self._store.longest_dropped)

    def write(self, prepared: Prepared) -> None:
        """Collect the matches of a block; blocks come in the order of the input."""
        block, parts = prepared
        room = min(MOST_QUERIES - self._named, block.query_count)
        self._named += room
        end = int(block.offsets[room])
        for count, columns in parts:
            self._match_count += count
            if end < block.base_count:
                columns = columns.chosen(columns.query_positions < end)
            places = columns.query_positions + self._base_count
            self._store.add(columns._replace(query_positions=places))
        self._base_count += end
        self._query_count += block.query_count
        self._lengths.append(np.diff(block.offsets[: room + 1]))
        ends = block.name_offsets[: room + 1]
        self._names.append(block.names[: ends[-1]].copy())
        self._name_lengths.append(np.diff(ends))

    def finish(self) -> None:
        """Draw the picture, and write it."""
        with self._stats.stage("format"):
            lengths = np.concatenate([np.empty(0, dtype=np.int64), *self._lengths])
            columns = self._store.columns()
            text = b"".join(one.tobytes() for one in self._names)
            ends = np.cumsum([0, *chain.from_iterable(self._name_lengths)]).tolist()
            names = [text[a:b].decode(errors="replace") for a, b in pairwise(ends)]
            segments = Segments(
                self._references,
                Chromosomes(names, lengths, self._query_title),
                columns.reference_positions,
                columns.query_positions,
                columns.lengths,
                columns.is_reverse,
                self._match_count,
                self._query_count,
            )
            picture = picture_bytes(segments, self._style, self._file_format)
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
