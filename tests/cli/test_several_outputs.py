"""Several files of one run, each in its own format: the same as those of several runs."""

from __future__ import annotations

import random
from pathlib import Path

import pysam
import pytest

from mummergpu.cli.main import main

VERBS = {
    "match": ["x.paf", "x.sam", "y.paf", "x.bed.gz"],
    "map": ["x.paf", "x.sam", "x.bam", "x.cram"],
    "align": ["x.delta", "x.paf", "x.sam", "x.bam", "x.cram", "x.vcf"],
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A reference, and a query whose halves match on different strands."""
    folder, made = tmp_path_factory.mktemp("several"), random.Random(4)
    bases = "".join(made.choices("ACGT", k=900))
    turned = bases[500:800].translate(str.maketrans("ACGT", "TGCA"))[::-1]
    paths = folder / "r.fa", folder / "q.fa"
    paths[0].write_text(f">r\n{bases}\n")
    paths[1].write_text(f">q1\n{bases[100:400]}\n>q2\n{turned}\n>none\n{'AC' * 60}\n")
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize("verb", list(VERBS))
def test_each_file_is_that_of_its_own_run(
    verb: str, inputs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [verb, *inputs, "--backend", "cpu", "-q", "-t", "2"]
    gaps = ["--gap-open", "3", "--gap-extend", "7"] if verb == "align" else []
    each = [word for name in VERBS[verb] for word in ("-o", name)]
    assert main([*words, *gaps, *each]) == 0
    found = {name: Path(name).read_bytes() for name in VERBS[verb]}
    for name in VERBS[verb]:
        assert main([*words, *gaps, "-o", name]) == 0
        own = Path(name).read_bytes()
        if name.endswith((".sam", ".bam", ".cram")):
            # The header has the command, and so have the blocks of the others.
            assert records_of(name) == records_of(write(tmp_path, f"all-{name}", found[name]))
        else:
            assert own == found[name], name


def test_cram_of_genomes_has_the_records_of_bam(
    inputs: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["align", *inputs, "--backend", "cpu", "-q", "-o", "x.cram", "-o", "x.bam"]) == 0
    assert records_of("x.cram") == records_of("x.bam")
    assert len(records_of("x.cram")) == 2


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_format_is_of_one_file(
    verb: str, inputs: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert (
        main([verb, *inputs, "--backend", "cpu", "-o", "x.sam", "-o", "y.sam", "--format", "sam"])
        == 2
    )
    assert "--format is for one -o" in capfd.readouterr().err


@pytest.mark.parametrize("verb", list(VERBS))
def test_a_file_is_written_once(
    verb: str, inputs: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, *inputs, "--backend", "cpu", "-o", "x.sam", "-o", "x.sam"]) != 0
    assert "--output, number 2" in capfd.readouterr().err


def write(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


def records_of(path: str) -> list[str]:
    with pysam.AlignmentFile(path, check_sq=False) as file:
        return [row.to_string() for row in file.fetch(until_eof=True)]
