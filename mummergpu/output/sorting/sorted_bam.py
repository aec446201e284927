"""BAM that is written when all alignments are known: sorted, with duplicates flagged, or both."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.folded_columns import ToldColumns
from mummergpu.output.alignments.arrays import ReadsWithQualities, row_arrays
from mummergpu.output.alignments.bam import AlignmentBamFormat
from mummergpu.output.alignments.sink import AlignmentSink, Emit
from mummergpu.output.bytes.compression import BgzfCompressor, Compressor
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.output.sorting.bam_index import BAI, IndexedRows, RowIndexer, index_bytes, index_kind
from mummergpu.output.sorting.duplicates import DuplicateFinder
from mummergpu.output.sorting.options import SortOptions
from mummergpu.output.sorting.places import axis_of, keys_of, spans_of_rows
from mummergpu.output.sorting.record_store import RecordStore
from mummergpu.output.sorting.row_tables import RowTable, row_table
from mummergpu.output.sorting.sorted_content import Part, SortedContent
from mummergpu.output.sorting.template_ends import TemplateArrays
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


@dataclass(frozen=True)
class PreparedRows:
    """The alignments of a block, as they are kept.

    Attributes
    ----------
    texts : list of ndarray, dtype=uint8
        Their records.
    rows : ndarray, dtype=int64
        What is known of each record (`row_tables.row_table`).
    templates : tuple of ndarray or None
        What decides which of them are duplicates; None if that is not asked.
    """

    texts: list[TextArray]
    rows: RowTable
    templates: TemplateArrays | None


class SortedBamSink(AlignmentSink[PreparedRows]):
    """Keeps all alignments, and writes them as BAM at the end."""

    def __init__(
        self,
        made: AlignmentBamFormat,
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
        self._threads = min(options.threads, Compressor.most_threads)
        self._store = RecordStore(options.by_coordinate, options.memory_bytes, options.folder)
        self._duplicates = DuplicateFinder(self._axis) if options.mark_duplicates else None

    def prepare(self, reads: ReadsWithQualities, columns: ToldColumns) -> PreparedRows:
        """Return the records of a block (`AlignmentSink.prepare`)."""
        with self._stats.stage("format"):
            rows = row_arrays(columns)
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
        """Keep the records of a block (`AlignmentSink.write`)."""
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
