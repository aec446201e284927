"""Where the kernels' source is found, and what of it a program is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mummergpu.cuda import program
from mummergpu.cuda.program import read_sources, source_folder
from mummergpu.errors import BackendError


def test_sources_are_the_kernels_files_alone(tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    for name in ("tree/program.cu", "a.cuh", "tree/deep/b.cu", "README.md", "tree/p.cubin"):
        (tmp_path / name).write_text(f"// {name} \u00e9\n", encoding="utf-8")
    assert list(read_sources(tmp_path).items()) == [
        ("a.cuh", "// a.cuh \u00e9\n"),
        ("tree/deep/b.cu", "// tree/deep/b.cu \u00e9\n"),
        ("tree/program.cu", "// tree/program.cu \u00e9\n"),
    ]


def test_a_checkout_reads_the_sources_beside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mummergpu").mkdir()
    monkeypatch.setattr(program, "__file__", str(tmp_path / "mummergpu" / "cuda" / "x.py"))
    assert source_folder() == tmp_path / "kernels"


def test_the_package_reads_the_sources_of_this_checkout() -> None:
    folder = Path(__file__).resolve().parents[3] / "kernels"
    paths = list(folder.rglob("*.cu*"))
    texts = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}
    assert read_sources() == texts
    folders = {"bgzf", "chains", "common", "hmm", "kmer", "mapping", "study", "tree", "viterbi"}
    assert {name.partition("/")[0] for name in texts} == folders


def test_an_installed_package_reads_its_own_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mummergpu" / "kernels").mkdir(parents=True)
    monkeypatch.setattr(program, "__file__", str(tmp_path / "mummergpu" / "cuda" / "x.py"))
    assert source_folder() == tmp_path / "mummergpu" / "kernels"


def test_sources_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"cannot be read: .*/none: No such file"):
        read_sources(tmp_path / "none")
