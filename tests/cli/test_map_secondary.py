"""Other places of reads of a repeat: secondary rows, and the tag XA as from bwa mem."""

import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
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
    span_of,
    tags_of,
    write_repeats,
)
from helpers.sequences import random_bases, reverse_complement, write_fastq
from numpy.lib.stride_tricks import sliding_window_view

import mummergpu
from mummergpu.errors import OptionError

LEAST_SCORE = 30


@pytest.fixture(scope="module")
def pairs_of_repeats(tmp_path_factory):
    made = tmp_path_factory.mktemp("secondary")
    write_repeats(made)
    return made


@pytest.fixture
def repeats(pairs_of_repeats, monkeypatch):
    monkeypatch.chdir(pairs_of_repeats)


@each("words", ["1.fq 2.fq", "1.fq 2.fq --single"])
def test_the_other_rows_stay_as_they_are(repeats, words):
    assert [row for row in rows_of(f"{words} -a") if not is_secondary(row)] == rows_of(words)


def test_every_secondary_row_tells_the_truth(repeats):
    sequences, bases_of = records(), reads()
    by_read = defaultdict(list)
    for row in rows_of("1.fq 2.fq -N all"):
        by_read[read_of(row)].append(row)
    count = 0
    for read, rows in by_read.items():
        # The primary row comes first, and then the best.
        assert [is_secondary(row) for row in rows] == sorted(is_secondary(row) for row in rows)
        secondary = [row for row in rows if is_secondary(row)]
        scores = []
        for row in secondary:
            count += 1
            tags, bases = tags_of(row), bases_of[read]
            bases = reverse_complement(bases) if int(row[1]) & REVERSE else bases
            found = edits_and_score(row, bases, sequences[row[2]])
            assert found == (int(tags["NM"]), int(tags["AS"])), row
            assert found[1] >= LEAST_SCORE
            assert row[4] == "0" and row[9:11] == ["*", "*"]
            assert set(tags) <= {"NM", "MD", "MC", "MQ", "AS", "XS", "RG"}
            scores.append(found[1])
        places = [(row[2], int(row[1]) & REVERSE, *span_of(row)) for row in rows if row[2] != "*"]
        for number, (record, strand, begin, end) in enumerate(places):
            for other in places[:number]:
                if other[:2] == (record, strand):
                    shared = min(end, other[3]) - max(begin, other[2])
                    assert shared <= 0.95 * min(end - begin, other[3] - other[2])
    assert count > 5 * PAIRS


def test_all_places_are_listed(repeats):
    """Those with up to four bases that differ, and no gap: all of them have a long match."""
    sequences = records()
    by_name = defaultdict(list)
    for row in rows_of("1.fq 2.fq -a --single"):
        by_name[row[0]].append(row)
    count = 0
    for (name, _), bases in reads().items():
        rows = by_name[name]
        for record, sequence in sequences.items():
            for strand, oriented in ((0, bases), (REVERSE, reverse_complement(bases))):
                windows = sliding_window_view(np.frombuffer(sequence.encode(), "S1"), len(bases))
                differing = (windows != np.frombuffer(oriented.encode(), "S1")).sum(axis=1)
                for begin in np.flatnonzero(differing <= 4).tolist():
                    count += 1
                    assert any(
                        row[2] == record
                        and int(row[1]) & REVERSE == strand
                        and min(span_of(row)[1], begin + len(bases)) - max(span_of(row)[0], begin)
                        > 0.95 * (len(bases) - 8)
                        for row in rows
                    ), (name, record, strand, begin)
    assert count > 3 * PAIRS


def test_a_user_may_ask_for_the_best_few(repeats):
    rows = rows_of("1.fq 2.fq -a")
    for most in (0, 1, 3):
        kept, expected = defaultdict(int), []
        for row in rows:
            kept[read_of(row)] += is_secondary(row)
            if not is_secondary(row) or kept[read_of(row)] <= most:
                expected.append(row)
        assert rows_of(f"1.fq 2.fq -N {most}") == expected == rows_of(f"1.fq 2.fq -aN {most}")


SUPPLEMENTARY = 2048
CHIMERAS = 120
MORE_PAIRS = 200
FILES = ("1.fq 2.fq", "1.fq 2.fq --single", "split.fq")


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
            whole = third[begin : begin + 300]
            for file, mate in ((first, whole), (second, reverse_complement(whole))):
                bases = changed_bases(chance, mate[:100], 0.01)
                file.write(f"@p{number}\n{bases}\n+\n{'F' * len(bases)}\n")
    genome = "".join((made / "r.fa").read_text().split()[1::2])
    texts = []
    for number in range(CHIMERAS):
        bases = ""
        for length in (chance.randrange(50, 100), chance.randrange(50, 100)):
            begin = chance.randrange(len(genome) - length)
            part = genome[begin : begin + length]
            bases += part if chance.random() < 0.5 else reverse_complement(part)
        texts.append((f"s{number}", changed_bases(chance, bases, 0.005)))
    write_fastq(made / "split.fq", texts, "F")
    return made


@pytest.fixture
def alternatives(folder, monkeypatch):
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
def test_places_are_those_of_secondary_rows(alternatives, words, most):
    expected = folded(rows_of(f"{words} -a"), most)
    assert rows_of(f"{words} --max-xa {most}") == expected
    assert sum("XA" in tags_of(row) for row in expected) > 5


def test_parts_of_a_read_tell_of_their_own_places(alternatives):
    rows = [row for row in rows_of("split.fq --max-xa 20") if "XA" in tags_of(row)]
    assert sum(bool(int(row[1]) & SUPPLEMENTARY) for row in rows) > 3
    assert sum(not int(row[1]) & SUPPLEMENTARY for row in rows) > 3


def test_every_place_tells_the_truth(alternatives):
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


def test_more_places_than_asked_for_are_not_told(alternatives):
    counts = [len(places_in(row)) for row in rows_of("1.fq 2.fq --max-xa 4")]
    assert max(counts) == 4
    more = [len(places_in(row)) for row in rows_of("1.fq 2.fq --max-xa 400 -N 0")]
    assert [count if count <= 4 else 0 for count in more] == counts != more
    assert rows_of("1.fq 2.fq --max-xa 0") == rows_of("1.fq 2.fq")
    with pytest.raises(OptionError, match="not both"):
        mummergpu.map("r.fa", "1.fq", output="x.sam", max_xa=5, max_secondary=1)
    with pytest.raises(OptionError, match="max_xa"):
        mummergpu.map("r.fa", "1.fq", output="x.sam", max_xa=-1)


def test_places_of_bwa_are_among_ours(alternatives):
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
