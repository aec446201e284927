"""CRAM: htslib makes it of BAM, when the last row is written.

The records wait as BAM in a temporary file without a name, and the CRAM in another one.

The CRAM has all bases itself, so that it can be read without the reference. CRAM knows no ``=`` in
a CIGAR: readers show ``M``.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, BinaryIO, Final, cast

from mummergpu.output.bytes.texts import Piece
from mummergpu.output.sink import Block, Emit, Prepared, Rows, Sink
from mummergpu.runtime.htslib import silent_deallocation
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data

_OPTIONS: Final = (b"no_ref=1", b"version=3.0")
"""All bases are in the file, and its version is the one that most programs read."""

_FILE_ID: Final = range(6, 26)
"""Where CRAM has any name of itself. htslib writes the number of the open file, which may vary."""

_READ_BYTES: Final = 1 << 20


class CramSink(Sink[Block, Rows, Prepared]):
    """Keeps rows as BAM in a temporary file, and turns them into CRAM at the end."""

    def __init__(
        self,
        sink_of: Callable[[Emit], Sink[Block, Rows, Prepared]],
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

    @property
    def needs_bases(self) -> bool:
        """Whether the BAM needs the bases of the queries."""
        return self._sink.needs_bases

    def prepare(self, block: Block, rows: Rows) -> Prepared:
        """Prepare the rows of a block (`Sink.prepare`)."""
        return self._sink.prepare(block, rows)

    def write(self, prepared: Prepared) -> None:
        """Keep the rows of a block (`Sink.write`)."""
        self._sink.write(prepared)

    def finish(self) -> None:
        """Write the CRAM and its index."""
        self._sink.finish()
        cram = self._new_file()
        with self._stats.stage("format"):
            _encode(self._bam, cram)
        for piece in _pieces_of(cram):
            self._emit(piece)
        if self._index is not None:
            crai = self._new_file()
            with self._stats.stage("format"):
                index_cram(cram, crai)
            for piece in _pieces_of(crai):
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


@contextmanager
def _htslib() -> Iterator[Any]:
    """Give pysam, which writes no messages meanwhile; a failure is one of temporary data."""
    import pysam

    library: Any = pysam
    verbosity = library.set_verbosity(0)
    try:
        with temporary_data(), silent_deallocation():
            try:
                yield library
            except (OSError, ValueError, library.SamtoolsError) as error:
                # htslib reports why it could not write, but not why it could not read what was
                # written.
                if isinstance(error, OSError) and error.errno:
                    raise
                raise OSError(errno.EIO, str(error)) from error
    finally:
        library.set_verbosity(verbosity)


def _encode(bam: BinaryIO, cram: BinaryIO) -> None:
    """Turn BAM into CRAM, from the beginning of one temporary file to that of another one.

    One thread does all: of several, the order of their work decides how htslib compresses, and
    those that decompress wait for ever if the file fails.
    """
    with _htslib() as library:
        bam.seek(0)
        options = list(_OPTIONS)
        with (
            library.AlignmentFile(bam, "rb", check_sq=False) as source,
            library.AlignmentFile(cram, "wc", template=source, format_options=options) as target,
        ):
            for record in source.fetch(until_eof=True):
                target.write(record)
        cram.seek(_FILE_ID.start)
        cram.write(bytes(len(_FILE_ID)))
        cram.seek(0)


def index_cram(cram: BinaryIO, index: BinaryIO) -> None:
    """Write the index of sorted CRAM (.crai); both files are at their beginning afterwards.

    htslib opens files by a name, and a descriptor has one.
    """
    with _htslib() as library:
        cram.flush()
        library.index("-o", *(f"/dev/fd/{file.fileno()}" for file in (index, cram)))
        cram.seek(0)
        index.seek(0)


def _pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a temporary file from where it stands."""
    return iter(partial(_read_piece, file), b"")


def _read_piece(file: BinaryIO) -> bytes:
    with temporary_data():
        return file.read(_READ_BYTES)
