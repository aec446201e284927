"""Sequences in memory as records: parsed as a FASTA file would be, with the same checks."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

from mummergpu.errors import InputError
from mummergpu.input.queries import QueryBlock
from mummergpu.input.record_arrays import UNLIMITED, Limits, Records
from mummergpu.input.records import RecordReader, printable
from mummergpu.input.reference import Reference, reference_of_records

PLACE = "<memory>"
"""What errors name in place of a file."""

Sequence = str | bytes
NamedSequence = tuple[str | bytes, Sequence]


class MemoryText:
    """The text of FASTA in memory, in the form that a `RecordReader` reads.

    Parameters
    ----------
    text : bytes
        The text.
    """

    path = PLACE

    def __init__(self, text: bytes) -> None:
        self.text = BytesIO(text)
        self.bytes_read = len(text)

    @property
    def source(self) -> MemoryText:
        """The text itself, whose bytes are counted at once."""
        return self


def reference_in_memory(
    sequences: Iterable[NamedSequence], *, any_letters: bool = False
) -> Reference:
    """Return sequences in memory as a reference.

    Parameters
    ----------
    sequences : iterable of tuple
        The name and the bases of each record, as text or bytes.
    any_letters : bool, default False
        Accept records whose letters are mostly not DNA or RNA.

    Returns
    -------
    Reference
        All records, including empty ones.

    Raises
    ------
    InputError
        If a sequence is not DNA or RNA, or there is no base.
    """
    return reference_of_records(_records_of(sequences, True, any_letters), PLACE)


def block_in_memory(
    sequences: Iterable[NamedSequence], *, any_letters: bool = False
) -> QueryBlock | None:
    """Return sequences in memory as one block of queries, None if there are none.

    Parameters
    ----------
    sequences : iterable of tuple
        The name and the bases of each query, as text or bytes.
    any_letters : bool, default False
        Accept queries whose letters are mostly not DNA or RNA.

    Returns
    -------
    QueryBlock or None
        All queries, including empty ones.

    Raises
    ------
    InputError
        If a sequence is not DNA or RNA.
    """
    records = _records_of(sequences, False, any_letters)
    if records is None:
        return None
    return QueryBlock(0, records.padded_codes, records.offsets, records.names, records.name_offsets)


def _records_of(sequences: Iterable[NamedSequence], gap: bool, any_letters: bool) -> Records | None:
    text = b"".join(_fasta_of(name, bases) for name, bases in sequences)
    limits = Limits(UNLIMITED, UNLIMITED, UNLIMITED)
    reader = RecordReader(
        *(MemoryText(text), False, limits, gap, len(text), any_letters), keeps_letters=gap
    )
    return reader.next_block()


def _fasta_of(name: str | bytes, bases: Sequence) -> bytes:
    """Return a record as FASTA; an empty sequence has no line."""
    title = name.encode() if isinstance(name, str) else bytes(name)
    letters = bases.encode() if isinstance(bases, str) else bytes(bases)
    wrong = None
    if b"\n" in title or b"\r" in title:
        wrong = "the name of a record is one line"
    elif letters.startswith(b">") or b"\n>" in letters:
        wrong = "a sequence in memory has bases only"
    if wrong is not None:
        raise InputError(wrong, PLACE, record=printable(title))
    return b">" + title + b"\n" + (letters + b"\n" if letters else b"")
