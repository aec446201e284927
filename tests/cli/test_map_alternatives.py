"""The tag XA of the command ``map``: other places that are nearly as good, as from bwa mem."""

import random
import re
from pathlib import Path

import pytest
from helpers.alignment_tools import bwa_alignments
from helpers.loops import each
from helpers.repeat_reads import (
    PAIRS,
    REVERSE,
    SECONDARY,
    changed_bases,
    edits_and_score,
    is_secondary,
    read_of,
    reads,
    records,
    rows_of,
    tags_of,
    write_repeats,
)
from helpers.sequences import random_bases, reverse_complement

import mummergpu
from mummergpu.errors import OptionError

SUPPLEMENTARY = 2048
CHIMERAS = 120
MORE_PAIRS = 200
FILES = ("1.fq 2.fq", "1.fq 2.fq --single", "split.fq")

Interval = tuple[int, int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs of a genome with repeats of few and of many copies, and reads of two parts.

    A third record has sequences that occur two to six times.
    """
    made = tmp_path_factory.mktemp("alternatives")
    write_repeats(made)
    chance = random.Random(12)
    parts = []
    for copies in range(2, 7):
        repeat = random_bases(chance, 400)
        parts += [changed_bases(chance, repeat, 0.01 * chance.random()) for _ in range(copies)]
    chance.shuffle(parts)
    parts = [reverse_complement(part) if chance.random() < 0.5 else part for part in parts]
    third = "".join(part + random_bases(chance, 250) for part in parts)
    with open(made / "r.fa", "a") as file:
        file.write(f">three\n{third}\n")
    with open(made / "1.fq", "a") as first, open(made / "2.fq", "a") as second:
        for number in range(PAIRS, MORE_PAIRS):
            begin = chance.randrange(len(third) - 300)
            mates = (
                third[begin : begin + 100],
                reverse_complement(third[begin : begin + 300])[:100],
            )
            for file, mate in zip((first, second), mates, strict=True):
                bases = changed_bases(chance, mate, 0.01)
                file.write(f"@p{number}\n{bases}\n+\n{'F' * len(bases)}\n")
    genome = "".join((made / "r.fa").read_text().split()[1::2])
    texts = []
    for number in range(CHIMERAS):
        bases = ""
        for length in (chance.randrange(50, 100), chance.randrange(50, 100)):
            begin = chance.randrange(len(genome) - length)
            part = genome[begin : begin + length]
            bases += part if chance.random() < 0.5 else reverse_complement(part)
        bases = changed_bases(chance, bases, 0.005)
        texts.append(f"@s{number}\n{bases}\n+\n{'F' * len(bases)}\n")
    (made / "split.fq").write_text("".join(texts))
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def part_of_read(row):
    """The bases of the read that a row aligns, on the read's own strand."""
    operations = re.findall(r"(\d+)([MIDSH])", row[5])
    before, after = (
        int(length) if kind in "SH" else 0 for length, kind in (operations[0], operations[-1])
    )
    length = sum(int(size) for size, kind in operations if kind != "D")
    return (after, length - before) if int(row[1]) & REVERSE else (before, length - after)


def shared(one, other):
    return min(one[1], other[1]) - max(one[0], other[0])


def place_of(row):
    strand = "-" if int(row[1]) & REVERSE else "+"
    return f"{row[2]},{strand}{row[3]},{row[5]},{tags_of(row)['NM']};"


def folded(rows, most):
    """The rows that are not secondary, with the tag that the secondary ones become."""
    by_read = []
    for row in rows:
        if not int(row[1]) & (SECONDARY | SUPPLEMENTARY):
            by_read.append([])
        by_read[-1].append(row)
    told = []
    for of_read in by_read:
        kept = [row for row in of_read if not is_secondary(row)]
        places = [[] for _ in kept]
        for row in filter(is_secondary, of_read):
            parts = [shared(part_of_read(row), part_of_read(other)) for other in kept]
            owner = parts.index(max(parts))
            if 5 * int(tags_of(row)["AS"]) >= 4 * int(tags_of(kept[owner])["AS"]):
                places[owner].append(place_of(row))
        for row, found in zip(kept, places, strict=True):
            tag = [f"XA:Z:{''.join(found)}"] if 0 < len(found) <= most else []
            told.append(row + tag)
    return told


def places_in(row):
    """The record, the strand and position, the CIGAR and the edits of each alternative."""
    return re.findall(r"([^,;]+),([+-]\d+),(\w+),(\d+);", tags_of(row).get("XA", ""))


@each("words, most", [(words, most) for words in FILES for most in (1, 3, 5, 200)])
def test_places_are_those_of_secondary_rows(words, most):
    expected = folded(rows_of(f"{words} -a"), most)
    assert rows_of(f"{words} --max-xa {most}") == expected
    assert sum("XA" in tags_of(row) for row in expected) > 5


def test_parts_of_a_read_tell_of_their_own_places():
    rows = [row for row in rows_of("split.fq --max-xa 20") if "XA" in tags_of(row)]
    assert sum(bool(int(row[1]) & SUPPLEMENTARY) for row in rows) > 3
    assert sum(not int(row[1]) & SUPPLEMENTARY for row in rows) > 3


def test_every_place_tells_the_truth():
    sequences, bases_of = records(), reads()
    count = 0
    for row in rows_of("1.fq 2.fq --max-xa 30"):
        own = bases_of[read_of(row)]
        for record, place, cigar, edits in places_in(row):
            bases = reverse_complement(own) if place[0] == "-" else own
            made = ["", "", record, place[1:], "", cigar]
            found, score = edits_and_score(made, bases, sequences[record])
            assert found == int(edits)
            assert score >= 0.8 * int(tags_of(row)["AS"])
            count += 1
    assert count > 3 * PAIRS


def test_more_places_than_asked_for_are_not_told():
    counts = [len(places_in(row)) for row in rows_of("1.fq 2.fq --max-xa 4")]
    assert max(counts) == 4
    more = [len(places_in(row)) for row in rows_of("1.fq 2.fq --max-xa 400 -N 0")]
    assert [count if count <= 4 else 0 for count in more] == counts != more
    assert rows_of("1.fq 2.fq --max-xa 0") == rows_of("1.fq 2.fq")
    with pytest.raises(OptionError, match="not both"):
        mummergpu.map("r.fa", "1.fq", output="x.sam", max_xa=5, max_secondary=1)
    with pytest.raises(OptionError, match="max_xa"):
        mummergpu.map("r.fa", "1.fq", output="x.sam", max_xa=-1)


def test_places_of_bwa_are_among_ours():
    """Of reads whose best place is the same, and which have no more places than are listed."""
    lines = bwa_alignments(Path("r.fa"), "-h", 5, "1.fq", "2.fq").decode().splitlines()
    theirs = {
        read_of(row): row
        for row in (line.split("\t") for line in lines if line[0] != "@")
        if not int(row[1]) & SUPPLEMENTARY
    }
    count = found = 0
    for row in rows_of("1.fq 2.fq --max-xa 5"):
        other = theirs[read_of(row)]
        if row[2:4] == other[2:4] and places_in(row):
            places = {place[:2] for place in places_in(row)}
            count += len(places_in(other))
            found += sum(place[:2] in places for place in places_in(other))
    assert count > 200 and found >= 0.98 * count
