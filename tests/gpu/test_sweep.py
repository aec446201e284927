"""A sweep of a tiny workload on the device."""

import subprocess
import sys
from collections import Counter

import pytest
from helpers.studies import planned_in, wanted
from helpers.sweeps import read_sweep

from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.gathers import DEVICE_KERNELS, device_gathers

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

CODES = ["none", "m", "QRTmrtn"]
WORKLOAD = "--workload SSUIS --scale 0.01 --policies QRTmrtn,m --repeat-control 2".split()


def sweep_into(folder, *words):
    command = [sys.executable, "-m", "mummergpu", "sweep", *WORKLOAD, "-o", str(folder), *words]
    return subprocess.run(command, capture_output=True, check=True, text=True).stderr


@pytest.mark.usefixtures("whole_device")
def test_a_sweep_measures_three_policies(device_library, on_device, tmp_path):
    words = [*on_device, "--runs", "3", "--profile", "-b"]
    assert "14 runs are new" in sweep_into(tmp_path / "gpu", *words)
    sweep = read_sweep(tmp_path / "gpu")
    expected = wanted(CODES, 3, 2)
    expected.update(PlannedRun(code, "profile", 0) for code in CODES)
    assert planned_in(tmp_path / "gpu") == expected
    machine = sweep.setup.machine
    assert machine.backend == "cuda" and machine.multiprocessors > 0
    assert machine.architecture.startswith("sm_")
    assert {"driver's CUDA", "cuda-bindings"} <= set(machine.versions)
    assert machine.uses_pycuda == (device_library == "pycuda")
    rates = machine.gathers_per_second
    assert rates["half"] > rates["split"] > 1e7 and rates["merged"] > 1e7
    assert len({(run.mems, run.digest, run.candidate_matches) for run in sweep.runs}) == 1
    for run in sweep.runs:
        stages = {*("build", "order", "flatten", "upload", "match", "print"), "search"}
        assert set(run.seconds) == stages | {"ordering", "download"}
        assert all(value > 0 for name, value in run.seconds.items() if name != "ordering")
        kernels = run.kernels
        assert kernels["match_kernel"].registers and kernels["match_kernel"].local_bytes == 0
        assert 0 < (kernels["match_kernel"].occupancy or 0) <= 1
        assert bool(kernels["match_kernel"].node_visits) == (run.kind == "profile")
        assert run.bytes["to_device"] > run.bytes["trees"] > 0
    counted = [run for run in sweep.runs if run.kind == "profile"]
    visits = {run.kernels["match_kernel"].node_visits for run in counted}
    assert len(visits) == 1, "the layout does not matter"
    # Each run has the registers of its own program, whichever was loaded before.
    others = [run for run in sweep.runs if run.kind != "profile"]
    searching = [run.seconds["match"] + run.seconds["print"] for run in others]
    assert all(one < run.seconds["search"] for one, run in zip(searching, others, strict=True))
    registers = {(run.policy, run.kernels["match_kernel"].registers) for run in others}
    assert len(registers) == len(CODES)
    assert "all runs were already in" in sweep_into(tmp_path / "gpu", *words)
    # What the processor finds is the same.
    sweep_into(tmp_path / "cpu", "-C", "--runs", "1", "-b")
    on_cpu = read_sweep(tmp_path / "cpu")
    assert {run.digest for run in on_cpu.runs} == {sweep.runs[0].digest}
    assert on_cpu.setup.input == sweep.setup.input


def test_a_sweep_that_was_cut_short_goes_on(tmp_path):
    words = ["--backend", "cuda", "--runs", "3"]
    sweep_into(tmp_path, *words)
    path = tmp_path / "runs.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:50])
    assert "7 runs are new" in sweep_into(tmp_path, *words)
    assert planned_in(tmp_path) == wanted(CODES, 3, 2)


def test_pages_and_the_wide_format_are_measured(tmp_path):
    digests = Counter[str]()
    for number, words in enumerate((["--page-size", "300k"], ["--address-bits", "32"], [])):
        folder = tmp_path / str(number)
        sweep_into(folder, "--backend", "cuda", "--runs", "1", *words)
        digests.update({run.digest for run in read_sweep(folder).runs})
    assert list(digests.values()) == [3]


@pytest.mark.usefixtures("whole_device")
def test_larger_tables_are_not_read_faster(device, cache):
    """Chains that meet go on apart: a table beyond the caches stays beyond them."""
    small = device_gathers(device, cache, 1 << 20, 3)
    large = device_gathers(device, cache, 1 << 30, 3)
    assert set(small) == set(large) == set(DEVICE_KERNELS)
    for name, rate in large.items():
        assert 1e7 < rate < small[name]
