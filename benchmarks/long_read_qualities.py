"""The mapping qualities of long reads that are aligned, beside the errors that they promise.

    python benchmarks/long_read_qualities.py REFERENCE[:SNPS] ... [--ours COMMAND] [--reads 6000]
        [--errors 0.002 0.01 0.05] [--threads N] [--seed 1] [--folder DIR] [--name FILE]

Reads of 1 to 20 kbp, with lengths that are uniform on a logarithmic scale, come from either strand
of each reference (FASTA), in which that share of bases was changed before. Of the errors three
fifths are substitutions, a fifth insertions and a fifth deletions of a base. `mummergpu align -o
x.paf` and minimap2 (`-cx map-hifi` and `-cx asm5`) align them. The alignment of a read with the
highest score is right if it has a tenth of the bases that it and the truth have together, on the
right strand. The figures are, for each quality: the reads, and how many of these are wrong.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from measure import save

OURS = f"{sys.executable} -m mummergpu"
COMPLEMENT = str.maketrans("ACGT", "TGCA")
SHORTEST, LONGEST = 1_000, 20_000
MOST_UNKNOWN = 0.1
LEAST_OVERLAP = 0.1


def read_records(path: Path) -> dict[str, str]:
    """Return the records of a FASTA file in upper case."""
    opened = gzip.open if path.suffix == ".gz" else open
    records: dict[str, list[str]] = {}
    with opened(path, "rt") as file:
        for line in file:
            if line.startswith(">"):
                own = records.setdefault(line[1:].split()[0], [])
            else:
                own.append(line.strip().upper())
    return {name: "".join(lines) for name, lines in records.items()}


def write_reads(
    path: Path, records: dict[str, str], count: int, rate: float, made: random.Random
) -> None:
    """Write reads whose names tell the record, the range and the strand."""
    names, sizes = list(records), [len(bases) for bases in records.values()]
    with path.open("w") as file:
        number = 0
        while number < count:
            name = made.choices(names, sizes)[0]
            length = int(SHORTEST * (LONGEST / SHORTEST) ** made.random())
            begin = made.randrange(max(1, len(records[name]) - length))
            bases = records[name][begin : begin + length]
            if len(bases) < length or bases.count("N") > MOST_UNKNOWN * length:
                continue
            letters = list(bases)
            for place, base in enumerate(bases):
                if made.random() < rate:
                    kinds = [made.choice("ACGT".replace(base, ""))] * 3
                    letters[place] = made.choice([*kinds, base + made.choice("ACGT"), ""])
            read, strand = "".join(letters), made.choice("+-")
            if strand == "-":
                read = read[::-1].translate(COMPLEMENT)
            file.write(f">{number}!{name}!{begin}!{begin + length}!{strand}\n{read}\n")
            number += 1


def judge(path: Path) -> tuple[Counter[int], Counter[int]]:
    """Return how many reads have each quality, and how many of these are wrong, from PAF."""
    best: dict[str, tuple[int, list[str]]] = {}
    for line in path.read_text().splitlines():
        fields = line.split("\t")
        score = next(int(field[5:]) for field in fields[12:] if field.startswith("AS:i:"))
        if "tp:A:S" not in fields and score > best.get(fields[0], (-1, []))[0]:
            best[fields[0]] = score, fields
    reads: Counter[int] = Counter()
    wrong: Counter[int] = Counter()
    for name, (_, fields) in best.items():
        _, record, first, last, strand = name.split("!")
        begin, end = int(fields[7]), int(fields[8])
        overlap = min(end, int(last)) - max(begin, int(first))
        union = max(end, int(last)) - min(begin, int(first))
        quality = int(fields[11])
        reads[quality] += 1
        wrong[quality] += (record, strand) != (
            fields[5],
            fields[4],
        ) or overlap < LEAST_OVERLAP * union
    return reads, wrong


def main() -> None:
    """Simulate, align, judge, and save the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("references", nargs="+")
    parser.add_argument("--ours", default=OURS)
    parser.add_argument("--reads", type=int, default=6000)
    parser.add_argument("--errors", type=float, nargs="+", default=[0.002, 0.01, 0.05])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--name", default="long-read-qualities.json")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    threads = ["-t", str(given.threads)]
    programs = {
        "align": [*shlex.split(given.ours), "align", "-q", *threads, "--format", "paf"],
        "minimap2 map-hifi": ["minimap2", "-cx", "map-hifi", *threads],
        "minimap2 asm5": ["minimap2", "-cx", "asm5", *threads],
    }
    figures = {name: (Counter[int](), Counter[int]()) for name in programs}
    for number, text in enumerate(given.references):
        place, _, share = text.partition(":")
        made = random.Random(f"{given.seed} {number}")
        records = read_records(Path(place))
        reference, queries = folder / "reference.fa", folder / "reads.fa"
        reference.write_text("".join(f">{name}\n{bases}\n" for name, bases in records.items()))
        rate = float(share or 0)
        sample = {
            name: "".join(made.choice("ACGT") if made.random() < rate else one for one in bases)
            for name, bases in records.items()
        }
        for errors in given.errors:
            write_reads(queries, sample, given.reads, errors, made)
            for name, command in programs.items():
                output = folder / "x.paf"
                with output.open("wb") as file:
                    words = [*command, str(reference), str(queries)]
                    subprocess.run(words, stdout=file, stderr=subprocess.DEVNULL, check=True)
                for total, own in zip(figures[name], judge(output), strict=True):
                    total.update(own)
    qualities = {
        name: {str(quality): [reads[quality], wrong[quality]] for quality in sorted(reads)}
        for name, (reads, wrong) in figures.items()
    }
    print(save(given.name, {"reads_of_each": given.reads, "reads_and_wrong": qualities}))


if __name__ == "__main__":
    main()
