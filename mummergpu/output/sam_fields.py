"""Compiled functions that write the fields of SAM."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mummergpu.output.line_rows import Lookup, QueryColumns, RecordTexts
from mummergpu.output.number_fields import MOST_DIGITS, SMALL, copy_padded, put_number, put_small
from mummergpu.output.number_text import OVERSHOOT, TextArray, copy_text, store
from mummergpu.output.record_lookup import record_at
from mummergpu.output.sam_choice import REVERSE, SECONDARY, UNMAPPED
from mummergpu.output.sequence_text import write_bases
from mummergpu.runtime.jit import inline_without_refcounts, unsigned, widened
from mummergpu.sequence.codes import CodeArray


def _constant(text: bytes) -> tuple[TextArray, int]:
    return np.frombuffer(bytearray(text.ljust(2 * OVERSHOOT)), dtype=np.uint8), len(text)


def _word(text: bytes) -> int:
    """Return a text of at most seven bytes as a word, with its size in the highest byte."""
    return int.from_bytes(text, "little") | len(text) << 56


def _clip_words() -> Any:
    words = [_word(b"%dS" % number if number else b"") for number in range(SMALL)]
    return np.array(words, dtype=np.uint64)


_CLIP_WORDS: Final = _clip_words()
_FLAG_WORDS: Final = np.array(
    [_word(b"%d\t" % flag) for flag in (0, REVERSE, SECONDARY, SECONDARY + REVERSE)],
    dtype=np.uint64,
)
_SIZE_SHIFT: Final[Any] = np.uint64(56)
_CLIP: Final = np.uint8(ord("S"))
_EQUAL: Final = np.uint8(ord("="))
_STAR: Final = np.uint8(ord("*"))
_QUALITY: Final = np.frombuffer(b"\t255\t   ", dtype="<u8")[0]
_QUALITY_BYTES: Final = 5
_NO_MATE, _NO_MATE_BYTES = _constant(b"\t*\t0\t0\t")
_SCORES, _SCORES_BYTES = _constant(b"\t*\tNM:i:0\tAS:i:")
_SECONDARY_SCORES, _SECONDARY_SCORES_BYTES = _constant(b"\t*\t0\t0\t*\t*\tNM:i:0\tAS:i:")
_HITS: Final = np.frombuffer(b"\tNH:i:  ", dtype="<u8")[0]
_NUMBER: Final = np.frombuffer(b"\tHI:i:  ", dtype="<u8")[0]
_TAG_BYTES: Final = len("\tNH:i:")
_NO_PLACE, _NO_PLACE_BYTES = _constant(b"\t%d\t*\t0\t0\t*\t*\t0\t0\t" % UNMAPPED)
_NO_QUALITIES: Final = np.frombuffer(b"\t*", dtype="<u2")[0]

OTHER_BYTES: Final = 9 * MOST_DIGITS + len(
    "\t\t\t\t255\tS=S\t*\t0\t0\t*\t*\tNM:i:0\tAS:i:\tNH:i:\tHI:i:"
)
"""The most bytes of a line besides the names, the bases and what all lines end with."""

START_BYTES: Final = 2 + OVERSHOOT
HITS_BYTES: Final = 2 * _TAG_BYTES + MOST_DIGITS + OVERSHOOT
"""The most bytes of what the lines of a query share: the former besides its name."""


@inline_without_refcounts
def write_name(start: TextArray, queries: QueryColumns, query: int) -> int:
    """Write the name of a query, or a star if it has none; return where it ends.

    Parameters
    ----------
    start : ndarray, dtype=uint8
        Receives the name.
    queries : tuple of ndarray
        The queries (`line_rows.QueryColumns`).
    query : int
        The number of the query.

    Returns
    -------
    int
        Where the name ends.
    """
    _, names, offsets = queries
    begin, end = offsets[unsigned(query)], offsets[unsigned(query + 1)]
    if begin == end:
        store(start, 0, _STAR)
        return 1
    return copy_text(start, 0, names, begin, end)


@inline_without_refcounts
def write_hits(hits: TextArray, count: int) -> int:
    """Write the number of matches and what comes before the number of one; return the end.

    Parameters
    ----------
    hits : ndarray, dtype=uint8
        Receives the text.
    count : int
        The number of matches.

    Returns
    -------
    int
        Where the text ends.
    """
    store(hits, 0, _HITS)
    at = put_small(hits, _TAG_BYTES, count)
    store(hits, at, _NUMBER)
    return at + _TAG_BYTES


@inline_without_refcounts
def _put_word(text: TextArray, at: int, word: np.uint64) -> int:
    """Write the text that a word holds; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output.
    at : int
        Where in the text to write.
    word : uint64
        The text, with its size in the highest byte.

    Returns
    -------
    int
        Where the text ends.
    """
    store(text, at, word)
    return at + widened(word >> _SIZE_SHIFT)


@inline_without_refcounts
def put_flag(text: TextArray, at: int, is_secondary: bool, strand: int) -> int:
    """Write the flag of a match and a tab; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    is_secondary : bool
        Whether it is no primary alignment.
    strand : int
        1 if the reverse complement of the query matches, else 0.

    Returns
    -------
    int
        Where the text ends.
    """
    return _put_word(text, at, _FLAG_WORDS[unsigned(2 * is_secondary + strand)])


@inline_without_refcounts
def _put_clip(text: TextArray, at: int, count: int) -> int:
    """Write how many bases are clipped, nothing for none; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output.
    at : int
        Where in the text to write.
    count : int
        The number of bases.

    Returns
    -------
    int
        Where the text ends.
    """
    if count < SMALL:
        return _put_word(text, at, _CLIP_WORDS[unsigned(count)])
    at = put_small(text, at, count)
    store(text, at, _CLIP)
    return at + 1


@inline_without_refcounts
def place_of(lookup: Lookup, joined_position: int) -> tuple[int, int]:
    """Return the record of a position and the position in it, 1-based.

    Parameters
    ----------
    lookup : tuple
        The records of the reference (`line_rows.Lookup`).
    joined_position : int
        0-based, in the joined reference.

    Returns
    -------
    record : int
        The number of the record.
    position : int
        The position in it, 1-based.
    """
    record_starts, buckets, bucket_shift = lookup
    record = record_at(record_starts, buckets, bucket_shift, joined_position)
    return record, joined_position - record_starts[unsigned(record)] + 1


@inline_without_refcounts
def write_record(
    text: TextArray, at: int, records: RecordTexts, record: int, position: int, digits: np.uint64
) -> int:
    """Write the name of a record, the position in it and the mapping quality; return the end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    records : tuple of ndarray
        The name of each record and a tab (`line_rows.RecordTexts`).
    record : int
        The number of the record.
    position : int
        The position in it, 1-based.
    digits : uint64
        What `number_text.digit_words` returns for the position.

    Returns
    -------
    int
        Where the text ends, after a tab.
    """
    texts, offsets = records
    begin, end = offsets[unsigned(record)], offsets[unsigned(record + 1)]
    at = put_number(text, copy_padded(text, at, texts, begin, end), position, digits)
    store(text, at, _QUALITY)
    return at + _QUALITY_BYTES


@inline_without_refcounts
def write_cigar(text: TextArray, at: int, before: int, length: int, behind: int) -> int:
    """Write the CIGAR of a match; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    before, behind : int
        The bases of the query before and after the match.
    length : int
        The bases of the match.

    Returns
    -------
    int
        Where the text ends.
    """
    at = put_small(text, _put_clip(text, at, before), length)
    store(text, at, _EQUAL)
    return _put_clip(text, at + 1, behind)


@inline_without_refcounts
def write_part(
    text: TextArray,
    at: int,
    padded_codes: CodeArray,
    bounds: tuple[int, int],
    base: int,
    is_reverse: bool,
) -> tuple[int, int]:
    """Write the bases of a query from `base` on, as far as there is room.

    Returns where the text ends and the first base that is not written.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    padded_codes : ndarray, dtype=uint8
        The codes of the block with margins.
    bounds : tuple of int
        Where the query begins and ends.
    base : int
        The first base to write.
    is_reverse : bool
        Whether to write the reverse complement.

    Returns
    -------
    at : int
        Where the text ends.
    base : int
        The first base that is not written.
    """
    begin, end = bounds
    count = min(end - begin - base, text.size - OVERSHOOT - at)
    at = write_bases(text, at, padded_codes, begin, end, base, count, is_reverse)
    return at, base + count


@inline_without_refcounts
def begin_bases(text: TextArray, at: int) -> int:
    """Write the fields between the CIGAR and the bases; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.

    Returns
    -------
    int
        Where the text ends.
    """
    return copy_padded(text, at, _NO_MATE, 0, _NO_MATE_BYTES)


@inline_without_refcounts
def write_scores(text: TextArray, at: int, has_bases: bool, length: int) -> int:
    """Write the fields after the bases, or after the CIGAR if there are none, up to the score.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    has_bases : bool
        Whether the bases have been written.
    length : int
        The bases of the match.

    Returns
    -------
    int
        Where the text ends.
    """
    if has_bases:
        at = copy_padded(text, at, _SCORES, 0, _SCORES_BYTES)
    else:
        at = copy_padded(text, at, _SECONDARY_SCORES, 0, _SECONDARY_SCORES_BYTES)
    return put_small(text, at, length)


@inline_without_refcounts
def begin_unmapped(text: TextArray, at: int, is_empty: bool) -> int:
    """Write the fields between the name and the bases of a query without a match.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    is_empty : bool
        Whether the query has no bases, for which there is a star.

    Returns
    -------
    int
        Where the text ends.
    """
    at = copy_padded(text, at, _NO_PLACE, 0, _NO_PLACE_BYTES)
    store(text, at, _STAR)
    return at + is_empty


@inline_without_refcounts
def end_unmapped(text: TextArray, at: int) -> int:
    """Write the fields after the bases of a query without a match; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output.
    at : int
        Where in the text to write.

    Returns
    -------
    int
        Where the text ends.
    """
    store(text, at, _NO_QUALITIES)
    return at + 2
