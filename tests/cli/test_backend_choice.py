"""Whether a run asks for a GPU: only where the model says that one would be faster."""

import shlex

import numpy as np
import pytest
from helpers.loops import each
from helpers.search_cases import made_bases
from helpers.sequences import write_fasta, write_fastq

from mummergpu.cli.main import main
from mummergpu.cuda import driver
from mummergpu.pipeline import align_genomes, backend_choice, map_reads, match

COMMANDS = (
    "r.fa q.fq -l 31 -o m.txt",
    "-mumreference -b -l 31 r.fa q.fq -o m.txt",
    "align r.fa q.fa -o a.paf",
    "map r.fa q.fq -o m.sam",
)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What is asked of the driver of a machine without one, in a folder with files."""
    bases = made_bases(np.random.default_rng(4), 3000, "ACGT")
    reads = [bases[begin : begin + 100] for begin in range(0, 2000, 100)]
    monkeypatch.chdir(tmp_path)
    write_fasta("r.fa", {"r": bases})
    write_fasta("q.fa", {"q": bases[:2000]})
    write_fastq("q.fq", enumerate(reads))
    told = []
    nobody = driver.DriverFacts(None, (), "no driver")
    monkeypatch.setattr(driver, "ask_for_context", told.append)
    monkeypatch.setattr(driver, "_kept_facts", lambda: told.append("driver") or nobody)
    return told


@each("command", COMMANDS)
def test_little_work_asks_no_driver(asked, command):
    assert main(shlex.split(command)) == 0
    assert asked == []


@each("command", COMMANDS)
def test_work_for_which_a_gpu_starts_soon_enough_asks_for_one(asked, monkeypatch, command):
    asked.clear()
    for job in (match, align_genomes, map_reads):
        monkeypatch.setattr(job, "run", lambda options, context: None)
    monkeypatch.setattr(backend_choice, "DEVICE_START_SECONDS", 1e9)
    assert main(shlex.split(command)) == 0
    assert main([*shlex.split(command), "--backend", "cpu"]) == 0
    assert asked == []
    assert main([*shlex.split(command), "--backend", "cuda"]) == 0
    assert asked == [0]
    monkeypatch.setattr(backend_choice, "DEVICE_START_SECONDS", -1e9)
    assert main(shlex.split(command)) == 0
    assert asked == [0, 0]
