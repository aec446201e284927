"""Cuts FASTA and FASTQ files into parts that can be read independently, even on several machines.

The start of a record is a guess from a few lines. Reading the parts proves it: all of them are
valid, and those of two mate files have the same names, if and only if all cuts are right. A file
that cannot be cut, or whose parts turn out to be wrong, is read as a whole.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Final, NamedTuple

from mummergpu.errors import MummergpuError
from mummergpu.input.blocks.read_files import MateFiles, ReadFile, ReadSource
from mummergpu.input.bytes.file_part import (
    LONGEST_BLOCK,
    FileRange,
    TextPlace,
    inflated,
    read_bytes,
)
from mummergpu.input.bytes.files import STANDARD_INPUT, Input
from mummergpu.input.bytes.formats import (
    BGZF_END,
    BGZF_HEAD,
    BYTE_ORDER_MARK,
    Format,
    bgzf_block_bytes,
    is_bgzf,
)
from mummergpu.input.records.parallel_records import next_record

TEXT_OF_BGZF: Final = 4
"""The approximate bytes of read text per byte of bgzf."""

_BLOCK_MAGIC: Final = b"\x1f\x8b\x08\x04"
_BLOCKS_IN_A_ROW: Final = 3
"""This number of block heads, each where the previous one points to, is not due to chance."""

_RECORD_BYTES: Final = 1 << 17
"""The bytes of text in which the start of a record is searched."""

_MATE_WINDOWS: Final = (1 << 20, 1 << 23, 1 << 26)
"""The bytes around the expected place in which a mate is searched, one after the other."""


class UncutError(Exception):
    """A file cannot be cut: it has to be read in one go."""


class _Window(NamedTuple):
    """Some text of a file, and the places of its pieces; plain text is one piece."""

    text: bytes
    piece_starts: list[int]
    pieces: list[int]
    is_bgzf: bool

    def place(self, index: int) -> TextPlace:
        """Return where in the file a byte of the text is."""
        if not self.is_bgzf:
            return TextPlace(self.pieces[0] + index)
        number = bisect_right(self.piece_starts, index) - 1
        return TextPlace(self.pieces[number], index - self.piece_starts[number])


class _CutFile:
    """A file that is to be cut.

    Raises
    ------
    UncutError
        If it is no regular FASTA or FASTQ file, plain or in bgzf.
    """

    def __init__(self, path: str, stack: ExitStack) -> None:
        if path == STANDARD_INPUT:
            raise UncutError
        try:
            file = stack.enter_context(Input(path))
        except MummergpuError as error:
            # Reading the file raises the error.
            raise UncutError from error
        self._number = file.file.fileno()
        self.size = file.size or 0
        head = os.pread(self._number, BGZF_HEAD, 0)
        self.is_bgzf = is_bgzf(head)
        self.is_fastq = file.format is Format.FASTQ
        is_text = file.compression is None and not head.startswith(BYTE_ORDER_MARK)
        has_end = self._bytes(self.size - len(BGZF_END), self.size) == BGZF_END
        if file.format.is_alignment or not (is_text or (self.is_bgzf and has_end)):
            raise UncutError

    @property
    def end(self) -> TextPlace:
        """The end of the file."""
        return TextPlace(self.size)

    def part(self, begin: TextPlace, end: TextPlace) -> FileRange:
        """Return the range between two places."""
        return FileRange(begin, end, self.is_bgzf, self.is_fastq)

    def record_from(self, at: int, is_interleaved: bool) -> tuple[TextPlace, bytes] | None:
        """Return where a record begins, near a byte of the file or after it, and its stem.

        Alternating mates stay together. None if no record begins in the rest of the file.
        """
        window = self._window(at, at + _RECORD_BYTES)
        first = next_record(window.text, self.is_fastq)
        if first >= 0 and is_interleaved:
            second = next_record(window.text, self.is_fastq, first + 1)
            is_mate = second < 0 or _stem(window.text, first) != _stem(window.text, second)
            first = second if is_mate else first
        if first < 0:
            if at + _RECORD_BYTES < self.size:
                raise UncutError
            return None
        return window.place(first + 1), _stem(window.text, first)

    def record_named(self, stem: bytes, near: int) -> TextPlace:
        """Return where a record with a name begins, not far from a byte of the file."""
        start = (b"\n@" if self.is_fastq else b"\n>") + stem
        for size in _MATE_WINDOWS:
            window = self._window(near - size // 2, near + size // 2)
            text, at = window.text, window.text.find(start)
            while at >= 0:
                if _stem(text, at) == stem and next_record(text, self.is_fastq, at) == at:
                    return window.place(at + 1)
                at = text.find(start, at + 1)
            if near - size // 2 <= 1 and near + size // 2 >= self.size:
                break
        raise UncutError

    def _window(self, begin: int, end: int) -> _Window:
        """Return text from about one byte of the file to about another."""
        begin, end = max(begin, 0), min(end, self.size)
        if not self.is_bgzf:
            # Include the line feed before a record that may begin there.
            begin = max(begin - 1, 0)
            return _Window(self._bytes(begin, end), [0], [begin], False)
        return self._window_of_blocks(begin, end)

    def _window_of_blocks(self, begin: int, end: int) -> _Window:
        data = self._bytes(begin, end + _BLOCKS_IN_A_ROW * LONGEST_BLOCK)
        at = data.find(_BLOCK_MAGIC)
        while at >= 0 and not _begins_blocks(data, at):
            at = data.find(_BLOCK_MAGIC, at + 1)
        texts: list[bytes] = []
        starts, pieces, done = [], [], 0
        while 0 <= at < end - begin and (size := bgzf_block_bytes(data[at : at + BGZF_HEAD])):
            text = inflated(data[at : at + size])
            starts.append(done)
            pieces.append(begin + at)
            texts.append(text)
            done += len(text)
            at += size
        return _Window(b"".join(texts), starts, pieces, True)

    def _bytes(self, begin: int, end: int) -> bytes:
        return read_bytes(self._number, max(begin, 0), end)


def _begins_blocks(data: bytes, at: int) -> bool:
    """Return whether some blocks of bgzf follow each other from a byte on."""
    for _ in range(_BLOCKS_IN_A_ROW):
        if at >= len(data):
            return True
        size = bgzf_block_bytes(data[at : at + BGZF_HEAD])
        if not size:
            return False
        at += size
    return True


def _stem(text: bytes, at: int) -> bytes:
    """Return the name of a record, after its mark, without ``/1`` or ``/2``."""
    words = text[at + 2 : text.find(b"\n", at + 1)].split(None, 1)
    name = words[0] if words else b""
    return name[:-2] if name.endswith((b"/1", b"/2")) else name


def cut_source(source: ReadSource, part_bytes: int) -> Iterator[ReadSource]:
    """Yield parts of the files of a source, in their order.

    Parameters
    ----------
    part_bytes : int
        The approximate bytes of text of a part, in each of two files.

    Raises
    ------
    UncutError
        If the files cannot be cut, perhaps only after some parts.
    """
    with ExitStack() as stack:
        if isinstance(source, ReadFile):
            file = _CutFile(source.path, stack)
            for (own, _), (next_one, _) in pairwise(_places(file, part_bytes, source.interleaved)):
                part = file.part(own, next_one)
                yield ReadFile(source.path, source.interleaved, source.ignores_flags, part)
        elif isinstance(source, MateFiles):
            first, second = (_CutFile(path, stack) for path in source.paths)
            places = _places(first, part_bytes, False)
            for (begin, other_begin), (end, other_end) in pairwise(_mates(places, first, second)):
                parts = first.part(begin, end), second.part(other_begin, other_end)
                yield MateFiles(source.first, source.second, parts)
        else:
            raise UncutError


def _places(
    file: _CutFile, part_bytes: int, is_interleaved: bool
) -> Iterator[tuple[TextPlace, bytes]]:
    """Yield where parts of a file begin, each with the stem of its first record, and the end."""
    part_bytes //= TEXT_OF_BGZF if file.is_bgzf else 1
    count = max(1, file.size // max(part_bytes, 1))
    last = TextPlace(0)
    yield last, b""
    for number in range(1, count):
        found = file.record_from(file.size * number // count, is_interleaved)
        if found is None:
            break
        if found[0] > last:
            yield found
            last = found[0]
    yield file.end, b""


def _mates(
    places: Iterator[tuple[TextPlace, bytes]], first: _CutFile, second: _CutFile
) -> Iterator[tuple[TextPlace, TextPlace]]:
    """Yield the places in both files at which parts of pairs begin, and the ends."""
    ratio = second.size / max(first.size, 1)
    last, other = TextPlace(0), TextPlace(0)
    yield last, other
    for place, stem in places:
        if place == first.end:
            yield place, second.end
        elif place != last:
            near = other.at + int((place.at - last.at) * ratio)
            last, other = place, second.record_named(stem, near)
            yield last, other


def is_cuttable(sources: Sequence[ReadSource]) -> bool:
    """Return whether all files look as if they can be cut."""
    try:
        for source in sources:
            next(cut_source(source, 1 << 62))
    except UncutError:
        return False
    return True
