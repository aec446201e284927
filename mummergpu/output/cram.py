"""CRAM: htslib makes it of BAM, when the last match is written.

The records wait as BAM in a temporary file without a name, and the CRAM in another one. The CRAM
has all bases itself, so that it can be read without the reference. CRAM knows no ``=`` in a CIGAR:
readers show ``M``.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final, cast

from mummergpu.output.bam import BamFormat
from mummergpu.output.compression import BgzfCompressor, Piece
from mummergpu.output.sink import ByteSink
from mummergpu.runtime.htslib import silent_deallocation
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data

_OPTIONS: Final = (b"no_ref=1", b"version=3.0")
"""All bases are in the file, and its version is the one that most programs read."""

_FILE_ID: Final = range(6, 26)
"""Where CRAM has any name of itself. htslib writes the number of the open file, which may vary."""

_READ_BYTES: Final = 1 << 20


class CramSink(ByteSink):
    """Keeps matches as BAM, and turns them into CRAM at the end.

    Parameters
    ----------
    made : BamFormat
        Makes the records.
    output : OutputFile
        Receives the CRAM.
    stats : Stats
        Collects the bytes and the times.
    most_rows, threads : int
        As for `ByteSink`.

    Raises
    ------
    OutputError
        If there is no room for the temporary file.
    """

    def __init__(
        self, made: BamFormat, output: OutputFile, stats: Stats, most_rows: int, threads: int
    ) -> None:
        self._temporary: list[BinaryIO] = []
        self._bam = self._new_file()
        super().__init__(made, output, stats, most_rows, BgzfCompressor(), threads)

    def finish(self) -> None:
        """Write the CRAM.

        Raises
        ------
        OutputError
            If the output cannot take it, or a temporary file fails.
        """
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


def encode_cram(bam: BinaryIO, cram: BinaryIO) -> None:
    """Turn BAM into CRAM, from the beginning of one temporary file to that of another one.

    Parameters
    ----------
    bam : file
        The BAM.
    cram : file
        Receives the CRAM; it is at its beginning afterwards.

    Raises
    ------
    OutputError
        If one of the files fails.
    """
    # htslib's words for a failure of the output would not do for an error.
    with temporary_data():
        bam.seek(0)
        _encode(bam, cram)
        cram.seek(_FILE_ID.start)
        cram.write(bytes(len(_FILE_ID)))
        cram.seek(0)


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a temporary file from where it stands.

    Parameters
    ----------
    file : file
        The file.

    Yields
    ------
    bytes
        Pieces of the content.

    Raises
    ------
    OutputError
        If the file fails.
    """
    return iter(partial(_read_piece, file), b"")


def _encode(bam: BinaryIO, cram: BinaryIO) -> None:
    """Turn BAM into CRAM, from where one file stands to where the other does.

    One thread does all: of several, the order of their work decides how htslib compresses, and
    those that decompress wait for ever if the file fails.

    Raises
    ------
    OSError
        If one of the files fails.
    """
    import pysam

    library: Any = pysam
    verbosity = library.set_verbosity(0)
    try:
        with (
            silent_deallocation(),
            library.AlignmentFile(bam, "rb", check_sq=False) as source,
            library.AlignmentFile(
                cram, "wc", template=source, format_options=list(_OPTIONS)
            ) as target,
        ):
            for record in source.fetch(until_eof=True):
                target.write(record)
    except (OSError, ValueError) as error:
        # htslib tells why it could not write, but not why it could not read what was written.
        if isinstance(error, OSError) and error.errno:
            raise
        raise OSError(errno.EIO, str(error)) from error
    finally:
        library.set_verbosity(verbosity)


def _read_piece(file: BinaryIO) -> bytes:
    with temporary_data():
        return file.read(_READ_BYTES)
