"""What reads bring along: tags, read groups, and letters that stand for several bases."""

import json
import random
from pathlib import Path

import pysam
import pytest
from helpers.alignment_tools import samtools
from helpers.loops import each
from helpers.sequences import random_bases, reverse_complement, write_fasta, write_fastq

import mummergpu
from mummergpu.cli.main import main

TEMPLATES = 120
GROUPS = ["@RG\tID:l1\tSM:s\tLB:a", "@RG\tID:l2\tSM:s\tLB:b"]

KEPT = [
    *("RX:Z:ACG-TT", "BC:Z:hello world", "Ze:Z:", "XH:H:1AE3", "Xa:A:q", "RG:Z:l1"),
    *("Xi:i:-5", "Xj:i:300", "Xk:i:-70000", "Xl:i:4000000000", "Xm:i:200", "Xn:i:-300"),
    *("Xf:f:0.333333", "Xg:f:1e-30", "Xh:f:-1.5e+20", "Xo:f:0"),
    *("Ba:B:c,-128,2", "Bb:B:C,255", "Bc:B:s,-300", "Bd:B:S,65535,1", "Be:B:i,-70000,1"),
    *("Bf:B:I,4294967295", "Bg:B:f,1.5,0.1,3e+10"),
]

REPLACED = ["NM:i:90", "MD:Z:7", "AS:i:3", "XS:i:4", "SA:Z:g,1,+,9M,0,0;", "XA:Z:g,+1,9M,0;"]
REPLACED += ["MC:Z:5M", "MQ:i:9"]
OF_ALIGNMENTS = ["NH:i:3", "HI:i:1", "PG:Z:bwa", "UQ:i:7", "BQ:Z:@@@"]
WRITTEN = {tag[:2] for tag in REPLACED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A genome, and pairs with tags in every format; some reads are split."""
    made = tmp_path_factory.mktemp("tags")
    chance = random.Random(5)
    genome = random_bases(chance, 20_000)
    (made / "g.fa").write_text(f">g\n{genome}\n")
    rows = ["@HD\tVN:1.6\tSO:unsorted", *GROUPS]
    for number in range(TEMPLATES):
        at = chance.randrange(9000)
        first, second = genome[at : at + 100], genome[at + 300 : at + 400]
        if number % 7 == 0:
            first = first[:50] + genome[at + 10_000 : at + 10_050]
        for flag, bases in ((77, first), (141, reverse_complement(second))):
            tags = chance.sample(KEPT + REPLACED + OF_ALIGNMENTS, chance.randrange(20))
            fields = [f"t{number}", flag, "*", 0, 0, "*", "*", 0, 0, bases, "I" * 100]
            rows.append("\t".join(map(str, [*fields, *tags])))
    (made / "u.sam").write_text("".join(f"{row}\n" for row in rows))
    samtools("view", "-b", "-o", made / "u.bam", made / "u.sam")
    samtools("view", "-C", "--output-fmt-option", "no_ref=1", "-o", made / "u.cram", made / "u.sam")
    mates = ["-1", made / "1.fq", "-2", made / "2.fq"]
    samtools("fastq", "-T", "*", "-n", *mates, made / "u.bam")
    return made


@pytest.fixture
def tagged(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(*words):
    return main(["map", "--backend", "cpu", "-q", "g.fa", *words])


def rows_of(path):
    return [row.split("\t") for row in lines_of(path)]


def tags_of(tags):
    assert len({tag[:2] for tag in tags}) == len(tags), tags
    return {tag for tag in tags if tag[:2] not in WRITTEN}


def expected(with_groups=True):
    """The tags that records of a read have besides those of a mapper."""
    kept = [tag for tag in KEPT if with_groups or tag[:2] != "RG"]
    return {(row[0], int(row[1]) & 0xC0): set(row[11:]) & set(kept) for row in rows_of("u.sam")}


def found(path):
    return [((row[0], int(row[1]) & 0xC0), tags_of(row[11:])) for row in rows_of(path)]


def groups_of(path):
    header = samtools("view", "-H", path).decode().splitlines()
    return [line for line in header if line.startswith("@RG")]


@pytest.mark.parametrize("output", ["o.sam", "o.bam", "o.cram"])
@pytest.mark.parametrize("reads", ["u.sam", "u.bam", "u.cram"])
def test_tags_are_written_with_every_record(tagged, reads, output):
    assert run(reads, "-N", "all", "-o", output) == 0
    own, records = expected(), found(output)
    assert all(tags == own[read] for read, tags in records)
    assert len(records) > 2 * TEMPLATES + TEMPLATES // 8
    assert groups_of(output) == GROUPS


def test_sorted_bam_has_the_same_records(tagged):
    assert run("u.bam", "-o", "o.bam") == 0
    assert run("u.bam", "--sort", "--mark-duplicates", "-o", "s.bam") == 0
    own = expected()
    assert all(tags == own[read] for read, tags in found("s.bam"))
    assert len(found("s.bam")) == len(found("o.bam"))


def test_numbers_are_those_of_the_bam(tagged, folder):
    """Numbers with a fraction keep all of their bits, and others their types."""
    assert run("u.bam", "-o", "o.bam") == 0
    with pysam.AlignmentFile("u.bam", check_sq=False) as file:
        rows = list(file.fetch(until_eof=True))
    own = {(row.query_name, row.is_read1): row.get_tags(with_value_type=True) for row in rows}
    kept = {tag[:2] for tag in KEPT}
    with pysam.AlignmentFile("o.bam") as file:
        for row in file:
            tags = own[row.query_name, row.is_read1]
            mine = [tag for tag in row.get_tags(with_value_type=True) if tag[0] in kept]
            assert mine == [tag for tag in tags if tag[0] in kept]


def test_a_read_group_of_the_user_wins(tagged):
    assert run("u.bam", "-R", "@RG\\tID:mine\\tSM:x", "-o", "o.bam") == 0
    own = expected(with_groups=False)
    assert all(tags == own[read] | {"RG:Z:mine"} for read, tags in found("o.bam"))
    assert groups_of("o.bam") == ["@RG\tID:mine\tSM:x"]
    mapped = mummergpu.Index.build("g.fa", min_length=16).map("u.bam")
    mapped.write("o.bam", read_group="@RG\tID:other")
    assert all(tags == own[read] | {"RG:Z:other"} for read, tags in found("o.bam"))
    assert groups_of("o.bam") == ["@RG\tID:other"]
    assert run("u.bam", "--read-group", "none", "-o", "o.bam") == 0
    assert all(tags == own[read] for read, tags in found("o.bam"))
    assert groups_of("o.bam") == []


def test_reads_of_other_files_are_of_a_group_of_their_own(tagged, folder, capsys):
    other = (folder / "u.sam").read_text()
    Path("same.sam").write_text(other.replace(GROUPS[1], "@RG\tID:l3\tSM:s"))
    Path("other.sam").write_text(other.replace("LB:a", "LB:c"))
    plain = samtools("fastq", "-n", "-0", "/dev/null", "u.bam").decode()
    Path("plain.fq").write_text(plain)
    for files in (["u.bam", "plain.fq"], ["plain.fq", "u.bam"]):
        assert run(*files, "--interleaved", "-o", "o.sam") == 0
        name = files[0].split(".")[0]
        assert groups_of("o.sam") == [f"@RG\tID:{name}\tSM:{name}\tPL:OTHER", *GROUPS]
        assert sum(f"RG:Z:{name}" in row for row in rows_of("o.sam")) >= 2 * TEMPLATES
    assert run("u.bam", "same.sam", "--interleaved", "-o", "o.sam") == 0
    assert groups_of("o.sam") == [*GROUPS, "@RG\tID:l3\tSM:s"]
    assert run("u.bam", "other.sam", "--interleaved", "-o", "o.sam") == 1
    assert "other.sam: the read group 'l1' is another one" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["o.sam", "o.bam"])
def test_comments_are_tags(tagged, output):
    assert run("1.fq", "2.fq", "-y", "-o", output) == 0
    own = expected(with_groups=False)
    assert all(tags == own[read] | {"RG:Z:1"} for read, tags in found(output))
    assert run("1.fq", "2.fq", "-o", output) == 0
    assert all(tags == {"RG:Z:1"} for _, tags in found(output))


def test_comments_of_fasta_and_of_any_blanks_are_tags(tagged):
    bases = Path("g.fa").read_text().splitlines()[1][500:600]
    for start, end in ((">", ""), ("@", f"+a\tmore\n{'I' * 100}\n")):
        for comment in ("\tBC:Z:A C\tXi:i:+7", " BC:Z:A C\tXi:i:7", " \t BC:Z:A C\tXi:i:007"):
            Path("c.txt").write_text(
                f"{start}a{comment}\r\n{bases}\r\n{end}{start}b \n{bases}\n{end[:1]}"
                + (f"\n{'I' * 100}\n" if end else "")
            )
            assert run("c.txt", "--comments", "--read-group", "none", "-o", "o.sam") == 0
            assert [tags for _, tags in found("o.sam")] == [{"BC:Z:A C", "Xi:i:7"}, set()]


@each(
    "comment",
    [
        *("1:N:0:ACGT", "length=100", "BC:Z:A\t", "BC:Z:A\tBC:Z:T", "BC:Z:A\t\tXi:i:1", "1C:Z:A"),
        *"BC:Q:A BC-Z:A BC:Z-A B:Z:A BC:Z:\x7f Xi:i: Xi:i:1.5 Xi:i:-2147483649".split(),
        *"Xi:i:4294967296 Xa:A: Xa:A:ab XH:H:1a XH:H:1 Xf:f: Xf:f:1_0 Xf:f:nan XB:B:".split(),
        *"XB:B:x,1 XB:B:c,128 XB:B:C,-1 XB:B:c1 XB:B:c, XB:B:f,x XB:B:f,,1".split(),
        "Xi:i:99999999999999999999999",
    ],
)
def test_other_comments_are_an_error(tagged, comment, capsys):
    Path("bad.fq").write_text(f"@fine BC:Z:A\nACGT\n+\nIIII\n@bad {comment}\nACGT\n+\nIIII\n")
    assert run("bad.fq", "-o", "none.bam") == 0
    assert run("bad.fq", "-y", "-o", "none2.bam") == 1
    error = capsys.readouterr().err
    assert "bad.fq: the comment '" in error and error.endswith("(record 'bad')\n")
    assert not Path("none2.bam").exists()


CODES = "RYSWKMBDHVN"
READS, BASES = 300, 120


@pytest.fixture(scope="module")
def letters_folder(tmp_path_factory):
    """A reference and single reads of it, both with all letters of nucleotides."""
    made = tmp_path_factory.mktemp("letters")
    chance = random.Random(3)
    genome = "".join(chance.choice("ACGT") for _ in range(4000))
    genome = "".join(chance.choice(CODES) if at % 41 == 7 else b for at, b in enumerate(genome))
    half = len(genome) // 2
    write_fasta(made / "r.fa", {"r": genome[:half].lower(), "s": genome[half:]})
    reads = []
    for number in range(READS):
        at = chance.randrange(half - BASES) + half * chance.randrange(2)
        read = [_sequenced(letter, chance) for letter in genome[at : at + BASES]]
        if number % 5 == 0:
            del read[50:53]
        bases = "".join(read)
        reads.append((f"r{number}", reverse_complement(bases) if number % 2 else bases))
    write_fastq(made / "reads.fq", reads)
    for words in (
        "index -q @r.fa -l 14 -o @r.mgi",
        "index -q @r.fa --search kmer --page-size 1k -l 14 -o @pages.mgi",
        "map --backend cpu -q @r.fa @reads.fq -o @expected.sam",
    ):
        assert main(words.replace("@", f"{made}/").split()) == 0
    return made


def _sequenced(letter, chance):
    """What a sequencer may tell of a letter: itself, more often than not."""
    if letter in "ACGT":
        return chance.choice(CODES) if chance.random() < 0.02 else letter
    return letter if chance.random() < 0.6 else chance.choice("ACGT" + CODES)


@pytest.fixture
def letters(letters_folder, monkeypatch):
    monkeypatch.chdir(letters_folder)


def lines_of(path):
    return samtools("view", path).decode().splitlines()


def test_reads_keep_their_letters_on_both_strands(letters):
    reads = Path("reads.fq").read_text().splitlines()[1::4]
    found = {0: 0, 16: 0}
    for read, fields in zip(reads, rows_of("expected.sam"), strict=True):
        flag = int(fields[1])
        assert fields[9] == (reverse_complement(read) if flag & 16 else read)
        found[flag] += 1
    assert min(found.values()) > READS // 3
    assert {letter for read in reads for letter in read} == set("ACGT" + CODES)


def test_edits_are_those_of_calmd(letters):
    """A letter of the reference is in MD, and the same letter of the read is no edit."""
    Path("calmd.sam").write_bytes(samtools("calmd", "--no-PG", "expected.sam", "r.fa"))
    tags = [
        [sorted(tag for tag in row[11:] if tag[:2] in ("NM", "MD")) for row in rows_of(path)]
        for path in ("expected.sam", "calmd.sam")
    ]
    assert tags[0] == tags[1]
    assert set(CODES) <= set("".join(tag[5:] for own in tags[0] for tag in own))
    with pysam.FastaFile("r.fa") as genome, pysam.AlignmentFile("expected.sam") as file:
        equal = 0
        for row in file:
            bases = genome.fetch(row.reference_name).upper()
            for at, place in row.get_aligned_pairs(matches_only=True):
                letter = row.query_sequence[at]
                equal += letter not in "ACGTN" and letter == bases[place]
    assert equal > READS


@pytest.mark.parametrize("name", ["o.bam", "o.cram", "o.sam"])
def test_every_format_has_the_same_letters_and_is_read_back(letters, name):
    assert main(["map", "--backend", "cpu", "-q", "r.fa", "reads.fq", "-o", name]) == 0
    expected = [row[:11] for row in rows_of("expected.sam")]
    assert [row[:11] for row in rows_of(name)] == expected
    words = ["-R", "@RG\\tID:reads", "-o", "again.sam"]
    assert main(["map", "--backend", "cpu", "-q", "r.fa", name, *words]) == 0
    assert lines_of("again.sam") == lines_of("expected.sam")


@pytest.mark.parametrize("words", ["r.mgi", "pages.mgi", "pages.mgi --max-memory 20k"])
def test_an_index_knows_the_letters(letters, words):
    run = [*words.split(), "reads.fq", "-o", "o.sam", "--stats", "o.json"]
    assert main(["map", "--backend", "cpu", "-q", *run]) == 0
    assert lines_of("o.sam") == lines_of("expected.sam")
    groups = json.loads(Path("o.json").read_text())["settings"]["page_groups"]
    assert (groups > 1) == ("--max-memory" in words)


def test_matches_of_reads_in_bam_are_those_of_fastq(letters):
    """Without qualities, nothing keeps the letters: they match nothing."""
    assert main(["map", "--backend", "cpu", "-q", "r.fa", "reads.fq", "-o", "o.bam"]) == 0
    texts = []
    for reads in ("reads.fq", "o.bam", "expected.sam"):
        assert main(["-C", "-q", "r.fa", reads, "-l", "20", "-o", "o.txt"]) == 0
        texts.append(Path("o.txt").read_bytes())
    assert texts[0] == texts[1] == texts[2]
