"""Sequences over any alphabet of single characters: FASTA, FASTQ, or a sequence a line."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import EmptyInputError, Input, bytes_of_files
from mummergpu.input.bytes.formats import BYTE_ORDER_MARK, Format, format_of_text, is_binary
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.record_reader import printable
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, jit_without_refcounts
from mummergpu.runtime.words import say_nothing

BLOCK_SYMBOLS: Final = 1 << 22
_CHUNK_BYTES: Final = 1 << 20
FOREIGN: Final = 255
"""The code of a character that is not in the alphabet."""
BLANK: Final = 254
"""The code of a character that is skipped between symbols."""
_BASES: Final = frozenset("ACGTURYSWKMBDHVN")


class SymbolRecords(NamedTuple):
    """Consecutive sequences of a file.

    Attributes
    ----------
    codes : ndarray, dtype=uint8, shape=(n_symbols,)
        The places of the symbols in the alphabet, one sequence after the other.
    offsets : ndarray, dtype=int64, shape=(n_sequences + 1,)
        Where in `codes` each sequence begins, and where the last ends.
    names : list of str
        The names; a line without one has the number of its record, from 1 on.
    """

    codes: ByteArray
    offsets: Int64Array
    names: list[str]


def code_table(alphabet: Sequence[str]) -> ByteArray:
    """Return the code of each byte for an alphabet of single ASCII characters.

    A letter stands for both of its cases unless the alphabet has both. Of bases, U is T and T is U
    where the alphabet has only one of them.
    """
    table = np.full(256, FOREIGN, dtype=np.uint8)
    table[[ord(blank) for blank in " \t\v\f"]] = BLANK
    for code, symbol in enumerate(alphabet):
        other = symbol.swapcase()
        if other not in alphabet:
            table[ord(other)] = code
        table[ord(symbol)] = code
    if {symbol.upper() for symbol in alphabet if symbol.isalpha()} <= _BASES:
        for one, other in ("TU", "UT", "tu", "ut"):
            if table[ord(one)] == FOREIGN:
                table[ord(one)] = table[ord(other)]
    return table


_LINES, _FASTA, _FASTQ = range(3)
_START, _NAME, _COMMENT, _SYMBOLS, _PLUS, _QUALITIES = range(6)
_GOING, _FULL, _BAD_SYMBOL, _BAD_START, _BAD_LENGTH = range(5)


class _State(NamedTuple):
    """The places of numbers in the state of a parser."""

    kind: int = 0
    mode: int = 1
    status: int = 2
    line: int = 3
    records: int = 4
    symbols: int = 5
    name_bytes: int = 6
    qualities: int = 7
    limit: int = 8
    size: int = 9


_S: Final = _State()
_KIND, _MODE, _STATUS, _LINE, _RECORDS, _SYMBOL, _NAMES, _QUALITY, _LIMIT, _SIZE = _S


class _Arrays(NamedTuple):
    """What a parser fills: as `SymbolRecords`, and the names as bytes."""

    codes: ByteArray
    offsets: Int64Array
    names: ByteArray
    name_offsets: Int64Array


@jit_without_refcounts
def _parse(  # noqa: C901, PLR0915
    text: ByteArray, at: int, end: int, state: Int64Array, table: ByteArray, found: _Arrays
) -> int:
    """Read ``text[at:end]``; return where reading stopped, which is `end` unless a block ends."""
    kind, mode = state[_KIND], state[_MODE]
    symbols, names = state[_SYMBOL], state[_NAMES]
    while at < end:
        byte = text[as_index(at)]
        if mode == _SYMBOLS:
            code = table[byte]
            if code < BLANK:
                found.codes[as_index(symbols)] = code
                symbols += 1
                at += 1
                continue
            if byte == 10:
                state[_LINE] += 1
                mode = _PLUS if kind == _FASTQ else _START
            elif code == FOREIGN and byte != 13:
                state[_STATUS] = _BAD_SYMBOL
                break
            at += 1
        elif mode == _NAME or mode == _COMMENT:
            at += 1
            if byte == 10:
                state[_LINE] += 1
                mode = _SYMBOLS if kind == _FASTQ else _START
            elif byte <= 32:
                mode = _COMMENT
            elif mode == _NAME:
                found.names[as_index(names)] = byte
                names += 1
        elif mode == _START:
            begins = byte > 32 and (kind == _LINES or byte == (62 if kind == _FASTA else 64))
            if begins:
                records = state[_RECORDS]
                if symbols >= state[_LIMIT] or records + 1 >= found.offsets.size:
                    state[_STATUS] = _FULL
                    break
                found.offsets[records] = symbols
                found.name_offsets[records] = names
                state[_RECORDS] = records + 1
                mode = _NAME
                at += 1
                if kind == _LINES:
                    mode = _SYMBOLS
                    at -= 1
            elif byte == 10:
                state[_LINE] += 1
                at += 1
            elif byte <= 32:
                at += 1
            elif kind == _FASTA and state[_RECORDS] > 0:
                mode = _SYMBOLS
            else:
                state[_STATUS] = _BAD_START
                break
        elif mode == _PLUS:
            # The line between symbols and qualities begins with a plus, and is not looked at.
            if state[_SIZE] == 0 and byte != 43:
                state[_STATUS] = _BAD_START
                break
            state[_SIZE] = 1
            at += 1
            if byte == 10:
                state[_LINE] += 1
                state[_SIZE] = 0
                state[_QUALITY] = symbols - found.offsets[state[_RECORDS] - 1]
                mode = _QUALITIES
        else:
            at += 1
            if byte == 10:
                state[_LINE] += 1
                if state[_QUALITY] != 0:
                    state[_STATUS] = _BAD_LENGTH
                    break
                mode = _START
            elif byte > 32:
                state[_QUALITY] -= 1
    state[_MODE], state[_SYMBOL], state[_NAMES] = mode, symbols, names
    return at


class _SymbolInput(Input):
    """An open file of sequences; text of no known format has one a line."""

    lines = False

    def _detect(self) -> Format:
        head = self.text.peek()
        if head.startswith(BYTE_ORDER_MARK):
            self.text.skip(len(BYTE_ORDER_MARK))
            head = head[len(BYTE_ORDER_MARK) :]
        found = format_of_text(head)
        if not head.strip():
            raise EmptyInputError("the file has no sequences", self.path, self.source.bytes_read)
        # A header may have any letters.
        is_unknown = found is None and is_binary(head.lstrip().split(b"\n")[0])
        if found is Format.SAM or is_unknown:
            raise InputError("no FASTA, FASTQ or lines of symbols", self.path)
        self.lines = found is None
        return found or Format.FASTA


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
        self,
        threads: ReadingThreads | None = None,
        warn: Callable[[str], None] = say_nothing,
    ) -> Generator[SymbolRecords]:
        """Yield the sequences in blocks; `warn` is told of what follows compressed data.

        Raises
        ------
        InputError
            If a file has no sequences in a format that is known, or a symbol is not in the
            alphabet: the error names the line, the record and the position in it.
        """
        before = 0
        for path in self.paths:
            try:
                file = _SymbolInput(path, threads)
            except EmptyInputError as error:
                before += error.bytes_read
                continue
            with file:
                for records in _Reader(file, self._table, self._block_symbols).blocks():
                    self.bytes_read = before + file.source.bytes_read
                    yield records
                file.tell_of_ignored(warn)
                before += file.source.bytes_read


class _Reader:
    """Parses one file, block by block."""

    def __init__(self, file: _SymbolInput, table: ByteArray, limit: int) -> None:
        self._file = file
        self._table = table
        self._state = np.zeros(len(_S), dtype=np.int64)
        kinds = {Format.FASTA: _FASTA, Format.FASTQ: _FASTQ}
        self._state[_KIND] = _LINES if file.lines else kinds[file.format]
        self._state[_LIMIT] = limit
        self._state[_LINE] = 1
        self._records_before = 0
        self._limit = limit
        self._new_block()

    def _new_block(self) -> None:
        most = self._limit // 8 + 2
        self._found = _Arrays(
            np.empty(_CHUNK_BYTES, dtype=np.uint8),
            np.zeros(most, dtype=np.int64),
            np.empty(_CHUNK_BYTES, dtype=np.uint8),
            np.zeros(most, dtype=np.int64),
        )
        self._state[[_RECORDS, _SYMBOL, _NAMES]] = 0
        self._state[_STATUS] = _GOING

    def blocks(self) -> Generator[SymbolRecords]:
        buffer = np.empty(_CHUNK_BYTES, dtype=np.uint8)
        state = self._state
        while count := self._file.text.readinto(memoryview(cast(Any, buffer))):
            at = 0
            while at < count:
                self._make_room(count)
                at = _parse(buffer, at, count, state, self._table, self._found)
                if state[_STATUS] == _FULL:
                    yield self._block()
                    self._new_block()
                elif state[_STATUS] != _GOING:
                    self._fail(int(buffer[min(at, count - 1)]))
        self._check_end()
        if state[_RECORDS]:
            yield self._block()

    def _make_room(self, count: int) -> None:
        """Make arrays large enough for as many symbols, or letters of names, as a text has."""
        codes, offsets, names, name_offsets = self._found
        if codes.size < self._state[_SYMBOL] + count:
            codes = np.concatenate([codes, np.empty(codes.size + count, dtype=np.uint8)])
        if names.size < self._state[_NAMES] + count:
            names = np.concatenate([names, np.empty(names.size + count, dtype=np.uint8)])
        self._found = _Arrays(codes, offsets, names, name_offsets)

    def _block(self) -> SymbolRecords:
        codes, offsets, _, _ = self._found
        count = int(self._state[_RECORDS])
        offsets[count] = self._state[_SYMBOL]
        names = [self._name(number) for number in range(count)]
        self._records_before += count
        return SymbolRecords(codes[: offsets[count]], offsets[: count + 1].copy(), names)

    def _name(self, number: int) -> str:
        if self._state[_KIND] == _LINES:
            return str(self._records_before + number + 1)
        _, _, names, offsets = self._found
        is_last = number + 1 == self._state[_RECORDS]
        end = self._state[_NAMES] if is_last else offsets[number + 1]
        return names[offsets[number] : end].tobytes().decode("utf-8", "surrogateescape")

    def _fail(self, byte: int) -> None:
        state, path = self._state, self._file.path
        line, number = int(state[_LINE]), int(state[_RECORDS]) - 1
        record = self._printable_name(number) if number >= 0 else None
        if state[_STATUS] == _BAD_SYMBOL:
            at = int(state[_SYMBOL] - self._found.offsets[number]) + 1
            shown = printable(bytes([byte]))
            message = f"the symbol '{shown}' at position {at} is not in the model's alphabet"
            raise InputError(message, path, line, record)
        if state[_STATUS] == _BAD_LENGTH:
            raise InputError("symbols and qualities differ in number", path, line - 1, record)
        mark = {_FASTA: "'>'", _FASTQ: "'@' or '+'"}[int(state[_KIND])]
        raise InputError(f"a line that does not begin with {mark}", path, line, record)

    def _check_end(self) -> None:
        """Refuse a FASTQ file that ends inside a record."""
        state = self._state
        if state[_KIND] != _FASTQ or state[_MODE] == _START:
            return
        if state[_MODE] == _QUALITIES and state[_QUALITY] == 0:
            return
        name = self._printable_name(int(state[_RECORDS]) - 1)
        raise InputError("the file ends inside a record", self._file.path, record=name)

    def _printable_name(self, number: int) -> str:
        return printable(self._name(number).encode("utf-8", "surrogateescape"))
