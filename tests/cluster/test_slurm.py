"""Workers that a program in the place of SLURM's starts, by the options of a file."""

import os
from pathlib import Path

import pytest
from helpers.read_pairs import write_pairs

from mummergpu.cli.main import main

SBATCH = """#!/bin/bash
cp "$1" "{folder}/$$.sh"
setsid bash "{folder}/$$.sh" > "{folder}/$$.log" 2>&1 &
echo $! > "{folder}/$$.pid"
echo "Submitted batch job $$"
"""

SCANCEL = """#!/bin/bash
for job in "$@"; do
    kill -- -$(cat "{folder}/$job.pid")
    touch "{folder}/$job.cancelled"
done
"""

JOBS = """jobs: 2
cores: 1
processes: 1
memory: 2GB
queue: short
interface: lo
walltime: "00:05:00"
"""


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue")
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.format(folder=tmp_path))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_jobs_are_started_and_ended(tmp_path):
    write_pairs(tmp_path)
    Path("jobs.yaml").write_text(JOBS)
    words = ["map", "-q", "--backend", "cpu", "r.fa", "1.fq", "2.fq"]
    assert main([*words, "--cluster", "slurm:jobs.yaml", "-o", "many.paf"]) == 0
    assert main([*words, "-o", "one.paf"]) == 0
    assert Path("many.paf").read_bytes() == Path("one.paf").read_bytes()
    scripts = list(tmp_path.glob("*.sh"))
    assert len(scripts) == 2
    assert all("#SBATCH -p short" in script.read_text() for script in scripts)
    assert len(list(tmp_path.glob("*.cancelled"))) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cores: 1\n", "it must say jobs: N"),
        ("jobs: many\n", "it must say jobs: N"),
        (None, "No such file"),
    ],
)
def test_wrong_files_of_options_are_named(text, told, tmp_path, capsys):
    write_pairs(tmp_path)
    if text is not None:
        Path("jobs.yaml").write_text(text)
    words = ["map", "-q", "r.fa", "1.fq", "2.fq", "--cluster", "slurm:jobs.yaml", "-o", "x.paf"]
    assert main(words) in (1, 2)
    error = capsys.readouterr().err
    assert told in error and "jobs.yaml" in error and error.count("\n") == 1
    assert not Path("x.paf").exists() and not list(tmp_path.glob("*.sh"))
