"""CRAM: htslib makes it of BAM, when the last match is written.

The records wait as BAM in a temporary file without a name, and the CRAM in another one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO, cast

from mummergpu.output.bytes.compression import BgzfCompressor, Piece
from mummergpu.output.matches.bam import BamFormat
from mummergpu.output.matches.sink import ByteSink
from mummergpu.output.records.cram_encoding import encode_cram, pieces_of
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data


class CramSink(ByteSink):
    """Keeps matches as BAM, and turns them into CRAM at the end."""

    def __init__(
        self, made: BamFormat, output: OutputFile, stats: Stats, most_rows: int, threads: int
    ) -> None:
        self._temporary: list[BinaryIO] = []
        self._bam = self._new_file()
        super().__init__(made, output, stats, most_rows, BgzfCompressor(), threads)

    def finish(self) -> None:
        """Write the CRAM."""
        super().finish()
        cram = self._new_file()
        with self._stats.stage("format"):
            encode_cram(self._bam, cram)
        for piece in pieces_of(cram):
            super()._emit(piece)

    def close(self) -> None:
        """End the threads, and close the temporary files, which also deletes them."""
        super().close()
        for file in self._temporary:
            # Closing can fail when it writes the last bytes; nobody will read them.
            with suppress(OSError):
                file.close()

    def _new_file(self) -> BinaryIO:
        with temporary_data():
            file = open_temporary_file()
        self._temporary.append(file)
        return file

    def _emit(self, piece: Piece) -> None:
        """Keep a piece of BAM."""
        with self._stats.stage("results_to_disk"), temporary_data():
            self._bam.write(cast(bytes, piece))
