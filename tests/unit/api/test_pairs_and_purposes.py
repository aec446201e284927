"""Pairs of reads, and what the next program needs, from Python as on the command line."""

from pathlib import Path

import pytest
from helpers.loops import each
from helpers.sequences import write_fasta
from helpers.tables import keywords, table

import mummergpu
from mummergpu.cli.main import main
from mummergpu.errors import InputError, OptionError

NAMED = ["a/1", "a/2", "b/1", "b/2"]
MATES = [("a", "ACGTTGC"), ("a/2", "TTAGCA"), ("b", "GGATCC"), ("b", "ACG")]


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ref.fa").write_text(">r\nACGTTGCAGGATCCTTAGCA\n")

    Path("1.fa").write_text(">a\nACGTTGC\n>b x\nGGATCC\n")
    Path("2.fa").write_text(">a\nTTAGCA\n>b y\nACG\n")
    write_fasta("both.fa", MATES)
    Path("b.fa").write_text(">a\nA\n>c\nA\n")


def index():
    return mummergpu.Index.build("ref.fa", min_length=5)


def test_pairs_in_memory_and_in_files_have_the_same_names_and_matches():
    with index() as built:
        found = [built.match(MATES, pair=True, backend="cpu", strands="both")]
        for paths in (["1.fa", "2.fa"], ["both.fa"]):
            found += built.stream(*paths, pair=True, backend="cpu", strands="both")
    assert len(found) == 3
    for matches in found:
        assert matches.query_names == NAMED
        assert matches.query.tolist() == found[0].query.tolist()
        assert matches.query_start.tolist() == found[0].query_start.tolist()


def test_mates_that_do_not_belong_together():
    with index() as built:
        with pytest.raises(InputError, match=r"<memory>: not the mate of 'b'.*'c'"):
            built.match([*MATES[:3], ("c", "A")], pair=True, strands="both")
        with pytest.raises(InputError, match=r"<memory>: the last read has no mate .*'b'"):
            built.match(MATES[:3], pair=True, strands="both")
        with pytest.raises(InputError, match=r"b.fa:3: not the mate of 'b'"):
            list(built.stream("1.fa", "b.fa", pair=True, strands="both"))
        with pytest.raises(OptionError, match="pair: needs one file of pairs, or two files"):
            built.stream("1.fa", "2.fa", "both.fa", pair=True, strands="both")
    with pytest.raises(OptionError, match="pair: needs one file of pairs, or two files"):
        mummergpu.match("ref.fa", ["1.fa", "2.fa", "both.fa"], "x.paf", pair=True, strands="both")


@each("line, more", table(__file__, "purposes", str, keywords))
def test_a_purpose_sets_what_the_command_sets(line, more):
    Path("q.fa").write_text(">q\nTGCTAAGGATCCTGCAACGT\n>p\nACGTTGCAGGATCC\n>o\nGGATCC\n")
    assert main(["-C", "-q", "-l", "4", "ref.fa", "q.fa", "-o", "x.mums", *line.split()]) == 0
    mummergpu.match("ref.fa", "q.fa", "y.mums", 4, backend="cpu", **more)
    assert Path("x.mums").read_bytes() == Path("y.mums").read_bytes()
