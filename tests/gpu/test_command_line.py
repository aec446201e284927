"""The whole command with ``--backend cuda`` beside ``-C``: the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

LENGTHS = {"LMONO": 20, "SSUIS": 10, "HSILL": 14, "CBRIGG": 100}


def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "mummergpu", *arguments]
    return subprocess.run(command, capture_output=True, check=True)


@pytest.fixture(scope="module")
def workloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workloads")
    for name in LENGTHS:
        run("workload", name, "-o", str(folder / name), "--scale", "0.01")
    return folder


def files(workloads: Path, name: str) -> list[str]:
    return [str(workloads / name / "reference.fa"), str(workloads / name / "reads.fq")]


@pytest.mark.parametrize("name", LENGTHS)
def test_workloads_give_the_same_bytes(workloads: Path, name: str) -> None:
    given = [*files(workloads, name), "-b", "-l", str(LENGTHS[name])]
    ours = run(*given, "--backend", "cuda").stdout
    assert ours.count(b"\n") > 1000
    assert ours == run(*given, "-C").stdout


@pytest.mark.parametrize(
    "options",
    [
        ["-r", "-c", "-L"],
        ["-mum", "-b"],
        ["-mumreference", "-s", "-F"],
        ["-b", "--policy", "QRTmrtn"],
        ["-b", "--page-size", "300k"],
        ["-b", "--page-size", "auto", "--address-bits", "32", "--policy", "Tt"],
        ["-b", "--block-size", "20k", "-t", "5"],
    ],
    ids=" ".join,
)
def test_options_give_the_same_bytes(workloads: Path, options: list[str]) -> None:
    given = [*files(workloads, "LMONO"), *options]
    assert run(*given, "--backend", "cuda").stdout == run(*given, "-C").stdout


def test_a_genome_as_one_query_gives_the_same_bytes(workloads: Path) -> None:
    reference = files(workloads, "LMONO")[0]
    other = files(workloads, "SSUIS")[0]
    given = [reference, reference, other, "-b", "-l", "25"]
    assert run(*given, "--backend", "cuda").stdout == run(*given, "-C").stdout


def test_a_run_larger_than_the_memory_limit_ends_right(workloads: Path) -> None:
    # Too little for all pages and for the matches of a block: groups of pages, halved blocks.
    given = [*files(workloads, "SSUIS"), "-b", "-l", "8", "--page-size", "500k"]
    small = run(*given, "--backend", "cuda", "--gpu-memory", "120M", "-v")
    assert small.stdout == run(*given, "-C").stdout
    assert b" 1 groups" not in small.stderr
    assert b"halving" in small.stderr


def test_a_second_start_compiles_nothing(workloads: Path, tmp_path: Path) -> None:
    report = tmp_path / "stats.json"
    given = [*files(workloads, "LMONO"), "--backend", "cuda", "--stats", str(report), "--profile"]
    run(*given)
    run(*given)
    told = json.loads(report.read_text())
    assert told["settings"]["backend"] == "cuda"
    assert told["settings"]["kernel_cache_hits"] == 1
    assert told["settings"]["kernel_cache_misses"] == 0
    kernel = told["kernels"]["match_kernel"]
    assert kernel["milliseconds"] > 0 and kernel["launches"] > 0 and kernel["node_visits"] > 0
    assert kernel["resources"]["registers"] > 0 and kernel["resources"]["local_bytes"] == 0
    assert told["bytes"]["to_device"] > 0 and told["bytes"]["from_device"] > 0


def test_a_device_that_is_not_there_is_an_error(workloads: Path) -> None:
    command = [sys.executable, "-m", "mummergpu", *files(workloads, "LMONO")]
    done = subprocess.run(
        [*command, "--backend", "cuda", "--device", "99"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "device 99" in done.stderr and "Traceback" not in done.stderr


def test_auto_takes_the_device(workloads: Path) -> None:
    assert b"backend cuda" in run(*files(workloads, "LMONO"), "-v").stderr


def test_the_doctor_finds_the_device() -> None:
    assert b"auto takes cuda" in run("doctor").stdout
