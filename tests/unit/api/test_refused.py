"""Arguments that make no sense: an error says which, and no file is written."""

import os
from pathlib import Path

import pytest
from helpers.loops import each
from helpers.sequences import write_fasta
from helpers.tables import table

import mummergpu
from mummergpu.output.options import TextStyle

BASES = "ACGTTGCATTAGCAGGATCCATTGACCAGTCAATCGGATTCCGATAGCAATTCGGACTTACGGTTA"


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Functions, with arguments that stand where a row has no others."""
    monkeypatch.chdir(tmp_path)
    for name in ("r.fa", "q.fa", "1.fq", "2.fq"):
        write_fasta(name, {"r": BASES})
    write_fasta("two.fa", {"r": BASES, "s": BASES})
    index = mummergpu.Index.build("r.fa", min_length=16)
    files = {"reference": "r.fa", "queries": "q.fa"}
    return {
        "match": (index.match, {"queries": "ACGT"}),
        "map": (index.map, {}),
        "align": (index.align, {"queries": "ACGT"}),
        "run align": (mummergpu.align, {**files, "output": "x.delta"}),
        "for nucmer": (mummergpu.match, {**files, "output": "x.mums", "for_program": "nucmer"}),
    }


@each("name, arguments, message", table(__file__))
def test_wrong_arguments_are_errors(calls, name, arguments, message):
    before = sorted(os.listdir())
    told = eval(f"dict({arguments})", {"Path": Path, "TextStyle": TextStyle})
    # What an index refuses of genomes, a run refuses as well.
    for one in ("align", "run align") if name == "align" else (name,):
        function, usual = calls[one]
        with pytest.raises(mummergpu.MummergpuError, match=message):
            function(**{**usual, **told})
    assert sorted(os.listdir()) == before
