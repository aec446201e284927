"""The command writes each format; the tools that own them read the matches of MUMmer's text."""

import os
import random
import re
import subprocess
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pysam
import pytest
from helpers.alignment_tools import NO_QUALITIES, picard_errors, sam_rows, samtools
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta, write_fastq

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
    names = [name for name in records if records[name]]
    reads = []
    for number in range(150):
        whole = records[made.choice(names)]
        begin = made.randrange(0, len(whole) - 30)
        read = list(whole[begin : begin + made.randrange(20, 120)])
        if made.random() < 0.7:
            read[made.randrange(len(read))] = made.choice("ACGTNacgtR")
        text = "".join(read)
        turned = made.random() < 0.5
        reads.append((f"read{number}", reverse_complement(text.upper()) if turned else text))
    reads += [("nothing", bases(60)), ("short", "ACG"), ("none", "")]
    monkeypatch.chdir(tmp_path)
    write_fasta("r.fa", ((f"{name} a description", one) for name, one in records.items()))
    write_fasta("q.fa", ((f"{name} more", one) for name, one in reads))


def run(words, files="r.fa q.fa"):
    return main([*files.split(), "-C", "-q", "-l", "15", *words.split()])


def mummer_matches(words="-b"):
    """The matches in MUMmer's text, in its order."""
    lengths = {name: len(bases) for name, bases in read_fasta("q.fa").items()}
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
    words = (bedtools_binary, "getfasta", "-fi", "r.fa", "-bed", "x.bed", "-s", "-tab")
    queries = {name: bases.upper() for name, bases in read_fasta("q.fa").items()}
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = [line.split("\t")[1] for line in done.stdout.splitlines()]
    names = [line.split("\t")[3] for line in Path("x.bed").read_text().splitlines()]
    assert len(found) == len(names) > 300
    assert all(bases in queries[name] for bases, name in zip(found, names, strict=True))


def alignment_of(row):
    clips = [count if kind == 4 else 0 for kind, count in (row.cigartuples[0], row.cigartuples[-1])]
    length = row.reference_length
    assert [one for one in row.cigartuples if one[0] != 4] == [(7, length)]
    strand = "-" if row.is_reverse else "+"
    place = row.reference_name, row.reference_start, length
    return Match(row.query_name, clips[row.is_reverse], strand, *place)


@pytest.mark.parametrize("words", ["", "--primary-only", "--secondary-seq"])
def test_samtools_finds_nothing_wrong_with_sam(repeats, words, samtools_binary):
    assert run(rf"-b -o x.sam --read-group @RG\tID:g1\tSM:s1 {words}") == 0
    output_of(samtools_binary, "quickcheck", "-v", "x.sam")
    done = subprocess.run([samtools_binary, "calmd", "x.sam", "r.fa"], capture_output=True)
    assert done.returncode == 0 and b"different" not in done.stderr
    lines = [line.split("\t") for line in done.stdout.decode().splitlines() if line[0] != "@"]
    checked = [fields for fields in lines if fields[9] != "*" and int(fields[1]) & 4 == 0]
    assert len(checked) > 100
    for fields in checked:
        tags = {tag[:5]: tag[5:] for tag in fields[11:]}
        assert (tags["NM:i:"], tags["MD:Z:"]) == ("0", tags["AS:i:"])
        assert tags["RG:Z:"] == "g1"
    # What was converted to BAM and back is the same, but for the line that samtools adds.
    output_of(samtools_binary, "view", "-b", "-o", "x.bam", "x.sam")
    again = output_of(samtools_binary, "view", "-h", "--no-PG", "x.bam").splitlines()
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
    with pysam.AlignmentFile("x.sam") as file:
        rows = [row for row in file if not row.is_unmapped]
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
    monkeypatch.chdir(tmp_path)
    write_fasta("r.fa", {"r one": text, "empty": "", "u": other})
    write_fasta("whole.fa", {"r": text, "u": other})
    write_fastq("q.fq", ((f"q{n}", read) for n, read in enumerate(reads_of(text, made))))


def run_fastq(words, *more, queries="q.fq"):
    return main(["r.fa", queries, "-l", "12", "-b", "-C", "-q", *words.split(), *more])


def output_of(*command):
    """What a program writes that must succeed and report nothing."""
    done = subprocess.run(command, capture_output=True, env=os.environ | NOWHERE)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def lines_of(samtools, path):
    """The fields of the alignments of a file."""
    return [line.split(b"\t") for line in output_of(samtools, "view", path).splitlines()]


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


def test_the_first_file_names_the_read_group(fastq):
    Path("lane 1.R1.fq").write_text(Path("q.fq").read_text())
    assert run_fastq("-o x.sam", queries="lane 1.R1.fq") == 0
    assert "\n@RG\tID:lane_1.R1\tSM:lane_1\tPL:OTHER\n" in Path("x.sam").read_text()
    assert all(row[-1] == "RG:Z:lane_1.R1" for row in sam_rows("x.sam"))


def test_a_read_group_can_be_given_or_left_out(fastq):
    assert run_fastq("-o x.sam", "--read-group", GROUP) == 0
    assert re.findall("\n(@RG.*)", Path("x.sam").read_text()) == [GROUP.replace(r"\t", "\t")]
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


def test_options_of_the_text_may_go_with_other_files(fastq):
    assert run_fastq("-o x.txt -o x.paf -s -c") == 0 and run_fastq("-o y.paf -c") == 0
    assert Path("x.paf").read_bytes() == Path("y.paf").read_bytes() != b""
    # A failed run leaves none of its files.
    Path("bad.fa").write_text(">a\nACGT\n!\n")
    assert run_fastq("-o one.txt -o two.gz", queries="bad.fa") == 1
    assert not Path("one.txt").exists() and not Path("two.gz").exists()


@pytest.fixture
def mates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_fasta("ref.fa", {"r": "ACGTTGCAGGATCCTTAGCA"})
    write_fasta("1.fa", {"a": "ACGTTGC", "b x": "GGATCC"})
    write_fasta("2.fa", {"a": "TTAGCA", "b y": "ACG"})
    write_fasta("both.fa", [("a", "ACGTTGC"), ("a", "TTAGCA"), ("b", "GGATCC"), ("b", "ACG")])


def test_text_in_the_order_of_pairs(mates, capfd):
    words = "-C -q -l 5 --pair ref.fa".split()
    assert main([*words, "1.fa", "2.fa", "--stats", "stats.json"]) == 0
    text = capfd.readouterr().out
    lines = text.splitlines()
    assert [line for line in lines if line[0] == ">"] == ["> a/1", "> a/2", "> b/1", "> b/2"]
    rows = [line.split() for line in lines if line[0] != ">"]
    assert rows == [["1", "1", "7"], ["15", "1", "6"], ["9", "1", "6"]]
    assert '"queries": 4' in Path("stats.json").read_text()
    assert main([*words, "both.fa"]) == 0
    assert capfd.readouterr().out == text
