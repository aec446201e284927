"""The command ``map``: letters that stand for several bases, in reads and in the reference."""

import json
import random
from pathlib import Path

import pysam
import pytest
from helpers.alignment_tools import samtools
from helpers.sequences import reverse_complement

from mummergpu.cli.main import main

CODES = "RYSWKMBDHVN"
READS, BASES = 300, 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference and single reads of it, both with all letters of nucleotides."""
    made = tmp_path_factory.mktemp("letters")
    chance = random.Random(3)
    genome = "".join(chance.choice("ACGT") for _ in range(4000))
    genome = "".join(chance.choice(CODES) if at % 41 == 7 else b for at, b in enumerate(genome))
    half = len(genome) // 2
    small = genome[:half].lower() + "\n>s\n" + genome[half:]
    (made / "r.fa").write_text(f">r\n{small}\n")
    with (made / "reads.fq").open("w") as file:
        for number in range(READS):
            at = chance.randrange(half - BASES) + half * chance.randrange(2)
            read = [_sequenced(letter, chance) for letter in genome[at : at + BASES]]
            if number % 5 == 0:
                del read[50:53]
            bases = "".join(read)
            if number % 2:
                bases = reverse_complement(bases)
            file.write(f"@r{number}\n{bases}\n+\n{'I' * len(bases)}\n")
    run = ["-q", str(made / "r.fa")]
    assert main(["index", *run, "-l", "14", "-o", str(made / "r.mgi")]) == 0
    pages = ["--search", "kmer", "--page-size", "1k", "-l", "14"]
    assert main(["index", *run, *pages, "-o", str(made / "pages.mgi")]) == 0
    assert (
        main(
            [
                *"map --backend cpu".split(),
                *run,
                str(made / "reads.fq"),
                "-o",
                str(made / "expected.sam"),
            ]
        )
        == 0
    )
    return made


def _sequenced(letter, chance):
    """What a sequencer may tell of a letter: itself, more often than not."""
    if letter in "ACGT":
        return chance.choice(CODES) if chance.random() < 0.02 else letter
    return letter if chance.random() < 0.6 else chance.choice("ACGT" + CODES)


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def rows_of(path):
    return samtools("view", path).decode().splitlines()


def test_reads_keep_their_letters_on_both_strands():
    reads = Path("reads.fq").read_text().splitlines()[1::4]
    found = {0: 0, 16: 0}
    for read, row in zip(reads, rows_of("expected.sam"), strict=True):
        fields = row.split("\t")
        flag = int(fields[1])
        assert fields[9] == (reverse_complement(read) if flag & 16 else read)
        found[flag] += 1
    assert min(found.values()) > READS // 3
    assert {letter for read in reads for letter in read} == set("ACGT" + CODES)


def test_edits_are_those_of_calmd():
    """A letter of the reference is in MD, and the same letter of the read is no edit."""
    Path("calmd.sam").write_bytes(samtools("calmd", "--no-PG", "expected.sam", "r.fa"))
    tags = []
    for path in ("expected.sam", "calmd.sam"):
        rows = [row.split("\t") for row in rows_of(path)]
        tags.append([[tag for tag in row[11:] if tag[:2] in ("NM", "MD")] for row in rows])
    assert [sorted(own) for own in tags[0]] == [sorted(others) for others in tags[1]]
    assert set("RYSWKMBDHVN") <= set("".join(tag[5:] for own in tags[0] for tag in own))
    with pysam.FastaFile("r.fa") as genome, pysam.AlignmentFile("expected.sam") as file:
        equal = 0
        for row in file:
            bases = genome.fetch(row.reference_name).upper()
            for at, place in row.get_aligned_pairs(matches_only=True):
                letter = row.query_sequence[at]
                equal += letter not in "ACGTN" and letter == bases[place]
    assert equal > READS


@pytest.mark.parametrize("name", ["o.bam", "o.cram", "o.sam"])
def test_every_format_has_the_same_letters_and_is_read_back(name):
    assert main(["map", "--backend", "cpu", "-q", "r.fa", "reads.fq", "-o", name]) == 0
    expected = [row.split("\t")[:11] for row in rows_of("expected.sam")]
    assert [row.split("\t")[:11] for row in rows_of(name)] == expected
    words = ["-R", "@RG\\tID:reads", "-o", "again.sam"]
    assert main(["map", "--backend", "cpu", "-q", "r.fa", name, *words]) == 0
    assert rows_of("again.sam") == rows_of("expected.sam")


@pytest.mark.parametrize("words", ["r.mgi", "pages.mgi", "pages.mgi --max-memory 20k"])
def test_an_index_knows_the_letters(words):
    run = [*words.split(), "reads.fq", "-o", "o.sam", "--stats", "o.json"]
    assert main(["map", "--backend", "cpu", "-q", *run]) == 0
    assert rows_of("o.sam") == rows_of("expected.sam")
    groups = json.loads(Path("o.json").read_text())["settings"]["page_groups"]
    assert (groups > 1) == ("--max-memory" in words)


def test_matches_of_reads_in_bam_are_those_of_fastq():
    """Without qualities, nothing keeps the letters: they match nothing."""
    assert main(["map", "--backend", "cpu", "-q", "r.fa", "reads.fq", "-o", "o.bam"]) == 0
    texts = []
    for reads in ("reads.fq", "o.bam", "expected.sam"):
        assert main(["-C", "-q", "r.fa", reads, "-l", "20", "-o", "o.txt"]) == 0
        texts.append(Path("o.txt").read_bytes())
    assert texts[0] == texts[1] == texts[2]
