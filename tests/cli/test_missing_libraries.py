"""A missing library is named at once: before the reference is read, let alone indexed."""

import os
import sys
from pathlib import Path

import pytest

from mummergpu.cli.main import main

ZSTD = b"\x28\xb5\x2f\xfd"


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    """A reference that cannot be read, and a machine without the libraries of the extras."""
    monkeypatch.chdir(tmp_path)
    Path("r.fa").write_text("no sequence\n")
    Path("q.fa").write_text(">q\nACGTACGT\n")
    Path("q.fa.zst").write_bytes(ZSTD + bytes(20))
    hidden = ("matplotlib", "pyarrow", "zstandard", "compression")
    for module in [name for name in sys.modules if name.split(".")[0] in hidden]:
        monkeypatch.delitem(sys.modules, module)
    for name in hidden:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("words", "purpose", "extra"),
    [
        ("plot r.fa q.fa -o x.png", "a picture needs matplotlib", "plot"),
        ("r.fa q.fa -o x.txt -o x.svg", "a picture needs matplotlib", "plot"),
        ("r.fa q.fa -o x.parquet", "output as parquet needs pyarrow", "arrow"),
        ("r.fa q.fa -o x.txt -o x.arrow", "output as arrow needs pyarrow", "arrow"),
        ("r.fa q.fa -o x.paf.zst", "output in .zst needs zstandard", "zstd"),
        ("r.fa q.fa.zst", "q.fa.zst: zstd needs zstandard", "zstd"),
        ("r.fa q.fa q.fa.zst", "q.fa.zst: zstd needs zstandard", "zstd"),
    ],
)
def test_a_missing_library_is_named_before_the_reference_is_read(words, purpose, extra, capsys):
    before = sorted(os.listdir())
    assert main([*words.split(), "-q"]) == 1
    error = capsys.readouterr().err
    assert f"mummergpu: error: {purpose} (pip install 'mummergpu[{extra}]')" in error
    assert error.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_without_need_for_a_library_the_reference_is_read(capsys):
    assert main(["r.fa", "q.fa", "-o", "x.html", "--format", "tsv", "-q"]) == 1
    assert "error: r.fa:1: " in capsys.readouterr().err
