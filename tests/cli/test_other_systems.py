"""The commands on a system that lacks what only Linux has, such as macOS on ARM."""

import json
import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mummergpu.cli.main import main

ROWS = "> t\n       1         1        12\n"

OF_LINUX = (
    *("copy_file_range", "eventfd", "memfd_create", "pipe2"),
    *("posix_fadvise", "posix_fallocate", "preadv", "pwritev", "sched_getaffinity", "sendfile"),
    *("sched_setaffinity", "splice"),
)
"""Names in the module `os` that other systems lack, or give another meaning."""

OF_LINUX_IN_MMAP = (
    *("MADV_DONTFORK", "MADV_HUGEPAGE", "MADV_POPULATE_READ", "MAP_NORESERVE", "MAP_POPULATE"),
)

ELSEWHERE = """
import builtins, ctypes, io, mmap, os, platform, sys
names_in_os, names_in_mmap = sys.argv.pop(1).split(), sys.argv.pop(1).split()
for module, names in ((os, names_in_os), (mmap, names_in_mmap)):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

def without_linux(really_open):
    def open_unless_of_linux(path, *arguments, **named):
        if str(path).startswith(("/proc", "/sys")):
            raise FileNotFoundError(2, "No such file or directory", path)
        return really_open(path, *arguments, **named)
    return open_unless_of_linux

builtins.open = io.open = without_linux(open)
os.open = without_linux(os.open)

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("fallocate", "mallopt", "memfd_create"):
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = Library
# Numba asks for the machine too, and gets that of the compiler.
import numba.core.registry
numba.core.registry.cpu_target.target_context
platform.machine = lambda: "arm64"
from mummergpu.index import mapped_file
mapped_file._IS_LINUX = False
from mummergpu.__main__ import run
run()
"""
"""Runs the command as if on macOS, as far as Python shows a system."""


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    (tmp_path / "t.fa").write_text(">t\nACGGTCATTGCA\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", OF_LINUX)
def test_a_job_needs_none_of_the_calls_of_linux(name, monkeypatch):
    monkeypatch.delattr(os, name, raising=False)
    words = "t.fa t.fa -q -C -l 4 -o out --stats stats.json"
    assert main(words.split()) == 0
    assert Path("out").read_text() == ROWS
    assert json.loads(Path("stats.json").read_text())["peak_memory_bytes"] > 1 << 20


@pytest.mark.parametrize("name", OF_LINUX_IN_MMAP)
def test_a_job_with_an_index_needs_none_of_the_constants_of_linux(name, monkeypatch):
    monkeypatch.delattr(mmap, name, raising=False)
    for search in ("kmer", "tree"):
        assert main(["index", "-q", "t.fa", "--search", search, "-l", "4", "-o", "t.mgi"]) == 0
        assert main("t.mgi t.fa -q -C -l 4 -o out".split()) == 0
        assert Path("out").read_text() == ROWS


def run_elsewhere(words):
    command = [sys.executable, "-c", ELSEWHERE, " ".join(OF_LINUX), " ".join(OF_LINUX_IN_MMAP)]
    done = subprocess.run([*command, *words.split()], capture_output=True, text=True)
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    return done.stdout


def test_all_commands_work_without_anything_of_linux():
    assert run_elsewhere("t.fa t.fa -C -l 4") == ROWS
    assert run_elsewhere("t.fa t.fa -C -l 4 --search tree --page-size 10 -o -") == ROWS
    for search in ("kmer", "tree"):
        run_elsewhere(f"index t.fa -l 4 --search {search} -o {search}.mgi")
        assert run_elsewhere(f"{search}.mgi t.fa -C -l 4 --stats stats.json") == ROWS
    Path("r.fa").write_text(">r\n" + 60 * "ACGGTCATTGCAAGGCCTTA" + "\n")
    run_elsewhere("workload HSILL --scale 0.00001 --reference r.fa -o made")
    assert Path("made/reads.fq").stat().st_size > 0
    told = json.loads(run_elsewhere("doctor --json"))
    assert told["processors"] == os.cpu_count() and told["auto_backend"] == "cpu"
    names = {path.name for path in Path().iterdir()}
    assert names == {"t.fa", "kmer.mgi", "tree.mgi", "stats.json", "r.fa", "made"}
