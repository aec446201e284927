"""Names and files that samtools, bcftools and gzip take, and specifications do not."""

import bz2
import gzip
import lzma
import random
from pathlib import Path

import pytest
from helpers.alignment_tools import output_of, samtools
from helpers.requirements import program_of
from helpers.sequences import random_bases, write_fasta, write_fastq

from mummergpu.cli.main import main

NAMES = ("A/duck/1/2015(H5N8)", "aac(6')-Ib_1", "Gt(ROSA)26Sor", "a[1]{2}", "chr_é", '"q"')


@pytest.fixture
def genome(tmp_path, monkeypatch):
    """Records of such names, a read of each, and a copy with a difference in each record."""
    monkeypatch.chdir(tmp_path)
    made = random.Random(2)
    records = {name: random_bases(made, 600) for name in NAMES}
    write_fasta(Path("r.fa"), records)
    write_fastq(Path("q.fq"), ((f"r{n}", one[50:200]) for n, one in enumerate(records.values())))
    copies = {
        f"q{n}": one[:300] + "ACGT"["CGTA".index(one[300])] + one[301:]
        for n, one in enumerate(records.values())
    }
    write_fasta(Path("q.fa"), copies)
    return records


def warnings_of(words, capsys):
    """Run the command, which must succeed; return its warnings."""
    assert main([*words.split(), "--backend", "cpu"]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if "warning" in line]


@pytest.mark.parametrize(
    "words", ["map r.fa q.fq", "align r.fa q.fa", "r.fa q.fq -l 40"], ids=["map", "align", "match"]
)
def test_samtools_reads_unusual_names(words, genome, capsys):
    paths = ["x.sam", "x.bam"] if words.startswith("r.fa") else ["x.sam", "x.bam", "x.cram"]
    (warning,) = warnings_of(f"{words} -o {' -o '.join(paths)}", capsys)
    assert "r.fa" in warning
    assert NAMES[0] in warning
    assert "Picard, GATK and IGV refuse" in warning
    for path in paths:
        rows = samtools("view", path).decode().splitlines()
        assert [row.split("\t")[2] for row in rows] == list(genome)


def test_bcftools_reads_unusual_names_and_none_that_end_its_header(genome, capsys):
    bcftools = program_of("bcftools")
    assert len(warnings_of("align r.fa q.fa -o x.vcf", capsys)) == 1
    output_of(bcftools, "view", "-Ob", "-o", "x.bcf", "x.vcf")
    rows = output_of(bcftools, "view", "-H", "x.bcf").decode().splitlines()
    assert [row.split("\t")[0] for row in rows] == list(genome)
    for name in ("a,b", "x<y", "x>y"):
        write_fasta(Path("bad.fa"), {name: next(iter(genome.values()))})
        assert main(["align", "bad.fa", "q.fa", "-C", "-o", "bad.vcf"]) == 1
        assert "VCF allows no such name" in capsys.readouterr().err
        assert len(warnings_of("align bad.fa q.fa -o bad.sam", capsys)) == 1
        assert samtools("view", "bad.sam").split(b"\t")[2] == name.encode()


@pytest.mark.parametrize("tail", [bytes(700), b"-----BEGIN SIGNATURE-----\n"])
def test_what_follows_compressed_data_is_told_and_ignored(tail, genome, capsys):
    reference, reads = Path("r.fa").read_bytes(), Path("q.fq").read_bytes()
    output_of("samtools", "import", "-o", "q.bam", "q.fq")
    assert not warnings_of("r.fa q.fq -l 40 -o plain.txt", capsys)
    Path("r.gz").write_bytes(gzip.compress(reference) + tail)
    files = {
        "q.gz": gzip.compress(reads),
        "q.bz2": bz2.compress(reads),
        "q.xz": lzma.compress(reads) + bytes(4),
        "q.bam": Path("q.bam").read_bytes(),
    }
    for name, content in files.items():
        Path(name).write_bytes(content + tail)
        # Padding of xz is a part of the file.
        count = len(tail) + 4 if name == "q.xz" else len(tail)
        told = warnings_of(f"r.gz {name} -l 40 -o packed.txt", capsys)
        expected = {f"r.gz: {len(tail)} bytes"}
        if name != "q.xz" or tail.strip(b"\0"):
            expected.add(f"{name}: {count} bytes")
        begin, end = "mummergpu: warning: ", " after the end of the compressed data are ignored"
        assert {line.removeprefix(begin).removesuffix(end) for line in told} == expected
        assert len(told) == len(expected)
        assert Path("packed.txt").read_bytes() == Path("plain.txt").read_bytes()
        # What is cut is still an error.
        Path(name).write_bytes(content[: len(content) * 2 // 3])
        assert main(["r.gz", name, "-C", "-l", "40", "-o", "cut.txt"]) == 1
        assert "truncated" in capsys.readouterr().err
