"""Searches with profiles with ``--backend cuda``, on the host's device: what ``-C`` writes."""

import json

import numpy as np
import pytest
from helpers.hmmer import write_input
from helpers.host_device import everything_given_back
from helpers.played_machine import NO_DRIVER, SOUND

import mummergpu
from mummergpu.cli.main import main
from mummergpu.errors import BackendError
from mummergpu.pipeline import profile_job


@pytest.mark.parametrize("verb", ["hmmsearch", "hmmscan"])
@pytest.mark.parametrize("words", ["", "--nobias --F1 0.1 --F2 0.01", "--max -E 1e-5"])
def test_both_backends_write_the_same(machine, output, tmp_path, verb, words):
    profiles, proteins = write_input(tmp_path)
    given = [verb, str(profiles), str(proteins), "--domtblout", "-", "--acc", *words.split()]
    expected, _ = output(*given, "-C")
    report = tmp_path / "stats.json"
    ours, _ = output(*given, "--backend", "cuda", "--stats", str(report))

    def rows(text):
        return [line for line in text.splitlines() if not line.startswith(b"# ")]

    assert rows(ours) == rows(expected) and len(rows(ours)) > 5
    told = json.loads(report.read_text())
    assert (told["settings"]["backend"], told["settings"]["device"]) == ("cuda", "host")
    # Without filters, their stage does not run and is left out.
    filters = told["stages"].get("profile_filters")
    assert (filters is None) == ("--max" in words)
    assert filters is None or filters["cells"] == told["counts"]["cells"]
    assert ("find_cells" in told["kernels"]) == ("--max" not in words)
    assert machine.libraries == ["cuda-bindings"]
    assert everything_given_back(machine.devices[0])


def test_several_passes_and_blocks_write_the_same(machine, output, tmp_path, monkeypatch):
    profiles, proteins = write_input(tmp_path)
    given = ["hmmsearch", str(profiles), str(proteins), "-t", "2"]
    expected, _ = output(*given, "-C")
    monkeypatch.setattr(profile_job, "PROFILES_AT_ONCE", 4)
    monkeypatch.setattr(profile_job, "FEW_PROFILES", 4)
    monkeypatch.setattr(profile_job, "_FEW_OF_THREAD", 1)
    monkeypatch.setattr("mummergpu.input.blocks.proteins.BLOCK_RESIDUES", 20_000)
    ours, _ = output(*given, "--backend", "cuda")
    assert ours.splitlines()[:-10] == expected.splitlines()[:-10]
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])


def test_auto_takes_a_device_where_there_is_much_to_do(machine, tmp_path, monkeypatch):
    monkeypatch.setattr("mummergpu.cuda.driver.driver_facts", lambda: SOUND.driver)
    _, proteins = write_input(tmp_path)
    expected = mummergpu.hmmsearch(tmp_path / "cut.hmm", proteins, backend="cpu")
    assert len(expected) > 0
    for least, devices in ((profile_job._WORTH_CELLS, 0), (0, 1)):
        monkeypatch.setattr(profile_job, "_WORTH_CELLS", least)
        found = mummergpu.hmmsearch(tmp_path / "cut.hmm", proteins)
        assert len(machine.devices) == devices
        assert np.array_equal(found.start, expected.start)
        assert list(found) == list(expected)


def test_without_a_driver_the_search_says_so(machine, tmp_path, capfd):
    machine.looks(NO_DRIVER)
    words = ["hmmsearch", *map(str, write_input(tmp_path)), "--backend", "cuda"]
    assert main(words) == 1
    assert "backend 'cuda'" in capfd.readouterr().err


def test_a_device_that_fails_ends_the_search_and_nothing_is_left(machine, tmp_path, capfd):
    def prepare(device):
        def before_launch(kernel):
            if kernel == "score_paths":
                raise BackendError("cuda", "the device failed: played")

        device.before_launch = before_launch

    machine.prepare = prepare
    profiles, proteins = write_input(tmp_path)
    words = ["hmmsearch", str(profiles), str(proteins), "--tblout", str(tmp_path / "t.txt")]
    assert main([*words, "--backend", "cuda"]) == 1
    assert "the device failed: played" in capfd.readouterr().err
    assert not (tmp_path / "t.txt").exists()
    assert everything_given_back(machine.devices[0])
