"""Sequences over any alphabet of single characters: FASTA, FASTQ, or a sequence a line."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import EmptyInputError, Input, bytes_of_files
from mummergpu.input.bytes.formats import SYMBOLS, Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.parser_state import NO_SYMBOL, PASSED_OVER
from mummergpu.input.records.record_arrays import Limits, RecordOptions, Records
from mummergpu.input.records.record_reader import RecordReader
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.words import say_nothing

BLOCK_SYMBOLS: Final = 1 << 22
_BASES: Final = frozenset("ACGTURYSWKMBDHVN")


def code_table(alphabet: Sequence[str]) -> ByteArray:
    """Return the code of each byte for an alphabet of single ASCII characters.

    A letter stands for both of its cases unless the alphabet has both. Of bases, U is T and T is U
    where the alphabet has only one of them.
    """
    table = np.full(256, NO_SYMBOL, dtype=np.uint8)
    table[[ord(blank) for blank in " \t\v\f"]] = PASSED_OVER
    for code, symbol in enumerate(alphabet):
        other = symbol.swapcase()
        if other not in alphabet:
            table[ord(other)] = code
        table[ord(symbol)] = code
    if {symbol.upper() for symbol in alphabet if symbol.isalpha()} <= _BASES:
        for one, other in ("TU", "UT", "tu", "ut"):
            if table[ord(one)] == NO_SYMBOL:
                table[ord(one)] = table[ord(other)]
    return table


class SymbolFiles:
    """The sequences of some files, compressed or not, "-" being standard input.

    Raises
    ------
    LibraryError
        If the library for the compression of a file is missing.
    InputError
        If a file cannot be opened or decompressed here.
    """

    def __init__(
        self, paths: Sequence[str], table: ByteArray, block_symbols: int = BLOCK_SYMBOLS
    ) -> None:
        self.paths = tuple(paths)
        self._table = table
        self._block_symbols = block_symbols
        self.bytes_total = bytes_of_files(self.paths)
        self.bytes_read = 0

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Callable[[str], None] = say_nothing
    ) -> Generator[tuple[Records, list[str]]]:
        """Yield the sequences in blocks, with their names; that of a line is its number, from 1 on.

        `warn` is told of what follows compressed data.

        Raises
        ------
        InputError
            If a file has no sequences in a format that is known, or a symbol is not in the
            alphabet: the error names the line, the record and the position in it.
        """
        limits = Limits.of_block(self._block_symbols)
        options = RecordOptions(limits, any_letters=True, symbols=self._table)
        before = 0
        for path in self.paths:
            try:
                file = Input(path, threads, SYMBOLS)
            except EmptyInputError as error:
                before += error.bytes_read
                continue
            with file:
                if file.format.is_alignment:
                    raise InputError("no FASTA, FASTQ or lines of symbols", path)
                has_lines, first = file.format is Format.LINES, 1
                is_fastq = file.format is Format.FASTQ
                reader = RecordReader(file, is_fastq, options, has_lines=has_lines)
                while (records := reader.next_block()) is not None:
                    self.bytes_read = before + reader.bytes_read
                    count = records.offsets.size - 1
                    numbers = map(str, range(first, first + count))
                    names = list(numbers) if has_lines else _names_of(records)
                    yield records, names
                    first += count
                file.tell_of_ignored(warn)
                before += file.source.bytes_read


def _names_of(records: Records) -> list[str]:
    text, bounds = records.names.tobytes(), records.name_offsets.tolist()
    return [text[begin:end].decode("utf-8", "surrogateescape") for begin, end in pairwise(bounds)]
