"""BAM is what samtools and Picard read, and says the same as SAM."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from helpers.alignment_tools import NO_QUALITIES, picard_errors, samtools
from helpers.sequences import random_bases, reverse_complement

from mummergpu.cli.main import main

NOWHERE = {"REF_PATH": "/nowhere", "REF_CACHE": "/nowhere"}
"""Where htslib does not find a reference."""

GROUP = r"@RG\tID:lane1\tSM:sample\tPL:ILLUMINA"


def reads_of(text, made):
    """Reads of all kinds: on both strands, with N, of no length, and from elsewhere."""
    reads = ["", "A"]
    for number in range(200):
        begin = made.randrange(len(text) - 100)
        read = text[begin : begin + made.randrange(100)]
        if number % 3 == 0:
            read = reverse_complement(read)
        if number % 5 == 0 and len(read) > 30:
            read = f"{read[:20]}N{read[21:]}"
        if number % 11 == 0:
            read = random_bases(made, 77)
        reads.append(read)
    return reads


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    made = random.Random(8)
    text = random_bases(made, 5000)
    other = random_bases(made, 700) + text[100:400]
    (tmp_path / "r.fa").write_text(f">r one\n{text}\n>empty\n>u\n{other}\n")
    (tmp_path / "whole.fa").write_text(f">r\n{text}\n>u\n{other}\n")
    reads = reads_of(text, made)
    (tmp_path / "q.fq").write_text(
        "".join(f"@q{n}\n{read}\n+\n{'I' * len(read)}\n" for n, read in enumerate(reads))
    )
    monkeypatch.chdir(tmp_path)


def run(words, *more, queries="q.fq"):
    return main(["r.fa", queries, "-l", "12", "-b", "-C", "-q", *words.split(), *more])


def output_of(*command):
    """What a program writes that must succeed and report nothing."""
    done = subprocess.run(command, capture_output=True, env=os.environ | NOWHERE)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def lines_of(samtools, path):
    """The fields of the alignments of a file."""
    text = output_of(samtools, "view", "--no-PG", path)
    return [line.split(b"\t") for line in text.splitlines()]


@pytest.mark.parametrize(
    "words", ["", "--primary-only", "--max-hits 2 --block-size 500", "--secondary-seq"]
)
def test_samtools_reads_what_sam_says(words, samtools_binary):
    assert run(f"-o x.bam -o x.sam {words}", "--read-group", GROUP) == 0
    output_of(samtools_binary, "quickcheck", "-v", "x.bam")
    expected = lines_of(samtools_binary, "x.sam")
    assert len(expected) > 200
    assert lines_of(samtools_binary, "x.bam") == expected
    header = output_of(samtools_binary, "head", "x.bam")
    assert header == output_of(samtools_binary, "head", "x.sam")
    assert header.count(b"@SQ") == 2 and b"ID:lane1" in header


def test_samtools_reads_standard_output(samtools_binary, capfdbinary):
    assert run("-o x.sam") == 0
    assert run("--format bam -o -") == 0
    Path("x.bam").write_bytes(capfdbinary.readouterr().out)
    assert lines_of(samtools_binary, "x.bam") == lines_of(samtools_binary, "x.sam")


@pytest.mark.parametrize(("reads", "count"), [("", 0), (">a\n\n>\n\n", 2)])
def test_no_reads_and_empty_reads(reads, count, samtools_binary):
    Path("few.fa").write_text(reads)
    assert run("-o x.bam --read-group none", queries="few.fa") == 0
    output_of(samtools_binary, "quickcheck", "-v", "x.bam")
    rows = lines_of(samtools_binary, "x.bam")
    assert [row[0] for row in rows] == [b"a", b"*"][:count]
    assert all(row[1:] == [b"4", b"*", b"0", b"0", *b"* * 0 0 * *".split()] for row in rows)


def header_of(path):
    return [line for line in Path(path).read_text().splitlines() if line.startswith("@RG")]


def test_the_first_file_names_the_read_group():
    Path("lane 1.R1.fq").write_text(Path("q.fq").read_text())
    assert run("-o x.sam", queries="lane 1.R1.fq") == 0
    assert header_of("x.sam") == ["@RG\tID:lane_1.R1\tSM:lane_1\tPL:OTHER"]
    rows = [line for line in Path("x.sam").read_text().splitlines() if line[0] != "@"]
    assert all(row.endswith("\tRG:Z:lane_1.R1") for row in rows)


def test_a_read_group_can_be_given_or_left_out():
    assert run("-o x.sam", "--read-group", GROUP) == 0
    assert header_of("x.sam") == [GROUP.replace(r"\t", "\t")]
    assert run("-o x.sam --read-group none") == 0
    assert "RG" not in Path("x.sam").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.bam", "x.sam"])
@pytest.mark.parametrize("words", ["", "--primary-only", "--secondary-seq"])
def test_picard_finds_no_error(name, words):
    assert run(f"-o {name} {words}") == 0
    if words:
        # Where a secondary alignment has no bases, Picard fails when it compares them; and it reads
        # the records of the reference in their order.
        samtools("sort", "-o", f"sorted.{name[-3:]}", name)
        name = f"sorted.{name[-3:]}"
    assert picard_errors(Path(name), Path("whole.fa") if words else None, *NO_QUALITIES) == []
