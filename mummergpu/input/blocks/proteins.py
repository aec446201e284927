"""Proteins from files or from memory, in blocks of a few arrays."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Final, NamedTuple, Protocol

import numpy as np

from mummergpu.errors import InputError, OptionError
from mummergpu.input.blocks.memory import NamedSequence, proteins_in_memory
from mummergpu.input.bytes.files import PLACE, bytes_of_files
from mummergpu.input.bytes.formats import BY_CONTENT, EASEL_FORMATS, PROTEIN_FORMATS
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.file_records import FileRecords
from mummergpu.input.records.record_arrays import Limits, RecordOptions, Records, Spans
from mummergpu.input.records.record_reader import line_of_record, printable
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import between, keep_values, one_of, positive, truth
from mummergpu.runtime.words import pluralize, say_nothing, shorter
from mummergpu.sequence.codes import AMINO_ACIDS

MOST_RESIDUES: Final = 100_000
"""The residues of the longest protein that HMMER searches."""

BLOCK_RESIDUES: Final = 1 << 22

SAMPLE_RESIDUES: Final = 10_000
"""The first residues of a file, which tell whether it has nucleotides."""

_FEWEST_SAMPLED: Final = 100
_NUCLEOTIDE_SHARE: Final = 0.95
_NUCLEOTIDES: Final = np.isin(
    np.arange(256), [AMINO_ACIDS.letters.index(letter) for letter in b"ACGTUN"]
)
_BLANKS: Final = b" \t"
_WHITE_SPACE: Final = (*b" \t\n\v\f\r",)
_END_OF_DESCRIPTION: Final = b"\x01"


Warn = Callable[[str], None]
"""Receives a line for the user."""


class NamedProteins(Protocol):
    """Proteins that are searched together: `ProteinRecords`, or ORFs (`hmm.translation`)."""

    @property
    def codes(self) -> ByteArray: ...  # noqa: D102
    @property
    def offsets(self) -> Int64Array: ...  # noqa: D102
    @property
    def protein_count(self) -> int: ...  # noqa: D102
    def name(self, number: int) -> str: ...  # noqa: D102
    def description(self, number: int) -> str: ...  # noqa: D102
    def accession(self, number: int) -> str: ...  # noqa: D102


class ProteinRecords(NamedTuple):
    """Consecutive proteins of a file.

    Attributes
    ----------
    codes : ndarray, dtype=uint8, shape=(n_residues,)
        The codes of `alphabet.AMINO_ACIDS`, one protein after the other.
    offsets : ndarray, dtype=int64, shape=(n_proteins + 1,)
        Where in `codes` each protein begins, and where the last ends.
    headers : Spans
        The line of each, without its first character.
    accessions : Spans or None
        Those that a file has beside names.
    """

    codes: ByteArray
    offsets: Int64Array
    headers: Spans
    accessions: Spans | None = None

    @property
    def protein_count(self) -> int:
        """The number of proteins."""
        return self.offsets.size - 1

    def name(self, number: int) -> str:
        """Return the name of a protein: the first word of its line."""
        return _as_text(_first_word(self._header(number)))

    def description(self, number: int) -> str:
        """Return what follows the name: a byte 1, as in NCBI's old files, ends it."""
        header = self._header(number)
        rest = header[len(_first_word(header)) :].lstrip(_BLANKS)
        return _as_text(rest.partition(_END_OF_DESCRIPTION)[0])

    def accession(self, number: int) -> str:
        """Return the accession of a protein, empty if it has none."""
        if self.accessions is None:
            return ""
        content, offsets = self.accessions
        return _as_text(content[offsets[number] : offsets[number + 1]].tobytes())

    def _header(self, number: int) -> bytes:
        content, offsets = self.headers
        return content[offsets[number] : offsets[number + 1]].tobytes().lstrip(_BLANKS)


def _first_word(header: bytes) -> bytes:
    end = next((at for at, byte in enumerate(header) if byte in _WHITE_SPACE), len(header))
    return header[:end]


def _as_text(name: bytes) -> str:
    """Return a name as text, from which its bytes can be made again."""
    return name.decode("utf-8", "surrogateescape")


DEFAULT_CODE: Final = 1
"""The standard genetic code, in NCBI's numbers."""

DEFAULT_MIN_ORF: Final = 20
"""The residues of the shortest ORF that esl-translate writes by default."""

STRANDS: Final = {"both": (0, 2), "plus": (0, 1), "minus": (1, 2)}
"""The strands that are translated: the first one, and the one behind the last."""


@frozen
class ProteinRules:
    """Which files of proteins are accepted, and how nucleotides are translated.

    Attributes
    ----------
    any_letters : bool
        Accept files whose first letters are nearly all nucleotides; or, if nucleotides are
        translated, whose letters are mostly none.
    no_empty : bool
        Raise an error if a file has no protein.
    long_proteins : {"skip", "error"}
        What becomes of a protein, or an ORF, of more than `MOST_RESIDUES`.
    code : int
        The genetic code, as NCBI numbers it.
    min_orf : int
        The residues of the shortest ORF.
    strand : {"both", "plus", "minus"}
        Which strands are translated.
    sequence_format : str
        The format of the files: one of `PROTEIN_FORMATS`.

    Raises
    ------
    OptionError
        If a value makes no sense.
    """

    any_letters: bool = False
    no_empty: bool = False
    long_proteins: str = "skip"
    code: int = DEFAULT_CODE
    min_orf: int = DEFAULT_MIN_ORF
    strand: str = "both"
    sequence_format: str = BY_CONTENT

    def __post_init__(self) -> None:
        keep_values(
            self,
            any_letters=truth("any_letters", self.any_letters),
            long_proteins=one_of("long_proteins", self.long_proteins, ("skip", "error")),
            code=positive("code", self.code),
            min_orf=between("min_orf", self.min_orf, 1, MOST_RESIDUES),
            strand=one_of("strand", self.strand, STRANDS),
            sequence_format=one_of("sequence_format", self.sequence_format, PROTEIN_FORMATS),
        )

    def check_if_translated(self, translates: bool) -> None:
        """Refuse rules of translation where nothing is translated."""
        for name in ("code", "min_orf", "strand"):
            if not translates and getattr(self, name) != getattr(ProteinRules, name):
                raise OptionError(name, "it is of use with translate only")
        if translates and self.sequence_format in EASEL_FORMATS:
            raise OptionError("sequence_format", "it is of proteins, which translate cannot use")


class RecordFiles:
    """Files that are read one after the other, as often as they allow, and what is read of them.

    Parameters
    ----------
    paths : iterable of str
        The files; "-" is standard input.
    rules : ProteinRules
        Which files are accepted.
    block_residues : int
        About how many residues a block has.
    """

    def __init__(
        self, paths: Iterable[str], rules: ProteinRules, block_residues: int = BLOCK_RESIDUES
    ) -> None:
        self._paths = tuple(paths)
        self._rules = rules
        self._block_residues = block_residues
        self.bytes_total = bytes_of_files(self._paths)
        self._bytes_before = 0
        self._file: FileRecords | None = None

    @property
    def bytes_read(self) -> int:
        """The bytes read so far in this pass over the files, counted before decompression."""
        return self._bytes_before + (0 if self._file is None else self._file.bytes_read)

    @property
    def can_repeat(self) -> bool:
        """Whether the files can be read more than once."""
        return self.bytes_total is not None

    def _opened(
        self, options: RecordOptions, threads: ReadingThreads | None
    ) -> Generator[FileRecords]:
        """Yield the files in turn, each open while its records are read."""
        self._bytes_before = 0
        for path in self._paths:
            with FileRecords(path, options, threads) as file:
                self._file = file
                yield file
                self._bytes_before += file.bytes_read
                self._file = None


class ProteinFiles(RecordFiles):
    """The proteins of some files, compressed or not, "-" being standard input.

    FASTA is read here, and formats that Easel knows through pyhmmer.

    Raises
    ------
    LibraryError
        If the library for the compression of a file is missing.
    InputError
        If a file cannot be opened or decompressed here.
    """

    is_translated = False

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing, scale: int = 1
    ) -> Generator[ProteinRecords]:
        """Yield the proteins in blocks, `scale` times as large as by default.

        `warn` receives one line for each file without a protein, unless the rules refuse it.

        Raises
        ------
        InputError
            If a file has no format of proteins, other characters than residues, a nameless record
            or one of more than `MOST_RESIDUES`, or seems to have nucleotides.
        """
        long = LongOnes(self._rules)
        options = RecordOptions(
            Limits.of_block(scale * self._block_residues),
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
                    first += records.offsets.size - 1
                if first == 0:
                    warn(f"{file.path}: no sequences")
                long.tell(file.path, warn)


class ProteinsInMemory:
    """The proteins that a program has in memory, as a source beside files."""

    is_translated = False
    bytes_total: int | None = None
    bytes_read = 0
    can_repeat = True

    def __init__(self, sequences: Iterable[NamedSequence], rules: ProteinRules) -> None:
        if rules.sequence_format != BY_CONTENT:
            raise OptionError("sequence_format", "it is of use with files only")
        self._sequences = sequences
        self._rules = rules
        self._blocks: list[ProteinRecords] | None = None

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing, scale: int = 1
    ) -> Generator[ProteinRecords]:
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
    """Counts the proteins of a file, or its ORFs, that are left out because HMMER takes none such.

    Parameters
    ----------
    rules : ProteinRules
        Whether they are left out.
    what : str
        The noun for one of them.
    """

    def __init__(self, rules: ProteinRules, what: str = "protein") -> None:
        self.are_errors = rules.long_proteins == "error"
        self._what = what
        # Threads append to it.
        self._found: list[str] = []

    def add(self, name: str, residues: int, path: str, line: int | None = None) -> None:
        """Count one of so many residues, or raise an error."""
        shown = printable(name.encode("utf-8", "surrogateescape"))
        if self.are_errors:
            message = f"{residues:,} residues, and HMMER searches at most {MOST_RESIDUES:,}"
            message = message if self._what == "protein" else f"an {self._what} of {message}"
            raise InputError(message, path, line, shown)
        self._found.append(shown)

    def tell(self, path: str, warn: Warn) -> None:
        """Tell in one line how many of a file were left out, and begin with the next one."""
        if self._found:
            names, count = shorter(sorted(self._found)), pluralize(len(self._found), self._what)
            warn(f"{path}: {count} of more than {MOST_RESIDUES:,} residues left out: {names}")
            self._found.clear()


def checked_proteins(
    records: Records, path: str, first: int, long_ones: LongOnes, easel_format: str | None = None
) -> ProteinRecords:
    """Return records as proteins; `first` is the number in the file of the first one.

    `easel_format` is the format of the file, if Easel has read it.

    Raises
    ------
    InputError
        If a record has no name, or more than `MOST_RESIDUES` where that is an error.
    """
    headers = Spans(records.names, records.name_offsets)
    proteins = ProteinRecords(records.codes, records.offsets, headers, records.accessions)
    is_long = np.diff(proteins.offsets) > MOST_RESIDUES
    for number in np.flatnonzero(is_long).tolist():
        line = line_of_record(path, first + number, easel_format) if long_ones.are_errors else None
        length = int(proteins.offsets[number + 1] - proteins.offsets[number])
        long_ones.add(proteins.name(number), length, path, line)
    # The byte behind an empty last header is read as if it were in it: it only costs a look.
    begins = records.name_offsets[:-1]
    heads = np.append(records.names, np.uint8(0))[begins] if begins.size else records.names[:0]
    nameless = (heads <= ord(" ")) | (np.diff(records.name_offsets) == 0)
    for number in np.flatnonzero(nameless).tolist():
        if not proteins.name(number):
            raise InputError("a record without a name", path, line_of_record(path, first + number))
    return _without(proteins, is_long) if is_long.any() else proteins


def _without(proteins: ProteinRecords, is_left_out: BoolArray) -> ProteinRecords:
    """Return a copy of proteins without some of them."""

    def kept(content: ByteArray, offsets: Int64Array) -> tuple[ByteArray, Int64Array]:
        sizes = np.diff(offsets)
        some = content[np.repeat(~is_left_out, sizes)]
        return some, np.cumsum([0, *sizes[~is_left_out]], dtype=np.int64)

    codes = kept(proteins.codes, proteins.offsets)
    accessions = proteins.accessions
    kept_accessions = None if accessions is None else Spans(*kept(*accessions))
    return ProteinRecords(*codes, Spans(*kept(*proteins.headers)), kept_accessions)


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
