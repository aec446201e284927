"""Reads mapped with ``--backend cuda`` beside ``-C``: the same records."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.read_pairs import write_pairs
from helpers.sequences import random_bases, reverse_complement

import mummergpu

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


def rows(folder: Path, *arguments: str) -> list[bytes]:
    """The lines of SAM that the command writes, but for those that name it."""
    command = [sys.executable, "-m", "mummergpu", "map", "-q", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(b"@PG")]


def write_repeats(folder: Path, copies: int, reads: int) -> None:
    """Write a genome of copies of one repeat, more or less alike, and pairs of reads of it."""
    made = random.Random(7)

    def mutated(bases: str, rate: float) -> str:
        return "".join(made.choice("ACGT") if made.random() < rate else base for base in bases)

    repeat = random_bases(made, 500)
    genome = "".join(
        random_bases(made, 50) + mutated(repeat, made.uniform(0, 0.15)) for _ in range(copies)
    )
    (folder / "r.fa").write_text(f">one\n{genome}\n")
    with (folder / "1.fq").open("w") as first, (folder / "2.fq").open("w") as second:
        for number in range(reads):
            begin = made.randrange(len(genome) - 400)
            template = genome[begin : begin + made.randrange(250, 400)]
            for mate, file in ((template, first), (reverse_complement(template), second)):
                bases = mutated(mate[:150], 0.01)
                quality = "".join(made.choices("FFFF:,#", k=len(bases)))
                file.write(f"@p{number}\n{bases}\n+\n{quality}\n")


@pytest.mark.parametrize("words", [[], ["-a"], ["--max-xa", "5"], ["-I", "320,60"]])
@pytest.mark.parametrize("reads", [["1.fq", "2.fq"], ["1.fq"]])
def test_reads_of_repeats(tmp_path: Path, words: list[str], reads: list[str]) -> None:
    write_repeats(tmp_path, 400, 3000)
    given = [*words, "r.fa", *reads]
    expected = rows(tmp_path, *given, "--backend", "cpu")
    assert rows(tmp_path, *given, "--backend", "cuda") == expected
    assert len(expected) > 3000 * len(reads)


def test_pairs(tmp_path: Path) -> None:
    files = write_pairs(tmp_path, 4000, 150)
    given = [files.reference, files.first, files.second]
    expected = rows(tmp_path, *given, "--backend", "cpu")
    assert rows(tmp_path, *given, "--backend", "cuda") == expected
    assert len(expected) > 8000


def test_reads_of_several_lengths_and_an_index(tmp_path: Path) -> None:
    """An index that lists all positions lets the processor look up one k-mer in a window."""
    write_repeats(tmp_path, 400, 3000)
    made = random.Random(2)
    for name in ("1.fq", "2.fq"):
        lines = (tmp_path / name).read_text().splitlines()
        for at in range(0, len(lines), 4):
            bases = made.randrange(90, 151)
            lines[at + 1], lines[at + 3] = lines[at + 1][:bases], lines[at + 3][:bases]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    index = mummergpu.Index.build(tmp_path / "r.fa", min_length=16)
    index.save(tmp_path / "r.mgi")
    given = ["r.mgi", "1.fq", "2.fq"]
    assert rows(tmp_path, *given, "--backend", "cuda") == rows(tmp_path, *given, "--backend", "cpu")
    files = tmp_path / "1.fq", tmp_path / "2.fq"
    expected = list(index.map(*files, backend="cpu"))
    for _ in range(2):
        assert list(index.map(*files, backend="cuda")) == expected
    index.close()
