"""Input files on the command line: what is told of them, and what is taken all the same."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.compressions import OTHERS, PACKERS
from helpers.containers import bgzf, write_alignments

from mummergpu.cli.main import main

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
        assert lines[0].endswith("neither bases nor IUPAC codes (protein? see --any-letters)"
                                 " (record 'p')")  # fmt: skip
    assert run("r.fa p.fa --any-letters", capfd)[0::2] == (0, [])
    code, rows, lines = run("p.fa q.fa --any-letters", capfd)
    assert (code, lines) == (0, [])
    assert rows.split() == b"> q c1 101 1 40".split()
    assert main(["index", "p.fa", "-o", "p.mgi", "-q"]) == 1
    assert "p.fa:4: " in capfd.readouterr().err
    assert main(["index", "p.fa", "-o", "p.mgi", "-q", "--any-letters"]) == 0
    assert run("p.mgi q.fa", capfd) == (0, rows, [])


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
    done = subprocess.run(
        [sys.executable, "-m", "mummergpu", *words.split(), "--backend", "cpu"],
        input=content,
        capture_output=True,
        env=os.environ | environment,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_nothing_that_htslib_says_stands_beside_our_line(inside):
    """Damage of which htslib, pysam or the interpreter would write to standard error."""
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
        code, out, err = spawn(f"r.fa {name}", **lost)
        assert (code, out) == (1, b"")
        assert err.startswith(f"mummergpu: error: {name}: the ".encode()), err
        assert err.count(b"\n") == 1, err
    code, out, err = spawn("r.fa -", damaged["cut.cram"], **lost)
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


def test_a_library_that_is_missing_is_told_with_the_file_and_what_installs_it(capfd, monkeypatch):
    for name in ("compression", "compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    Path("q.fa.zst").write_bytes(b"\x28\xb5\x2f\xfd and more")
    code, output, lines = run("r.fa q.fa.zst", capfd)
    assert (code, output, len(lines)) == (1, b"", 1)
    error = "mummergpu: error: q.fa.zst: zstd needs zstandard (pip install 'mummergpu[zstd]'): "
    assert lines[0].startswith(error)
