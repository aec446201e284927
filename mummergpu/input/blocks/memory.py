"""Sequences in memory as records: parsed as a FASTA file would be, with the same checks."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError, OptionError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.bytes.file_part import FilePart
from mummergpu.input.bytes.files import PLACE
from mummergpu.input.records.qualities import LOWEST_CHARACTER, MOST_QUALITY, NO_QUALITY
from mummergpu.input.records.record_arrays import UNLIMITED_BLOCK, Limits, RecordOptions, Records
from mummergpu.input.records.record_reader import RecordReader, name_of, printable
from mummergpu.input.reference import Reference, reference_of_records
from mummergpu.runtime.frozen import frozen

Text = str | bytes
Qualities = str | bytes | Sequence[int] | npt.NDArray[Any] | None
"""The qualities of the bases of a read: characters as in FASTQ, numbers from 0 to 93, or None."""

NamedSequence = tuple[Text, Text] | tuple[Text, Text, Qualities]
"""The name and the bases of a record, and the qualities of the bases, which only mapping uses.

Records of pysam, pyhmmer and Biopython are taken as well."""

NamedPair = tuple[NamedSequence, NamedSequence]
"""The first and the second read of a template."""


def reference_in_memory(
    sequences: Iterable[NamedSequence], *, any_letters: bool = False, option: str = "reference"
) -> Reference:
    """Return sequences in memory as a reference, empty records included.

    `option` is the parameter that has the sequences, for errors. Raise `InputError` if a sequence
    is not DNA or RNA, or there is no base; and `OptionError` for an item without name and sequence.
    """
    texts = [text for text, _ in _fasta_of_all(sequences, option)]
    return reference_of_records(_records_of(texts, True, any_letters, True), PLACE)


def block_in_memory(
    sequences: Iterable[NamedSequence],
    *,
    any_letters: bool = False,
    paired: bool = False,
    option: str = "queries",
) -> QueryBlock | None:
    """Return sequences in memory, empty ones included, as a block; None if there are none.

    If they are paired, mates alternate; their names then end in ``/1`` and ``/2``. `option` is the
    parameter that has the sequences, for errors. Raise `InputError` if a sequence is not DNA or
    RNA, the names of two mates differ, or a read has no mate; and `OptionError` if something is no
    name and sequence.
    """
    texts = [text for text, _ in _fasta_of_all(sequences, option)]
    records = _records_of(texts, False, any_letters, False)
    if records is None:
        return None
    if paired:
        from mummergpu.input.blocks.pairs import pairs_in_memory

        records = pairs_in_memory(records, PLACE)
    return QueryBlock.of_records(records)


def proteins_in_memory(sequences: Iterable[NamedSequence], option: str) -> Records | None:
    """Return proteins in memory as records, None if there are none; see `block_in_memory`."""
    text = b"".join(text for text, _ in _fasta_of_all(sequences, option))
    options = RecordOptions(UNLIMITED_BLOCK, any_letters=True, keeps_headers=True, is_protein=True)
    return _parsed(text, options)


def nucleotides_in_memory(
    sequences: Iterable[NamedSequence], any_letters: bool, option: str
) -> Records | None:
    """Return sequences as records with all letters and whole headers, None if there are none."""
    text = b"".join(text for text, _ in _fasta_of_all(sequences, option))
    options = RecordOptions(
        UNLIMITED_BLOCK, any_letters=any_letters, keeps_letters=True, keeps_headers=True
    )
    return _parsed(text, options)


@frozen
class ReadsInMemory:
    """Reads in the memory of a program, as a source of reads in place of files.

    Attributes
    ----------
    reads : iterable of tuple
        The name, the bases and, if there are any, the qualities of each read; or pairs of such
        reads. It is read once, block by block.
    mates : iterable of tuple or None
        The second read of each template, if `reads` has the first ones.
    interleaved : bool
        Whether mates alternate in `reads`, or `reads` has pairs.
    """

    reads: Iterable[NamedSequence | NamedPair]
    mates: Iterable[NamedSequence] | None = None
    interleaved: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The name in errors in place of a file."""
        return (PLACE,)

    def records(self, limits: Limits, any_letters: bool) -> list[Iterator[Records]]:
        """Return the records of `reads`, and of `mates`, in groups that end at a limit."""
        given = [(self.reads, "reads")]
        if self.mates is not None:
            given.append((self.mates, "mates"))
        return [_grouped(sequences, option, limits, any_letters) for sequences, option in given]


def is_text(given: object) -> bool:
    """Return whether something is text: a sequence, as `Bio.Seq` is one, or a name."""
    return isinstance(given, str | bytes | bytearray) or (
        hasattr(given, "__bytes__") and not isinstance(given, os.PathLike)
    )


def several(sequences: Any, name: str) -> Any:
    """Return sequences as given, but a single one as a list of one with a name."""
    if is_text(sequences):
        return [(name, sequences)]
    is_row = isinstance(sequences, tuple | list)
    return sequences if is_row or row_of(sequences) is None else [sequences]


def row_of(record: Any) -> Any:
    """Return the name, the bases and the qualities of a record; None if it is not a record.

    Records of pysam, pyhmmer and Biopython are recognized by their attributes.
    """
    if isinstance(record, tuple | list):
        return record
    if hasattr(record, "get_forward_sequence"):
        # Files of alignments have reverse-complemented reads of the reverse strand.
        has_qualities = record.query_qualities is not None
        qualities = record.get_forward_qualities() if has_qualities else None
        return record.query_name, record.get_forward_sequence(), qualities
    if hasattr(record, "textize"):
        record = record.textize()
    if hasattr(record, "name") and hasattr(record, "sequence"):
        # Tables of proteins have descriptions, which follow names as in FASTA.
        title = " ".join(filter(None, (record.name, getattr(record, "description", None))))
        return title, record.sequence, getattr(record, "quality", None)
    if hasattr(record, "id") and hasattr(record, "letter_annotations"):
        return record.id, record.seq, record.letter_annotations.get("phred_quality")
    return None


def is_pair(record: object) -> bool:
    """Return whether an item of reads is a pair, not a single read."""
    is_row = isinstance(record, tuple | list) and len(record) == 2
    if not is_row or is_text(record[0]):  # type: ignore[index]
        return False
    return row_of(record[0]) is not None  # type: ignore[index]


def _grouped(
    sequences: Iterable[Any], option: str, limits: Limits, any_letters: bool
) -> Iterator[Records]:
    """Yield groups of records with qualities; both reads of a pair are in the same group."""
    texts: list[bytes] = []
    qualities: list[bytes | None] = []
    size, in_pairs = 0, None
    for record in sequences:
        in_pairs = is_pair(record) if in_pairs is None else in_pairs
        if is_pair(record) != in_pairs:
            raise OptionError(option, f"pairs and single reads, as {reprlib.repr(record)}")
        for text, quality in _fasta_of_all(record if in_pairs else (record,), option):
            texts.append(text)
            qualities.append(quality)
            size += len(text)
        if size >= limits.bases or len(texts) >= limits.records:
            yield _with_qualities(texts, qualities, any_letters)
            texts, qualities, size = [], [], 0
    if texts:
        yield _with_qualities(texts, qualities, any_letters)


def _with_qualities(
    texts: Sequence[bytes], qualities: Sequence[bytes | None], any_letters: bool
) -> Records:
    """Return texts of FASTA as records, with qualities that are characters, or None."""
    records = _records_of(texts, False, any_letters, True)
    assert records is not None
    given = np.array([quality is not None for quality in qualities])
    lengths = np.array([len(quality or b"") for quality in qualities])
    bases = np.diff(records.offsets)
    characters = np.frombuffer(b"".join(filter(None, qualities)), dtype=np.uint8)
    unequal = given & (lengths != bases)
    if unequal.any():
        number = int(unequal.argmax())
        text = f"quality has {lengths[number]} characters, sequence has {bases[number]}"
        raise InputError(text, PLACE, record=name_of(records, number))
    # Bytes below the lowest character become large numbers.
    found = np.full(records.codes.size, NO_QUALITY, dtype=np.uint8)
    found[np.repeat(given, bases)] = characters - np.uint8(LOWEST_CHARACTER)
    wrong = np.repeat(given, bases) & (found > MOST_QUALITY)
    if wrong.any():
        number = int(np.searchsorted(records.offsets, wrong.argmax(), "right")) - 1
        text = f"a quality is not from 0 to {MOST_QUALITY}, nor a character for that"
        raise InputError(text, PLACE, record=name_of(records, number))
    return records._replace(qualities=found)


def _parsed(text: bytes, options: RecordOptions) -> Records | None:
    file = FilePart(PLACE, BytesIO(text))
    return RecordReader(file, False, options, len(text)).next_block()


def _records_of(
    texts: Sequence[bytes], has_gaps: bool, any_letters: bool, keeps_letters: bool
) -> Records | None:
    """Return texts of FASTA as records, None if there are none."""
    text = b"".join(texts)
    options = RecordOptions(
        UNLIMITED_BLOCK, any_letters=any_letters, keeps_letters=keeps_letters, has_gaps=has_gaps
    )
    return _parsed(text, options)


def _fasta_of_all(sequences: Iterable[object], option: str) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield each record of a user as FASTA, with the characters of its qualities, or None.

    Raise `OptionError` for `option` if an item is not a name and a sequence.
    """
    try:
        records = iter(sequences)
    except TypeError:
        text = f"{reprlib.repr(sequences)} has no names and sequences, such as [('name', 'ACGT')]"
        raise OptionError(option, text) from None
    for record in records:
        name = bases = quality = None
        row = row_of(record)
        if row is not None and 2 <= len(row) <= 3:
            name, bases = map(_bytes_of, row[:2])
            quality = row[2] if len(row) == 3 else None
        if name is None or bases is None:
            text = f"{reprlib.repr(record)} is not a name and a sequence: ('name', 'ACGT')"
            raise OptionError(option, text)
        if quality is not None and (quality := _characters_of(quality)) is None:
            text = f"{reprlib.repr(row[2])} are no qualities of bases"
            raise OptionError(option, text)
        yield _fasta_of(name, bases), quality


def _bytes_of(text: object) -> bytes | None:
    """Return a name or a sequence as bytes; None if it is not text."""
    if isinstance(text, str):
        try:
            # This package returns names that are not UTF-8 with such escapes.
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return None
    return bytes(text) if is_text(text) else None  # type: ignore[call-overload]


def _characters_of(quality: object) -> bytes | None:
    """Return qualities as the characters of FASTQ; None if they are not qualities."""
    if isinstance(quality, str | bytes | bytearray):
        return _bytes_of(quality)
    try:
        numbers = np.asarray(quality)
    except (ValueError, TypeError, OverflowError):
        return None
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        return None
    # Numbers out of range become a character that is not a quality.
    is_right = (numbers >= 0) & (numbers <= MOST_QUALITY)
    return bytes(np.where(is_right, numbers + LOWEST_CHARACTER, 0).astype(np.uint8))


def _fasta_of(title: bytes, letters: bytes) -> bytes:
    """Return a record as FASTA; an empty sequence has no line."""
    wrong = None
    if b"\n" in title or b"\r" in title:
        wrong = "the name of a record is one line"
    elif letters.startswith(b">") or b"\n>" in letters:
        wrong = "a sequence in memory has bases only"
    if wrong is not None:
        raise InputError(wrong, PLACE, record=printable(title))
    return b">" + title + b"\n" + (letters + b"\n" if letters else b"")
