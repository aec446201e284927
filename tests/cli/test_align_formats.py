"""What the command ``align`` writes besides .delta, as other programs read it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from mummergpu.cli.main import main

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def align(*words: object) -> None:
    """Run the command, which must succeed."""
    assert main(["align", "-C", "-q", *map(str, words)]) == 0


def fasta(path: Path, records: dict[str, str]) -> Path:
    path.write_text("".join(f">{name}\n{bases}\n" for name, bases in records.items()))
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A genome of two records, and a changed copy of which a part is reversed."""
    folder = tmp_path_factory.mktemp("pair")
    made = random.Random(5)
    bases = {
        name: "".join(made.choices("ACGT", k=size)) for name, size in (("a", 9000), ("b", 4000))
    }
    copies = {}
    for name, text in bases.items():
        letters = list(text)
        for place in range(300, len(text) - 300, 200):
            kind = made.randrange(3)
            letters[place] = ("", made.choice("ACGT"), letters[place] + made.choice("ACGT"))[kind]
        copies[f"{name}2"] = "".join(letters)
    long = copies["a2"]
    copies["a2"] = long[:5000] + long[5000:].translate(COMPLEMENT)[::-1]
    return fasta(folder / "r.fa", bases), fasta(folder / "q.fa", copies)


def records_of(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return {name[1:]: bases for name, bases in zip(lines[::2], lines[1::2], strict=True)}


def rebuilt(reference: str, changes: str) -> str:
    """The aligned bases of the query, from the reference and the value of cs."""
    made, at = "", 0
    for mark, value in re.findall(r"([:*+-])(\d+|[a-z]+)", changes):
        if mark == ":":
            made += reference[at : at + int(value)]
            at += int(value)
        elif mark == "*":
            assert reference[at] == value[0].upper()
            made += value[1].upper()
            at += 1
        elif mark == "+":
            made += value.upper()
        else:
            assert reference[at : at + len(value)] == value.upper()
            at += len(value)
    assert at == len(reference)
    return made


@pytest.mark.parametrize("options", [[], ["--one-to-one"]])
def test_the_changes_of_paf_make_the_query_of_the_reference(
    pair: tuple[Path, Path], tmp_path: Path, options: list[str]
) -> None:
    output = tmp_path / "x.paf"
    align(*pair, "--cs", *options, "-o", output)
    references, queries = (records_of(path) for path in pair)
    strands = set()
    for line in output.read_text().splitlines():
        name, _, begin, end, strand, record, _, first, last, *_, changes = line.split("\t")
        bases = queries[name][int(begin) : int(end)]
        if strand == "-":
            bases = bases.translate(COMPLEMENT)[::-1]
        assert changes.startswith("cs:Z:")
        assert rebuilt(references[record][int(first) : int(last)], changes[5:]) == bases
        strands.add((name, strand))
    assert strands == {("a2", "+"), ("a2", "-"), ("b2", "+")}


def test_only_paf_has_changes(
    pair: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["align", "-C", "-q", *pair, "--cs", "-o", tmp_path / "x.delta"]
    assert main([str(word) for word in words]) == 2
    assert "--cs is for paf" in capfd.readouterr().err
