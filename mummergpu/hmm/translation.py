"""Open reading frames of nucleotides, as Easel's esl-translate finds them by default.

An ORF lies between two stop codons, or a stop codon and an end, in one of six frames: by default
20 residues or more in the standard genetic code, from the first codon on that cannot be a stop. An
ORF that is too long for HMMER is also cut at each gap, which is a run of N.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.hmm.proteins import SYMBOLS
from mummergpu.input.blocks.memory import NamedSequence, nucleotides_in_memory
from mummergpu.input.blocks.protein_rules import DEFAULT_CODE, MOST_RESIDUES, STRANDS, ProteinRules
from mummergpu.input.blocks.proteins import BLOCK_RESIDUES, LongOnes, TranslatableFiles, Warn
from mummergpu.input.bytes.files import PLACE
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.records.file_records import FileRecords
from mummergpu.input.records.record_arrays import NOTHING, Limits, RecordOptions, Records, Words
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, inline, jit, writable
from mummergpu.runtime.ordered_map import ordered_results
from mummergpu.runtime.pyhmmer_library import bytes_of, pyhmmer_module
from mummergpu.runtime.words import say_nothing
from mummergpu.sequence.codes import COMPLEMENT_OF_CODE, LETTERS, CodeArray

_GAP_RESIDUES: Final = 20
"""The unknown residues in a row that make a gap of an assembly."""

_GENETIC_CODE: Final = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"
"""The amino acids of AAA, AAC, AAG, AAT, ACA, ..., TTT in the standard code."""

_UNKNOWN: Final = SYMBOLS.index("X")
_STOP: Final = SYMBOLS.index("*")
_MAY_STOP: Final = 64
"""Added to the residue of a codon that may be a stop or another: no ORF begins with it."""

_BASES_OF_LETTER: Final = {
    **{"A": "A", "C": "C", "G": "G", "T": "T", "N": "ACGT", "S": "CG", "W": "AT", "R": "AG"},
    **{"Y": "CT", "K": "GT", "M": "AC", "B": "CGT", "V": "ACG", "D": "AGT", "H": "ACT"},
}

FORWARD_FRAMES: Final = 3
_FIRST_MATE: Final = 0x40
_SECOND_MATE: Final = 0x80


class OrfLimits(NamedTuple):
    """The limits of ORFs for compiled functions: bases of the shortest, and `STRANDS`."""

    min_bases: int
    first_strand: int
    end_strand: int

    @classmethod
    def of_rules(cls, rules: ProteinRules) -> OrfLimits:
        """Return the limits of rules."""
        return cls(3 * rules.min_orf, *STRANDS[rules.strand])


def _amino_acids(code: int) -> Int64Array:
    """Return the residues of AAA, AAC, ..., TTT in one of NCBI's genetic codes."""
    if code == DEFAULT_CODE:
        return np.array([SYMBOLS.index(one) for one in _GENETIC_CODE])
    easel = pyhmmer_module("easel")
    try:
        known = easel.GeneticCode(code)
    except ValueError as error:
        message = f"{code} is not the number of a genetic code that is known here, as NCBI has it"
        raise OptionError("code", message) from error
    codons = np.indices((4, 4, 4)).reshape(3, -1).T
    return np.array(
        known.translate(np.ascontiguousarray(codons, dtype=np.uint8).ravel()), dtype=np.int64
    )


@cache
def _residue_of_codon(code: int) -> ByteArray:
    """Return the residue of each codon of three codes of `codes.LETTERS`, 4 bits each."""
    table = np.zeros((16, 16, 16), dtype=np.uint8)
    amino_acids = _amino_acids(code).reshape(4, 4, 4)
    bases = [["ACGT".index(base) for base in _BASES_OF_LETTER[chr(one)]] for one in LETTERS]
    for first, second, third in np.ndindex(table.shape):
        meant = np.unique(amino_acids[np.ix_(bases[first], bases[second], bases[third])])
        unknown = _UNKNOWN + _MAY_STOP * int(_STOP in meant)
        table[first, second, third] = meant[0] if meant.size == 1 else unknown
    return table.reshape(-1)


class OrfPlace(NamedTuple):
    """Where an ORF lies."""

    record: str  # The name of the nucleotides' record
    # 1 to 3 from the beginning of the record on, 4 to 6 from its end on, on the other strand.
    frame: int
    # The first and the last base, counted from 1 on the strand of the record; `start` is the larger
    # one in frames 4 to 6.
    start: int
    end: int

    @classmethod
    def of_name(cls, name: str) -> OrfPlace:
        """Return the place in the name of an ORF."""
        record, frame, bases = name.rsplit(":", 2)
        start, end = bases.split("-")
        return cls(record, int(frame), int(start), int(end))

    @property
    def name(self) -> str:
        """The name of the ORF, such as ``contig7:4:360-61``."""
        return f"{self.record}:{self.frame}:{self.start}-{self.end}"


class Orfs(NamedTuple):
    """ORFs in the order of esl-translate."""

    # (n_residues,): the residues of all ORFs (`proteins.SYMBOLS`), one after the other.
    codes: ByteArray
    offsets: Int64Array  # (n_orfs + 1,): where each begins in `codes`, and where the last ends
    records: Int64Array  # (n_orfs,): the numbers of the records that they are of
    # (n_orfs,): see `OrfPlace`.
    frames: Int64Array
    starts: Int64Array

    def part(self, first: int, end: int) -> Orfs:
        """Return some of the ORFs, as views."""
        offsets = self.offsets[first : end + 1]
        return Orfs(
            self.codes[offsets[0] : offsets[-1]],
            offsets - offsets[0],
            self.records[first:end],
            self.frames[first:end],
            self.starts[first:end],
        )


def find_orfs(codes: CodeArray, offsets: Int64Array, rules: ProteinRules) -> Orfs:
    """Return the ORFs of records, whose codes are those of `codes.LETTERS`."""
    limits = OrfLimits.of_rules(rules)
    # Six frames have two residues for each base, if none of the codons is a stop.
    found = _room_for_orfs(2 * int(offsets[-1] - offsets[0]), limits)
    table, begins = _residue_of_codon(rules.code), np.empty(3, dtype=np.int64)
    number = _find_orfs(writable(codes), writable(offsets), table, begins, limits, found)
    return found.part(0, number)


def _cut_at_gaps(orfs: Orfs, min_residues: int, leave_out: Callable[[Orfs], None]) -> Orfs:
    """Return ORFs, of which those too long for HMMER are cut into pieces without gaps.

    `leave_out` receives, one by one, pieces that are still too long.
    """
    long = np.flatnonzero(np.diff(orfs.offsets) > MOST_RESIDUES).tolist()
    if not long:
        return orfs
    parts, before = [], 0
    for number in long:
        parts.append(orfs.part(before, number))
        before = number + 1
        one = orfs.part(number, before)
        unknown = np.concatenate([[False], one.codes == _UNKNOWN, [False]])
        begins, ends = np.flatnonzero(np.diff(unknown)).reshape(-1, 2).T
        is_gap = ends - begins >= _GAP_RESIDUES
        step = 3 if one.frames[0] <= FORWARD_FRAMES else -3
        pieces = zip([0, *ends[is_gap]], [*begins[is_gap], one.codes.size], strict=True)
        for begin, end in pieces:
            offsets = np.array([0, end - begin], dtype=np.int64)
            starts = one.starts + step * begin
            piece = one._replace(codes=one.codes[begin:end], offsets=offsets, starts=starts)
            if end - begin > MOST_RESIDUES:
                leave_out(piece)
            elif end - begin >= min_residues:
                parts.append(piece)
    parts.append(orfs.part(before, orfs.records.size))
    sizes = [np.diff(part.offsets) for part in parts]
    return Orfs(
        np.concatenate([part.codes for part in parts]),
        np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64),
        np.concatenate([part.records for part in parts]),
        np.concatenate([part.frames for part in parts]),
        np.concatenate([part.starts for part in parts]),
    )


def _room_for_orfs(residues: int, limits: OrfLimits) -> Orfs:
    """Return memory for ORFs of `residues` in all."""
    count = 3 * residues // limits.min_bases + 1
    return Orfs(
        np.empty(residues, dtype=np.uint8),
        np.zeros(count + 1, dtype=np.int64),
        *np.empty((3, count), dtype=np.int64),
    )


def _orfs_in_pieces(
    codes: CodeArray, offsets: Int64Array, piece: int, rules: ProteinRules
) -> Iterator[Orfs]:
    """Yield the ORFs of records in their order, those of records of more bases in pieces."""
    before, count = 0, offsets.size - 1
    long = np.flatnonzero(np.diff(offsets) > piece).tolist()
    for record in (*long, count):
        if before < record:
            found = find_orfs(codes, offsets[before : record + 1], rules)
            yield found._replace(records=found.records + before)
        if record < count:
            yield from _orfs_of_long_record(codes, offsets, record, piece, rules)
        before = record + 1


def _orfs_of_long_record(
    codes: CodeArray, offsets: Int64Array, record: int, piece: int, rules: ProteinRules
) -> Iterator[Orfs]:
    """Yield the ORFs of a record that end within the next piece of a strand, in turn."""
    begins, own = np.empty(3, dtype=np.int64), writable(codes)
    table = _residue_of_codon(rules.code)
    limits = OrfLimits.of_rules(rules)
    begin, end = offsets[record : record + 2].tolist()
    length = end - begin
    for number in range(limits.first_strand, limits.end_strand):
        first, step = ((begin, 1), (end - 1, -1))[number]
        begins[:] = -1
        for at in range(0, length + 1, piece):
            # An open ORF may have begun long before.
            pending = int((at - begins[begins >= 0]).sum())
            orfs = _room_for_orfs(piece + pending // 3 + 3, limits)
            until = min(at + piece, length + 1)
            strand = _Strand(first, step, length)
            count = _scan_strand(own, strand, at, until, record, table, begins, limits, orfs, 0)
            yield orfs.part(0, count)


@inline
def _codon_at(codes: CodeArray, first: int, step: int, at: int) -> int:
    """Return the codon that begins `at` bases after the first one of a strand."""
    codon = 0
    for base in range(3):
        code = codes[as_index(first + step * (at + base))]
        codon = codon << 4 | (code if step > 0 else COMPLEMENT_OF_CODE[code])
    return codon


@inline
def _keep_orf(
    codes: CodeArray,
    first: int,
    step: int,
    begin: int,
    end: int,
    table: ByteArray,
    orfs: Orfs,
    n: int,
) -> None:
    """Write the residues of the bases from `begin` to `end` of a strand as ORF `n`."""
    to = orfs.offsets[n]
    for at in range(begin, end, 3):
        codon = _codon_at(codes, first, step, at)
        orfs.codes[as_index(to)] = table[as_index(codon)] & (_MAY_STOP - 1)
        to += 1
    orfs.offsets[n + 1] = to


class _Strand(NamedTuple):
    """Where a strand of a record begins in the codes, 1 or -1 for its direction, and its bases."""

    first: int
    step: int
    length: int


@jit
def _scan_strand(
    codes: CodeArray,
    strand: _Strand,
    at: int,
    until: int,
    record: int,
    table: ByteArray,
    begins: Int64Array,
    limits: OrfLimits,
    orfs: Orfs,
    found: int,
) -> int:
    """Write the ORFs that end in a range of a strand; return the new number of ORFs.

    `begins` keeps where the open ORF of each frame began, -1 where there is none.
    """
    first, step, length = strand
    last, is_first = length - 3, step > 0
    codon = _codon_at(codes, first, step, at) >> 4 if at <= last else 0
    frame = at % 3
    # The last three codons do not exist: they end the ORFs that are still open, as stops do.
    for place in range(at, until):
        residue = _STOP
        if place <= last:
            code = codes[as_index(first + step * (place + 2))]
            codon = (codon << 4 | (code if is_first else COMPLEMENT_OF_CODE[code])) & 4095
            residue = table[as_index(codon)]
        if residue == _STOP:
            begin = begins[frame]
            if begin >= 0 and place - begin >= limits.min_bases:
                _keep_orf(codes, first, step, begin, place, table, orfs, found)
                orfs.records[found] = record
                orfs.frames[found] = 1 + frame if is_first else 4 + frame
                orfs.starts[found] = begin + 1 if is_first else length - begin
                found += 1
            begins[frame] = -1
        elif residue < _MAY_STOP and begins[frame] < 0:
            begins[frame] = place
        frame = 0 if frame == 2 else frame + 1
    return found


@jit
def _find_orfs(
    codes: CodeArray,
    offsets: Int64Array,
    table: ByteArray,
    begins: Int64Array,
    limits: OrfLimits,
    orfs: Orfs,
) -> int:
    """Write the ORFs of all records; return their number.

    `begins` is memory for `_scan_strand`, and `table` has the residue of each codon.
    """
    found = 0
    for record in range(offsets.size - 1):
        length = offsets[record + 1] - offsets[record]
        if length < limits.min_bases:
            continue
        for number in range(limits.first_strand, limits.end_strand):
            begins[:] = -1
            first = offsets[record] if number == 0 else offsets[record + 1] - 1
            strand = _Strand(first, 1 - 2 * number, length)
            until = length + 1
            found = _scan_strand(
                codes, strand, 0, until, record, table, begins, limits, orfs, found
            )
    return found


class OrfRecords(NamedTuple):
    """ORFs with names and descriptions, in place of `Records`."""

    orfs: Orfs
    records: Records
    flags: Int64Array

    @property
    def codes(self) -> ByteArray:
        """The residues of all ORFs."""
        return self.orfs.codes

    @property
    def offsets(self) -> Int64Array:
        """Where each ORF begins in `codes`, and where the last ends."""
        return self.orfs.offsets

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number of ORFs."""
        return self.orfs.offsets.size - 1

    def name(self, number: int) -> str:
        """Return the name of an ORF (`OrfPlace.name`)."""
        return self._place(number).name

    def description(self, number: int) -> str:
        """Return the description by esl-translate, and that of the record."""
        record, frame, start, end = self._place(number)
        description = self.records.description(int(self.orfs.records[number]))
        return (
            f"source={record} coords={start}..{end} length={self._length(number)} frame={frame} "
            f"desc={description}"
        )

    def accession(self, _number: int) -> str:
        """Return that an ORF has no accession."""
        return ""

    def words(self, numbers: Int64Array) -> Words:
        """Return the names and descriptions of some ORFs."""
        every = numbers.tolist()
        return Words.of_texts(
            [(bytes_of(self.name(one)), b"", bytes_of(self.description(one))) for one in every]
        )

    def _length(self, number: int) -> int:
        return int(self.orfs.offsets[number + 1] - self.orfs.offsets[number])

    def _place(self, number: int) -> OrfPlace:
        frame, start = int(self.orfs.frames[number]), int(self.orfs.starts[number])
        bases = 3 * self._length(number) - 1
        end = start + bases if frame <= FORWARD_FRAMES else start - bases
        return OrfPlace(self._record_name(int(self.orfs.records[number])), frame, start, end)

    def _record_name(self, record: int) -> str:
        """Return the name of a record; those of mates, which are equal in SAM, get an end."""
        name = self.records.name(record)
        flag = int(self.flags[record]) if self.flags.size else 0
        for mate, end in ((_FIRST_MATE, "/1"), (_SECOND_MATE, "/2")):
            if flag & (_FIRST_MATE | _SECOND_MATE) == mate and not name.endswith(end):
                return name + end
        return name


class TranslatedFiles(TranslatableFiles):
    """The ORFs of files of nucleotides: FASTA, FASTQ, SAM, BAM or CRAM, compressed or not.

    The rules' `any_letters` accepts records whose letters are mostly not DNA or RNA. A record is in
    memory whole, but not all its ORFs.
    """

    is_translated = True

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing, scale: int = 1
    ) -> Generator[OrfRecords]:
        """Yield the ORFs in blocks, `scale` times as large as by default."""
        _residue_of_codon(self._rules.code)  # There is such a code.
        long = LongOnes(self._rules, "ORF")
        # Qualities come with all letters, and with the flags of mates.
        options = RecordOptions(
            Limits.of_block(scale * self._block_size),
            any_letters=self._rules.any_letters,
            no_empty=self._rules.no_empty,
            keeps_qualities=True,
            keeps_headers=True,
            warn=warn,
        )
        with closing(self._opened(options, threads)) as files:
            for file in files:
                is_empty = True
                with closing(self._translated(file, threads, scale, long)) as blocks:
                    for orfs in blocks:
                        is_empty = False
                        yield from orfs
                if is_empty:
                    warn(f"{file.path}: no sequences")
                long.tell(file.path, warn)

    def _translated(
        self, file: FileRecords, threads: ReadingThreads | None, scale: int, long: LongOnes
    ) -> Generator[Iterable[OrfRecords]]:
        """Yield the ORFs of each block of records; several threads find them, if there are many."""

        def work(records: Records) -> Iterator[OrfRecords]:
            residues = scale * self._block_size
            return translated(records, file.path, self._rules, long, residues)

        def work_at_once(records: Records) -> list[OrfRecords]:
            return list(work(records))

        if threads is not None and threads.has_many:
            yield from ordered_results(threads.executor, threads.window, file, work_at_once)
        else:
            yield from map(work, file)


class TranslatedInMemory:
    """The ORFs of nucleotides in memory; see `TranslatedFiles` for those of files."""

    is_translated = True
    bytes_total: int | None = None
    bytes_read = 0
    can_repeat = True

    def __init__(self, sequences: Iterable[NamedSequence], rules: ProteinRules) -> None:
        self._sequences = sequences
        self._rules = rules
        self._blocks: list[OrfRecords] | None = None

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing, scale: int = 1
    ) -> Generator[OrfRecords]:
        """Yield the ORFs; see `TranslatedFiles.blocks`."""
        if self._blocks is None:
            rules = self._rules
            records = nucleotides_in_memory(self._sequences, rules.any_letters, "sequences")
            long = LongOnes(rules, "ORF")
            blocks = [] if records is None else translated(records, PLACE, rules, long)
            self._blocks = list(blocks)
            long.tell(PLACE, warn)
        yield from self._blocks


def translated(
    records: Records,
    path: str,
    rules: ProteinRules,
    long: LongOnes,
    block_residues: int = BLOCK_RESIDUES,
) -> Iterator[OrfRecords]:
    """Yield the ORFs of records in blocks of about `block_residues`; count those left out."""
    # The nucleotides are dropped: else they would stay in memory.
    named = Records(NOTHING, records.offsets, records.names, records.name_offsets)
    flags = records.flags.astype(np.int64)

    def leave_out(one: Orfs) -> None:
        long.add(OrfRecords(one, named, flags).name(0), one.codes.size, path)

    for found in _orfs_in_pieces(records.codes, records.offsets, block_residues, rules):
        orfs = _cut_at_gaps(found, rules.min_orf, leave_out)
        lengths = np.diff(orfs.offsets)
        parts = max(1, round(orfs.codes.size / block_residues))
        cuts = np.searchsorted(orfs.offsets, np.arange(1, parts) * orfs.codes.size // parts)
        for first, end in pairwise(np.unique([0, *cuts, lengths.size]).tolist()):
            yield OrfRecords(orfs.part(first, end), named, flags)
