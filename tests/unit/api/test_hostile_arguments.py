"""Arguments of any kind: a call works, or raises an error that names the argument."""

import inspect
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from helpers.sequences import write_fasta

import mummergpu
from mummergpu.errors import BackendError, InputError, OptionError, OutputError

BASES = "ACGTTGCATTAGCAGGATCCATTGACCAGTCAATCGGATTCCGATAGCAATTCGGACTTACGGTTA"
NAMED = [("a", BASES[:50]), ("b", BASES[10:])]

VALUES = {
    **{"none": None, "true": True, "flag of numpy": np.bool_(True), "zero": 0, "one": 1},
    **{"large": 1 << 70, "somewhat large": 1 << 40, "negative": -1, "very negative": -(1 << 70)},
    **{"numpy": np.int64(12), "unsigned": np.uint8(12), "float": 2.5, "nan": float("nan")},
    **{"infinite": float("inf"), "float of numpy": np.float64("nan"), "text": "what"},
    **{"empty text": "", "text with a zero": "x\0y", "surrogate": "\ud800", "bytes": b"\xff"},
    **{"path": Path("none.fa"), "folder": Path("."), "object": object(), "list": []},
    **{"list of none": [None], "list of text": ["ACGT"], "list of bytes": [b"ACGT"]},
    **{"list of numbers": [("a", 3)], "list of long rows": [("a", "ACGT", None, 4)]},
    **{"list of odd qualities": [("a", "ACGT", object())], "mapping": {"a": "ACGT"}},
    **{"array": np.array([1, 2]), "class": int},
}


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("r.fa", "q.fa"):
        write_fasta(name, NAMED)


@pytest.fixture(scope="module")
def index():
    return mummergpu.Index.build(NAMED, min_length=12)


def calls_of(index):
    """The public functions, and arguments with which each of them works."""
    index.save("r.mgi")
    reads = [("r", BASES[5:45])]
    return {
        "build": (mummergpu.Index.build, {"reference": NAMED}),
        "open": (mummergpu.Index.open, {"path": "r.mgi"}),
        "save": (index.save, {"path": "x.mgi"}),
        "verify": (mummergpu.Index.open("r.mgi").verify, {"reference": "r.fa"}),
        "match": (index.match, {"queries": reads}),
        "stream": (index.stream, {"paths": ["q.fa"]}),
        "match on device": (index.match_on_device, {"queries": reads}),
        "map": (index.map, {"reads": reads}),
        "stream map": (index.stream_map, {"reads": reads}),
        "align": (index.align, {"queries": reads}),
        "run match": (mummergpu.match, {"reference": "r.fa", "queries": "q.fa", "output": "x.txt"}),
        "run map": (mummergpu.map, {"reference": "r.fa", "reads": "q.fa", "output": "x.sam"}),
        "run align": (mummergpu.align, {"reference": "r.fa", "queries": "q.fa", "output": "x.paf"}),
        "write matches": (index.match(reads).write, {"path": "x.txt"}),
        "write alignments": (index.map(reads).write, {"path": "x.sam"}),
        "write genomes": (index.align(reads, min_cluster=10).write, {"path": "x.paf"}),
        "page": (mummergpu.plot.page, {"matches": index.match(reads)}),
        "dotplot": (mummergpu.plot.dotplot, {"matches": index.match(reads)}),
    }


NAMES_OF_CALLS = (
    *("build", "open", "save", "verify", "match", "stream", "match on device", "map"),
    *("stream map", "align", "run match", "run map", "run align", "write matches"),
    *("write alignments", "write genomes", "page", "dotplot"),
)


def called(function, given):
    """The result of a call, and all blocks of one that streams."""
    given = dict(given)
    rest = given.pop("paths", [])
    result = function(*rest, **given) if isinstance(rest, list) else function(rest, **given)
    if hasattr(result, "figure"):
        from matplotlib import pyplot

        pyplot.close(result.figure)
    return list(result) if isinstance(result, Generator) else result


@pytest.mark.parametrize("name", NAMES_OF_CALLS)
def test_any_argument_works_or_is_named(index, name):
    function, usual = calls_of(index)[name]
    if name == "dotplot":
        pytest.importorskip("matplotlib").use("agg")
    if name != "match on device":
        called(function, usual)
    wrong = []
    for option in inspect.signature(function).parameters:
        for kind, value in VALUES.items():
            try:
                called(function, {**usual, option: value})
            except OptionError as error:
                if error.option != option:
                    wrong.append((option, kind, str(error)))
            except (InputError, OutputError, BackendError):
                pass
            except BaseException as error:
                wrong.append((option, kind, repr(error)))
    assert not wrong, "\n".join(map(str, wrong))


def test_every_public_function_is_called(index):
    assert set(calls_of(index)) == set(NAMES_OF_CALLS)
