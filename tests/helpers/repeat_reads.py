"""Pairs of reads from a genome with copies of a repeat, and what SAM tells of their places."""

import random
import re
import shlex
from pathlib import Path

from helpers.alignment_tools import sam_rows
from helpers.sequences import random_bases, reverse_complement
from mummergpu.cli.main import main

READ = 100
REPEAT = 400
COPIES = 14
PAIRS = 60
SECONDARY, REVERSE = 256, 16


def write_repeats(made):
    """Write a genome with copies of a repeat that differ more and more, and pairs of its reads.

    A tandem repeat lies in it too: a read of it fits at each period.
    """
    chance = random.Random(11)
    repeat = random_bases(chance, REPEAT)
    parts = []
    for number in range(COPIES):
        copy = changed_bases(chance, repeat, 0.006 * number)
        parts.append(random_bases(chance, chance.randrange(200, 900)))
        parts.append(reverse_complement(copy) if number % 3 == 2 else copy)
    parts.append(random_bases(chance, 300) + "ACGTTCAG" * 40)
    parts.append(random_bases(chance, 300))
    records = "".join(parts[:COPIES]), "".join(parts[COPIES:])
    (made / "r.fa").write_text(f">one\n{records[0]}\n>two\n{records[1]}\n")
    mates = ([], [])
    for number in range(PAIRS):
        record = records[number % 2]
        begin = chance.randrange(len(record) - 300)
        ends = (
            record[begin : begin + READ],
            reverse_complement(record[begin + 300 - READ : begin + 300]),
        )
        for bases, texts in zip(ends, mates, strict=True):
            bases = changed_bases(chance, bases, 0.01)[:READ]
            texts.append(f"@p{number}\n{bases}\n+\n{'F' * len(bases)}\n")
    for name, texts in zip(("1.fq", "2.fq"), mates, strict=True):
        (made / name).write_text("".join(texts))


def changed_bases(chance, bases, share):
    """The bases with some of them replaced, and a few left out or doubled."""
    changed = []
    for base in bases:
        draw = chance.random() / share if share else 2.0
        if draw < 0.8:
            changed.append(chance.choice("ACGT".replace(base, "")))
        elif draw > 1.0 or draw > 0.9:
            changed.append(base if draw > 1.0 else base + base)
    return "".join(changed)


def rows_of(words):
    assert main(["map", "--backend", "cpu", "-q", "r.fa", *shlex.split(words), "-o", "x.sam"]) == 0
    return sam_rows("x.sam")


def is_secondary(row):
    return bool(int(row[1]) & SECONDARY)


def tags_of(row):
    return {field[:2]: field[5:] for field in row[11:]}


def records():
    lines = Path("r.fa").read_text().split()
    return {name[1:]: bases for name, bases in zip(lines[0::2], lines[1::2], strict=True)}


def reads():
    """The reads by name and mate."""
    found = {}
    for mate, path in enumerate(("1.fq", "2.fq")):
        lines = Path(path).read_text().splitlines()
        found |= {
            (name[1:], mate): bases for name, bases in zip(lines[0::4], lines[1::4], strict=True)
        }
    return found


def read_of(row):
    return row[0], int(row[1]) >> 7 & 1


def edits_and_score(row, bases, record):
    """The edits of an alignment and its score, from the bases alone."""
    edits = score = at = 0
    place = int(row[3]) - 1
    for text, kind in re.findall(r"(\d+)([MIDS])", row[5]):
        length = int(text)
        if kind == "M":
            pairs = zip(bases[at : at + length], record[place : place + length], strict=True)
            differing = sum(one != other for one, other in pairs)
            edits += differing
            score += length - 5 * differing
        elif kind != "S":
            edits += length
            score -= 6 + length
        at += length if kind in "MIS" else 0
        place += length if kind in "MD" else 0
    assert at == len(bases)
    return edits, score


def span_of(row):
    begin = int(row[3]) - 1
    return begin, begin + sum(int(n) for n, kind in re.findall(r"(\d+)([MD])", row[5]))
