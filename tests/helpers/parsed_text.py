"""Text of FASTA or FASTQ in memory, and the records that are read from it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from mummergpu.input.bytes.files import TextStream
from mummergpu.input.records.record_arrays import RecordOptions
from mummergpu.input.records.record_reader import RecordReader


class _FileInMemory:
    """As much of an `Input` as a `RecordReader` uses."""

    path = "reads"

    def __init__(self, text: bytes) -> None:
        self.text = TextStream(BytesIO(text), self.path)


def reader_of(text: bytes, is_fastq: bool, options: RecordOptions) -> RecordReader:
    """Return what reads the records of a text; errors name the file `reads`."""
    file: Any = _FileInMemory(text)
    return RecordReader(file, is_fastq, options)
