"""Matches go to one file or several, compressed if the name says so."""

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


def test_options_of_the_text_may_go_with_other_files():
    assert run("-o x.txt -o x.paf -s -c") == 0 and run("-o y.paf -c") == 0
    assert Path("x.paf").read_bytes() == Path("y.paf").read_bytes()


def test_a_failed_run_leaves_none_of_its_files():
    Path("q.fa").write_text(">a\nACGT\n!\n")
    assert run("-o one.txt -o two.gz") == 1
    assert not Path("one.txt").exists() and not Path("two.gz").exists()
