"""Sequences over any alphabet of single characters: FASTA, FASTQ, or a sequence a line."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Final

import numpy as np

from mummergpu.input.bytes.formats import Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.file_records import RecordFiles
from mummergpu.input.records.parser_state import NO_SYMBOL, PASSED_OVER
from mummergpu.input.records.record_arrays import Limits, RecordOptions, Records
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.words import say_nothing

BLOCK_SYMBOLS: Final = 1 << 22
_BASES: Final = frozenset("ACGTURYSWKMBDHVN")


def code_table(alphabet: Sequence[str]) -> ByteArray:
    """Return the code of each byte for an alphabet of single ASCII characters.

    A letter stands for both cases unless the alphabet has both. U and T are the same if the
    alphabet has only one of them.
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


class SymbolFiles(RecordFiles):
    """The sequences of some files over an alphabet (`code_table`)."""

    def __init__(
        self, paths: Sequence[str], table: ByteArray, block_symbols: int = BLOCK_SYMBOLS
    ) -> None:
        super().__init__(paths, block_symbols)
        self._table = table

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Callable[[str], None] = say_nothing
    ) -> Generator[tuple[Records, list[str]]]:
        """Yield the sequences in blocks, with their names; that of a line is its 1-based number.

        Raise `InputError` if the format of a file is unknown, or a symbol is not in the alphabet:
        the error names the line, the record and the position in it.
        """
        limits = Limits.of_block(self._block_size)
        options = RecordOptions(limits, any_letters=True, symbols=self._table, warn=warn)
        with closing(self._opened(options, threads)) as files:
            for file in files:
                before = 0
                for records in file:
                    if file.format is Format.LINES:
                        names = [str(before + number) for number in range(1, records.count + 1)]
                    else:
                        items = records.name_spans.items()
                        names = [name.decode("utf-8", "surrogateescape") for name in items]
                    yield records, names
                    before += records.count
