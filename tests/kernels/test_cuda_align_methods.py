"""The methods of ``align`` with ``--backend cuda``, on the host's device: what ``-C`` writes."""

import json

import pytest
from helpers.host_device import everything_given_back
from helpers.played_machine import GIB

from mummergpu.cli.main import main


@pytest.mark.parametrize("method", ["wavefront", "streaming"])
def test_both_backends_write_the_same(machine, output, method, tmp_path):
    report = tmp_path / "stats.json"
    words = ["align", "--method", method, "r.fa", "middle.fa", "--format", "paf"]
    ours, _ = output(*words, "--backend", "cuda", "--stats", str(report))
    told = json.loads(report.read_text())
    assert told["settings"]["backend"] == "cuda"
    assert told["kernels"]["fill_round"]["launches"] > 10
    assert ("trace_rounds" in told["kernels"]) == (method == "wavefront")
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])
    others, _ = output(*words, "-C")
    assert ours == others and ours.count(b"\n") == 18


@pytest.mark.parametrize("words", [[], ["-maxmatch", "-l", "12", "-c", "30"]])
def test_tiles_on_the_device_are_those_of_the_processor(
    machine, output, monkeypatch, tmp_path, words
):
    given = ["align", "r.fa", "long.fa", "--format", "paf", *words]
    expected, _ = output(*given, "-C")
    assert expected.count(b"\n") > 5
    report = tmp_path / "stats.json"
    for least, launches in ((1 << 28, False), (0, True)):
        monkeypatch.setattr("mummergpu.mapping.genomes.device_tiles.MIN_CELLS", least)
        ours, _ = output(*given, "--backend", "cuda", "--stats", str(report))
        assert ours == expected
        told = json.loads(report.read_text())["kernels"]
        assert ("trace_tile_pairs" in told) == launches
        assert everything_given_back(machine.devices[-1])


def test_without_room_on_the_device_the_processor_aligns_tiles(machine, output, monkeypatch):
    given = ["align", "r.fa", "long.fa", "--format", "paf"]
    expected, _ = output(*given, "-C")
    monkeypatch.setattr("mummergpu.mapping.genomes.device_tiles.MIN_CELLS", 0)
    monkeypatch.setattr("mummergpu.pipeline.align_genomes.PART_OF_MEMORY", 1 << 40)
    ours, told = output(*given, "--backend", "cuda", "-v")
    assert ours == expected and "no room on the GPU" in told
    assert everything_given_back(machine.devices[-1])


def test_a_matrix_that_is_too_large_for_the_device_is_refused(machine, capfd):
    machine.memory_bytes = GIB >> 5
    words = ["r.fa", "long.fa", "--backend", "cuda", "--gpu-memory", "4M"]
    assert main(["align", "-q", "--method", "wavefront", *words]) == 1
    error = capfd.readouterr().err
    assert "of the GPU's memory: use --method streaming or tile (record 'g1')" in error
    assert "long.fa: a matrix of" in error
    assert everything_given_back(machine.devices[0])
    assert main(["align", "-q", "--method", "streaming", *words]) == 0
