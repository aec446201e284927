"""Records of a file as arrays, and the limits of a block of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.bytes.formats import BY_CONTENT
from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.runtime.jit import inline, jit, writable
from mummergpu.runtime.words import say_nothing
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray, empty_with_margins, fill_margins

CHUNK_SIZE: Final = 1 << 20
"""The bytes of text parsed at once: they stay in the cache, and Ctrl-C waits milliseconds."""

NOTHING: Final[ByteArray] = np.empty(0, dtype=np.uint8)
NO_FLAGS: Final[UInt16Array] = np.empty(0, dtype=np.uint16)
UNLIMITED: Final = np.iinfo(np.int64).max

_BLANKS: Final = b" \t"
_FIRST_WORD: Final = re.compile(rb"[^ \t\n\v\f\r]*")
BLANK, TAB, RETURN, END_OF_DESCRIPTION = b" \t\r\x01"


class Spans(NamedTuple):
    """Items of different lengths, such as names or the tags of reads, one after the other.

    Attributes
    ----------
    content : ndarray, dtype=uint8, shape=(n_bytes,)
        All of them.
    offsets : ndarray, dtype=int64, shape=(n_items + 1,) or (0,)
        Where in `content` each begins, and where the last ends; empty if none are kept.
    """

    content: ByteArray
    offsets: Int64Array

    @property
    def are_kept(self) -> bool:
        """Whether there may be any."""
        return self.offsets.size > 0

    def part(self, first: int, end: int) -> Spans:
        """Return some of them, as views."""
        if not self.are_kept:
            return self
        offsets = self.offsets[first : end + 1]
        return Spans(self.content[offsets[0] : offsets[-1]], offsets - offsets[0])

    def item(self, number: int) -> bytes:
        """Return one of them."""
        return self.content[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def items(self) -> list[bytes]:
        """Return all of them."""
        text = self.content.tobytes()
        return [text[begin:end] for begin, end in pairwise(self.offsets.tolist())]

    def of_reads(self, count: int) -> Spans:
        """Return the same spans of `count` reads, with offsets also if none are kept."""
        return self if self.are_kept else Spans(self.content, np.zeros(count + 1, dtype=np.int64))


def join_spans(parts: Sequence[Spans]) -> Spans:
    """Return kept spans that follow each other as one."""
    starts = np.cumsum([0, *(part.offsets[-1] for part in parts)], dtype=np.int64).tolist()
    moved = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), *moved])
    return Spans(np.concatenate([part.content for part in parts]), offsets)


def join_tags(parts: Sequence[tuple[Spans, int]]) -> Spans:
    """Join the tags of consecutive reads; each part has the number of its reads."""
    if not any(tags.are_kept for tags, _ in parts):
        return NO_SPANS
    return join_spans([tags.of_reads(count) for tags, count in parts])


NAME, ACCESSION, DESCRIPTION = range(3)


class Words(NamedTuple):
    """The names, accessions and descriptions of records.

    `places` (n, 3, 2) tells where each begins and ends, that of an accession in `accessions`, and
    the others in `headers`.
    """

    headers: ByteArray
    accessions: ByteArray
    places: Int64Array

    @classmethod
    def of_texts(cls, texts: Sequence[tuple[bytes, bytes, bytes]]) -> Words:
        """Return the words of records, given one after another."""
        ends = np.cumsum([0, *(len(word) for words in texts for word in words)], dtype=np.int64)
        content = np.frombuffer(bytearray(b"".join(chain.from_iterable(texts))), dtype=np.uint8)
        places = np.stack([ends[:-1], ends[1:]], axis=1).reshape(-1, 3, 2)
        return cls(content, content, places)


NO_SPANS: Final = Spans(NOTHING, np.empty(0, dtype=np.int64))


class Records(NamedTuple):
    """Consecutive records of a file.

    Attributes
    ----------
    padded_codes : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The base codes, one record after the other, gaps included, with `codes.MARGIN` breaks before
        and after them. If qualities are kept, those of `codes.LETTERS`.
    offsets : ndarray, dtype=int64, shape=(n_records + 1,)
        The index in `codes` at which each record begins, and at which one more would begin.
    names : ndarray, dtype=uint8, shape=(n_name_bytes,)
        The names, one after the other.
    name_offsets : ndarray, dtype=int64, shape=(n_records + 1,)
        The index in `names` at which each name begins, and the end of the last.
    qualities : ndarray, dtype=uint8, shape=(n_bases,) or (0,)
        The base qualities (see `qualities`), if they are kept.
    flags : ndarray, dtype=uint16, shape=(n_records,) or (0,)
        The flags of SAM, CRAM or BAM, if qualities are kept.
    tags : Spans
        The tags of the records, if there are any and qualities are kept.
    accessions : Spans
        Those of proteins that Easel has read.
    """

    padded_codes: CodeArray
    offsets: Int64Array
    names: ByteArray
    name_offsets: Int64Array
    qualities: ByteArray = NOTHING
    flags: UInt16Array = NO_FLAGS
    tags: Spans = NO_SPANS
    accessions: Spans = NO_SPANS

    @property
    def codes(self) -> CodeArray:
        """The base codes without the margins: ndarray, dtype=uint8, shape=(n_bases,), a view."""
        return self.padded_codes[MARGIN:-MARGIN]

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number of records."""
        return self.offsets.size - 1

    @property
    def has_letters(self) -> bool:
        """Whether letters that stand for several bases are among the codes."""
        return bool(self.padded_codes.max(initial=BREAK) > BREAK)

    def name(self, number: int) -> str:
        """Return the name of a record: the first word of its line."""
        return _as_text(_first_word(self._header(number)))

    def description(self, number: int) -> str:
        """Return the text after a kept name; a byte 1, as in NCBI's old files, ends it."""
        header = self._header(number)
        rest = header[len(_first_word(header)) :].lstrip(_BLANKS)
        return _as_text(rest.partition(bytes([END_OF_DESCRIPTION]))[0])

    def accession(self, number: int) -> str:
        """Return the accession of a protein, empty if there is none."""
        return _as_text(self.accessions.item(number)) if self.accessions.are_kept else ""

    def words(self, numbers: Int64Array) -> Words:
        """Return the names, accessions and descriptions of some records."""
        headers = self.name_spans
        accessions = Spans(writable(self.accessions.content), writable(self.accessions.offsets))
        places = np.zeros((numbers.size, 3, 2), dtype=np.int64)
        _find_words(headers, accessions, numbers, places)
        return Words(headers.content, accessions.content, places)

    def _header(self, number: int) -> bytes:
        return Spans(self.names, self.name_offsets).item(number).lstrip(_BLANKS)

    @property
    def name_spans(self) -> Spans:
        """The names, for compiled functions."""
        return Spans(writable(self.names), writable(self.name_offsets))

    def part(self, first: int, end: int) -> Records:
        """Return some of the records, without gaps, as views; neighbouring codes are margins."""
        offsets = self.offsets[first : end + 1]
        name_offsets = self.name_offsets[first : end + 1]
        return Records(
            self.padded_codes[offsets[0] : offsets[-1] + 2 * MARGIN],
            offsets - offsets[0],
            self.names[name_offsets[0] : name_offsets[-1]],
            name_offsets - name_offsets[0],
            self.qualities[offsets[0] : offsets[-1]],
            self.flags[first:end],
            self.tags.part(first, end),
        )


@jit
def _find_words(headers: Spans, accessions: Spans, numbers: Int64Array, places: Int64Array) -> None:
    """Find what `Records.name`, `accession` and `description` return."""
    text = headers.content
    for place in range(numbers.size):
        own, number = places[place], numbers[place]
        at, end = headers.offsets[number], headers.offsets[number + 1]
        at = _after_blanks(text, at, end)
        own[NAME, 0] = at
        while at < end and text[at] != BLANK and not TAB <= text[at] <= RETURN:
            at += 1
        own[NAME, 1] = at
        at = _after_blanks(text, at, end)
        own[DESCRIPTION, 0] = at
        while at < end and text[at] != END_OF_DESCRIPTION:
            at += 1
        own[DESCRIPTION, 1] = at
        if accessions.offsets.size:
            own[ACCESSION, 0] = accessions.offsets[number]
            own[ACCESSION, 1] = accessions.offsets[number + 1]


@inline
def _after_blanks(text: ByteArray, at: int, end: int) -> int:
    """Return the place of the first byte from a place on that is no blank."""
    while at < end and (text[at] == BLANK or text[at] == TAB):
        at += 1
    return at


def _first_word(header: bytes) -> bytes:
    found = _FIRST_WORD.match(header)
    assert found is not None
    return found[0]


def _as_text(name: bytes) -> str:
    """Return a name as text that encodes back to the same bytes."""
    return name.decode("utf-8", "surrogateescape")


def in_order(records: Records, order: Int64Array) -> Records:
    """Return some records in another order, without flags; in new arrays.

    The number after that of the last record stands for an empty record.
    """

    def gather(content: ByteArray, offsets: Int64Array, margin: int = 0) -> Spans:
        if offsets.size == 0:
            return NO_SPANS
        begins, ends = offsets[order], np.zeros(order.size + 1, dtype=np.int64)
        np.cumsum(offsets[np.minimum(order + 1, offsets.size - 1)] - begins, out=ends[1:])
        gathered = np.empty(2 * margin + int(ends[-1]), dtype=np.uint8)
        _copy_spans(writable(content), begins, ends, gathered[margin:])
        return Spans(gathered, ends)

    padded, offsets = gather(records.codes, records.offsets, MARGIN)
    fill_margins(padded)
    names = gather(records.names, records.name_offsets)
    qualities = records.qualities
    if qualities.size:
        qualities = gather(qualities, records.offsets).content
    tags, accessions = gather(*records.tags), gather(*records.accessions)
    return Records(padded, offsets, *names, qualities, NO_FLAGS, tags, accessions)


@jit
def _copy_spans(
    content: ByteArray, begins: Int64Array, ends: Int64Array, gathered: ByteArray
) -> None:
    """Copy some spans, one after the other; `ends` says where each begins and ends then."""
    for span in range(begins.size):
        copy_bytes(content, begins[span], gathered, ends[span], ends[span + 1] - ends[span])


def join_records(parts: Sequence[Records]) -> Records:
    """Return records of one kind, without gaps, that follow each other; in new arrays."""
    names = join_spans([part.name_spans for part in parts])
    offsets = join_spans([Spans(NOTHING, part.offsets) for part in parts]).offsets
    padded = empty_with_margins(int(offsets[-1]))
    np.concatenate([part.codes for part in parts], out=padded[MARGIN : padded.size - MARGIN])
    tags = join_tags([(part.tags, part.count) for part in parts])
    qualities = np.concatenate([part.qualities for part in parts])
    flags = np.concatenate([part.flags for part in parts])
    return Records(padded, offsets, *names, qualities, flags, tags)


class Limits(NamedTuple):
    """The limits of a block, at least 1 each: the record that reaches one of them ends it."""

    bases: int
    records: int
    name_bytes: int

    @classmethod
    def of_block(cls, block_size: int) -> Limits:
        """Return the limits of a block of about `block_size` bases.

        Reads of ordinary lengths reach only the first limit. The others keep millions of empty
        reads, or very long names, from filling one endless block.
        """
        return cls(block_size, block_size // 8 + 1, 4 * block_size)


UNLIMITED_BLOCK: Final = Limits(UNLIMITED, UNLIMITED, UNLIMITED)


class RecordOptions(NamedTuple):
    """How the records of a file are read.

    Attributes
    ----------
    limits : Limits
        The limits at which a block is full.
    chunk_size : int
        The number of bytes of text parsed at once, at least 2.
    any_letters : bool
        Accept records whose letters are mostly not DNA or RNA.
    no_empty : bool
        Raise an error if a file holds no data.
    keeps_letters : bool
        Give letters that stand for several bases codes of their own (`codes.LETTERS`).
    keeps_qualities : bool
        Keep the base qualities (`NO_QUALITY` in FASTA), these letters, and the flags and tags of
        SAM, BAM and CRAM. Then the blocks of a file are the same for every number of threads.
    keeps_groups : bool
        Keep the read groups among these tags, if the header of the file has any.
    keeps_comments : bool
        Make tags of the comments of FASTA and FASTQ (`comments.tags_of_comments`).
    has_gaps : bool
        Put one break between two records of FASTA or FASTQ in a block.
    keeps_headers : bool
        Leave the comments of FASTA and FASTQ in the names.
    is_protein : bool
        The file is of proteins: the codes are those of `codes.AMINO_ACIDS`.
    symbols : ndarray, dtype=uint8, shape=(256,), or None
        The code of each byte of text, if the file is of symbols of a model (`symbols.code_table`).
    protein_format : str
        The format of such a file (`files.Input`).
    warn : callable
        Receives a warning of bytes after the compressed data of a file.
    """

    limits: Limits
    chunk_size: int = CHUNK_SIZE
    any_letters: bool = False
    no_empty: bool = False
    keeps_letters: bool = False
    keeps_qualities: bool = False
    keeps_groups: bool = False
    keeps_comments: bool = False
    has_gaps: bool = False
    keeps_headers: bool = False
    is_protein: bool = False
    symbols: ByteArray | None = None
    protein_format: str = BY_CONTENT
    warn: Callable[[str], None] = say_nothing
