"""The command that compiles in advance, and starts after it that compile nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.claimed_processor import CLAIM, describe

from mummergpu.cli import warmup
from mummergpu.cli.main import main
from mummergpu.runtime.compiled.code_target import GENERIC_TARGETS, runnable_targets

RUN = CLAIM + "from mummergpu.__main__ import run\nrun()\n"

AFTERWARDS = (
    "made/reference.fa made/reads.fq -b -l 14 -C -o 1",
    "made/reference.fa made/reads.fq.gz -r -mumreference -c -F -L -s -C -t 2 -o 2",
    "made/reference.fa made/reads.fq -b -mum --search tree -C -t 2 -o 3",
    "made/reference.fa made/reads.fq -b --policy Tnr --page-size 256k --address-bits 32 -C -o 4",
    "index made/reference.fa -o kmers.mgi --for genomes",
    "kmers.mgi made/reads.fq -l 30 -C -o 5",
    "index made/reference.fa -o trees.mgi --search tree",
    "trees.mgi made/reads.fq -l 30 -b -C -o 6",
    "map made/reference.fa made/reads.fq --backend cpu -o 7.sam",
    "map kmers.mgi made/reads.fq.gz --backend cpu -o 8.bam --sort --mark-duplicates",
    "align made/reference.fa again.fa -C -o 9.delta",
    "align kmers.mgi again.fa.gz -C -o 10.paf.gz -mum --one-to-one",
    "align trees.mgi again.fa -C -o 11.delta -maxmatch --nosimplify -f",
    "nucmer-shim -maxmatch --noextend -p 12 made/reference.fa again.fa",
    "workload LMONO --scale 0.0001 --reference made/reference.fa -o again",
)
"""Other commands than those of the warm-up, on larger files."""


def everything(folder: Path) -> dict[Path, tuple[bytes, int]]:
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def write_copy(folder: Path) -> None:
    """Write the made reference once more, with a base left out now and then."""
    lines = (folder / "made" / "reference.fa").read_text().splitlines()
    for number in range(1, len(lines), 9):
        lines[number] = lines[number][:30] + lines[number][31:]
    (folder / "again.fa").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not runnable_targets(), reason="no generic target is like this machine")
def test_after_a_generic_warm_up_another_processor_compiles_nothing(tmp_path: Path) -> None:
    target = runnable_targets()[-1]
    cache = tmp_path / "cache"
    program = [sys.executable, "-m", "mummergpu"]
    environment = {name: value for name, value in os.environ.items() if "NUMBA" not in name}
    environment["MUMMERGPU_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [*program, "warmup", "--cpu", target.name], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"functions were compiled for {target.name}, in {cache}" in done.stderr
    again = subprocess.run(
        [*program, "warmup", "--cpu", target.name], env=environment, capture_output=True, text=True
    )
    assert f": 0 functions were compiled for {target.name}" in again.stderr
    before = everything(cache)
    for path in (cache, *cache.rglob("*")):
        # Any user may read it, and nobody but its owner could write to it.
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == (0o055 if path.is_dir() else 0o044)
        path.chmod(0o555 if path.is_dir() else 0o444)
    subprocess.run(
        [*program, "workload", "HSILL", "--scale", "0.01", "-o", "made", "-q"],
        cwd=tmp_path,
        check=True,
    )
    write_copy(tmp_path)
    subprocess.run(["gzip", "-k", "made/reads.fq", "again.fa"], cwd=tmp_path, check=True)
    other = describe(tmp_path / "other", target.flags)
    for words in AFTERWARDS:
        command = [sys.executable, "-c", RUN, str(other), *words.split()]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr, words
    assert everything(cache) == before


def test_a_cache_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(tmp_path / "file" / "x")}
    command = [sys.executable, "-m", "mummergpu", "warmup"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    place = tmp_path / "file" / "x" / "processor"
    message = f"mummergpu: error: {place}: compiled code cannot be kept there\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_processor_that_this_machine_is_not_like_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    others = [one.name for one in GENERIC_TARGETS if one not in runnable_targets()]
    for name in others:
        assert main(["warmup", "--cpu", name]) == 2
        assert f"this machine cannot run code for {name}" in capsys.readouterr().err
    assert others


def test_generic_code_for_an_unknown_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    assert main(["warmup", "--generic"]) == 2
    assert "--generic: no generic processor is known" in capsys.readouterr().err


def test_an_error_in_one_of_several_warm_ups_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MUMMERGPU_CACHE_DIR", str(tmp_path / "file"))
    # This process itself keeps code elsewhere.
    monkeypatch.setattr(warmup, "_compile_listed", lambda names, count: dict.fromkeys(names, 0))
    assert main(["warmup", "--cpu", "native", "--cpu", "x86-64-v2"]) == 1
    assert capfd.readouterr().err.count("compiled code cannot be kept") == 1


def test_nothing_is_compiled_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "mummergpu", "warmup", "--cpu", "native", "--cpu", "x86-64-v2"]
    environment = {**os.environ, "MUMMERGPU_CACHE_DIR": str(tmp_path / "file")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("compiled code cannot be kept") == 1
