"""The command that compiles in advance, and starts after it that compile nothing."""

import os
import stat
import subprocess

import pytest
from helpers.children import COMMAND, child, printed_by
from helpers.claimed_processor import CLAIM, describe

from mummergpu.cli.main import main
from mummergpu.runtime.compiled.levels import LEVELS, machine_levels

RUN = CLAIM + "from mummergpu.__main__ import run\nrun()\n"

AFTERWARDS = (
    "made/reference.fa made/reads.fq -b -l 14 -C -o 1.txt",
    "made/reference.fa made/reads.fq.gz -r -mumreference -c -F -L -s -C -t 2 -o 2.txt",
    "made/reference.fa made/reads.fq -b -mum --search tree -C -t 2 -o 3.txt",
    "made/reference.fa made/reads.fq -b --policy Tnr --page-size 256k --address-bits 32 -C -o 4",
    "index made/reference.fa -o kmers.mgi --for genomes",
    "kmers.mgi made/reads.fq -l 30 -C -o 5.txt",
    "index made/reference.fa -o trees.mgi --search tree",
    "trees.mgi made/reads.fq -l 30 -b -C -o 6.txt",
    "map made/reference.fa made/reads.fq --backend cpu -o 7.sam",
    "map kmers.mgi made/reads.fq.gz --backend cpu -o 8.bam --sort --mark-duplicates",
    "align made/reference.fa again.fa -C -o 9.delta",
    "align kmers.mgi again.fa.gz -C -o 10.paf.gz -mum --one-to-one",
    "align trees.mgi again.fa -C -o 11.delta -maxmatch --nosimplify -f",
    "nucmer-shim -maxmatch --noextend -p 12 made/reference.fa again.fa",
    "workload LMONO --scale 0.0001 --reference made/reference.fa -o again",
)
"""Other commands than those of the warm-up, on larger files."""


def everything(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def write_copy(folder):
    """Write the made reference once more, with a base left out now and then."""
    lines = (folder / "made" / "reference.fa").read_text().splitlines()
    for number in range(1, len(lines), 9):
        lines[number] = lines[number][:30] + lines[number][31:]
    (folder / "again.fa").write_text("\n".join(lines) + "\n")


@pytest.mark.timeout(900)
def test_a_warm_up_compiles_what_is_not_kept_yet():
    """It also spares the tests behind it to compile; see `helpers/first_tests.py`."""
    told = [child(*COMMAND, "warmup", check=True).stderr for _ in range(2)]
    assert "functions were compiled, and are kept in " in told[0]
    assert told[1].startswith("mummergpu: 0 functions") or not machine_levels()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif("x86-64-v2" not in machine_levels(), reason="there are no images here")
def test_after_a_warm_up_for_a_level_another_processor_compiles_nothing(tmp_path, monkeypatch):
    level = "x86-64-v2"
    cache = tmp_path / "cache"
    for name in [name for name in os.environ if "NUMBA" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MUMMERGPU_CACHE_DIR", str(cache))
    monkeypatch.chdir(tmp_path)
    done = child(*COMMAND, "warmup", "--cpu", level)
    assert done.returncode == 0, done.stderr
    assert f"are kept in {cache}" in done.stderr
    before = everything(cache)
    # Numba's own cache, where code goes that cannot be an image: to load it takes a run .5 s.
    assert not [path for path in before if path.suffix == ".nbi"]
    for path in (cache, *cache.rglob("*")):
        # Any user may read it, and nobody but its owner could write to it.
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == (0o055 if path.is_dir() else 0o044)
        path.chmod(0o555 if path.is_dir() else 0o444)
    printed_by(*COMMAND, *"workload HSYNTH --scale 0.01 -o made -q".split())
    write_copy(tmp_path)
    subprocess.run(["gzip", "-k", "made/reads.fq", "again.fa"], check=True)
    other = describe(tmp_path / "other", LEVELS[level])
    for words in AFTERWARDS:
        done = child("-c", RUN, other, *words.split())
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr, words
    assert everything(cache) == before


def test_nothing_is_compiled_where_nothing_can_be_kept(tmp_path):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "x"
    done = child(*COMMAND, "warmup", env={"MUMMERGPU_CACHE_DIR": str(folder)}, timeout=60)
    place = folder / "processor"
    message = f"mummergpu: error: {place}: compiled code cannot be kept there\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_level_that_this_machine_does_not_have_is_refused(capsys, monkeypatch):
    monkeypatch.setattr("mummergpu.cli.warmup.machine_levels", lambda: ("x86-64-v2",))
    assert main(["warmup", "--cpu", "x86-64-v4"]) == 2
    assert "this machine cannot run code for x86-64-v4" in capsys.readouterr().err
    assert main(["warmup", "--cpu", "pentium"]) == 2
    assert "pentium" in capsys.readouterr().err
