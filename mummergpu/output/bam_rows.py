"""The compiled loop that lays out the records of BAM (SAM format specification, section 4.2)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.output.bam_bases import pack_bases
from mummergpu.output.line_rows import QueryColumns
from mummergpu.output.number_text import OVERSHOOT, TextArray, copy_text, store
from mummergpu.output.record_lookup import Int64Array
from mummergpu.output.sam_choice import REVERSE, SECONDARY, UNMAPPED
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, unsigned, widened
from mummergpu.sequence.codes import MARGIN, CodeArray

NumberArray = npt.NDArray[np.uint32]
RowNumbers = tuple[NumberArray, NumberArray, NumberArray]
RowPlaces = tuple[Int64Array, Int64Array, Int64Array]

Place = tuple[int, int]
"""A record, by its number in the header, and a 0-based position in it; -1 for what is not known."""

# The elements of the state between two pieces.
NEXT_ROW: Final = 0

NAME_AT: Final = 36
"""Where the name begins, counted from the length of the record."""

_MOST_CIGAR_BYTES: Final = 12
_MOST_TAG_BYTES: Final = 4 * 7
FIXED_BYTES: Final = NAME_AT + 2 + _MOST_CIGAR_BYTES + _MOST_TAG_BYTES
"""The most bytes of a record without its name, its bases and its read group."""

_MAPPED: Final = 0xFF
"""The mapping quality of an alignment: not known."""

_SOFT_CLIP, _EQUAL = 4, 7

_NO_NAME: Final = np.frombuffer(b"*\0", dtype="<u2")[0]
_NO_QUALITIES: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_NM, _AS, _NH, _HI = (int.from_bytes(tag, "little") for tag in (b"NM", b"AS", b"NH", b"HI"))


@inline_without_refcounts
def bin_of(begin: int, end: int) -> int:
    """Return the smallest bin that has a half-open range of a record.

    Parameters
    ----------
    begin, end : int
        The 0-based range, not empty.

    Returns
    -------
    int
        The number of the bin.
    """
    last = end - 1
    shift, first = 14, 4681
    while shift < 29:
        if begin >> shift == last >> shift:
            return first + (begin >> shift)
        shift += 3
        first = (first - 1) >> 3
    return 0


@inline_without_refcounts
def write_tag(text: TextArray, at: int, tag: int, number: int) -> int:
    """Write a tag with a number in as few bytes as hold it; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    tag : int
        The two letters of the tag, the first in the lower byte.
    number : int
        At least 0.

    Returns
    -------
    int
        Where the tag ends.
    """
    if number < 1 << 8:
        kind, size = ord("C"), 1
    elif number < 1 << 16:
        kind, size = ord("S"), 2
    else:
        kind, size = ord("I"), 4
    store(text, at, np.uint64(tag | kind << 16 | number << 24))
    return at + 3 + size


@inline_without_refcounts
def _write_operation(text: TextArray, at: int, length: int, operation: int) -> int:
    """Write an operation of the CIGAR unless it has no base; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    length : int
        The bases of the operation.
    operation : int
        Its number.

    Returns
    -------
    int
        Where the operation ends.
    """
    if length == 0:
        return at
    store(text, at, np.uint32(length << 4 | operation))
    return at + 4


@inline_without_refcounts
def write_name(
    text: TextArray, at: int, names: TextArray, name_offsets: Int64Array, read: int
) -> int:
    """Write a read's name and the zero that ends it; return where that ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    names : ndarray, dtype=uint8
        The names, one after the other.
    name_offsets : ndarray, dtype=int64
        Where each name begins and the last one ends.
    read : int
        The number of the read.

    Returns
    -------
    int
        Where the zero ends.
    """
    begin, end = name_offsets[unsigned(read)], name_offsets[unsigned(read + 1)]
    if begin == end:
        store(text, at, _NO_NAME)
        return at + 2
    at = copy_text(text, at, names, begin, end)
    text[unsigned(at)] = 0
    return at + 1


@inline_without_refcounts
def write_fixed_fields(
    text: TextArray,
    at: int,
    place: Place,
    size: int,
    name_bytes: int,
    quality: int,
    flag: int,
    operations: int,
    bases: int,
    mate_place: Place,
    template_length: int,
) -> None:
    """Write the fields of a record before its name, except for the length of the record.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output.
    at : int
        Where in the text the record begins.
    place : tuple of int
        Where the alignment begins (`Place`).
    size : int
        The bases of the reference that it takes, at least 1.
    name_bytes : int
        The bytes of the name, with the zero that ends it.
    quality : int
        The mapping quality.
    flag : int
        The flags.
    operations : int
        The operations of the CIGAR.
    bases : int
        The bases that are written.
    mate_place : tuple of int
        Where the alignment of the mate begins (`Place`).
    template_length : int
        The length of the template.
    """
    bin_number = bin_of(place[1], place[1] + size) & 0xFFFF
    store(text, at + 4, np.uint32(place[0]))
    store(text, at + 8, np.uint32(place[1]))
    store(text, at + 12, np.uint32(name_bytes | quality << 8 | bin_number << 16))
    store(text, at + 16, np.uint32(operations | flag << 16))
    store(text, at + 20, np.uint32(bases))
    store(text, at + 24, np.uint32(mate_place[0]))
    store(text, at + 28, np.uint32(mate_place[1]))
    store(text, at + 32, np.uint32(template_length))


@inline_without_refcounts
def _write_bases(
    text: TextArray, at: int, codes: CodeArray, begin: int, length: int, is_reverse: bool
) -> int:
    """Write a query's bases, and qualities that are not known; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    codes : ndarray, dtype=uint8
        The codes of all queries, with margins.
    begin : int
        Where the query begins in the block.
    length : int
        The bases of the query.
    is_reverse : bool
        Whether to write the reverse complement.

    Returns
    -------
    int
        Where the qualities end.
    """
    at = pack_bases(text, at, codes, MARGIN + begin, length, is_reverse)
    end = at + length
    for place in range(at, end, 8):
        store(text, place, _NO_QUALITIES)
    return end


@jit_without_refcounts
def fill_records(
    text: TextArray,
    state: Int64Array,
    codes: CodeArray,
    queries: QueryColumns,
    numbers: RowNumbers,
    places: RowPlaces,
    records: npt.NDArray[np.int32],
    flags: npt.NDArray[np.uint16],
    record_ids: npt.NDArray[np.int32],
    read_group: TextArray,
    with_bases: bool,
) -> int:
    """Write the records of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state`.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    state : ndarray, dtype=int64, shape=(1,)
        The row to go on with; updated.
    codes : ndarray, dtype=uint8
        The codes of all queries, with margins.
    queries : tuple of ndarray
        The queries (`line_rows.QueryColumns`).
    numbers : tuple of ndarray, dtype=uint32, shape=(n_rows,)
        The queries, the hit counts and the hit numbers of the rows (`sam_rows.AlignmentTable`).
    places : tuple of ndarray, dtype=int64, shape=(n_rows,)
        The positions, the clips and the lengths of the rows.
    records : ndarray, dtype=int32, shape=(n_rows,)
        The records of the reference.
    flags : ndarray, dtype=uint16, shape=(n_rows,)
        The flags.
    record_ids : ndarray, dtype=int32, shape=(n_records,)
        The number of each record among those of the header.
    read_group : ndarray, dtype=uint8
        The tag of the read group; empty if there is none.
    with_bases : bool
        Whether secondary alignments have bases.

    Returns
    -------
    int
        The number of bytes written.
    """
    row_queries, hit_counts, hit_numbers = numbers
    positions, clips, lengths = places
    offsets, names, name_offsets = queries
    room = text.size - OVERSHOOT
    at = 0
    row = state[NEXT_ROW]
    while row < flags.size:
        query = widened(row_queries[unsigned(row)])
        flag = widened(flags[unsigned(row)])
        begin = offsets[unsigned(query)]
        length = offsets[unsigned(query + 1)] - begin
        bases = 0 if flag & SECONDARY and not with_bases else length
        name_bytes = name_offsets[unsigned(query + 1)] - name_offsets[unsigned(query)]
        variable_bytes = name_bytes + bases + ((bases + 1) >> 1) + read_group.size
        if at + FIXED_BYTES + variable_bytes > room:
            break
        name = at + NAME_AT
        cigar = write_name(text, name, names, name_offsets, query)
        end = cigar
        if flag & UNMAPPED:
            place, size, quality = (-1, -1), 1, 0
        else:
            place = widened(record_ids[records[unsigned(row)]]), positions[unsigned(row)]
            size, clip, quality = lengths[unsigned(row)], clips[unsigned(row)], _MAPPED
            end = _write_operation(text, end, clip, _SOFT_CLIP)
            end = _write_operation(text, end, size, _EQUAL)
            end = _write_operation(text, end, length - clip - size, _SOFT_CLIP)
        operations = (end - cigar) >> 2
        if bases:
            end = _write_bases(text, end, codes, begin, length, flag & REVERSE != 0)
        if flag & UNMAPPED == 0:
            end = write_tag(text, end, _NM, 0)
            end = write_tag(text, end, _AS, lengths[unsigned(row)])
            end = write_tag(text, end, _NH, widened(hit_counts[unsigned(row)]))
            end = write_tag(text, end, _HI, widened(hit_numbers[unsigned(row)]))
        end = copy_text(text, end, read_group, 0, read_group.size)
        store(text, at, np.uint32(end - at - 4))
        write_fixed_fields(
            text,
            at,
            place,
            size,
            cigar - name,
            quality,
            flag,
            operations,
            bases,
            (-1, -1),
            0,
        )
        at = end
        row += 1
    state[NEXT_ROW] = row
    return at
