"""What a program is made of: its files and where they are, its macros and its constants."""

from dataclasses import replace
from pathlib import Path

import pytest

from mummergpu.cuda import program as cuda_program
from mummergpu.cuda.program import (
    BLOCK_THREADS,
    CONSTANTS_HEADER,
    COUNTS_PER_THREAD,
    WARP_LANES,
    ProgramSource,
    read_sources,
    source_folder,
)
from mummergpu.errors import BackendError

PROGRAM = ProgramSource(
    "plain", "engine/program.cu", (("FAST", 1), ("WIDE", 0)), (("FEW", 3), ("MANY", 1 << 32))
)


def test_macros_are_options_of_the_compiler():
    assert PROGRAM.definitions() == ["-DFAST=1", "-DWIDE=0"]


def test_constants_are_a_header():
    assert PROGRAM.constants_header().splitlines()[1:] == [
        "#pragma once",
        f"constexpr unsigned int BLOCK_THREADS = {BLOCK_THREADS}u;",
        f"constexpr unsigned int WARP_LANES = {WARP_LANES}u;",
        f"constexpr unsigned int COUNTS_PER_THREAD = {COUNTS_PER_THREAD}u;",
        "constexpr unsigned int FEW = 3u;",
        "constexpr unsigned long long MANY = 4294967296ull;",
    ]


def test_what_is_generated_follows_the_constants():
    program = replace(PROGRAM, generated="struct Plain {};\n")
    assert program.constants_header() == PROGRAM.constants_header() + "struct Plain {};\n"


def test_a_program_is_made_of_its_own_files_and_the_common_ones():
    sources = {name: name for name in ("common/a", "engine/b", "engine/program.cu", "other/c", "d")}
    assert PROGRAM.files(sources) == {
        "common/a": "common/a",
        "engine/b": "engine/b",
        "engine/program.cu": "engine/program.cu",
        CONSTANTS_HEADER: PROGRAM.constants_header(),
    }


def test_an_entry_that_is_missing_is_named():
    with pytest.raises(BackendError, match=r"not complete: no engine/program\.cu"):
        PROGRAM.files({"common/a": ""})


def test_sources_are_the_kernels_files_alone(tmp_path):
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    for name in ("tree/program.cu", "a.cuh", "tree/deep/b.cu", "README.md", "tree/p.cubin"):
        (tmp_path / name).write_text(f"// {name} \u00e9\n", encoding="utf-8")
    assert list(read_sources(tmp_path).items()) == [
        ("a.cuh", "// a.cuh \u00e9\n"),
        ("tree/deep/b.cu", "// tree/deep/b.cu \u00e9\n"),
        ("tree/program.cu", "// tree/program.cu \u00e9\n"),
    ]


def test_a_checkout_reads_the_sources_beside_the_package(tmp_path, monkeypatch):
    (tmp_path / "mummergpu").mkdir()
    monkeypatch.setattr(cuda_program, "__file__", str(tmp_path / "mummergpu" / "cuda" / "x.py"))
    assert source_folder() == tmp_path / "kernels"


def test_the_package_reads_the_sources_of_this_checkout():
    folder = Path(__file__).resolve().parents[3] / "kernels"
    paths = list(folder.rglob("*.cu*"))
    texts = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}
    assert read_sources() == texts
    folders = {"bgzf", "chains", "common", "hmm", "kmer", "mapping", "study", "tree", "viterbi"}
    assert {name.partition("/")[0] for name in texts} == folders


def test_an_installed_package_reads_its_own_sources(tmp_path, monkeypatch):
    (tmp_path / "mummergpu" / "kernels").mkdir(parents=True)
    monkeypatch.setattr(cuda_program, "__file__", str(tmp_path / "mummergpu" / "cuda" / "x.py"))
    assert source_folder() == tmp_path / "mummergpu" / "kernels"


def test_sources_that_are_missing_are_named(tmp_path):
    with pytest.raises(BackendError, match=r"cannot be read: .*/none: No such file"):
        read_sources(tmp_path / "none")
