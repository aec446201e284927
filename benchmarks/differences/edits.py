"""What differs between two genomes, as edits; and the copy of a genome with known ones."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

LONGEST_GAP: Final = 50
"""The longest insertion or deletion that is made."""

GAP_EXPONENT: Final = 1.5
"""A gap of n bases is as frequent as n to the power of minus this."""

_LINE_BASES: Final = 60


class Edit(NamedTuple):
    """A range of the reference, and what is in its place.

    Attributes
    ----------
    begin, end : int
        The range, 0-based and half-open; empty for an insertion.
    bases : str
        What is there instead; empty for a deletion.
    """

    begin: int
    end: int
    bases: str

    @property
    def is_substitution(self) -> bool:
        """Whether one base is another one."""
        return self.end - self.begin == len(self.bases) == 1


Edits = dict[str, list[Edit]]
"""The edits of each record, ascending."""


@dataclass(frozen=True)
class Rates:
    """How often each base is edited.

    Attributes
    ----------
    substitution : float
        The share of bases that become another one.
    gap : float
        The chance of an insertion, and as often a deletion, at a base.
    """

    substitution: float
    gap: float


def read_fasta(path: Path) -> dict[str, str]:
    """Return the sequences of a file by the first words of their names, in upper case."""
    records: dict[str, list[str]] = {}
    with path.open() as file:
        for line in file:
            if line.startswith(">"):
                lines = records.setdefault(line[1:].split()[0], [])
            else:
                lines.append(line.strip().upper())
    return {name: "".join(lines) for name, lines in records.items()}


def write_fasta(path: Path, records: Mapping[str, str]) -> None:
    """Write sequences, with lines of 60 bases."""
    with path.open("w") as file:
        for name, bases in records.items():
            file.write(f">{name}\n")
            for at in range(0, len(bases), _LINE_BASES):
                file.write(bases[at : at + _LINE_BASES] + "\n")


def random_edits(records: Mapping[str, str], rates: Rates, seed: int) -> Edits:
    """Return edits at random places, none of them within or beside a gap of another one."""
    chance = random.Random(seed)
    sizes = range(1, LONGEST_GAP + 1)
    weights = [size**-GAP_EXPONENT for size in sizes]
    total = rates.substitution + 2 * rates.gap
    edits: Edits = {}
    for name, bases in records.items():
        made = edits[name] = []
        at = -1
        while True:
            at += 1 + int(chance.expovariate(total))
            if at >= len(bases) - LONGEST_GAP - 1:
                break
            kind = chance.random() * total
            if bases[at] not in "ACGT":
                continue
            if kind < rates.substitution:
                other = chance.choice("ACGT".replace(bases[at], ""))
                made.append(Edit(at, at + 1, other))
                continue
            size = chance.choices(sizes, weights)[0]
            if kind < rates.substitution + rates.gap:
                # Between two bases that stay: else it is not known what it is an insertion into.
                made.append(Edit(at + 1, at + 1, "".join(chance.choices("ACGT", k=size))))
                at += 1
            else:
                made.append(Edit(at + 1, at + 1 + size, ""))
                at += 1 + size
    return edits


def apply(bases: str, edits: Iterable[Edit], begin: int, end: int) -> str:
    """Return a range of a sequence with its edits; those that overlap an earlier one are left out.

    Parameters
    ----------
    bases : str
        The whole sequence.
    edits : iterable of Edit
        Edits of the range, ascending.
    begin, end : int
        The range.
    """
    pieces = []
    for edit in edits:
        if edit.begin < begin:
            continue
        pieces += [bases[begin : edit.begin], edit.bases]
        begin = edit.end
    return "".join([*pieces, bases[begin:end]])


def trimmed(position: int, reference: str, alternative: str) -> Edit:
    """Return the edit that a row of VCF tells, without the bases that both sides have."""
    first = 0
    while first < min(len(reference), len(alternative)) and reference[first] == alternative[first]:
        first += 1
    reference, alternative = reference[first:], alternative[first:]
    last = 0
    while last < min(len(reference), len(alternative)):
        if reference[-1 - last] != alternative[-1 - last]:
            break
        last += 1
    begin = position + first
    kept = len(alternative) - last
    return Edit(begin, begin + len(reference) - last, alternative[:kept])


def rows_of_vcf(path: Path, passing: bool = False) -> Iterator[tuple[str, int, str, str]]:
    """Yield record, 0-based position, REF and ALT of each row; of those that pass on request."""
    with path.open() as file:
        for line in file:
            if line.startswith("#"):
                continue
            name, position, _, reference, alternative, _, chosen = line.split("\t")[:7]
            if not passing or chosen == "PASS":
                yield name, int(position) - 1, reference.upper(), alternative.upper()


def write_vcf(path: Path, records: Mapping[str, str], edits: Edits) -> None:
    """Write edits as VCF, with the base before a gap, or the one after it at the start."""
    with path.open("w") as file:
        file.write("##fileformat=VCFv4.2\n")
        for name, bases in records.items():
            file.write(f"##contig=<ID={name},length={len(bases)}>\n")
        file.write("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
        for name, bases in records.items():
            for edit in sorted(edits.get(name, [])):
                begin, end, made = edit
                if begin == end or not made:
                    if begin > 0:
                        begin, made = begin - 1, bases[begin - 1] + made
                    else:
                        end, made = end + 1, made + bases[end]
                file.write(f"{name}\t{begin + 1}\t.\t{bases[begin:end]}\t{made}\t.\tPASS\t.\n")
