"""BAM that is written when all alignments are known: sorted, with duplicates flagged, or both."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mummergpu.input.record_lookup import Int64Array
from mummergpu.input.reference import Reference
from mummergpu.mapping.columns import AlignmentColumns
from mummergpu.output.alignments.arrays import ReadsWithQualities
from mummergpu.output.alignments.bam import AlignmentBamFormat, RecordPiece
from mummergpu.output.alignments.sink import AlignmentSink, Emit
from mummergpu.output.bytes.compressed_stream import CHUNK_BYTES, MOST_THREADS
from mummergpu.output.bytes.compression import BgzfCompressor
from mummergpu.output.bytes.number_text import OVERSHOOT
from mummergpu.output.sorting.bam_index import BAI, IndexedRows, index_bytes, index_kind, index_rows
from mummergpu.output.sorting.duplicates import DuplicateFinder, TemplateColumns
from mummergpu.output.sorting.options import SortOptions
from mummergpu.output.sorting.places import SpanArray, axis_of, keys_of, spans_of_rows
from mummergpu.output.sorting.radix_order import KeyArray, OrderArray, add_in_order, radix_order
from mummergpu.output.sorting.record_store import KeptRows, RecordStore
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


@dataclass(frozen=True)
class PreparedRows:
    """The alignments of a block, as they are kept.

    Attributes
    ----------
    pieces : list of RecordPiece
        Their records.
    keys, spans : ndarray
        Their keys and spans (`places`).
    templates : TemplateColumns or None
        What decides which of them are duplicates; None if that is not asked.
    """

    pieces: list[RecordPiece]
    keys: KeyArray
    spans: SpanArray
    templates: TemplateColumns | None


class SortedBamSink(AlignmentSink[PreparedRows]):
    """Keeps all alignments, and writes them as BAM at the end.

    Parameters
    ----------
    made : AlignmentBamFormat
        Makes the records, and the header, which names their order.
    reference : Reference
        The reference.
    emit : callable
        Receives the compressed bytes (`alignments.sink.writer_of`).
    stats : Stats
        Collects the times.
    options : SortOptions
        What to do.
    index : OutputFile or None
        Receives the index of sorted BAM (`bam_index.index_kind` names it); None for no index.
    """

    def __init__(
        self,
        made: AlignmentBamFormat,
        reference: Reference,
        emit: Emit,
        stats: Stats,
        options: SortOptions,
        index: OutputFile | None = None,
    ) -> None:
        self._format = made
        self._axis = axis_of(reference)
        self._emit = emit
        self._stats = stats
        self._options = options
        self._index = index
        self._threads = min(options.threads, MOST_THREADS)
        # Without an order by places, runs must keep the order of the reads.
        bits = self._axis.bits if options.by_coordinate else 0
        self._store = RecordStore(bits, options.memory_bytes, options.folder)
        self._duplicates = DuplicateFinder(self._axis) if options.mark_duplicates else None

    def prepare(self, reads: ReadsWithQualities, columns: AlignmentColumns) -> PreparedRows:
        """Return the records of a block (`AlignmentSink.prepare`)."""
        with self._stats.stage("format"):
            duplicates = self._duplicates
            return PreparedRows(
                [self._shrunk(piece) for piece in self._format.records(reads, columns)],
                keys_of(columns, self._axis),
                spans_of_rows(columns),
                None if duplicates is None else duplicates.templates_of(reads, columns),
            )

    def write(self, prepared: PreparedRows) -> None:
        """Keep the records of a block (`AlignmentSink.write`).

        Raises
        ------
        OutputError
            If a temporary file cannot take them.
        """
        for piece in prepared.pieces:
            rows = slice(piece.first_row, piece.first_row + piece.ends.size)
            self._store.add(piece, prepared.keys[rows], prepared.spans[rows])
        if self._duplicates is not None and prepared.templates is not None:
            self._duplicates.add(prepared.templates, prepared.keys.size)

    def finish(self) -> None:
        """Write the BAM and its index.

        Raises
        ------
        OutputError
            If the output cannot take them, or a temporary file cannot be read.
        """
        rows = self._store.finish()
        marks = np.zeros(rows.sizes.size, dtype=np.uint8)
        with self._stats.stage("format"):
            if self._duplicates is not None:
                self._duplicates.mark(marks)
            order, keys = np.arange(rows.sizes.size, dtype=np.uint32), rows.keys
            if self._options.by_coordinate:
                order, keys = radix_order(rows.keys, self._axis.bits)
            head = np.frombuffer(bytearray(self._format.head() + bytes(OVERSHOOT)), dtype=np.uint8)
            begin = head.size - OVERSHOOT
            ends = np.empty(order.size, dtype=np.int64)
            add_in_order(ends, order, rows.sizes, begin)
        content = _Content(self._store, rows, order, ends, head, marks)
        with ThreadPoolExecutor(self._threads, thread_name_prefix="compress") as pool:
            indexing = None
            if self._index is not None:
                indexing = pool.submit(index_rows, self._axis, keys, order, rows.spans, ends, begin)
            block_starts = self._write_content(content, pool)
            if indexing is not None:
                self._write_index(indexing.result(), block_starts)

    def close(self) -> None:
        """Remove the temporary files."""
        self._store.close()

    def _shrunk(self, piece: RecordPiece) -> RecordPiece:
        """Return a piece that does not keep much more memory than it fills."""
        room = piece.text.base
        if not isinstance(room, np.ndarray) or piece.text.size > room.size // 2:
            return piece
        text = np.empty(piece.text.size + OVERSHOOT, dtype=np.uint8)[: piece.text.size]
        text[:] = piece.text
        self._format.take_back(piece.text)
        return RecordPiece(piece.first_row, piece.ends, text)

    def _write_content(self, content: _Content, pool: ThreadPoolExecutor) -> Int64Array:
        """Write the content in compressed form; return where its blocks begin."""
        compressor = BgzfCompressor()
        sizes: list[int] = []

        def compress(begin: int) -> bytes:
            return compressor.compress(content.part(begin, min(begin + CHUNK_BYTES, content.size)))

        begins = range(0, content.size, CHUNK_BYTES)
        with closing(ordered_results(pool, 2 * self._threads, begins, compress)) as chunks:
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


@dataclass(frozen=True)
class _Content:
    """The content of a BAM in its final order; several threads may read it.

    Attributes
    ----------
    store : RecordStore
        Has the records.
    rows : KeptRows
        What is known of them.
    order : ndarray, dtype=uint32, shape=(n_rows,)
        The rows in the order of the file.
    ends : ndarray, dtype=int64, shape=(n_rows,)
        Where in the content each row ends, in the order of the file.
    head : ndarray, dtype=uint8
        The header, with `OVERSHOOT` bytes after it.
    marks : ndarray, dtype=uint8, shape=(n_rows,)
        1 for each duplicate, in the order of the input.
    """

    store: RecordStore
    rows: KeptRows
    order: OrderArray
    ends: Int64Array
    head: npt.NDArray[np.uint8]
    marks: npt.NDArray[np.uint8]

    @property
    def size(self) -> int:
        """The bytes of the content."""
        return int(self.ends[-1]) if self.ends.size else self.head.size - OVERSHOOT

    def part(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Return a part of the content."""
        head_bytes = self.head.size - OVERSHOOT
        if begin >= head_bytes:
            return self._records(begin, end)
        first = self.head[begin : min(end, head_bytes)]
        if end <= head_bytes:
            return first
        return np.concatenate([first, self._records(head_bytes, end)])

    def _records(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        first = int(np.searchsorted(self.ends, begin, side="right"))
        last = int(np.searchsorted(self.ends, end, side="left")) + 1
        chosen = self.order[first:last]
        first_begin = int(self.ends[first]) - int(self.rows.sizes[chosen[0]])
        return self.store.read(
            self.rows, chosen, end - begin, begin - first_begin, self.marks[chosen]
        )


def _block_sizes(chunk: bytes) -> Iterator[int]:
    """Yield the size of each block of bgzf."""
    at = 0
    while at < len(chunk):
        size = int.from_bytes(chunk[at + 16 : at + 18], "little") + 1
        yield size
        at += size
