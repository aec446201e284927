"""BAM that is written when all alignments are known: sorted, with duplicates flagged, or both."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import WrittenColumns
from mummergpu.output.alignments.read_rows import AlignmentSink, columns_of
from mummergpu.output.bytes.compression import BgzfCompressor, Compressor
from mummergpu.output.bytes.texts import OVERSHOOT, TextArray
from mummergpu.output.options import SortOptions
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.sink import Emit
from mummergpu.output.sorting.bam_index import BAI, IndexedRows, RowIndexer, index_bytes, index_kind
from mummergpu.output.sorting.duplicates import DuplicateFinder, Templates
from mummergpu.output.sorting.record_store import MergedRows, RecordStore, RowRanges
from mummergpu.output.sorting.row_tables import (
    NUMBER,
    PLACE,
    RowTable,
    axis_of,
    keys_of,
    row_table,
    spans_of_rows,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats

_RANGES_AHEAD: Final = 4
"""How many ranges are merged before a part needs them."""

Part = tuple[int, int, Sequence[Future[MergedRows]]]
"""Where a part of the content begins and ends, and the ranges of its rows."""


class SortedContent:
    """The content of a BAM: a header, and the records in the order of their ranges."""

    def __init__(
        self,
        head: bytes,
        store: RecordStore,
        ranges: RowRanges,
        marks: ByteArray,
        indexer: RowIndexer | None,
    ) -> None:
        self._head = np.frombuffer(bytearray(head), dtype=np.uint8)
        self._store = store
        self._ranges = ranges
        self._marks = marks
        self._indexer = indexer

    def parts(self, part_bytes: int, pool: ThreadPoolExecutor) -> Iterator[Part]:
        """Yield parts of the same size one after the other; the last one may be smaller."""
        size = int(self._ranges.begins[-1])
        waiting = deque(range(self._ranges.count))
        under_way: deque[tuple[int, Future[MergedRows]]] = deque()
        for begin in range(0, size, part_bytes):
            end = min(begin + part_bytes, size)
            needed = int(np.searchsorted(self._ranges.begins, end)) + _RANGES_AHEAD
            while waiting and waiting[0] < needed:
                number = waiting.popleft()
                under_way.append((number, pool.submit(self._merge, number)))
            while under_way and self._ranges.begins[under_way[0][0] + 1] <= begin:
                under_way.popleft()
            begins = self._ranges.begins
            yield begin, end, [own for number, own in under_way if begins[number] < end]

    def text(self, part: Part) -> TextArray:
        """Return a part; a thread of the pool may call this."""
        begin, end, ranges = part
        head = self._head[begin:end]
        if begin + head.size == end:
            return head
        records = self._records(begin + head.size, end, [merged.result() for merged in ranges])
        return np.concatenate([head, records]) if head.size else records

    def _merge(self, number: int) -> MergedRows:
        merged = self._ranges.merged(number)
        if self._indexer is not None:
            self._indexer.add(merged)
        return merged

    def _records(self, begin: int, end: int, ranges: Sequence[MergedRows]) -> TextArray:
        """Return a part of the records, which lie in some ranges one after the other."""
        chosen: list[RowTable] = []
        skipped = 0
        for merged in ranges:
            first = int(np.searchsorted(merged.ends, begin, side="right"))
            last = int(np.searchsorted(merged.ends, end, side="left")) + 1
            if first < merged.ends.size and not chosen:
                skipped = begin - (int(merged.ends[first - 1]) if first else merged.begin)
            chosen.append(merged.rows[first:last])
        rows = np.concatenate(chosen)
        return self._store.read(rows, end - begin, skipped, self._marks[rows[:, NUMBER]])


@frozen
class PreparedRows:
    """The records of a block as they are kept, their table, and their templates for duplicates."""

    texts: list[TextArray]
    rows: RowTable
    templates: Templates | None

    def __reduce__(self) -> tuple[Any, ...]:
        """Let another process have them: there, the records lie elsewhere in memory."""
        texts = [text for text in self.texts if text.size]
        joined = np.concatenate([np.empty(0, dtype=np.uint8), *texts])
        begins = np.array([text.ctypes.data for text in texts], dtype=np.int64)
        firsts = np.cumsum([0, *(text.size for text in texts)])[:-1]
        order = np.argsort(begins)
        rows = self.rows.copy()
        if rows.size:
            of_text = order[np.searchsorted(begins[order], rows[:, PLACE], side="right") - 1]
            rows[:, PLACE] += firsts[of_text] - begins[of_text]
        return _moved_rows, (joined, rows, self.templates)


def _moved_rows(joined: ByteArray, rows: RowTable, templates: Templates | None) -> PreparedRows:
    """Return rows whose places are counted from the beginning of their joined records."""
    text = np.empty(joined.size + OVERSHOOT, dtype=np.uint8)[: joined.size]
    text[:] = joined
    moved = rows.copy()
    moved[:, PLACE] += text.ctypes.data
    return PreparedRows([text], moved, templates)


class SortedBamSink(AlignmentSink[PreparedRows]):
    """Keeps all alignments, and writes them as BAM at the end."""

    def __init__(
        self,
        made: AlignmentBam,
        reference: Reference,
        emit: Emit,
        stats: Stats,
        options: SortOptions,
        index: OutputFile | None = None,
        compressor: Compressor | None = None,
    ) -> None:
        self._format = made
        self._axis = axis_of(reference)
        self._emit = emit
        self._stats = stats
        self._options = options
        self._index = index
        self._compressor = compressor or BgzfCompressor()
        # The threads that compress also merge and gather.
        self._threads = min(options.threads, Compressor.max_threads)
        self._store = RecordStore(options.by_coordinate, options.memory_bytes, options.folder)
        self._duplicates = DuplicateFinder(self._axis) if options.mark_duplicates else None

    def prepare(self, reads: ReadBlock, columns: WrittenColumns) -> PreparedRows:
        """Return the records of a block (`Sink.prepare`)."""
        with self._stats.stage("format"):
            rows = columns_of(columns)
            places = np.empty(rows.row_count, dtype=np.int64)
            sizes = np.empty(rows.row_count, dtype=np.int64)
            texts = []
            for piece in self._format.records(reads, columns):
                text = self._shrunk(piece.text)
                own = slice(piece.first_row, piece.first_row + piece.ends.size)
                sizes[own] = np.diff(piece.ends, prepend=0)
                places[own] = piece.ends - sizes[own] + text.ctypes.data
                texts.append(text)
            # Without an order by places, the rows keep that of the reads.
            bits = self._axis.bits if self._options.by_coordinate else 0
            keys, spans = keys_of(rows, self._axis), spans_of_rows(rows)
            duplicates = self._duplicates
            return PreparedRows(
                texts,
                row_table(keys, bits, places, sizes, spans),
                None if duplicates is None else duplicates.templates_of(reads, rows),
            )

    def write(self, prepared: PreparedRows) -> None:
        """Keep the records of a block (`Sink.write`)."""
        self._store.add(prepared.texts, prepared.rows)
        if self._duplicates is not None and prepared.templates is not None:
            self._duplicates.add(prepared.templates, prepared.rows.shape[0])

    def finish(self) -> None:
        """Write the BAM and its index."""
        head = self._format.head()
        marks = np.zeros(self._store.row_count, dtype=np.uint8)
        indexer = None if self._index is None else RowIndexer(self._axis)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="compress") as pool:
            with self._stats.stage("format"):
                if self._duplicates is not None:
                    self._duplicates.mark(marks, pool.map)
                ranges = self._store.finish(len(head), pool.map)
            content = SortedContent(head, self._store, ranges, marks, indexer)
            block_starts = self._write_content(content, pool)
        if indexer is not None:
            self._write_index(indexer.found(), block_starts)

    def close(self) -> None:
        """Remove the temporary files."""
        self._store.close()

    def _shrunk(self, text: TextArray) -> TextArray:
        """Return a text that does not keep much more memory than it fills."""
        room = text.base
        if not isinstance(room, np.ndarray) or text.size > room.size // 2:
            return text
        shrunk = np.empty(text.size + OVERSHOOT, dtype=np.uint8)[: text.size]
        shrunk[:] = text
        self._format.take_back(text)
        return shrunk

    def _write_content(self, content: SortedContent, pool: ThreadPoolExecutor) -> Int64Array:
        """Write the content in compressed form; return where its blocks begin."""
        compressor = self._compressor
        sizes: list[int] = []

        def compress(part: Part) -> bytes:
            return compressor.compress(content.text(part))

        parts = content.parts(compressor.chunk_bytes, pool)
        with closing(ordered_results(pool, 2 * self._threads, parts, compress)) as chunks:
            for chunk in chunks:
                self._emit(chunk)
                sizes += _block_sizes(chunk)
        self._emit(compressor.end())
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def _write_index(self, found: IndexedRows, block_starts: Int64Array) -> None:
        kind = index_kind(self._axis)
        text = index_bytes(found, kind, block_starts)
        if kind != BAI:
            compressor = BgzfCompressor()
            text = compressor.compress(text) + compressor.end()
        assert self._index is not None
        self._index.write(text)


def _block_sizes(chunk: bytes) -> Iterator[int]:
    """Yield the size of each block of bgzf."""
    at = 0
    while at < len(chunk):
        size = int.from_bytes(chunk[at + 16 : at + 18], "little") + 1
        yield size
        at += size
