"""The reference: all its records in one array of base codes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import Input, bytes_of_files, reading
from mummergpu.input.bytes.formats import Format
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.parallel_fasta import LEAST_BYTES, read_fasta_in_parallel
from mummergpu.input.records.record_arrays import (
    CHUNK_SIZE,
    UNLIMITED_BLOCK,
    RecordOptions,
    Records,
)
from mummergpu.input.records.record_reader import PROTEIN_HINT, RecordReader, printable
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, as_int64, inline, writable
from mummergpu.runtime.words import say_nothing
from mummergpu.sequence.codes import BREAK, NO_LETTERS, CodeArray, Letters, flatten, with_margins

_COUNT_STEP: Final = 1 << 18
"""The number of codes counted together: intermediate arrays of this size stay in the caches."""

_MOST_BUCKETS: Final = 1 << 16

_PART_OF_PROTEIN: Final = 5
"""More than 1/N of a protein's letters are IUPAC codes for several bases, and as many are foreign;
of 4,209 bacterial proteins, in the median 38% and 35%."""

_SHORTEST_PROTEIN: Final = 20
"""A shorter record, such as ACDN, may have any letters."""


@frozen
class Reference:
    """All records of a reference, with one break between neighbours.

    Attributes
    ----------
    path : str
        The file as the user named it.
    codes : ndarray, dtype=uint8, shape=(n_bases + n_records - 1,)
        The base codes; between two records lies one `codes.BREAK`.
    record_starts : ndarray, dtype=int64, shape=(n_records,)
        The index in `codes` at which each record begins.
    record_lengths : ndarray, dtype=int64, shape=(n_records,)
        The number of bases of each record; a record may be empty.
    names : tuple of bytes
        The names of the records, cut at the first white space.
    padded : ndarray, dtype=uint8, shape=(codes.size + 2 * MARGIN,), or None
        The array that contains `codes` with breaks before and after them, if there is one.
    letters : Letters
        The letters that stand for several bases, which are breaks in `codes`.
    checksums : tuple of str
        The MD5 of all letters of each record (`record_checksums`); empty if not known.
    """

    path: str
    codes: CodeArray
    record_starts: Int64Array
    record_lengths: Int64Array
    names: tuple[bytes, ...]
    padded: CodeArray | None = None
    letters: Letters = NO_LETTERS
    checksums: tuple[str, ...] = ()

    @cached_property
    def padded_codes(self) -> CodeArray:
        """The codes with `codes.MARGIN` breaks before and after; they are copied once at most."""
        return with_margins(self.codes) if self.padded is None else self.padded

    @cached_property
    def base_count(self) -> int:
        """The number of codes that are A, C, G or T: only these can be part of a match."""
        return sum(
            int(np.count_nonzero(self.codes[begin : begin + _COUNT_STEP] != BREAK))
            for begin in range(0, self.codes.size, _COUNT_STEP)
        )


def read_reference(
    path: str,
    chunk_size: int = CHUNK_SIZE,
    *,
    any_letters: bool = False,
    threads: ReadingThreads | None = None,
    needs_base: bool = True,
    wants_checksums: bool = False,
    warn: Callable[[str], None] = say_nothing,
) -> Reference:
    """Read a reference, all its records, from FASTA, plain or compressed.

    Parameters
    ----------
    path : str
        The file, "-" being standard input.
    chunk_size : int, default CHUNK_SIZE
        The number of bytes of text parsed at once.
    any_letters : bool, default False
        Accept records whose letters are mostly not DNA or RNA.
    threads : ReadingThreads, optional
        They decompress a large file, or parse pieces of one that is not compressed.
    needs_base : bool, default True
        Whether a reference with only unknown bases is an error, too.
    wants_checksums : bool, default False
        Whether to find the checksums of records that can be read only once, as from a pipe.
    warn : callable, optional
        Receives a warning of bytes after the compressed data.

    Raises
    ------
    InputError
        If the file cannot be read, is not FASTA, is not DNA, or has no base.

    Notes
    -----
    A reference needs one byte of memory per base, and half as much again while a compressed file
    or a pipe is read.
    """
    with Input(path, threads) as file:
        if file.format is not Format.FASTA:
            raise InputError(f"a reference must be FASTA, and this is {file.format.value}", path)
        # The size of a plain file limits its bases: memory for all is allocated at once.
        expected = 0 if file.compression else file.size or 0
        records = None
        checksums = None
        if wants_checksums and bytes_of_files([path]) is None:
            checksums = RecordChecksums()
            file.text.watch = checksums.add
        if threads is not None and threads.can_share and expected >= LEAST_BYTES:
            with reading(path):
                records = read_fasta_in_parallel(
                    file.file.fileno(), expected, any_letters, threads.executor, threads.window
                )
        if records is None:
            options = RecordOptions(
                UNLIMITED_BLOCK, chunk_size, any_letters, keeps_letters=True, has_gaps=True
            )
            records = RecordReader(file, False, options, expected).next_block()
        file.tell_of_ignored(warn)
    known = () if checksums is None else checksums.finish()
    return reference_of_records(records, path, needs_base, known)


def reference_of_records(
    records: Records | None, path: str, needs_base: bool = True, checksums: tuple[str, ...] = ()
) -> Reference:
    """Return parsed records, with one break between two and letters kept, as a reference.

    The arrays of the reference are those of the records. Raise `InputError` if there is no base
    that can match; or only if there is none at all, if such a base is not needed.
    """
    no_base = InputError("the reference holds no A, C, G or T", path)
    if records is None:
        raise no_base
    letters = flatten(records.codes)
    reference = Reference(
        path,
        records.codes,
        records.offsets[:-1],
        np.diff(records.offsets) - 1,
        tuple(records.name_spans.items()),
        records.padded_codes,
        letters,
        checksums,
    )
    # A part of a genome may be nothing but N: then nothing is found in it.
    has_base = reference.base_count > 0 if needs_base else reference.record_lengths.any()
    if not has_base:
        raise no_base
    return reference


def refuse_proteins(reference: Reference) -> None:
    """Raise `InputError` if a record of a reference that was read with any letters is a protein.

    An index keeps letters that stand for several bases; foreign letters are unknown bases there.
    """
    starts, lengths = reference.record_starts, reference.record_lengths
    begins, ends = np.searchsorted(reference.letters.positions, [starts, starts + lengths])
    is_suspect = (_PART_OF_PROTEIN * (ends - begins) > lengths) & (lengths >= _SHORTEST_PROTEIN)
    for record in np.flatnonzero(is_suspect).tolist():
        begin = starts[record]
        unknown = np.count_nonzero(reference.codes[begin : begin + lengths[record]] == BREAK)
        foreign = int(unknown - ends[record] + begins[record])
        if _PART_OF_PROTEIN * foreign > lengths[record]:
            text = f"this record is not DNA or RNA {PROTEIN_HINT}"
            raise InputError(text, reference.path, None, printable(reference.names[record]))


class RecordLookup(NamedTuple):
    """A table that finds the record of a position, mostly without a search.

    Attributes
    ----------
    starts : ndarray, dtype=int64, shape=(n_records,)
        Where each record begins in the joined reference.
    buckets : ndarray, dtype=int32
        The last record that starts at or before each bucket of positions, and one bucket more.
    bucket_shift : int
        The binary logarithm of the positions in a bucket.
    """

    starts: Int64Array
    buckets: Int32Array
    bucket_shift: int


def record_lookup(record_starts: Int64Array, size: int) -> RecordLookup:
    """Return the table for the records of a reference of `size` codes.

    Few of its buckets contain the start of a record.
    """
    starts = writable(record_starts)
    count = starts.size
    buckets = max(count, min(16 * count, _MOST_BUCKETS)) if count > 1 else 1
    shift = (size // buckets).bit_length()
    edges = np.arange((size >> shift) + 2, dtype=np.int64) << shift
    last = (np.searchsorted(starts, edges, side="right") - 1).astype(np.int32)
    return RecordLookup(starts, last, shift)


@inline
def record_at(starts: Int64Array, buckets: Int32Array, bucket_shift: int, position: int) -> int:
    """Return the last record that starts at or before a 0-based position in the joined reference.

    The first three parameters are the fields of `RecordLookup`.
    """
    bucket = position >> bucket_shift
    first = as_int64(buckets[as_index(bucket)])
    last = as_int64(buckets[as_index(bucket + 1)])
    while first < last:
        middle = (first + last + 1) >> 1
        if starts[as_index(middle)] <= position:
            first = middle
        else:
            last = middle - 1
    return first


_CHUNK_BYTES: Final = 1 << 17
"""The bytes of a part, few enough that its letters stay in the caches of a processor."""

_LINE_ENDS: Final = b"\n\r"

_FIRST_COUNTED: Final = 33
_LAST_COUNTED: Final = 126
"""The range of counted bytes: the printable ones (SAM format specification, 1.3.2)."""

_NOT_COUNTED: Final = bytes({*range(256)}.difference(range(_FIRST_COUNTED, _LAST_COUNTED + 1)))

_UPPER_CASE: Final = bytes(range(256)).upper()


class RecordChecksums:
    """Finds the MD5 of each record of a FASTA file, the tag M5 of SAM.

    It is of all letters in upper case, also of those that are no bases, so it cannot come from the
    codes. The text comes in parts of any size.
    """

    def __init__(self) -> None:
        self._in_header = False
        self._before = _LINE_ENDS[:1]
        # Not imported by runs that find no checksums.
        from hashlib import md5

        self._new: Callable[[], Any] = partial(md5, usedforsecurity=False)
        # Text before the first record is ignored.
        self._current = self._new()
        self._found: list[str] = []

    def add(self, part: memoryview | ByteArray) -> None:
        """Take the next part of the text, of at least one byte."""
        text = bytes(part)
        place = 0
        while place < len(text):
            if self._in_header:
                ends = [text.find(_LINE_ENDS[one : one + 1], place) for one in range(2)]
                place = min((end for end in ends if end >= 0), default=len(text))
                self._in_header = place == len(text)
                continue
            begin, place = place, self._next_header(text, place)
            self._current.update(text[begin:place].translate(_UPPER_CASE, _NOT_COUNTED))
            if place < len(text):
                self._found.append(self._current.hexdigest())
                self._current = self._new()
                self._in_header = True
        self._before = text[-1:]

    def _next_header(self, text: bytes, place: int) -> int:
        """Return where the next line begins that is a header; the end of the text if none does."""
        while (place := text.find(b">", place)) >= 0:
            before = text[place - 1 : place] if place else self._before
            if before in _LINE_ENDS:
                return place
            place += 1
        return len(text)

    def finish(self) -> tuple[str, ...]:
        """Return the MD5 of each record, as 32 hexadecimal digits."""
        return *self._found[1:], self._current.hexdigest()


def record_checksums(path: str, threads: ReadingThreads | None = None) -> tuple[str, ...]:
    """Return the MD5 of each record of a FASTA file, as 32 hexadecimal digits.

    The file is plain or compressed; it cannot be standard input, which was read before.

    Raises
    ------
    InputError
        If the file cannot be read, or is no FASTA.
    """
    with Input(path, threads) as file:
        if file.format is not Format.FASTA:
            raise InputError(f"a reference must be FASTA, and this is {file.format.value}", path)
        text, checksums = memoryview(bytearray(_CHUNK_BYTES)), RecordChecksums()
        while size := file.text.readinto(text) or 0:
            checksums.add(text[:size])
        return checksums.finish()
