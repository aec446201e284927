"""Reads proteins from UniProt's text, Stockholm and other formats of Easel, HMMER's library."""

from __future__ import annotations

import re
from io import RawIOBase
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import Input, TextStream
from mummergpu.input.bytes.formats import BLAST_RESIDUES, BLAST_WORD
from mummergpu.input.records.record_arrays import RecordOptions, Records, Spans
from mummergpu.input.records.record_reader import line_of_record, printable
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.optional_imports import in_one_line
from mummergpu.runtime.pyhmmer_library import bytes_of, pyhmmer_module, text_of
from mummergpu.sequence.codes import with_margins

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_LINE: Final = re.compile(r"^Could not parse file: (Line \d+: )?")
"""How pyhmmer's errors begin; Easel does not count the lines that it is given here."""


class EaselReader:
    """Reads proteins through pyhmmer, block by block; names are followed by descriptions."""

    def __init__(self, file: Input, options: RecordOptions) -> None:
        self._input = file
        self._limits = options.limits
        self._watched = _Watched(file.text)
        self._read = 0
        self._last: str | None = None
        self._easel = pyhmmer_module("easel")
        self._alphabet = self._easel.Alphabet.amino()
        self._file: Any = None

    @property
    def bytes_read(self) -> int:
        """The bytes read so far, counted before decompression."""
        return self._input.source.bytes_read

    def close(self) -> None:
        """Close what pyhmmer has opened."""
        if self._file is not None:
            self._file.close()

    def next_block(self) -> Records | None:
        """Return the next proteins, None at the end of the file."""
        codes: list[ByteArray] = []
        names: list[bytes] = []
        accessions: list[bytes] = []
        residues = 0
        while residues < self._limits.bases and len(codes) < self._limits.records:
            sequence = self._next()
            if sequence is None:
                break
            codes.append(np.array(sequence.sequence, dtype=np.uint8))
            residues += codes[-1].size
            name, accession, description = (
                bytes_of(text_of(sequence, one)) for one in ("name", "accession", "description")
            )
            self._last = printable(name)
            names.append(name + b" " + description if description else name)
            accessions.append(accession)
        if not codes:
            return None
        offsets = np.cumsum([0, *(one.size for one in codes)], dtype=np.int64)
        content, name_offsets = _spans(names)
        padded = with_margins(np.concatenate(codes))
        return Records(padded, offsets, content, name_offsets, accessions=_spans(accessions))

    def _next(self) -> Any:
        try:
            if self._file is None:
                word, path = self._input.easel_format, self._input.path
                # Easel itself opens the files of a database.
                source = path.removesuffix(BLAST_RESIDUES) if word == BLAST_WORD else self._watched
                self._file = self._easel.SequenceFile(
                    *(source, word),
                    digital=True,
                    alphabet=self._alphabet,
                )
            sequence = self._file.read()
        except Exception as error:
            if self._watched.error is None:
                raise self._fault(error) from None
        if self._watched.error is not None:
            raise self._watched.error
        self._read += 1
        return sequence

    def _fault(self, error: Exception) -> InputError:
        """Return the error for the record after those that have been read."""
        file = self._input
        text = _LINE.sub("", in_one_line(error))
        line = line_of_record(file.path, self._read, file.easel_format)
        where = "" if self._last is None else ", in what follows the record"
        message = f"not in the format {file.easel_format}{where}: {text}"
        return InputError(message, file.path, line, self._last)


class _Watched(RawIOBase):
    """A text that keeps the error of a read, which the C code that reads it loses."""

    def __init__(self, text: TextStream) -> None:
        super().__init__()
        self._text = text
        self.error: Exception | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of a buffer of bytes; return how many, 0 at the end or after an error."""
        try:
            return self._text.readinto(buffer)
        except Exception as error:
            self.error = error
            return 0


def _spans(items: list[bytes]) -> Spans:
    content = np.frombuffer(b"".join(items), dtype=np.uint8)
    return Spans(content, np.cumsum([0, *map(len, items)], dtype=np.int64))
