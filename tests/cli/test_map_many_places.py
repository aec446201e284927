"""The command ``map`` where a read has many places, of which its mate decides."""

import random
from pathlib import Path

import pytest
from helpers.sequences import random_bases, reverse_complement

from mummergpu.cli.main import main

READ = 50
OTHER = str.maketrans("ACGT", "CATG")


def _with_changes(bases, places):
    changed = list(bases)
    for place in places:
        changed[place] = bases[place].translate(OTHER)
    return "".join(changed)


def rows_of(folder, genome, mates, *words):
    (folder / "r.fa").write_text(f">one\n{genome}\n")
    paths = []
    for number, bases in enumerate(mates):
        paths.append(folder / f"{number}.fa")
        paths[-1].write_text(f">pair\n{bases}\n")
    output = folder / "x.sam"
    command = ["map", "--backend", "cpu", "-q", *words, "-o", output, folder / "r.fa", *paths]
    assert main([str(word) for word in command]) == 0
    return [line.split("\t") for line in output.read_text().splitlines() if line[0] != "@"]


@pytest.mark.parametrize("copies", [0, 3, 60])
def test_a_mate_is_looked_for_beside_the_best_places(copies, tmp_path):
    """No match of the mate is long enough for a search, and the copies come before its place."""
    chance = random.Random(copies)

    def bases(count):
        return random_bases(chance, count)

    read, mate = bases(READ), bases(READ)
    copy = _with_changes(read, range(25, 26))
    before = "".join(bases(400) + copy for _ in range(copies)) + bases(500)
    genome = before + read + bases(200) + mate + bases(500)
    found = reverse_complement(_with_changes(mate, range(10, READ, 11)))
    rows = rows_of(tmp_path, genome, (read, found), "-I", "300,30")
    assert [row[3] for row in rows] == [str(len(before) + 1), str(len(before) + READ + 201)]
    assert [int(row[1]) & 2 for row in rows] == [2, 2]
    assert [row[5] for row in rows] == [f"{READ}M"] * 2


def test_each_of_two_equal_copies_gets_its_share_of_pairs(tmp_path):
    made = random.Random(12)
    copy = random_bases(made, 2000)
    genome = random_bases(made, 3000) + copy + random_bases(made, 3000) + copy
    genome += random_bases(made, 3000)
    (tmp_path / "r.fa").write_text(f">one\n{genome}\n")
    mates = ([], [])
    for number in range(400):
        begin = made.randrange(len(copy) - 300)
        template = copy[begin : begin + 300]
        both = template[:80], reverse_complement(template[-80:])
        for of_mate, bases in zip(mates, both, strict=True):
            of_mate.append(f">p{number}\n{bases}\n")
    for number, of_mate in enumerate(mates):
        (tmp_path / f"{number}.fa").write_text("".join(of_mate))
    files = [str(tmp_path / name) for name in ("r.fa", "0.fa", "1.fa", "x.sam")]
    assert main(["map", "--backend", "cpu", "-q", *files[:3], "-o", files[3]]) == 0
    rows = [line.split("\t") for line in Path(files[3]).read_text().splitlines() if line[0] != "@"]
    first = sum(int(row[3]) < 5500 for row in rows)
    assert len(rows) == 800 and 300 < first < 500
