"""Matches go to one file or several, compressed if the name says so."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

import mummergpu
from mummergpu.cli.main import main


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = random.Random(3)
    text = "".join(made.choices("ACGT", k=3000))
    (tmp_path / "r.fa").write_text(f">r\n{text}\n")
    reads = [text[at : at + 60] for at in range(0, 2900, 50)]
    (tmp_path / "q.fa").write_text("".join(f">{n}\n{read}\n" for n, read in enumerate(reads)))
    monkeypatch.chdir(tmp_path)


def run(words: str) -> int:
    return main(["r.fa", "q.fa", "-b", "-C", "-q", *words.split()])


@pytest.mark.parametrize("block", ["", " --block-size 100"])
def test_compressed_text_is_the_text(block: str) -> None:
    assert run("-o plain.txt") == 0
    plain = Path("plain.txt").read_bytes()
    assert run(f"-o x.txt.gz{block}") == 0 and run(f"-o x.txt.bgz{block}") == 0
    assert gzip.decompress(Path("x.txt.gz").read_bytes()) == plain
    assert gzip.decompress(Path("x.txt.bgz").read_bytes()) == plain


@pytest.mark.parametrize("name", ["x.txt.gz", "x.paf.bgz", "x.sam.gz", "x.bam", "x.cram"])
def test_compressed_bytes_do_not_depend_on_threads(name: str) -> None:
    found = set()
    for threads in (1, 2, 5):
        # The command line, of which the header of SAM tells, would name the threads.
        mummergpu.match("r.fa", "q.fa", name, threads=threads, strands="both")
        found.add(Path(name).read_bytes())
    assert len(found) == 1


@pytest.mark.parametrize("words", ["--block-size 100", "--block-size 1000 -t 4"])
def test_compressed_bytes_do_not_depend_on_blocks(words: str) -> None:
    assert run("-o one.paf.gz") == 0 and run(f"-o other.paf.gz {words}") == 0
    assert Path("one.paf.gz").read_bytes() == Path("other.paf.gz").read_bytes()


def test_several_files_at_once(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run("") == 0
    plain = capfdbinary.readouterr().out
    assert plain.startswith(b"> 0\n")
    assert run("-o one.txt --mummer two.gz") == 0
    assert capfdbinary.readouterr().out == b""
    assert Path("one.txt").read_bytes() == plain
    assert gzip.decompress(Path("two.gz").read_bytes()) == plain


def test_a_file_that_an_option_names_takes_the_place_of_standard_output(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert run("--mummer one.txt") == 0
    assert capfdbinary.readouterr().out == b"" and Path("one.txt").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--mummer x --format mummer", "--format is the format of -o"),
        ("-o x.txt --mummer x.txt", "'x.txt' is also another output"),
        ("--mummer r.fa", "'r.fa' is also an input"),
        ("-o x.paf -s", "-s is for MUMmer's text, and no output is in that format"),
        ("--bed x.bed -F", "-F is for MUMmer's text"),
        ("-o x.bam.gz", "would compress bam once more"),
    ],
)
def test_wrong_usage(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert message in capsys.readouterr().err


def test_options_of_the_text_may_go_with_other_files() -> None:
    assert run("-o x.txt --paf x.paf -s -c") == 0 and run("-o y.paf -c") == 0
    assert Path("x.paf").read_bytes() == Path("y.paf").read_bytes()


def test_a_failed_run_leaves_none_of_its_files() -> None:
    Path("q.fa").write_text(">a\nACGT\n!\n")
    assert run("-o one.txt --mummer two.gz") == 1
    assert not Path("one.txt").exists() and not Path("two.gz").exists()
