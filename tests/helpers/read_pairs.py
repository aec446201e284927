"""Pairs of reads of a random genome, with errors, as files."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from helpers.sequences import random_bases, reverse_complement


@dataclass(frozen=True)
class PairFiles:
    """Files in one folder: a reference, two files of mates, and one in which they alternate."""

    reference: str = "r.fa"
    first: str = "1.fq"
    second: str = "2.fq"
    both: str = "both.fq"


def write_pairs(folder: Path, count: int = 400, read_bases: int = 100, seed: int = 3) -> PairFiles:
    """Write a genome of two records, one of them with a repeat, and pairs of its reads.

    Of each 40 pairs, one is of random bases, one is from two records, one has an insertion and one
    has a deletion; in all, a base in a hundred differs.
    """
    made = random.Random(seed)
    repeat = random_bases(made, 700)
    one = random_bases(made, 20_000) + repeat
    two = random_bases(made, 9_000) + repeat + random_bases(made, 3_000)
    files = PairFiles()
    (folder / files.reference).write_text(f">one\n{one}\n>two the second\n{two}\n")
    texts: dict[str, list[str]] = {files.first: [], files.second: [], files.both: []}
    for number in range(count):
        mates = _mates(made, (one, two), read_bases, number % 40)
        if number % 2:
            mates = mates[::-1]
        for end, (bases, path) in enumerate(zip(mates, (files.first, files.second), strict=True)):
            quality = "".join(made.choices("FFFF:,#", k=len(bases)))
            text = f"@pair{number}/{end + 1} comment\n{bases}\n+\n{quality}\n"
            texts[path].append(text)
            texts[files.both].append(text)
    for path, parts in texts.items():
        (folder / path).write_text("".join(parts))
    return files


def _mates(made: random.Random, records: tuple[str, str], bases: int, kind: int) -> tuple[str, str]:
    record = made.choice(records)
    size = int(made.gauss(300, 25))
    start = made.randrange(len(record) - size)
    template = record[start : start + size]
    if kind == 0:
        template = random_bases(made, size)
    elif kind == 1:
        template = records[0][2000:2150] + records[1][4000:4150]
    elif kind == 2:
        template = template[:40] + "ACG" + template[40:]
    elif kind == 3:
        template = template[:50] + template[54:]
    reverse = reverse_complement(template)
    return _with_errors(made, template[:bases]), _with_errors(made, reverse[:bases])


def _with_errors(made: random.Random, bases: str) -> str:
    return "".join(made.choice("ACGTN") if made.random() < 0.0125 else base for base in bases)
