"""The main job on pairs of reads."""

from pathlib import Path

import pytest

from mummergpu.cli.main import main


@pytest.fixture
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ref.fa").write_text(">r\nACGTTGCAGGATCCTTAGCA\n")
    Path("1.fa").write_text(">a\nACGTTGC\n>b x\nGGATCC\n")
    Path("2.fa").write_text(">a\nTTAGCA\n>b y\nACG\n")
    Path("both.fa").write_text(">a\nACGTTGC\n>a\nTTAGCA\n>b\nGGATCC\n>b\nACG\n")
    Path("b.fa").write_text(">a\nA\n>c\nA\n")


def words(*queries):
    return ["-C", "-q", "-l", "5", "ref.fa", *queries]


def test_text_in_the_order_of_pairs(inside, capfd):
    assert main([*words("1.fa", "2.fa"), "--pair", "--stats", "stats.json"]) == 0
    text = capfd.readouterr().out
    assert [line for line in text.splitlines() if line.startswith(">")] == [
        *("> a/1", "> a/2", "> b/1", "> b/2")
    ]
    assert [line.split() for line in text.splitlines() if not line.startswith(">")] == [
        *(["1", "1", "7"], ["15", "1", "6"], ["9", "1", "6"])
    ]
    assert '"queries": 4' in Path("stats.json").read_text()
    assert main([*words("both.fa"), "--pair"]) == 0
    assert capfd.readouterr().out == text
