"""Reads mapped with ``--backend cuda`` beside ``-C``: the same records."""

import random
import subprocess
import sys

import pytest
from helpers.read_pairs import write_pairs, write_repeats

import mummergpu

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


def rows(folder, *arguments):
    """The lines of SAM that the command writes, but for those that name it."""
    command = [sys.executable, "-m", "mummergpu", "map", "-q", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(b"@PG")]


@pytest.mark.parametrize("words", [[], ["-a"], ["--max-xa", "5"], ["-I", "320,60"]])
@pytest.mark.parametrize("reads", [["1.fq", "2.fq"], ["1.fq"]])
def test_reads_of_repeats(tmp_path, words, reads):
    write_repeats(tmp_path, 400, pairs=3000, longest=150)
    given = [*words, "r.fa", *reads]
    expected = rows(tmp_path, *given, "--backend", "cpu")
    assert rows(tmp_path, *given, "--backend", "cuda") == expected
    assert len(expected) > 3000 * len(reads)


def test_pairs(tmp_path):
    files = write_pairs(tmp_path, 4000, 150)
    given = [files.reference, files.first, files.second]
    expected = rows(tmp_path, *given, "--backend", "cpu")
    assert rows(tmp_path, *given, "--backend", "cuda") == expected
    assert len(expected) > 8000


def test_reads_of_several_lengths_and_an_index(tmp_path):
    """An index that lists all positions lets the processor look up one k-mer in a window."""
    write_repeats(tmp_path, 400, pairs=3000, longest=150)
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
