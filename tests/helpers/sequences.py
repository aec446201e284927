"""Sequences of tests: made at random, turned around, written as FASTA and read back."""

from collections.abc import Mapping
from pathlib import Path

COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")


def random_bases(made, count):
    return "".join(made.choices("ACGT", k=count))


def reverse_complement(bases):
    return bases[::-1].translate(COMPLEMENT)


def write_fasta(path, records):
    """Write named sequences, each in one line."""
    named = records.items() if isinstance(records, Mapping) else records
    Path(path).write_text("".join(f">{name}\n{bases}\n" for name, bases in named))
    return Path(path)


def write_numbered(path, name, sequences):
    """Write sequences whose names are one word and their numbers."""
    return write_fasta(path, ((f"{name}{n}", bases) for n, bases in enumerate(sequences)))


def write_fastq(path, reads, quality="I"):
    """Write named reads whose bases all have the same quality."""
    lines = (f"@{name}\n{bases}\n+\n{quality * len(bases)}\n" for name, bases in reads)
    Path(path).write_text("".join(lines))
    return Path(path)


def read_fasta(path):
    """The sequences of a file by their names, which end at the first blank."""
    records = {}
    for text in Path(path).read_text().split(">")[1:]:
        name, *lines = text.splitlines()
        records[name.split(" ")[0]] = "".join(lines)
    return records
