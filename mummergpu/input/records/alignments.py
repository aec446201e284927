"""Reads from SAM and CRAM through htslib, on the strand that was sequenced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import Any, BinaryIO, Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import STANDARD_INPUT, Input, open_binary, reading
from mummergpu.input.bytes.formats import Compression, Format, check_end_of_file
from mummergpu.input.records.qualities import NO_QUALITY, check_qualities
from mummergpu.input.records.record_arrays import NO_SPANS, RecordOptions, Records, Spans
from mummergpu.input.records.tags import dropped_tags, group_lines, pack_tags
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.htslib import silent_deallocation
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data
from mummergpu.sequence.codes import COMPLEMENT_OF_CODE, LETTERS, encode, with_margins

_NOT_PRIMARY: Final = 0x100 | 0x800
_COPY_SIZE: Final = 1 << 20
_COMPLEMENTS: Final = bytes.maketrans(LETTERS, bytes(LETTERS[code] for code in COMPLEMENT_OF_CODE))


class AlignmentReader:
    """Reads the primary records of SAM or CRAM, block by block.

    Kept qualities are in the order in which they were sequenced. htslib needs a regular file and a
    header. Input from a pipe, without a header, or compressed by other means than gzip, is
    therefore first copied to a temporary file without a name.
    """

    def __init__(self, file: Input, options: RecordOptions) -> None:
        import pysam

        self._pysam: Any = pysam
        self._path = file.path
        self._format = file.format.value
        self._limits = options.limits
        self._keeps_qualities = options.keeps_qualities
        self._source = file.source
        has_positions = file.format is not Format.SAM or file.text.peek().startswith(b"@")
        # The only compression that htslib is sure to support is gzip.
        is_known = file.compression in (None, Compression.GZIP)
        is_seekable = file.path != STANDARD_INPUT and file.size is not None
        self._is_spooled = not (is_seekable and has_positions and is_known)
        self._file = _spool(file, has_positions) if self._is_spooled else open_binary(file.path)
        self._alignments: Any = None
        try:
            with reading(self._path):
                check_end_of_file(self._file)
            with self._faults(), silent_deallocation():
                self._alignments = self._pysam.AlignmentFile(
                    self._file, "r", check_sq=False, check_header=False
                )
                self._records = self._alignments.fetch(until_eof=True)
                self.read_groups = group_lines(str(self._alignments.header).encode())
        except BaseException:
            self.close()
            raise
        self._dropped = dropped_tags(options.keeps_groups and bool(self.read_groups))

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from the file, counted before decompression."""
        if self._is_spooled:
            return self._source.bytes_read
        return os.lseek(self._file.fileno(), 0, os.SEEK_CUR)

    def close(self) -> None:
        """Close the file."""
        # htslib has already reported any fault that closing finds.
        with self._file, suppress(OSError), self._silence():
            if self._alignments is not None:
                self._alignments.close()

    def next_block(self) -> Records | None:
        """Return the records of the next block in new arrays, at least one; None after the last."""
        bases, names, qualities, tags = bytearray(), bytearray(), bytearray(), bytearray()
        flags: list[int] = []
        offsets, name_offsets, tag_offsets = [0], [0], [0]
        limits = self._limits
        with self._faults():
            for record in self._records:
                # Only the primary record has all bases of a read.
                if record.flag & _NOT_PRIMARY:
                    continue
                bases += _sequenced(record)
                names += (record.query_name or "").encode()
                if self._keeps_qualities:
                    flags.append(record.flag)
                    tags += pack_tags(record.get_tags(with_value_type=True), self._dropped)
                    tag_offsets.append(len(tags))
                    known = record.query_qualities
                    if known is None:
                        qualities += bytes([NO_QUALITY]) * (len(bases) - len(qualities))
                    else:
                        qualities += bytes(known[::-1] if record.is_reverse else known)
                offsets.append(len(bases))
                name_offsets.append(len(names))
                if (
                    len(bases) >= limits.bases
                    or len(offsets) > limits.records
                    or len(names) >= limits.name_bytes
                ):
                    break
        if len(offsets) == 1:
            return None
        padded = with_margins(encode(bytes(bases), self._keeps_qualities))
        begins = np.array(offsets, dtype=np.int64)
        numbers: ByteArray = np.frombuffer(qualities, dtype=np.uint8)
        check_qualities(numbers, begins, self._path)
        return Records(
            padded,
            begins,
            np.frombuffer(names, dtype=np.uint8),
            np.array(name_offsets, dtype=np.int64),
            numbers,
            np.array(flags, dtype=np.uint16),
            _tags_of(tags, tag_offsets),
        )

    @contextmanager
    def _silence(self) -> Iterator[None]:
        """Keep htslib from writing to standard error."""
        verbosity = self._pysam.set_verbosity(0)
        try:
            yield
        finally:
            self._pysam.set_verbosity(verbosity)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Silence htslib and raise its faults as `InputError`."""
        try:
            with self._silence():
                yield
        except (OSError, ValueError) as error:
            reason = "" if str(error) == "truncated file" else f" ({error})"
            if self._format == Format.CRAM.value:  # htslib gives the same reason for both.
                reason = ", or their reference is not found (see REF_PATH of htslib)"
            message = f"the {self._format} data are truncated or corrupt{reason}"
            raise InputError(message, self._path) from None


def _tags_of(content: bytearray, offsets: list[int]) -> Spans:
    if not content:
        return NO_SPANS
    return Spans(np.frombuffer(content, dtype=np.uint8), np.array(offsets, dtype=np.int64))


def _sequenced(record: Any) -> bytes:
    """Return the bases of a record on the strand that was sequenced."""
    bases: bytes = (record.query_sequence or "").encode()
    # pysam's own function does not complement most letters that stand for several bases.
    return bases.translate(_COMPLEMENTS)[::-1] if record.is_reverse else bases


def _spool(file: Input, has_positions: bool) -> BinaryIO:
    """Copy the data of `file` to a temporary file without a name, and return that file."""
    with temporary_data():
        copy = open_temporary_file()
        try:
            copy.writelines(_pieces(file, has_positions))
            copy.seek(0)
        except BaseException:
            with suppress(OSError):  # Closing tries the failed write again.
                copy.close()
            raise
        return copy


def _pieces(file: Input, has_positions: bool) -> Iterator[bytes]:
    """Yield the data of `file` piece by piece; read errors are raised as `InputError`."""
    if not has_positions:
        yield from map(_without_position, BufferedReader(file.text))
        return
    source = file.text if file.format is Format.SAM else file.source
    while True:
        with reading(file.path):
            piece = source.read(_COPY_SIZE)
        if not piece:
            return
        yield piece


def _without_position(line: bytes) -> bytes:
    """Return a SAM line with the fields of an unmapped read; the flag stays.

    Without a header htslib knows no references, and refuses a line that names one.
    """
    fields = line.split(b"\t", 8)
    if len(fields) == 9:
        fields[2:8] = [b"*", b"0", b"0", b"*", b"*", b"0"]
    return b"\t".join(fields)
