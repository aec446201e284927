"""Reads without a place as FASTQ, and the bases of secondary records."""

import gzip
import random
from pathlib import Path

import pytest
from helpers.alignment_tools import samtools
from helpers.sequences import random_bases, reverse_complement, write_fasta

import mummergpu
from mummergpu.cli.main import main

MAP = "map --backend cpu -q r.fa"
NEITHER = ("-f", "12")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs of which both mates have a place, one of them, or none; and a read that is too long."""
    made = tmp_path_factory.mktemp("unmapped")
    chance = random.Random(7)
    bases = random_bases(chance, 3000)
    write_fasta(made / "r.fa", {"chr": bases + random_bases(chance, 200) + bases[:700]})
    texts = ([], [])
    for number in range(120):
        at = chance.randrange(2600)
        mates = [bases[at : at + 100], reverse_complement(bases[at + 200 : at + 300])]
        for mate in range(2):
            if number % 4 >= 2 or (number % 4 == 1 and mate == number % 8 // 4):
                mates[mate] = random_bases(chance, chance.randrange(1, 130)) + "NRYk"
            if number == 118:
                mates[mate] = random_bases(chance, 1600)
            qualities = "".join(chr(33 + chance.randrange(42)) for _ in mates[mate])
            texts[mate].append(f"@p{number}/{mate + 1} told\n{mates[mate]}\n+\n{qualities}\n")
    for name, text in zip(("1.fq", "2.fq"), texts, strict=True):
        (made / name).write_text("".join(text))
    both = "".join(one + other for one, other in zip(*texts, strict=True))
    (made / "both.fq").write_text(both)
    # Of reads with one name, samtools keeps one.
    single = "".join(f">s{n}\n{read}\n" for n, read in enumerate(both.splitlines()[1::4]))
    (made / "s.fa").write_text(single)
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(
    "reads", ["1.fq 2.fq", "-p both.fq", "1.fq 2.fq --no-unal -t 2 --block-size 3k"]
)
def test_pairs_without_a_place_are_what_samtools_finds(reads):
    assert main(f"{MAP} {reads} -o x.sam --unmapped u.fq".split()) == 0
    assert main(f"{MAP} {reads} -o y.bam --unmapped 1u.fq.gz,2u.fq.gz".split()) == 0
    assert main(f"{MAP} 1.fq 2.fq -o x.bam".split()) == 0
    samtools("fastq", "-n", *NEITHER, "-1", "s1.fq", "-2", "s2.fq", "x.bam")
    first, second = (Path(name).read_text() for name in ("s1.fq", "s2.fq"))
    assert [gzip.open(name, "rt").read() for name in ("1u.fq.gz", "2u.fq.gz")] == [first, second]
    rows = [text.split("\n") for text in (first, second)]
    joined = [
        line for at in range(0, len(rows[0]) - 1, 4) for row in rows for line in row[at : at + 4]
    ]
    assert Path("u.fq").read_text().splitlines() == joined
    assert first.count("@p") == second.count("@p") == 60
    # They are reads that can be mapped again.
    assert main(f"{MAP} -p u.fq -o again.sam --unmapped again.fq".split()) == 0
    assert Path("again.fq").read_text() == Path("u.fq").read_text()


def test_single_reads_and_python():
    assert main(f"{MAP} s.fa -o x.bam --unmapped u.fq".split()) == 0
    expected = samtools("fastq", "-n", "-f", "4", "x.bam").decode()
    assert Path("u.fq").read_text() == expected and expected.count("@s") == 150
    mummergpu.map("r.fa", "s.fa", output="y.sam", backend="cpu", unmapped="p.fq")
    assert Path("p.fq").read_text() == expected


@pytest.mark.parametrize("end", ["sam", "bam", "cram"])
def test_secondary_records_have_bases_if_asked(end):
    assert main(f"{MAP} 1.fq 2.fq -N 3 -o plain.{end}".split()) == 0
    assert main(f"{MAP} 1.fq 2.fq -N 3 --secondary-seq -o full.{end}".split()) == 0
    rows = [
        [
            line.split("\t")
            for line in samtools("view", "-T", "r.fa", f"{name}.{end}").decode().splitlines()
        ]
        for name in ("plain", "full")
    ]
    primary = {}
    count = 0
    for plain, full in zip(*rows, strict=True):
        flag = int(full[1])
        if not flag & 0x100:
            assert plain == full
            primary[full[0], flag & 0x80] = full
            continue
        count += 1
        assert plain[9:11] == ["*", "*"] and plain[:9] == full[:9]
        bases, qualities = primary[full[0], flag & 0x80][9:11]
        if flag & 0x10 != int(primary[full[0], flag & 0x80][1]) & 0x10:
            bases, qualities = reverse_complement(bases), qualities[::-1]
        assert full[9:11] == [bases, qualities]
    assert count > 10
