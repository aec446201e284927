"""The command with a cache that is damaged, full or no folder at all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mummergpu.runtime.compiled.store import process_store

COMMAND = [sys.executable, "-m", "mummergpu", *"-v -C -l 4 --search tree t.fa t.fa".split()]
"""A search of trees: that of k-mers takes longer to compile."""
ROWS = b"> t\n       1         1        12\n"

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
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(done):
    """Return what was said about the cache, for a run that did what it should."""
    assert (done.returncode, done.stdout) == (0, ROWS), done.stderr.decode()
    return [line for line in done.stderr.decode().splitlines() if "compiled code" in line]


def test_a_cache_that_cannot_be_made_costs_time_only(inside):
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(inside / "t.fa" / "x")}
    done = subprocess.run(COMMAND, env=environment, capture_output=True)
    place = inside / "t.fa" / "x" / "processor"
    assert told(done) == [f"mummergpu: compiled code cannot be read from {place}: Not a directory"]


def test_a_damaged_cache_on_a_full_disk_costs_time_only(inside):
    subprocess.run(COMMAND, check=True, capture_output=True)
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
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(inside / "cache")}
    command = [sys.executable, "-c", FULL_DISK, *COMMAND[3:]]
    done = subprocess.run(command, env=environment, capture_output=True)
    assert told(done) == [f"mummergpu: compiled code is damaged in {inside}/cache/processor"]
    # Nothing can have been repaired, and no part of a file lies about.
    assert {path: path.read_bytes() for path in kept.glob("*.code")} == before
    assert {path.suffix for path in kept.iterdir() if path.is_file()} == {".code"}
