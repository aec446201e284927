"""The command writes each format; the tools that own them read the matches of MUMmer's text."""

from __future__ import annotations

import os
import random
import subprocess
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pysam
import pytest
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


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
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
def test_samtools_finds_nothing_wrong_with_sam(words, samtools_binary):
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
def test_some_hits(words, most):
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
def test_what_a_format_cannot_hold(words, record, query, message, capsys):
    Path("r.fa").write_text(f">{record}\nACGTTGCATTGACCAGT\n")
    Path("q.fa").write_text(f">{query}\nACGTTGCATTGACCAGT\n")
    assert run(words) == 1
    assert message in capsys.readouterr().err
    assert sorted(os.listdir()) == ["q.fa", "r.fa"]
