"""The command writes each format; the tools that own them read the matches of MUMmer's text."""

import os
import random
import subprocess
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pysam
import pytest
from helpers.alignment_tools import NO_QUALITIES, picard_errors, samtools
from helpers.sequences import random_bases, reverse_complement

from mummergpu.cli.main import main


@dataclass(frozen=True, order=True)
class Match:
    """A match; 0-based, on the forward strand of the query."""

    query: str
    query_start: int
    strand: str
    record: str
    start: int
    length: int

    @property
    def ends(self):
        return self.query_start + self.length, self.start + self.length


@pytest.fixture
def repeats(tmp_path, monkeypatch):
    """Records with repeats, and reads of both strands with errors; some match nothing."""
    made = random.Random(4)

    def bases(count):
        return random_bases(made, count)

    repeat = bases(150)
    records = {
        "chr1": bases(900) + repeat + bases(300),
        "chr2.1|x": bases(200) + repeat[:100] + "N" * 5 + repeat + bases(70),
        "empty": "",
        "chr3": bases(40) + reverse_complement(repeat[50:]) + bases(80),
    }
    text = "".join(f">{name} a description\n{one}\n" for name, one in records.items())
    (tmp_path / "r.fa").write_text(text)
    names = [name for name in records if records[name]]
    reads = []
    for number in range(150):
        whole = records[made.choice(names)]
        begin = made.randrange(0, len(whole) - 30)
        read = list(whole[begin : begin + made.randrange(20, 120)])
        if made.random() < 0.7:
            read[made.randrange(len(read))] = made.choice("ACGTNacgtR")
        read_text = "".join(read)
        if made.random() < 0.5:
            read_text = reverse_complement(read_text.upper())
        reads.append((f"read{number}", read_text))
    reads += [("nothing", bases(60)), ("short", "ACG"), ("none", "")]
    (tmp_path / "q.fa").write_text("".join(f">{name} more\n{one}\n" for name, one in reads))
    monkeypatch.chdir(tmp_path)


def run(words, files="r.fa q.fa"):
    return main([*files.split(), "-C", "-q", "-l", "15", *words.split()])


def lengths_of(path):
    with pysam.FastxFile(path) as file:
        return {one.name: len(one.sequence or "") for one in file}


def mummer_matches(words="-b"):
    """The matches in MUMmer's text, in its order."""
    lengths = lengths_of("q.fa")
    assert run(f"{words} -F -o text.txt") == 0
    matches = []
    for line in Path("text.txt").read_text().splitlines():
        if line.startswith(">"):
            query, *reverse = line.split()[1:]
            continue
        record, start, query_start, length = line.split()
        begin = int(query_start) - 1
        if reverse:
            begin = lengths[query] - begin - int(length)
        strand = "-" if reverse else "+"
        matches.append(Match(query, begin, strand, record, int(start) - 1, int(length)))
    assert len(matches) > 150
    return matches


def test_bedtools_finds_the_bases_of_bed(repeats, bedtools_binary):
    assert run("-b -o x.bed") == 0
    words = [bedtools_binary, "getfasta", "-fi", "r.fa", "-bed", "x.bed", "-s", "-tab"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    with pysam.FastxFile("q.fa") as file:
        queries = {one.name: (one.sequence or "").upper() for one in file}
    found = [line.split("\t")[1] for line in done.stdout.splitlines()]
    names = [line.split("\t")[3] for line in Path("x.bed").read_text().splitlines()]
    assert len(found) == len(names) > 300
    assert all(bases in queries[name] for bases, name in zip(found, names, strict=True))


def alignment_of(row):
    assert row.cigartuples is not None
    clips = [0, 0]
    for place, (operation, count) in ((0, row.cigartuples[0]), (1, row.cigartuples[-1])):
        clips[place] = count if operation == 4 else 0
    length = row.reference_length
    assert [one for one in row.cigartuples if one[0] != 4] == [(7, length)]
    assert row.query_name is not None and row.reference_name is not None
    return Match(
        row.query_name,
        clips[row.is_reverse],
        "-" if row.is_reverse else "+",
        row.reference_name,
        row.reference_start,
        length or 0,
    )


def rows_of(path):
    with pysam.AlignmentFile(path) as file:
        return list(file)


@pytest.mark.parametrize("words", ["", "--primary-only", "--secondary-seq"])
def test_samtools_finds_nothing_wrong_with_sam(repeats, words, samtools_binary):
    assert run(rf"-b -o x.sam --read-group @RG\tID:g1\tSM:s1 {words}") == 0
    subprocess.run([samtools_binary, "quickcheck", "-v", "x.sam"], check=True)
    done = subprocess.run(
        [samtools_binary, "calmd", "x.sam", "r.fa"], capture_output=True, text=True, check=True
    )
    assert "different" not in done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines() if not line.startswith("@")]
    checked = [fields for fields in lines if fields[9] != "*" and int(fields[1]) & 4 == 0]
    assert len(checked) > 100
    for fields in checked:
        tags = {tag[:5]: tag[5:] for tag in fields[11:]}
        assert (tags["NM:i:"], tags["MD:Z:"]) == ("0", tags["AS:i:"])
        assert tags["RG:Z:"] == "g1"
    # What was converted to BAM and back is the same, but for the line that samtools adds.
    subprocess.run([samtools_binary, "view", "-b", "-o", "x.bam", "x.sam"], check=True)
    words = [samtools_binary, "view", "-h", "--no-PG", "x.bam"]
    again = subprocess.run(words, capture_output=True, check=True).stdout.splitlines()
    written = Path("x.sam").read_bytes().splitlines()
    assert [line for line in again if b"ID:samtools" not in line] == written
    assert written[0] == b"@HD\tVN:1.6\tSO:unsorted\tGO:query"
    assert b"@RG\tID:g1\tSM:s1" in written
    (program,) = (line for line in written if line.startswith(b"@PG"))
    assert b"CL:mummergpu r.fa q.fa -C -q" in program


@pytest.mark.parametrize(("words", "most"), [("--primary-only", 1), ("--max-hits 3", 3)])
def test_some_hits(repeats, words, most):
    assert run(f"-b -o x.sam {words}") == 0
    expected = mummer_matches()
    rows = [row for row in rows_of("x.sam") if not row.is_unmapped]
    for name, group in groupby(rows, lambda row: row.query_name):
        of_query = list(group)
        all_of_query = [one for one in expected if one.query == name]
        assert all(row.get_tag("NH") == len(all_of_query) for row in of_query)
        longest = sorted(all_of_query, key=lambda one: -one.length)[:most]
        assert set(map(alignment_of, of_query)) == set(longest)
        assert sum(not row.is_secondary for row in of_query) == 1
    assert {row.query_name for row in rows} == {one.query for one in expected}


@pytest.mark.parametrize(
    ("words", "record", "query", "message"),
    [
        ("-o x.sam", "r", "@q", "q.fa: SAM allows no name that begins with '@' (record '@q')"),
        ("-o x.sam", "r", "q" * 255, "q.fa: SAM allows names of at most 254 bytes"),
        ("-o x.sam", "=b", "q", "r.fa: SAM allows no such name in a reference (record '=b')"),
        ("-o x.bed", "", "q", "r.fa: BED needs names, and record 1 has none"),
    ],
)
def test_what_a_format_cannot_hold(repeats, words, record, query, message, capsys):
    Path("r.fa").write_text(f">{record}\nACGTTGCATTGACCAGT\n")
    Path("q.fa").write_text(f">{query}\nACGTTGCATTGACCAGT\n")
    assert run(words) == 1
    assert message in capsys.readouterr().err
    assert sorted(os.listdir()) == ["q.fa", "r.fa"]


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


@pytest.fixture
def fastq(tmp_path, monkeypatch):
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


def run_fastq(words, *more, queries="q.fq"):
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
def test_samtools_reads_what_sam_says(fastq, words, samtools_binary):
    assert run_fastq(f"-o x.bam -o x.sam {words}", "--read-group", GROUP) == 0
    output_of(samtools_binary, "quickcheck", "-v", "x.bam")
    expected = lines_of(samtools_binary, "x.sam")
    assert len(expected) > 200
    assert lines_of(samtools_binary, "x.bam") == expected
    header = output_of(samtools_binary, "head", "x.bam")
    assert header == output_of(samtools_binary, "head", "x.sam")
    assert header.count(b"@SQ") == 2 and b"ID:lane1" in header


def test_samtools_reads_standard_output(fastq, samtools_binary, capfdbinary):
    assert run_fastq("-o x.sam") == 0
    assert run_fastq("--format bam -o -") == 0
    Path("x.bam").write_bytes(capfdbinary.readouterr().out)
    assert lines_of(samtools_binary, "x.bam") == lines_of(samtools_binary, "x.sam")


@pytest.mark.parametrize(("reads", "count"), [("", 0), (">a\n\n>\n\n", 2)])
def test_no_reads_and_empty_reads(fastq, reads, count, samtools_binary):
    Path("few.fa").write_text(reads)
    assert run_fastq("-o x.bam --read-group none", queries="few.fa") == 0
    output_of(samtools_binary, "quickcheck", "-v", "x.bam")
    rows = lines_of(samtools_binary, "x.bam")
    assert [row[0] for row in rows] == [b"a", b"*"][:count]
    assert all(row[1:] == [b"4", b"*", b"0", b"0", *b"* * 0 0 * *".split()] for row in rows)


def header_of(path):
    return [line for line in Path(path).read_text().splitlines() if line.startswith("@RG")]


def test_the_first_file_names_the_read_group(fastq):
    Path("lane 1.R1.fq").write_text(Path("q.fq").read_text())
    assert run_fastq("-o x.sam", queries="lane 1.R1.fq") == 0
    assert header_of("x.sam") == ["@RG\tID:lane_1.R1\tSM:lane_1\tPL:OTHER"]
    rows = [line for line in Path("x.sam").read_text().splitlines() if line[0] != "@"]
    assert all(row.endswith("\tRG:Z:lane_1.R1") for row in rows)


def test_a_read_group_can_be_given_or_left_out(fastq):
    assert run_fastq("-o x.sam", "--read-group", GROUP) == 0
    assert header_of("x.sam") == [GROUP.replace(r"\t", "\t")]
    assert run_fastq("-o x.sam --read-group none") == 0
    assert "RG" not in Path("x.sam").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.bam", "x.sam"])
@pytest.mark.parametrize("words", ["", "--primary-only", "--secondary-seq"])
def test_picard_finds_no_error(fastq, name, words):
    assert run_fastq(f"-o {name} {words}") == 0
    if words:
        # Where a secondary alignment has no bases, Picard fails when it compares them; and it reads
        # the records of the reference in their order.
        samtools("sort", "-o", f"sorted.{name[-3:]}", name)
        name = f"sorted.{name[-3:]}"
    assert picard_errors(Path(name), Path("whole.fa") if words else None, *NO_QUALITIES) == []


@pytest.fixture
def plain(tmp_path, monkeypatch):
    made = random.Random(3)
    text = random_bases(made, 3000)
    (tmp_path / "r.fa").write_text(f">r\n{text}\n")
    reads = [text[at : at + 60] for at in range(0, 2900, 50)]
    (tmp_path / "q.fa").write_text("".join(f">{n}\n{read}\n" for n, read in enumerate(reads)))
    monkeypatch.chdir(tmp_path)


def run_plain(words):
    return main(["r.fa", "q.fa", "-b", "-C", "-q", *words.split()])


def test_options_of_the_text_may_go_with_other_files(plain):
    assert run_plain("-o x.txt -o x.paf -s -c") == 0 and run_plain("-o y.paf -c") == 0
    assert Path("x.paf").read_bytes() == Path("y.paf").read_bytes()


def test_a_failed_run_leaves_none_of_its_files(plain):
    Path("q.fa").write_text(">a\nACGT\n!\n")
    assert run_plain("-o one.txt -o two.gz") == 1
    assert not Path("one.txt").exists() and not Path("two.gz").exists()


@pytest.fixture
def mates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ref.fa").write_text(">r\nACGTTGCAGGATCCTTAGCA\n")
    Path("1.fa").write_text(">a\nACGTTGC\n>b x\nGGATCC\n")
    Path("2.fa").write_text(">a\nTTAGCA\n>b y\nACG\n")
    Path("both.fa").write_text(">a\nACGTTGC\n>a\nTTAGCA\n>b\nGGATCC\n>b\nACG\n")
    Path("b.fa").write_text(">a\nA\n>c\nA\n")


def words_of(*queries):
    return ["-C", "-q", "-l", "5", "ref.fa", *queries]


def test_text_in_the_order_of_pairs(mates, capfd):
    assert main([*words_of("1.fa", "2.fa"), "--pair", "--stats", "stats.json"]) == 0
    text = capfd.readouterr().out
    assert [line for line in text.splitlines() if line.startswith(">")] == [
        *("> a/1", "> a/2", "> b/1", "> b/2")
    ]
    assert [line.split() for line in text.splitlines() if not line.startswith(">")] == [
        *(["1", "1", "7"], ["15", "1", "6"], ["9", "1", "6"])
    ]
    assert '"queries": 4' in Path("stats.json").read_text()
    assert main([*words_of("both.fa"), "--pair"]) == 0
    assert capfd.readouterr().out == text
