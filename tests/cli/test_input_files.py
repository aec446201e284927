"""Input files: what is told of them, and what is taken though no specification has it."""

import bz2
import gzip
import lzma
import random
from pathlib import Path

import pytest
from helpers.alignment_tools import output_of, samtools
from helpers.children import COMMAND, child
from helpers.compressions import OTHERS, PACKERS
from helpers.containers import bgzf, write_alignments
from helpers.requirements import program_of
from helpers.sequences import random_bases, write_fasta, write_fastq

from mummergpu.cli.main import main
from mummergpu.input.records.record_reader import PROTEIN_HINT

BASES = "".join(random.Random(1).choices("ACGT", k=500))
PROTEIN = "MKVLAAGIVGLCAKAYPEFQRTWHSDNMKVLAAGIVGLCAKAYLLPEFQ"
READ = BASES[100:140]
ROW = b"> q\n     101         1        40\n"


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    """Runs each test in a folder of its own, with a reference and a read."""
    (tmp_path / "r.fa").write_text(f">c1\n{BASES}\n")
    (tmp_path / "q.fa").write_text(f">q\n{READ}\n")
    (tmp_path / "empty.fq").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words, capfd):
    """Run the command; return its exit code, its output, and what it says."""
    Path("out").unlink(missing_ok=True)
    code = main([*words.split(), "-o", "out"])
    lines = [line for line in capfd.readouterr().err.splitlines() if "compiling" not in line]
    return code, Path("out").read_bytes() if Path("out").exists() else b"", lines


def test_no_reads_is_no_error(capfd):
    warning = "mummergpu: warning: empty.fq: no reads"
    assert run("r.fa empty.fq", capfd) == (0, b"", [warning])
    assert run("r.fa empty.fq -q", capfd) == (0, b"", [])
    assert run("r.fa empty.fq q.fa empty.fq", capfd) == (0, ROW, [warning] * 2)
    several_passes = "--page-size 100 --max-memory 1 --search tree"
    assert run(f"r.fa q.fa empty.fq {several_passes}", capfd) == (0, ROW, [warning])


def test_no_reads_is_an_error_where_that_is_asked_for(capfd):
    error = "mummergpu: error: empty.fq: the file is empty"
    assert run("r.fa q.fa empty.fq --no-empty", capfd) == (1, b"", [error])
    Path("header.sam").write_text("@HD\tVN:1.6\n")
    error = "mummergpu: error: header.sam: no reads"
    assert run("r.fa header.sam --no-empty", capfd) == (1, b"", [error])
    assert run("r.fa q.fa --no-empty", capfd) == (0, ROW, [])


def test_empty_references_and_failed_downloads_are_errors(capfd):
    Path("empty.fq.gz").touch()
    for words, name in (("r.fa empty.fq.gz", "empty.fq.gz"), ("empty.fq q.fa", "empty.fq")):
        error = f"mummergpu: error: {name}: the file is empty"
        assert run(words, capfd) == (1, b"", [error])


def test_rna_matches_dna(capfd):
    Path("r_rna.fa").write_text(f">c1\n{BASES.replace('T', 'U')}\n")
    Path("q_rna.fa").write_text(f">q\n{READ.lower().replace('t', 'u')}\n")
    for search in ("kmer", "tree"):
        for reference in ("r.fa", "r_rna.fa"):
            for query in ("q.fa", "q_rna.fa"):
                words = f"{reference} {query} --search {search}"
                assert run(words, capfd) == (0, ROW, [])


def test_protein_is_refused_unless_it_is_asked_for(capfd):
    Path("p.fa").write_text(f">c1\n{BASES}\n>p\n{PROTEIN}\n")
    for words in ("p.fa q.fa", "r.fa p.fa"):
        code, rows, lines = run(words, capfd)
        assert (code, rows, len(lines)) == (1, b"", 1)
        assert lines[0].startswith("mummergpu: error: p.fa:4: ")
        assert f"neither bases nor IUPAC codes {PROTEIN_HINT} (record 'p')" in lines[0]
    assert run("r.fa p.fa --any-letters", capfd)[0::2] == (0, [])
    code, rows, lines = run("p.fa q.fa --any-letters", capfd)
    assert (code, lines) == (0, [])
    assert rows.split() == b"> q c1 101 1 40".split()
    assert main(["index", "p.fa", "-o", "p.mgi", "-q"]) == 1
    assert "p.fa:4: " in capfd.readouterr().err
    assert main(["index", "p.fa", "-o", "p.mgi", "-q", "--any-letters"]) == 0
    assert run("p.mgi q.fa", capfd) == (0, rows, [])


@pytest.mark.parametrize("verb", ["map", "align", "align --method wavefront"])
def test_proteins_are_neither_mapped_nor_aligned(verb, capfd):
    """As reference, as query, and in an index of any letters; one line names the record."""
    Path("p.fa").write_text(f">c1\n{BASES}\n>p\n{PROTEIN}\n")
    assert main(["index", "p.fa", "-o", "p.mgi", "-q", "--any-letters"]) == 0
    for words, place in (("p.fa q.fa", "p.fa:4"), ("r.fa p.fa", "p.fa:4"), ("p.mgi q.fa", "p.mgi")):
        code, rows, lines = run(f"{verb} {words} --format sam", capfd)
        assert (code, rows, len(lines)) == (1, b"", 1)
        assert lines[0].startswith(f"mummergpu: error: {place}: ")
        assert lines[0].endswith(f"{PROTEIN_HINT} (record 'p')")
    code, _, lines = run(f"{verb} r.fa q.fa --any-letters --format sam", capfd)
    assert (code, len(lines)) == (2, 1)
    assert "--any-letters was removed: 'mummergpu hmmsearch' searches proteins" in lines[-1]


@pytest.mark.parametrize("verb", ["map", "align"])
def test_records_of_nucleotides_are_no_proteins(verb, capfd):
    """Codes of IUPAC, also in a short record, lower case, U, gaps and masked bases."""
    iupac, gaps = READ[:20] + "RYSWKMBDHVN" + READ[20:], READ[:10] + "-" * 40 + READ[10:]
    texts = ["ACDN", iupac, READ.lower().replace("t", "u"), gaps, "X" * 90 + READ, "N" * 50]
    Path("n.fa").write_text("".join(f">n{n}\n{text}\n" for n, text in enumerate(texts)))
    for words in ("r.fa n.fa", "n.fa q.fa"):
        assert run(f"{verb} {words} --format sam -q", capfd)[0::2] == (0, []), words
    letters = "ACGTRYKMN" * 40
    Path("n.fa").write_text(f">degenerate\n{letters}\n>n\n{BASES}\n>{'x' * 9}\n\n")
    assert main(["index", "n.fa", "-o", "n.mgi", "-q", "--any-letters"]) == 0
    assert run(f"{verb} n.mgi q.fa --format sam -q", capfd)[0::2] == (0, [])


def test_bgzf_without_its_end_is_refused(capfd):
    for name, other in (("r.fa", "x.gz q.fa"), ("q.fa", "r.fa x.gz")):
        content = bgzf(Path(name).read_bytes(), 60)
        Path("x.gz").write_bytes(content)
        assert run(other, capfd) == (0, ROW, [])
        Path("x.gz").write_bytes(content[:-28])
        code, rows, lines = run(other, capfd)
        assert (code, rows, len(lines)) == (1, b"", 1)
        assert lines[0].startswith("mummergpu: error: x.gz: the compressed data lack bgzf's empty")


def spawn(words, content=b"", **environment):
    given = {"input": content, "env": environment, "text": False}
    done = child(*COMMAND, *words.split(), "--backend", "cpu", **given)
    return done.returncode, done.stdout, done.stderr


def test_nothing_that_htslib_says_stands_beside_our_line(inside):
    """Damage of which htslib, pysam or the interpreter would write to standard error; `-q`, as the
    child may be the first to compile something."""
    reference = inside / "other.fa"
    reference.write_text(f">c1\n{BASES}\n")
    for name, mode in (("reads.bam", "wb"), ("reads.cram", "wc")):
        write_alignments(inside / name, mode, reference, BASES, 60)
    bam, cram = (inside / "reads.bam").read_bytes(), (inside / "reads.cram").read_bytes()
    for path in inside.glob("other.fa*"):
        path.unlink()
    damaged = {
        "middle.bam": bam[:300] + bytes([bam[300] ^ 0xFF]) + bam[301:],
        "cut.bam": bam[:-28],
        "cut.cram": cram[:-38],
        "lost.cram": cram,  # Its reference is gone.
    }
    lost = {"REF_PATH": str(inside / "nowhere"), "REF_CACHE": str(inside / "nowhere")}
    for name, content in damaged.items():
        (inside / name).write_bytes(content)
        code, out, err = spawn(f"r.fa {name} -q", **lost)
        assert (code, out) == (1, b"")
        assert err.startswith(f"mummergpu: error: {name}: the ".encode()), err
        assert err.count(b"\n") == 1, err
    code, out, err = spawn("r.fa - -q", damaged["cut.cram"], **lost)
    assert (code, out, err.count(b"\n")) == (1, b"", 1)
    assert err.startswith(b"mummergpu: error: -: the CRAM data lack the empty container")


@pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.value)
def test_files_are_compressed_in_many_ways(kind, capfd):
    for name in ("r.fa", "q.fa"):
        Path(f"{name}.packed").write_bytes(PACKERS[kind](Path(name).read_bytes()))
    for words in ("r.fa q.fa.packed", "r.fa.packed q.fa", "r.fa.packed q.fa.packed -t 4"):
        assert run(words, capfd) == (0, ROW, [])
    Path("q.fa.packed").write_bytes(Path("q.fa.packed").read_bytes()[:-3])
    error = "mummergpu: error: q.fa.packed: the compressed data end too early (truncated?)"
    assert run("r.fa q.fa.packed", capfd) == (1, b"", [error])


NAMES = ("A/duck/1/2015(H5N8)", "aac(6')-Ib_1", "Gt(ROSA)26Sor", "a[1]{2}", "chr_é", '"q"')


@pytest.fixture
def genome(tmp_path, monkeypatch):
    """Records of such names, a read of each, and a copy with a difference in each record."""
    monkeypatch.chdir(tmp_path)
    made = random.Random(2)
    records = {name: random_bases(made, 600) for name in NAMES}
    write_fasta(Path("r.fa"), records)
    write_fastq(Path("q.fq"), ((f"r{n}", one[50:200]) for n, one in enumerate(records.values())))
    other = str.maketrans("ACGT", "TACG")
    copies = (one[:300] + one[300].translate(other) + one[301:] for one in records.values())
    write_fasta("q.fa", ((f"q{n}", copy) for n, copy in enumerate(copies)))
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
