"""Alignments of reads as CRAM: another sink keeps them as BAM, and htslib turns it into CRAM."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, TypeVar, cast

from mummergpu.mapping.alignments.folded_columns import ToldColumns
from mummergpu.output.alignments.arrays import ReadsWithQualities
from mummergpu.output.alignments.sink import AlignmentSink, Emit
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.records.cram_encoding import encode_cram, index_cram, pieces_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data

Prepared = TypeVar("Prepared")


class AlignmentCramSink(AlignmentSink[Prepared]):
    """Keeps alignments as BAM in a temporary file, and turns them into CRAM at the end."""

    def __init__(
        self,
        sink_of: Callable[[Emit], AlignmentSink[Prepared]],
        emit: Emit,
        stats: Stats,
        index: OutputFile | None = None,
    ) -> None:
        self._emit = emit
        self._stats = stats
        self._index = index
        self._temporary: list[BinaryIO] = []
        self._bam = self._new_file()
        self._sink = sink_of(self._keep)

    def prepare(self, reads: ReadsWithQualities, columns: ToldColumns) -> Prepared:
        """Prepare the alignments of a block (`AlignmentSink.prepare`)."""
        return self._sink.prepare(reads, columns)

    def write(self, prepared: Prepared) -> None:
        """Keep the alignments of a block (`AlignmentSink.write`)."""
        self._sink.write(prepared)

    def finish(self) -> None:
        """Write the CRAM and its index."""
        self._sink.finish()
        cram = self._new_file()
        with self._stats.stage("format"):
            encode_cram(self._bam, cram)
        for piece in pieces_of(cram):
            self._emit(piece)
        if self._index is not None:
            crai = self._new_file()
            with self._stats.stage("format"):
                index_cram(cram, crai)
            for piece in pieces_of(crai):
                self._index.write(piece)

    def close(self) -> None:
        """Close the sink and the temporary files, which also deletes them."""
        self._sink.close()
        for file in self._temporary:
            # Closing can fail when it writes the last bytes; nobody will read them.
            with suppress(OSError):
                file.close()

    def _new_file(self) -> BinaryIO:
        with temporary_data():
            file = open_temporary_file()
        self._temporary.append(file)
        return file

    def _keep(self, piece: Piece) -> None:
        with self._stats.stage("results_to_disk"), temporary_data():
            self._bam.write(cast(bytes, piece))
