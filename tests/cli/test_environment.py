"""The command where the cache, numba, a library or Linux is not as usual."""

import json
import mmap
import os
import shutil
import sys
from pathlib import Path

import pytest
from helpers.children import child
from helpers.loops import each
from helpers.tables import table

from mummergpu.cli.main import main
from mummergpu.runtime.compiled.store import process_store

COMMAND = [*"-m mummergpu hmm m.hmm t.fa -v".split()]
"""It needs a few compiled functions only, where none of them is kept."""

PROGRAM = """hmm m { alphabet [A, C, G, T]; startstate s; state n emits e; s -> n 1; n -> n 1;
emission e = [0.25, 0.25, 0.25, 0.25]; } main() { print forward(new m()).score; }"""
SCORES = "sequence\tforward(new m()).score\nt\t-16.63553233\n"

# The disk is full for all but the smallest files.
FULL_DISK = """
import resource, sys
from mummergpu.cli.main import run
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
sys.argv[0] = "mummergpu"
run()
"""


@pytest.fixture
def inside(tmp_path, monkeypatch):
    (tmp_path / "t.fa").write_text(">t\nACGGTCATTGCA\n")
    (tmp_path / "m.hmm").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_child(command=COMMAND, **variables):
    return child(*command, env=variables)


def told(done):
    """Return what was said about the cache, for a run that did what it should."""
    assert (done.returncode, done.stdout) == (0, SCORES), done.stderr
    return [line for line in done.stderr.splitlines() if "compiled code" in line]


def test_a_cache_that_cannot_be_made_costs_time_only(inside):
    done = run_child(MUMMERGPU_CACHE_DIR=str(inside / "t.fa" / "x"))
    place = inside / "t.fa" / "x" / "processor"
    assert told(done) == [f"mummergpu: compiled code cannot be read from {place}: Not a directory"]


def test_a_damaged_cache_on_a_full_disk_costs_time_only(inside):
    assert told(run_child()) == []
    folder = process_store().folder()
    assert folder is not None
    kept = inside / "cache" / "processor" / Path(folder).name
    shutil.copytree(folder, kept)
    files = sorted(kept.glob("*.code"))
    assert len(files) >= 5
    for number, path in enumerate(files):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes([content, content[: len(content) // 3], b""][number % 3])
    before = {path: path.read_bytes() for path in files}
    command = ["-c", FULL_DISK, *COMMAND[2:]]
    done = run_child(command, MUMMERGPU_CACHE_DIR=str(inside / "cache"))
    assert told(done) == [f"mummergpu: compiled code is damaged in {inside}/cache/processor"]
    # Nothing can have been repaired, and no part of a file lies about.
    assert {path: path.read_bytes() for path in kept.glob("*.code")} == before
    assert {path.suffix for path in kept.iterdir() if path.is_file()} == {".code"}


@each(
    "name, problem",
    [
        ("NUMBA_DISABLE_JIT", "numba is told to compile nothing"),
        ("NUMBA_DEBUG", "numba would print to standard output"),
        ("NUMBA_DUMP_IR", "numba would print to standard output"),
        ("NUMBA_DEBUG_TYPEINFER", "numba would print to standard output"),
    ],
)
def test_a_variable_that_hinders_is_named(name, problem, inside):
    done = run_child(**{name: "1"})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"mummergpu: error: {problem}")
    assert done.stderr.endswith(f": unset {name}\n") and done.stderr.count("\n") == 1


def test_a_file_of_settings_is_named(inside):
    pytest.importorskip("yaml", reason="numba reads this file with PyYAML only")
    (inside / ".numba_config.yaml").write_text("disable_jit: 1\n")
    done = run_child()
    expected = "mummergpu: error: numba is told to compile nothing: unset .numba_config.yaml\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)


def test_other_variables_change_nothing(inside):
    names = "NUMBA_THREADING_LAYER NUMBA_CACHE_DIR NUMBA_NUM_THREADS NUMBA_DEBUG NUMBA_DISABLE_JIT"
    values = "nonsense /nonexistent/x 1 0 0 nonsense".split()
    others = dict(zip([*names.split(), "NUMBA_CAPTURED_ERRORS"], values, strict=True))
    done = run_child([*COMMAND[:-1], "-q"], **others)
    assert (done.returncode, done.stdout, done.stderr) == (0, SCORES, "")


ZSTD = b"\x28\xb5\x2f\xfd"


@pytest.fixture
def without_libraries(tmp_path, monkeypatch):
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


@pytest.mark.parametrize(("words", "purpose", "extra"), table(__file__, "missing libraries"))
def test_a_missing_library_is_named_before_the_reference_is_read(
    without_libraries, words, purpose, extra, capsys
):
    before = sorted(os.listdir())
    assert main([*words.split(), "-q"]) == 1
    error = capsys.readouterr().err
    assert f"mummergpu: error: {purpose} (pip install 'mummergpu[{extra}]')" in error
    assert error.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_without_need_for_a_library_the_reference_is_read(without_libraries, capsys):
    assert main(["r.fa", "q.fa", "-o", "x.html", "--format", "tsv", "-q"]) == 1
    assert "error: r.fa:1: " in capsys.readouterr().err


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
names_in_os, names_in_mmap, machine = (sys.argv.pop(1).split() for _ in range(3))
for module, names in ((os, names_in_os), (mmap, names_in_mmap)):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

def without_linux(really_open):
    def open_unless_of_linux(path, *arguments, **named):
        if str(path).startswith(("/proc", "/sys")) and (machine or path != "/proc/cpuinfo"):
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
if machine:
    # Numba asks for the machine too, and gets that of the compiler.
    import numba.core.registry
    numba.core.registry.cpu_target.target_context
    platform.machine = lambda: machine[0]
from mummergpu.index import mapped_file
mapped_file._IS_LINUX = False
from mummergpu.__main__ import run
run()
"""
"""Runs the command as if on macOS, as far as Python shows a system."""


@pytest.mark.parametrize("name", OF_LINUX)
def test_a_job_needs_none_of_the_calls_of_linux(inside, name, monkeypatch):
    monkeypatch.delattr(os, name, raising=False)
    words = "t.fa t.fa -q -C -l 4 -o out --stats stats.json"
    assert main(words.split()) == 0
    assert Path("out").read_text() == ROWS
    assert json.loads(Path("stats.json").read_text())["peak_memory_bytes"] > 1 << 20


@pytest.mark.parametrize("name", OF_LINUX_IN_MMAP)
def test_a_job_with_an_index_needs_none_of_the_constants_of_linux(inside, name, monkeypatch):
    monkeypatch.delattr(mmap, name, raising=False)
    for search in ("kmer", "tree"):
        assert main(["index", "-q", "t.fa", "--search", search, "-l", "4", "-o", "t.mgi"]) == 0
        assert main("t.mgi t.fa -q -C -l 4 -o out".split()) == 0
        assert Path("out").read_text() == ROWS


def run_elsewhere(words, machine=""):
    """Where no other machine is claimed, the code that is kept for this one is taken."""
    names = [" ".join(OF_LINUX), " ".join(OF_LINUX_IN_MMAP), machine]
    done = run_child(["-c", ELSEWHERE, *names, *words.split()])
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    return done.stdout


def test_all_commands_work_without_anything_of_linux(inside):
    assert run_elsewhere("t.fa t.fa -C -l 4") == ROWS
    assert run_elsewhere("t.fa t.fa -C -l 4 --search tree --page-size 10 -o -") == ROWS
    for search in ("kmer", "tree"):
        run_elsewhere(f"index t.fa -l 4 --search {search} -o {search}.mgi")
        assert run_elsewhere(f"{search}.mgi t.fa -C -l 4 --stats stats.json") == ROWS
    Path("r.fa").write_text(">r\n" + 60 * "ACGGTCATTGCAAGGCCTTA" + "\n")
    run_elsewhere("workload HSYNTH --scale 0.00001 --reference r.fa -o made")
    assert Path("made/reads.fq").stat().st_size > 0
    assert run_elsewhere("hmm m.hmm t.fa", "arm64") == SCORES
    told = json.loads(run_elsewhere("doctor --json", "arm64"))
    assert told["processors"] == os.cpu_count() and told["auto_backend"] == "cpu"
    names = {path.name for path in Path().iterdir()}
    assert names == {"t.fa", "m.hmm", "kmer.mgi", "tree.mgi", "stats.json", "r.fa", "made"}
