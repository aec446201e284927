"""BAM is what samtools and Picard read, and says the same as SAM."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
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


def test_samtools_sorts_and_indexes(samtools_binary):
    assert run("-o x.bam") == 0
    sort = (samtools_binary, "sort", "-o", "sorted.bam", "x.bam")
    output_of(*sort)
    output_of(samtools_binary, "index", "sorted.bam")
    found = output_of(samtools_binary, "view", "-c", "sorted.bam", "u:701-1000")
    rows = lines_of(samtools_binary, "x.bam")
    positions = [int(row[3]) for row in rows if row[2] == b"u"]
    assert int(found) == sum(position >= 690 for position in positions) > 10


@pytest.mark.parametrize("words", ["--primary-only", "--secondary-seq"])
def test_calmd_finds_no_other_distance(words, samtools_binary):
    assert run(f"-o x.bam {words}") == 0
    output_of(samtools_binary, "sort", "-o", "sorted.bam", "x.bam")
    # It reports every NM that it changes.
    text = output_of(samtools_binary, "calmd", "--no-PG", "sorted.bam", "whole.fa")
    assert text.count(b"\tNM:i:0\t") > 100 and text.count(b"\tNM:i:") == text.count(b"\tNM:i:0\t")


def test_samtools_reads_standard_output(samtools_binary):
    assert run("-o x.sam") == 0
    words = ["r.fa", "q.fq", "-l", "12", "-b", "-C", "-q", "--format", "bam", "-o", "-"]
    root = Path(__file__).resolve().parent.parent.parent
    with subprocess.Popen(
        [sys.executable, "-m", "mummergpu", *words],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(root)},
    ) as writer:
        text = subprocess.run(
            [samtools_binary, "view", "--no-PG", "-"], stdin=writer.stdout, capture_output=True
        )
    assert (writer.returncode, text.returncode, text.stderr) == (0, 0, b"")
    assert len(text.stdout.splitlines()) == len(lines_of(samtools_binary, "x.sam"))


@pytest.mark.parametrize(("reads", "count"), [("", 0), (">a\n\n>\n\n", 2)])
def test_no_reads_and_empty_reads(reads, count, samtools_binary):
    Path("few.fa").write_text(reads)
    assert run("-o x.bam --read-group none", queries="few.fa") == 0
    output_of(samtools_binary, "quickcheck", "-v", "x.bam")
    rows = lines_of(samtools_binary, "x.bam")
    assert [row[0] for row in rows] == [b"a", b"*"][:count]
    assert all(row[1:] == [b"4", b"*", b"0", b"0", *b"* * 0 0 * *".split()] for row in rows)


def test_a_name_that_sam_does_not_allow_is_refused(capsys):
    Path("wrong.fa").write_text(">@ab\nACGT\n")
    assert run("-o x.bam", queries="wrong.fa") == 1
    assert "wrong.fa: " in capsys.readouterr().err
    assert not Path("x.bam").exists()


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-o x.sam --primary-only --secondary-seq", "--primary-only and --secondary-seq exclude"),
        ("-o x.paf --secondary-seq", "--secondary-seq is for SAM and BAM"),
        ("-o x.paf --read-group none", "--read-group is for SAM and BAM"),
    ],
)
def test_options_that_make_no_sense_together(words, message, capsys):
    assert run(words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.bam", "x.sam"])
@pytest.mark.parametrize("words", ["", "--primary-only", "--secondary-seq"])
def test_picard_finds_no_error(name, words, samtools_binary):
    program = shutil.which("PicardCommandLine") or shutil.which("picard")
    if program is None:
        pytest.skip("Picard is not installed (Debian: apt-get install picard-tools)")
    assert run(f"-o {name} {words}") == 0
    more = []
    if words:
        # Where a secondary alignment has no bases, Picard fails when it compares them; and it reads
        # the records of the reference in their order.
        output_of(samtools_binary, "sort", "-o", f"sorted.{name[-3:]}", name)
        name = f"sorted.{name[-3:]}"
        make = [program, "CreateSequenceDictionary", "-R", "whole.fa", "-O", "whole.dict"]
        subprocess.run(make, check=True, capture_output=True)
        more = ["-R", "whole.fa"]
    done = subprocess.run(
        [program, "ValidateSamFile", "-I", name, "-MODE", "SUMMARY", *more],
        capture_output=True,
        text=True,
    )
    # Reads without qualities are allowed, and warned of.
    assert "QUALITY_NOT_STORED" in done.stdout and done.stdout.count("WARNING") == 1
    assert "ERROR" not in done.stdout and "Exception" not in done.stderr
