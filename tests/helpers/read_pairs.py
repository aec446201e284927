"""Pairs of reads of a random genome, with errors, as files."""

import random
from dataclasses import dataclass

from helpers.sequences import random_bases, reverse_complement


@dataclass(frozen=True)
class PairFiles:
    """Files in one folder: a reference, two files of mates, and one in which they alternate."""

    reference: str = "r.fa"
    first: str = "1.fq"
    second: str = "2.fq"
    both: str = "both.fq"


def write_pairs(folder, count=400, read_bases=100, seed=3):
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
    texts = {files.first: [], files.second: [], files.both: []}
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


def write_drifting_pairs(folder, count):
    """Write pairs whose reads differ more and more from their places.

    The last ones have so many differences that the second pass maps them.
    """
    write_pairs(folder, count, read_bases=150)
    made = random.Random(5)
    for name in ("1.fq", "2.fq"):
        lines = (folder / name).read_text().splitlines()
        for row in range(1, len(lines), 4):
            share = 0.12 * row / len(lines)
            bases = (made.choice("ACGT") if made.random() < share else one for one in lines[row])
            lines[row] = "".join(bases)
        (folder / name).write_text("".join(f"{line}\n" for line in lines))


def _mates(made, records, bases, kind):
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


def _with_errors(made, bases):
    return "".join(made.choice("ACGTN") if made.random() < 0.0125 else base for base in bases)


def write_repeats(folder, copies, seed=5, pairs=150, longest=100):
    """Write a genome of copies of one repeat, and pairs of reads of it, some with unknown bases."""
    made = random.Random(seed)

    def mutated(bases, rate):
        return "".join(made.choice("ACGT") if made.random() < rate else base for base in bases)

    repeat = random_bases(made, 240)
    records = []
    for _ in range(3):
        parts = []
        for _ in range(copies // 3):
            copy = mutated(repeat, made.choice([0.0, 0.01, 0.05, 0.1]))
            parts.append(random_bases(made, made.randrange(0, 60)))
            parts.append(copy if made.random() < 0.5 else reverse_complement(copy))
        records.append("".join(parts))
    with (folder / "r.fa").open("w") as file:
        for number, record in enumerate(records):
            file.write(f">r{number}\n{record}\n")
    with (folder / "1.fq").open("w") as first, (folder / "2.fq").open("w") as second:
        for number in range(pairs):
            record = made.choice(records)
            size = made.randrange(longest + 30, longest + 220)
            begin = made.randrange(len(record) - size)
            template = record[begin : begin + size]
            mates = [template[:longest], reverse_complement(template)[:longest]]
            if number % 10 == 0:
                mates[0] = mates[0][:50] + made.choice(records)[200:250]
            if number % 11 == 0:
                mates[1] = mates[1][:30] + mates[1][made.randrange(31, 36) :]
            if number % 13 == 0:
                mates[1] = mates[1][:45] + "N" + mates[1][46:]
            for mate, file in zip(mates, (first, second), strict=True):
                # The windows of a read begin at its first base, wherever it lies in its block.
                bases = mutated(mate, 0.01)[: made.randrange(longest - 12, longest + 1)]
                quality = "".join(made.choices("FFFF:,#", k=len(bases)))
                file.write(f"@p{number}\n{bases}\n+\n{quality}\n")
