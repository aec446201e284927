"""Proteins from files or from memory, in blocks of a few arrays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Final, Protocol

import numpy as np

from mummergpu.errors import InputError, OptionError
from mummergpu.input.blocks.memory import NamedSequence, proteins_in_memory
from mummergpu.input.blocks.protein_rules import MOST_RESIDUES, ProteinRules
from mummergpu.input.bytes.files import PLACE
from mummergpu.input.bytes.formats import BLAST_RESIDUES, BLAST_WORD, BY_CONTENT
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.file_records import RecordFiles
from mummergpu.input.records.record_arrays import (
    Limits,
    RecordOptions,
    Records,
    Words,
    in_order,
)
from mummergpu.input.records.record_reader import line_of_record, printable
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.words import pluralize, say_nothing, shorter
from mummergpu.sequence.codes import AMINO_ACIDS

BLOCK_RESIDUES: Final = 1 << 22

SAMPLE_RESIDUES: Final = 10_000
"""The first residues of a file, which show whether it has nucleotides."""

_FEWEST_SAMPLED: Final = 100
_NUCLEOTIDE_SHARE: Final = 0.95
_NUCLEOTIDES: Final = np.isin(
    np.arange(256), [AMINO_ACIDS.letters.index(letter) for letter in b"ACGTUN"]
)


Warn = Callable[[str], None]
"""Receives a line for the user."""


class NamedProteins(Protocol):
    """Proteins that are searched together: `Records`, or ORFs (`hmm.translation`)."""

    @property
    def codes(self) -> ByteArray: ...  # noqa: D102
    @property
    def offsets(self) -> Int64Array: ...  # noqa: D102
    @property
    def count(self) -> int: ...  # noqa: D102
    def name(self, number: int) -> str: ...  # noqa: D102
    def description(self, number: int) -> str: ...  # noqa: D102
    def accession(self, number: int) -> str: ...  # noqa: D102
    def words(self, numbers: Int64Array) -> Words: ...  # noqa: D102


class TranslatableFiles(RecordFiles):
    """Files of proteins, or of nucleotides that are translated."""

    def __init__(
        self, paths: Iterable[str], rules: ProteinRules, block_residues: int = BLOCK_RESIDUES
    ) -> None:
        ending = BLAST_RESIDUES if rules.sequence_format == BLAST_WORD else ""
        super().__init__([f"{path}{ending}" for path in paths], block_residues)
        self._rules = rules


class ProteinFiles(TranslatableFiles):
    """The proteins of some files: FASTA, or through pyhmmer a format of Easel."""

    is_translated = False

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing, scale: int = 1
    ) -> Generator[Records]:
        """Yield the proteins in blocks, `scale` times as large as by default.

        `warn` receives one line for each file without a protein, unless the rules refuse it.

        Raises
        ------
        InputError
            If a file has no protein format, characters that are not residues, a nameless record or
            one of more than `MOST_RESIDUES`, or seems to have nucleotides.
        """
        long = LongOnes(self._rules)
        options = RecordOptions(
            Limits.of_block(scale * self._block_size),
            any_letters=True,
            no_empty=self._rules.no_empty,
            keeps_headers=True,
            is_protein=True,
            protein_format=self._rules.sequence_format,
            warn=warn,
        )
        with closing(self._opened(options, threads)) as files:
            for file in files:
                first = 0
                for records in file:
                    if first == 0 and not self._rules.any_letters:
                        _refuse_nucleotides(records, file.path)
                    yield checked_proteins(records, file.path, first, long, file.easel_format)
                    first += records.count
                if first == 0:
                    warn(f"{file.path}: no sequences")
                long.tell(file.path, warn)


class ProteinsInMemory:
    """Proteins in the memory of a program, as a source in place of files."""

    is_translated = False
    bytes_total: int | None = None
    bytes_read = 0
    can_repeat = True

    def __init__(self, sequences: Iterable[NamedSequence], rules: ProteinRules) -> None:
        if rules.sequence_format != BY_CONTENT:
            raise OptionError("sequence_format", "it is of use with files only")
        self._sequences = sequences
        self._rules = rules
        self._blocks: list[Records] | None = None

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing, scale: int = 1
    ) -> Generator[Records]:
        """Yield the proteins; see `ProteinFiles.blocks`."""
        if self._blocks is None:
            records = proteins_in_memory(self._sequences, "sequences")
            self._blocks = []
            if records is not None:
                if not self._rules.any_letters:
                    _refuse_nucleotides(records, PLACE)
                long = LongOnes(self._rules)
                self._blocks.append(checked_proteins(records, PLACE, 0, long))
                long.tell(PLACE, warn)
        yield from self._blocks


class LongOnes:
    """Counts the proteins or ORFs of a file that are left out as too long for HMMER."""

    def __init__(self, rules: ProteinRules, what: str = "protein") -> None:
        self.are_errors = rules.long_proteins == "error"
        self._what = what
        # Threads append to it.
        self._found: list[str] = []

    def add(self, name: str, residues: int, path: str, line: int | None = None) -> None:
        """Count one that is too long, or raise an error."""
        shown = printable(name.encode("utf-8", "surrogateescape"))
        if self.are_errors:
            message = f"{residues:,} residues, and HMMER searches at most {MOST_RESIDUES:,}"
            message = message if self._what == "protein" else f"an {self._what} of {message}"
            raise InputError(message, path, line, shown)
        self._found.append(shown)

    def tell(self, path: str, warn: Warn) -> None:
        """Warn in one line of the proteins left out of a file, and reset for the next file."""
        if self._found:
            names, count = shorter(sorted(self._found)), pluralize(len(self._found), self._what)
            warn(f"{path}: {count} of more than {MOST_RESIDUES:,} residues left out: {names}")
            self._found.clear()


def checked_proteins(
    records: Records, path: str, first: int, long_ones: LongOnes, easel_format: str | None = None
) -> Records:
    """Return proteins except those that are too long; `first` is the number of the first one.

    Raise `InputError` if a record has no name, or is too long where that is an error.
    """
    is_long = np.diff(records.offsets) > MOST_RESIDUES
    for number in np.flatnonzero(is_long).tolist():
        line = line_of_record(path, first + number, easel_format) if long_ones.are_errors else None
        length = int(records.offsets[number + 1] - records.offsets[number])
        long_ones.add(records.name(number), length, path, line)
    # After an empty last header, one byte too many is read: it only costs a check.
    begins = records.name_offsets[:-1]
    heads = np.append(records.names, np.uint8(0))[begins] if begins.size else records.names[:0]
    nameless = (heads <= ord(" ")) | (np.diff(records.name_offsets) == 0)
    for number in np.flatnonzero(nameless).tolist():
        if not records.name(number):
            raise InputError("a record without a name", path, line_of_record(path, first + number))
    return in_order(records, np.flatnonzero(~is_long)) if is_long.any() else records


def _refuse_nucleotides(records: Records, path: str) -> None:
    """Raise an error if nearly all of the first letters of a file are nucleotides."""
    codes = records.codes[:SAMPLE_RESIDUES]
    if codes.size < _FEWEST_SAMPLED:
        return
    if np.count_nonzero(_NUCLEOTIDES[codes]) >= _NUCLEOTIDE_SHARE * codes.size:
        name = records.names[: records.name_offsets[1]].tobytes().split()[:1]
        message = (
            "nucleotides, and the profiles are of proteins (--translate searches in their six "
            "frames, --any-letters takes the letters for amino acids)"
        )
        raise InputError(message, path, record=printable(name[0]) if name else None)
