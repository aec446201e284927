"""The command ``map`` where a read has many places, of which its mate decides."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from helpers.sequences import random_bases, reverse_complement

from mummergpu.cli.main import main

READ = 50
OTHER = str.maketrans("ACGT", "CATG")


def _with_changes(bases: str, places: range) -> str:
    changed = list(bases)
    for place in places:
        changed[place] = bases[place].translate(OTHER)
    return "".join(changed)


def rows_of(folder: Path, genome: str, mates: tuple[str, str], *words: str) -> list[list[str]]:
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
def test_a_mate_is_looked_for_beside_the_best_places(copies: int, tmp_path: Path) -> None:
    """No match of the mate is long enough for a search, and the copies come before its place."""
    chance = random.Random(copies)

    def bases(count: int) -> str:
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
