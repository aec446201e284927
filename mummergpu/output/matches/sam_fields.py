"""Compiled functions that write the fields of SAM."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mummergpu.input.reference import record_at
from mummergpu.output.bytes.number_fields import MOST_DIGITS, SMALL, put_one_number, put_small
from mummergpu.output.bytes.sequence_text import write_bases
from mummergpu.output.bytes.text_arrays import RecordTexts
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, copy_padded, copy_text, store
from mummergpu.output.matches.line_rows import Lookup
from mummergpu.output.matches.sam_choice import REVERSE, SECONDARY, UNMAPPED
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
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
_LENGTH_WORDS: Final = np.array(
    [_word(b"%d=" % number) for number in range(SMALL)], dtype=np.uint64
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
_HITS_TEXTS: Final = [b"\tNH:i:%d\tHI:i:" % number for number in range(SMALL)]
_HITS_WORDS: Final = np.array([int.from_bytes(one[:8], "little") for one in _HITS_TEXTS], np.uint64)
_HITS_ENDS: Final = np.array([_word(one[8:]) for one in _HITS_TEXTS], np.uint64)
_NO_PLACE, _NO_PLACE_BYTES = _constant(b"\t%d\t*\t0\t0\t*\t*\t0\t0\t" % UNMAPPED)
_NO_QUALITIES: Final = np.frombuffer(b"\t*", dtype="<u2")[0]

FLAGS: Final = (0, REVERSE, SECONDARY, SECONDARY + REVERSE)
"""The flags of matches, in the order of their texts for each record."""

FLAG_COUNT: Final = len(FLAGS)

OTHER_BYTES: Final = 9 * MOST_DIGITS + len(
    "\t\t\t\t255\tS=S\t*\t0\t0\t*\t*\tNM:i:0\tAS:i:\tNH:i:\tHI:i:"
)
"""The most bytes of a line besides the names, the bases and what all lines end with."""


@inline_without_refcounts
def put_name(text: TextArray, at: int, names: TextArray, begin: int, end: int) -> int:
    """Write the name of a query, or a star if it has none; return where it ends."""
    if begin == end:
        store(text, at, _STAR)
        return at + 1
    return copy_text(text, at, names, begin, end)


@inline_without_refcounts
def put_hits(text: TextArray, at: int, count: int, number: int) -> int:
    """Write the number of matches of a query, and the number of one of them; return the end."""
    if count < SMALL:
        store(text, at, _HITS_WORDS[as_index(count)])
        return put_small(text, _put_word(text, at + 8, _HITS_ENDS[as_index(count)]), number)
    store(text, at, _HITS)
    at = put_small(text, at + _TAG_BYTES, count)
    store(text, at, _NUMBER)
    return put_small(text, at + _TAG_BYTES, number)


@inline_without_refcounts
def _put_word(text: TextArray, at: int, word: np.uint64) -> int:
    """Write the text that a word holds; return where it ends."""
    store(text, at, word)
    return at + as_int64(word >> _SIZE_SHIFT)


@inline_without_refcounts
def _put_clip(text: TextArray, at: int, count: int) -> int:
    """Write how many bases are clipped, nothing for none; return where it ends."""
    if count < SMALL:
        return _put_word(text, at, _CLIP_WORDS[as_index(count)])
    at = put_small(text, at, count)
    store(text, at, _CLIP)
    return at + 1


@inline_without_refcounts
def place_of(lookup: Lookup, joined_position: int) -> tuple[int, int]:
    """Return the record of a position and the position in it, 1-based."""
    record_starts, buckets, bucket_shift = lookup
    record = record_at(record_starts, buckets, bucket_shift, joined_position)
    return record, joined_position - record_starts[as_index(record)] + 1


@inline_without_refcounts
def write_record(
    text: TextArray,
    at: int,
    records: RecordTexts,
    record: int,
    kind: int,
    position: int,
) -> int:
    """Write a flag, the name of a record, the position in it and the mapping quality.

    Returns where the text ends.
    """
    texts, offsets = records
    entry = FLAG_COUNT * record + kind
    begin, end = offsets[as_index(entry)], offsets[as_index(entry + 1)]
    at = put_one_number(text, copy_padded(text, at, texts, begin, end), position)
    store(text, at, _QUALITY)
    return at + _QUALITY_BYTES


@inline_without_refcounts
def write_cigar(text: TextArray, at: int, before: int, length: int, after: int) -> int:
    """Write the CIGAR of a match; return where it ends."""
    at = _put_clip(text, at, before)
    if length < SMALL:
        return _put_clip(text, _put_word(text, at, _LENGTH_WORDS[as_index(length)]), after)
    at = put_small(text, at, length)
    store(text, at, _EQUAL)
    return _put_clip(text, at + 1, after)


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
    """
    begin, end = bounds
    count = min(end - begin - base, text.size - OVERSHOOT - at)
    at = write_bases(text, at, padded_codes, begin, end, base, count, is_reverse)
    return at, base + count


@inline_without_refcounts
def begin_bases(text: TextArray, at: int) -> int:
    """Write the fields between the CIGAR and the bases; return where they end."""
    return copy_padded(text, at, _NO_MATE, 0, _NO_MATE_BYTES)


@inline_without_refcounts
def write_scores(text: TextArray, at: int, has_bases: bool, length: int) -> int:
    """Write the fields after the bases, or after the CIGAR if there are none, up to the score."""
    if has_bases:
        at = copy_padded(text, at, _SCORES, 0, _SCORES_BYTES)
    else:
        at = copy_padded(text, at, _SECONDARY_SCORES, 0, _SECONDARY_SCORES_BYTES)
    return put_small(text, at, length)


@inline_without_refcounts
def begin_unmapped(text: TextArray, at: int, is_empty: bool) -> int:
    """Write the fields between the name and the bases of a query without a match."""
    at = copy_padded(text, at, _NO_PLACE, 0, _NO_PLACE_BYTES)
    store(text, at, _STAR)
    return at + is_empty


@inline_without_refcounts
def end_unmapped(text: TextArray, at: int) -> int:
    """Write the fields after the bases of a query without a match; return where they end."""
    store(text, at, _NO_QUALITIES)
    return at + 2
