"""Matches go to one file or several, compressed if the name says so."""

import gzip
import random
from pathlib import Path

import pytest
from helpers.sequences import random_bases

from mummergpu.cli.main import main


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    made = random.Random(3)
    text = random_bases(made, 3000)
    (tmp_path / "r.fa").write_text(f">r\n{text}\n")
    reads = [text[at : at + 60] for at in range(0, 2900, 50)]
    (tmp_path / "q.fa").write_text("".join(f">{n}\n{read}\n" for n, read in enumerate(reads)))
    monkeypatch.chdir(tmp_path)


def run(words):
    return main(["r.fa", "q.fa", "-b", "-C", "-q", *words.split()])


def test_files_take_the_place_of_standard_output(capfdbinary):
    assert run("") == 0
    expected = capfdbinary.readouterr().out
    assert run("-o one.gz -o two.paf") == 0
    assert capfdbinary.readouterr().out == b""
    assert gzip.decompress(Path("one.gz").read_bytes()) == expected != b""
    assert Path("two.paf").read_bytes() != b""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-o x.txt -o x.txt", "'x.txt' is also another output"),
        ("-o r.fa", "'r.fa' is also an input"),
        ("-o x.paf -s", "-s is for MUMmer's text, and no output is in that format"),
        ("-o x.bed -F", "-F is for MUMmer's text"),
        ("-o x.cram", "matches are written as mummer, paf, bed, tsv, sam, bam, parquet, arrow or"),
        ("-o x.delta", "and not as delta"),
        ("-o x.bam.gz", "would compress bam once more"),
    ],
)
def test_wrong_usage(words, message, capsys):
    assert run(words) == 2
    assert message in capsys.readouterr().err


def test_options_of_the_text_may_go_with_other_files():
    assert run("-o x.txt -o x.paf -s -c") == 0 and run("-o y.paf -c") == 0
    assert Path("x.paf").read_bytes() == Path("y.paf").read_bytes()


def test_a_failed_run_leaves_none_of_its_files():
    Path("q.fa").write_text(">a\nACGT\n!\n")
    assert run("-o one.txt -o two.gz") == 1
    assert not Path("one.txt").exists() and not Path("two.gz").exists()
