"""The command ``map``: its files and options, real reads, and what other programs make of it."""

import gzip
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from helpers.alignment_tools import bwa_alignments, output_of, picard_errors, sam_rows, samtools
from helpers.children import COMMAND, child, printed_by
from helpers.loops import each
from helpers.read_pairs import PairFiles, write_pairs
from helpers.requirements import program_of
from helpers.sequences import random_bases, reverse_complement, write_fasta
from helpers.tables import table

import mummergpu
from mummergpu.cli.main import main
from mummergpu.runtime.progress import Messages, Phase

FILES = PairFiles()
PAIRS = 400
GROUP = "@RG\\tID:x\\tSM:y\\tPL:ILLUMINA"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of `write_pairs`, an index, and files that are compressed or of other formats."""
    made = tmp_path_factory.mktemp("mapped")
    write_pairs(made, PAIRS)
    for name in (FILES.reference, FILES.first, FILES.second):
        (made / f"{name}.gz").write_bytes(gzip.compress((made / name).read_bytes()))
    for length in ("16", "50"):
        words = ["index", "-q", "-l", length, str(made / FILES.reference)]
        assert main([*words, "-o", str(made / f"{length}.mgi")]) == 0
    return made


@pytest.fixture
def pairs(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(words, *more):
    return main([*f"map --backend cpu -q {words}".split(), *more])


def header_of(path):
    return [line for line in Path(path).read_text().splitlines() if line[0] == "@"]


@pytest.fixture(scope="module")
def mapped(folder):
    """The rows of the pairs."""
    words = f"map --backend cpu -q {folder}/r.fa {folder}/1.fq {folder}/2.fq -t 1 -R"
    assert main([*words.split(), GROUP, "-o", f"{folder}/expected.sam"]) == 0
    return _without_header((folder / "expected.sam").read_bytes())


def _without_header(text):
    return b"".join(line for line in text.splitlines(keepends=True) if line[:1] != b"@")


def test_every_read_has_one_row_in_order(pairs, mapped):
    rows = [line.split(b"\t") for line in mapped.splitlines()]
    assert [row[0] for row in rows] == [f"pair{row // 2}".encode() for row in range(2 * PAIRS)]
    flags = Counter(int(row[1]) & 0xC5 for row in rows)
    # Nearly all but those of random bases are mapped, and their names have lost /1 and /2.
    assert flags[0x41] >= PAIRS - PAIRS // 40 - 4 and flags[0x45] >= PAIRS // 40
    assert sum(int(row[1]) & 2 for row in rows) >= 2 * 2 * (PAIRS - PAIRS // 15)
    assert all(0 <= int(row[4]) <= 60 for row in rows)
    assert all(int(row[4]) == 0 for row in rows if int(row[1]) & 4)
    assert {b"RG:Z:x"} == {field for row in rows for field in row if field.startswith(b"RG")}


@each("words", table(__file__, "files and options"))
def test_the_rows_depend_on_the_reads_only(pairs, mapped, words):
    assert run(words, "-R", GROUP, "-o", "x.sam") == 0
    assert _without_header(Path("x.sam").read_bytes()) == mapped


@each("words", ["- 1.fq 2.fq < r.fa", "r.fa - -p < both.fq", "16.mgi 1.fq - < 2.fq"])
def test_standard_input_and_output(pairs, mapped, words):
    words, _, path = words.partition(" < ")
    command = [*COMMAND, *"map --backend cpu -q -R".split(), GROUP, *words.split()]
    done = child(*command, input=Path(path).read_bytes(), text=False)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    assert _without_header(done.stdout) == mapped


def test_the_header_says_what_the_file_is(pairs):
    assert run("r.fa 1.fq.gz 2.fq.gz -o x.sam") == 0
    header = header_of("x.sam")
    assert [line.split("\t")[:2] for line in header[:3]] == [
        *(["@HD", "VN:1.6"], ["@SQ", "SN:one"], ["@SQ", "SN:two"])
    ]
    # The MD5 of a record: samtools computes the same.
    sums = re.findall("M5:[0-9a-f]{32}", samtools("dict", "r.fa").decode())
    lines = header[1:3]
    assert [line.split("\t")[-1] for line in lines] == sums
    # The first file names the read group, as it does for matches.
    assert header[3] == "@RG\tID:1\tSM:1\tPL:OTHER" and "CL:mummergpu map" in header[4]
    # The same from an index, which a file or a pipe was read for, and from standard input.
    reference = Path("r.fa").read_bytes()
    for number, words in enumerate(("index -q r.fa -o m5.mgi", "index -q - -o m5.mgi")):
        printed_by(*COMMAND, *words.split(), input=reference, text=False)
        assert run(f"m5.mgi 1.fq -o {number}.sam") == 0
        assert header_of(f"{number}.sam")[1:3] == lines
    words = "map --backend cpu -q - 1.fq -o in.sam".split()
    printed_by(*COMMAND, *words, input=reference, text=False)
    assert header_of("in.sam")[1:3] == lines
    mummergpu.Index.open("m5.mgi").map("1.fq").write("py.sam")
    assert header_of("py.sam")[1:3] == lines
    # An index without them is read, too.
    mummergpu.Index.build("r.fa", 16).save("none.mgi")
    assert run("none.mgi both.fq -p -o x.sam --read-group none") == 0
    assert "M5:" not in "".join(header_of("x.sam"))
    assert "RG" not in Path("x.sam").read_text()


def test_an_index_of_long_kmers_finds_no_short_ones(pairs, capsys):
    assert run("50.mgi 1.fq -k 8") == 2
    assert "make one with 'mummergpu index -l 8'" in capsys.readouterr().err


def test_single_reads_have_no_mates(pairs):
    assert run("r.fa 1.fq 2.fq --single -o x.sam") == 0
    rows = sam_rows("x.sam")
    assert len(rows) == 2 * PAIRS and all(int(row[1]) & 1 == 0 for row in rows)
    assert [row[6:9] for row in rows] == [["*", "0", "0"]] * len(rows)


def test_unaligned_bam_and_its_flags(pairs):
    for words in ("-1 1.fq -2 2.fq -o u.bam", "-0 1.fq -o s.bam"):
        samtools("import", *words.split())
    assert run("r.fa u.bam -o x.sam") == 0
    assert run("r.fa 1.fq 2.fq -o y.sam") == 0
    assert [row[:9] for row in sam_rows("x.sam")] == [row[:9] for row in sam_rows("y.sam")]
    assert run("r.fa u.bam --single -o x.sam") == 0
    assert all(int(row[1]) & 1 == 0 for row in sam_rows("x.sam"))


def test_samtools_changes_nothing(pairs):
    assert run("r.fa 1.fq 2.fq -o x.bam", "-R", GROUP) == 0
    assert run("r.fa 1.fq 2.fq --sort --mark-duplicates -o sorted.bam", "-R", GROUP) == 0
    assert run("r.fa 1.fq 2.fq --sort -o sorted.cram", "-R", GROUP) == 0
    samtools("quickcheck", "-v", "x.bam", "sorted.bam")
    before = samtools("view", "x.bam")
    samtools("fixmate", "--no-PG", "x.bam", "fixed.bam")
    assert _fields(samtools("view", "fixed.bam")) == _fields(before)
    in_order = samtools("view", "sorted.bam")
    assert _fields(samtools("calmd", "--no-PG", "-Q", "sorted.bam", "r.fa")) == _fields(in_order)
    assert _fields(samtools("sort", "--no-PG", "-O", "sam", "x.bam")) == _fields(in_order, 0x400)
    # The index finds what a scan finds.
    place = 'rname=="two" && endpos>=9001 && pos<=9700'
    for name in ("sorted.bam", "sorted.cram"):
        found = samtools("view", "-c", name, "two:9001-9700")
        assert int(found) == int(samtools("view", "-c", "-e", place, name))


def _fields(text, ignored=0):
    """Return the fields of each read, its tags in alphabetical order, without some flags."""
    found = {}
    for line in text.splitlines():
        if line.startswith(b"@"):
            continue
        name, flag, *rest = line.split(b"\t")
        key = name, int(flag) & 0x80
        assert key not in found
        found[key] = [b"%d" % (int(flag) & ~ignored), *rest[:9], *sorted(rest[9:])]
    return found


def test_names_have_at_signs(pairs):
    bases = Path("r.fa").read_text().splitlines()[1][300:400]
    Path("at.fa").write_text(f">a@b\n{bases}\n>c@\n{bases}\n")
    for words in ("map", "-C -l 20", "align -C -l 20 -c 20"):
        for name in ("at.sam", "at.bam"):
            assert main([*words.split(), "-q", "r.fa", "at.fa", "-o", name]) == 0
            names = {row.split(b"\t")[0] for row in samtools("view", name).splitlines()}
            assert names == {b"a@b", b"c@"}


def test_wrong_reads_are_named(pairs, capsys):
    lines = Path(FILES.second).read_text().splitlines(keepends=True)
    Path("swapped.fq").write_text("".join([*lines[:40], *lines[44:48], *lines[40:44], *lines[48:]]))
    Path("short.fq").write_text("".join(lines[:-4]))
    Path("cut.fq").write_text("".join(lines[:-1]))
    for second, words in (
        ("swapped.fq", ("swapped.fq", "41", "pair10", "pair11")),
        ("short.fq", ("1.fq", f"pair{PAIRS - 1}")),
        ("cut.fq", ("cut.fq",)),
    ):
        assert run(f"r.fa 1.fq {second} -o wrong.bam") == 1
        message = capsys.readouterr().err
        assert message.count("\n") == 1 and all(word in message for word in words), message
        assert not Path("wrong.bam").exists()


def test_a_read_that_is_too_long_stays_unmapped(pairs, tmp_path, capfd):
    genome = "".join(random.Random(2).choices("ACGT", k=4000))
    given = [str(tmp_path / name) for name in ("g", "one", "two")]
    for path, bases in zip(given, (genome, genome[:100], genome[:1501]), strict=True):
        write_fasta(path, {"a": genome[:1500], "b": bases})

    def mapped(*words):
        assert main(["map", "--backend", "cpu", *words]) == 0
        found = capfd.readouterr()
        lines = [line.split("\t") for line in found.out.splitlines() if line[0] != "@"]
        return lines, found.err

    alone, said = mapped("-q", *given[:2])
    assert [row[5] for row in alone] == ["1500M", "100M"] and not said
    rows, said = mapped(*given)
    # As a read whose mate is not mapped.
    assert rows[2][:9] == ["b", "73", "a", *alone[1][3:6], "=", alone[1][3], "0"]
    assert rows[3][:9] == ["b", "133", "a", alone[1][3], "0", "*", "=", alone[1][3], "0"]
    assert rows[3][9:11] == [genome[:1501], "*"]
    assert said.count("stayed unmapped") == 1
    assert "a read of more than 1,500 bases stayed unmapped, the longest of 1,501" in said
    assert main(["map", "--backend", "cpu", "-q", "--long-reads", "error", *given]) == 1
    error = capfd.readouterr().err
    assert f"{given[2]}: a read of 1,501 bases, and those that are mapped have at most" in error
    assert error.endswith("'mummergpu align' (record 'b')\n")


def test_long_reads_change_no_other_rows(pairs, mapped, capfd):
    """Whole templates among the others: all of their bases and qualities are written."""
    made, number = random.Random(4), 0
    texts = [[], []]
    others = [Path(name).read_text().splitlines(keepends=True) for name in ("1.fq", "2.fq")]
    for at in range(0, len(others[0]), 4):
        for mate in range(2) if at % 64 == 0 else ():
            bases = "".join(made.choices("ACGTRN", k=made.choice([5000, 1501])))
            own = "".join(made.choices("!5I", k=len(bases)))
            texts[mate].append(f"@long{number}/{mate + 1}\n{bases}\n+\n{own}\n")
        number += at % 64 == 0
        for mate in range(2):
            texts[mate] += others[mate][at : at + 4]
    for name, text in zip(("l1.fq", "l2.fq"), texts, strict=True):
        Path(name).write_text("".join(text))
    words = "map --backend cpu r.fa l1.fq l2.fq -o long.bam -R".split()
    assert main([*words, GROUP]) == 0
    assert f"{2 * number} reads of more than 1,500 bases" in capfd.readouterr().err
    rows = samtools("view", "long.bam").splitlines(keepends=True)
    assert b"".join(row for row in rows if row[:4] != b"long") == mapped
    for mate in range(2):
        flag = "-f64" if mate == 0 else "-f128"
        back = samtools("fastq", "-N", flag, "long.bam").decode()
        assert back == Path(f"l{mate + 1}.fq").read_text().replace(" comment", "")


def test_no_reads(pairs, capsys):
    Path("empty.fq").write_text("")
    assert main("map --backend cpu r.fa empty.fq -o x.bam --sort --stats s.json".split()) == 0
    assert "empty.fq: no reads" in capsys.readouterr().err
    samtools("quickcheck", "-v", "x.bam")
    assert samtools("view", "-c", "x.bam") == b"0\n"
    assert json.loads(Path("s.json").read_text())["mapping"]["reads"] == 0
    Path("none.fq").touch()
    assert main("map --backend cpu r.fa empty.fq none.fq -o x.bam".split()) == 0
    warnings = [f"mummergpu: warning: {name}.fq: no reads" for name in ("empty", "none")]
    assert capsys.readouterr().err.splitlines() == warnings
    assert run("r.fa empty.fq empty.fq --no-empty") == 1


def test_too_little_memory_is_told_once(pairs, capsys, monkeypatch):
    monkeypatch.setattr("mummergpu.index.reference_index.NEGLIGIBLE_BYTES", 0)
    assert run("16.mgi 1.fq -o all.sam") == 0
    capsys.readouterr()
    words = "map --backend cpu 16.mgi 1.fq --max-memory 20k -o x.sam"
    assert main(words.split()) == 0
    message = capsys.readouterr().err
    assert message.startswith("mummergpu: warning: ") and message.count("\n") == 1
    assert "smaller ones may take less (see 'mummergpu index --page-size')" in message
    assert sam_rows("all.sam") == sam_rows("x.sam")


def test_statistics_are_those_of_samtools(pairs):
    words = "r.fa 1.fq 2.fq -o x.bam --stats s.json --multiqc x_mqc.json"
    assert run(words) == 0
    report = json.loads(Path("s.json").read_text())
    assert report["schema_version"] == 3 and report["settings"]["mode"] == "map"
    found = report["mapping"]
    text = samtools("flagstat", "x.bam").decode()
    for name, label in (
        ("reads", "primary$"),
        ("mapped", "primary mapped"),
        ("paired", "paired in sequencing"),
        ("properly_paired", "properly paired"),
        ("singletons", "singletons"),
    ):
        (number,) = re.findall(rf"^(\d+) \+ 0 {label}", text, re.MULTILINE)
        assert found[name] == int(number), name
    qualities = Counter(samtools("view", "-F", "4", "x.bam").split(b"\n"))
    assert sum(found["mapping_qualities"]) == found["mapped"] == sum(qualities.values()) - 1
    assert 290 < found["insert_size"]["mean"] < 310
    assert 20 < found["insert_size"]["standard_deviation"] < 30
    assert 290 < report["settings"]["insert_size_mean"] < 310
    assert report["counts"]["mapped_reads"] == found["mapped"]
    stages = set(report["stages"])
    assert {"ref_from_disk", "queries_from_disk", "kmer_kernel", "mapping", "format"} <= stages
    values = json.loads(Path("x_mqc.json").read_text())["data"]["x"]
    assert values["mapped_percent"] == 100 * found["mapped"] / found["reads"]


def test_a_user_may_set_the_insert_size(pairs):
    assert run("r.fa 1.fq 2.fq -o x.sam -I 1000,50") == 0
    assert not [row for row in sam_rows("x.sam") if int(row[1]) & 2]
    assert run("r.fa 1.fq 2.fq -o x.sam -I 300,25,320,280") == 0
    sizes = [abs(int(row[8])) for row in sam_rows("x.sam") if int(row[1]) & 2]
    # Clipped ends shorten what TLEN tells.
    assert len(sizes) > PAIRS // 3 and max(sizes) <= 320 and min(sizes) > 230


def test_progress_counts_reads(pairs, monkeypatch):
    told = []
    monkeypatch.setattr(Messages, "tell", lambda _self, work: told.append(work))
    assert run("r.fa 1.fq 2.fq -o x.sam --block-size 9000 -t 2") == 0
    done = [work.numbers for work in told if work.phase is Phase.READS]
    assert done == sorted(done) and done[-1] == (2 * PAIRS,) and len(set(done)) > 5


def test_the_estimate_is_told(pairs, capsys):
    assert main(["map", "--backend", "cpu", "-v", "r.fa", "1.fq", "2.fq", "-o", "x.sam"]) == 0
    assert re.search(r"templates of (29|30)\d\.\d bases", capsys.readouterr().err)


MAP = "map --backend cpu -q r.fa"
NEITHER = ("-f", "12")


@pytest.fixture(scope="module")
def unmapped_folder(tmp_path_factory):
    """Pairs of which both mates have a place, one of them, or none; and a read that is too long."""
    made = tmp_path_factory.mktemp("unmapped")
    chance = random.Random(7)
    bases = random_bases(chance, 3000)
    write_fasta(made / "r.fa", {"chr": bases + random_bases(chance, 200) + bases[:700]})
    texts, reads = ([], [], []), []
    for number in range(120):
        at = chance.randrange(2600)
        mates = [bases[at : at + 100], reverse_complement(bases[at + 200 : at + 300])]
        for mate in range(2):
            if number % 4 >= 2 or (number % 4 == 1 and mate == number % 8 // 4):
                mates[mate] = random_bases(chance, chance.randrange(1, 130)) + "NRYk"
            if number == 118:
                mates[mate] = random_bases(chance, 1600)
            qualities = "".join(chr(33 + chance.randrange(42)) for _ in mates[mate])
            text = f"@p{number}/{mate + 1} told\n{mates[mate]}\n+\n{qualities}\n"
            texts[mate].append(text)
            texts[2].append(text)
            reads.append(mates[mate])
    for name, text in zip(("1.fq", "2.fq", "both.fq"), texts, strict=True):
        (made / name).write_text("".join(text))
    # Of reads with one name, samtools keeps one.
    write_fasta(made / "s.fa", ((f"s{n}", read) for n, read in enumerate(reads)))
    return made


@pytest.fixture
def unmapped(unmapped_folder, monkeypatch):
    monkeypatch.chdir(unmapped_folder)


@pytest.mark.parametrize(
    "reads", ["1.fq 2.fq", "-p both.fq", "1.fq 2.fq --no-unal -t 2 --block-size 3k"]
)
def test_pairs_without_a_place_are_what_samtools_finds(unmapped, reads):
    assert main(f"{MAP} {reads} -o x.sam --unmapped u.fq".split()) == 0
    assert main(f"{MAP} {reads} -o y.bam --unmapped 1u.fq.gz,2u.fq.gz".split()) == 0
    assert main(f"{MAP} 1.fq 2.fq -o x.bam".split()) == 0
    samtools("fastq", "-n", *NEITHER, "-1", "s1.fq", "-2", "s2.fq", "x.bam")
    first, second = (Path(name).read_text() for name in ("s1.fq", "s2.fq"))
    assert [gzip.open(name, "rt").read() for name in ("1u.fq.gz", "2u.fq.gz")] == [first, second]
    records = [re.findall("(?:.*\n){4}", text) for text in (first, second)]
    assert Path("u.fq").read_text() == "".join(map("".join, zip(*records, strict=True)))
    assert first.count("@p") == second.count("@p") == 60
    # They are reads that can be mapped again.
    assert main(f"{MAP} -p u.fq -o again.sam --unmapped again.fq".split()) == 0
    assert Path("again.fq").read_text() == Path("u.fq").read_text()


def test_single_reads_and_python(unmapped):
    assert main(f"{MAP} s.fa -o x.bam --unmapped u.fq".split()) == 0
    expected = samtools("fastq", "-n", "-f", "4", "x.bam").decode()
    assert Path("u.fq").read_text() == expected and expected.count("@s") == 150
    mummergpu.map("r.fa", "s.fa", output="y.sam", backend="cpu", unmapped="p.fq")
    assert Path("p.fq").read_text() == expected


@pytest.mark.parametrize("end", ["sam", "bam", "cram"])
def test_secondary_records_have_bases_if_asked(unmapped, end):
    rows = []
    for words in ("", "--secondary-seq"):
        assert main(f"{MAP} 1.fq 2.fq -N 3 {words} -o x.{end}".split()) == 0
        text = samtools("view", "-T", "r.fa", f"x.{end}").decode()
        rows.append([line.split("\t") for line in text.splitlines()])
    primary, count = {}, 0
    for plain, full in zip(*rows, strict=True):
        flag = int(full[1])
        if not flag & 0x100:
            assert plain == full
            primary[full[0], flag & 0x80] = full
            continue
        count += 1
        assert plain[9:11] == ["*", "*"] and plain[:9] == full[:9]
        owner = primary[full[0], flag & 0x80]
        bases, qualities = owner[9:11]
        if flag & 0x10 != int(owner[1]) & 0x10:
            bases, qualities = reverse_complement(bases), qualities[::-1]
        assert full[9:11] == [bases, qualities]
    assert count > 10


PNEUMONIAE = "streptococcus_pneumoniae.GCF_001457635.fna.gz", "spneumoniae_ERR1438863.R{}.fastq.gz"

PORTIERA = ("portiera.GCF_000292685.fna", "portiera_SRR2838702_1x.R{}.fastq.gz")

HUMAN = (
    "human_grch38.chr20_and_21_first10M.fa.gz",
    "human_grch38_1k_subset_chr20_and_chr21.fastq.gz",
)


def map_real(shared_data, folder, names, *options):
    """Map real reads to their reference; return the sorted BAM, and the reference as text."""
    source, reads = shared_data / "references" / names[0], str(shared_data / "reads" / names[1])
    paths = [reads.format(end) for end in (1, 2)] if "{}" in reads else [reads]
    reference, bam = folder / names[0].removesuffix(".gz"), folder / "x.bam"
    if not reference.exists():
        whole = source.read_bytes()
        reference.write_bytes(gzip.decompress(whole) if source.suffix == ".gz" else whole)
    words = [*"map --backend cpu -q --sort -o".split(), str(bam), str(source), *paths, *options]
    assert main(words) == 0
    return bam, reference


LEAST_SHARES = [(PORTIERA, 98.5, 94.0), (PNEUMONIAE, 87.0, 80.0), (HUMAN, 90.0, 0.0)]


@each("names, least, min_proper", LEAST_SHARES)
def test_real_reads_are_mapped(shared_data, tmp_path, names, least, min_proper):
    bam, reference = map_real(shared_data, tmp_path, names, "--mark-duplicates")
    samtools("quickcheck", "-v", bam)
    text = samtools("flagstat", bam).decode()
    shares = re.findall(r"(?:primary mapped|properly paired) \(([\d.]+|N/A)", text)
    assert float(shares[0]) >= least
    assert min_proper == 0 or float(shares[1]) >= min_proper
    # NM and MD are those that samtools computes: it would tell each that differs.
    before = samtools("view", bam).splitlines()
    after = samtools("calmd", "--no-PG", "-Q", bam, reference)
    changed = [line for line in after.splitlines() if not line.startswith(b"@")]
    fields = [[sorted(line.split(b"\t")) for line in lines] for lines in (changed, before)]
    assert fields[0] == fields[1]


@pytest.mark.slow
@each("names", [PORTIERA, PNEUMONIAE, HUMAN])
def test_picard_finds_no_error(shared_data, tmp_path, names):
    bam, reference = map_real(shared_data, tmp_path, names, "--mark-duplicates")
    assert picard_errors(bam, reference) == []


@pytest.mark.slow
@each("words", ["", "--single"])
def test_picard_finds_no_error_in_rows_as_they_come(pairs, words):
    assert run(f"r.fa 1.fq 2.fq {words} -o picard.bam") == 0
    assert picard_errors(Path("picard.bam")) == []


@pytest.mark.slow
def test_most_places_are_those_of_bwa(shared_data, tmp_path):
    """Of a read that was joined from two places, bwa may write the other part first."""
    bam, reference = map_real(shared_data, tmp_path, PNEUMONIAE)
    reads = [shared_data / "reads" / PNEUMONIAE[1].format(end) for end in (1, 2)]
    ours = _places(samtools("view", "-F", "0x904", "-q", "30", bam))
    theirs = _places(bwa_alignments(reference, *reads))
    both = ours.keys() & theirs.keys()
    assert len(both) > 0.95 * len(ours) > 40_000
    near = sum(
        any(place[:2] == other[:2] and abs(place[2] - other[2]) < 20 for other in theirs[read])
        for read in both
        for place in ours[read]
    )
    assert near > 0.9995 * len(both)


def _places(text):
    """Return where each mapped read would begin without clipping: record, strand, position."""
    found = {}
    for line in text.splitlines():
        if not line.startswith(b"@"):
            name, flag, record, position, _, cigar, *_ = line.split(b"\t")
            if int(flag) & 0x104 == 0:
                clipped = re.match(rb"(?:(\d+)[SH])?", cigar)[1] or 0
                place = record, int(flag) & 0x10, int(position) - int(clipped)
                found.setdefault((name, int(flag) & 0x80), []).append(place)
    return found


SIMULATION = "-z 5 -N 6000 -1 100 -2 100 -d 350 -s 40 -r 0.005 -R 0.2 -X 0.3 -H -y 0 -o 1"
ERRORS = "-e 0.002 -E 0.002"


def test_variants_are_those_that_are_called_from_bwa(tmp_path):
    caller, dwgsim = program_of("bcftools"), program_of("dwgsim")
    reference = tmp_path / "r.fa"
    bases = "".join(random.Random(8).choices("ACGT", k=50_000))
    reference.write_text(f">r\n{bases}\n")
    words = [*SIMULATION.split(), *ERRORS.split()]
    output_of(dwgsim, *words, reference, tmp_path / "s")
    reads = [tmp_path / f"s.bwa.read{end}.fastq.gz" for end in (1, 2)]
    ours, theirs = tmp_path / "ours.bam", tmp_path / "bwa.bam"
    words = ["map", "--backend", "cpu", "-q", "--sort", "-o", ours, reference, *reads]
    assert main([str(word) for word in words]) == 0
    (tmp_path / "bwa.sam").write_bytes(bwa_alignments(reference, *reads))
    samtools("sort", "-o", theirs, tmp_path / "bwa.sam")
    called = []
    for bam in (ours, theirs):
        piled = bam.with_suffix(".bcf")
        output_of(caller, "mpileup", "-Ou", "-f", reference, "-o", piled, bam)
        rows = output_of(caller, "call", "-mv", "--ploidy", "1", "-Ov", piled).decode().splitlines()
        called.append({row.split("\t")[1] for row in rows if row[0] != "#"})
    truth = (tmp_path / "s.mutations.vcf").read_text().splitlines()
    places = {row.split("\t")[1] for row in truth if row[0] != "#"}
    assert len(places) > 150 and len(called[0] & places) > 0.85 * len(places)
    assert len(called[0] & places) >= len(called[1] & places) - 3
    assert len(called[0] - places) <= len(called[1] - places) + 3
