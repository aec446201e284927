"""The line of a record, found by reading its file again, for error messages."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import STANDARD_INPUT, Input
from mummergpu.input.bytes.formats import Format

_MARKS: Final[dict[str | None, bytes]] = {
    None: b">",
    **dict.fromkeys(("uniprot", "embl"), b"ID   "),
    **dict.fromkeys(("genbank", "ddbj"), b"LOCUS   "),
}
"""How the first line of a record begins, by the format; None is FASTA."""


def line_of_record(path: str, number: int, easel_format: str | None = None) -> int | None:
    """Return the line, counted from 1, on which a record of a file begins; records count from 0.

    None if the file has no lines, as BAM, or cannot be read twice, as a pipe.
    """
    with suppress(OSError, ValueError, InputError):
        if path == STANDARD_INPUT or not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with Input(path, word=easel_format) as file:
            mark = _MARKS.get(easel_format)
            if file.format.is_alignment or mark is None:
                return None
            lines = enumerate(io.BufferedReader(file.text), start=1)
            of_fastq = file.format is Format.FASTQ
            headers = _headers_of_fastq(lines) if of_fastq else _headers_of(lines, mark)
            for before, line in enumerate(headers):
                if before == number:
                    return line
    return None


def _headers_of(lines: Iterator[tuple[int, bytes]], mark: bytes) -> Iterator[int]:
    for number, line in lines:
        if line.startswith(mark):
            yield number


def _headers_of_fastq(lines: Iterator[tuple[int, bytes]]) -> Iterator[int]:
    for number, line in lines:
        if not line.strip():
            continue
        yield number
        waiting = 0
        for _, text in lines:
            if text.startswith(b"+"):
                break
            waiting += len(text.strip())
        while waiting > 0 and (quality := next(lines, None)) is not None:
            waiting -= len(quality[1].strip())
