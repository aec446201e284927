"""The files of ``--multiqc``, given to MultiQC."""

import csv
import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from helpers.read_pairs import write_pairs
from helpers.sequences import random_bases

from mummergpu.cli.main import main

TIMEOUT = 250


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Runs of three samples: reads, reads without a match, and a genome with itself."""
    chance = random.Random(7)
    genome = random_bases(chance, 30_000)
    (tmp_path / "r.fa").write_text(f">r\n{genome}\n")
    reads = [genome[start : start + 100] for start in range(0, 20_000, 70)]
    (tmp_path / "reads.fa").write_text("".join(f">{n}\n{one}\n" for n, one in enumerate(reads)))
    (tmp_path / "none.fa").write_text(">none\n" + "AC" * 50 + "\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for queries, sample in (("reads.fa", "reads"), ("none.fa", "none"), ("r.fa", "genome")):
        files = ["-o", "out", "--multiqc", f"runs/{sample}_mqc.json"]
        assert main(["-C", "-q", "-b", "-l", "12", "r.fa", queries, *files]) == 0
    return tmp_path


def test_a_file_appears_for_each_run(folder):
    assert sorted(path.name for path in (folder / "runs").iterdir()) == [
        *("genome_mqc.json", "none_mqc.json", "reads_mqc.json")
    ]
    reads = json.loads((folder / "runs" / "reads_mqc.json").read_text())["data"]["reads"]
    assert (reads["queries"], reads["queries_with_match"]) == (286, 286)
    # The last read begins at 19,950, and every base before it is read.
    assert reads["bases_covered"] >= 20_050


def test_a_failed_run_leaves_no_file(folder):
    (folder / "wrong.fa").write_text(">x\nAC1T\n")
    assert main(["-C", "-q", "r.fa", "wrong.fa", "-o", "o", "--multiqc", "wrong_mqc.json"]) == 1
    assert not list(folder.glob("wrong*.json"))


def page_of(multiqc):
    """Let MultiQC make its page of the files in 'runs'; return its text, and a row a sample."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [multiqc, "--no-ansi", "--no-version-check", "-o", "page", "runs"]
    given = {"env": environment, "capture_output": True, "text": True, "timeout": TIMEOUT}
    done = subprocess.run(command, **given)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower() and "error" not in done.stderr.lower()
    with open("page/multiqc_data/multiqc_general_stats.txt", newline="") as file:
        rows = {row["Sample"]: row for row in csv.DictReader(file, delimiter="\t")}
    return Path("page/multiqc_report.html").read_text(), rows


def given_for(sample, row):
    """The values that MultiQC was given of a sample, which must be those of its row."""
    given = json.loads(Path(f"runs/{sample}_mqc.json").read_text())["data"][sample]
    for name, value in given.items():
        (column,) = (key for key in row if key.endswith(f"-{name}"))
        assert float(row[column]) == pytest.approx(value)
    return given


def test_multiqc_shows_the_table(folder, multiqc_binary):
    page, rows = page_of(multiqc_binary)
    for words in ("mummergpu", "With match", "% Covered"):
        assert words in page
    assert set(rows) == {"reads", "none", "genome"}
    for sample, row in rows.items():
        given_for(sample, row)


def test_multiqc_shows_mapped_reads(tmp_path, monkeypatch, multiqc_binary):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path, 200)
    Path("runs").mkdir()
    for sample, files in (("pairs", ("1.fq", "2.fq")), ("single", ("1.fq",))):
        words = ["map", "--backend", "cpu", "-q", "r.fa", *files, "-o", "x.bam"]
        assert main([*words, "--multiqc", f"runs/{sample}_mqc.json"]) == 0
    page, rows = page_of(multiqc_binary)
    for words in ("Insert size", "% MAPQ", "% Proper pairs"):
        assert words in page
    reads = {sample: given_for(sample, row)["reads"] for sample, row in rows.items()}
    assert reads == {"pairs": 400, "single": 200}
