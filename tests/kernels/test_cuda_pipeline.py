"""The whole command with ``--backend cuda``, on the host's device: what ``-C`` writes, always.

What is played, `helpers/played_machine.py` tells. Everything between the command line and the
kernels is real.
"""

import json
from itertools import count
from pathlib import Path
from threading import Barrier

import pytest
from helpers.host_device import everything_given_back

from mummergpu.cli.main import main
from mummergpu.errors import BackendError
from mummergpu.matching.backends import memory_plan as plan


def check(machine, output, queries, words, search="tree"):
    """Run the command on both backends; return the statistics of ``cuda``."""
    given = ["r.fa", queries, "--search", search, *words.split()]
    report = Path("stats.json")
    ours, _ = output(*given, "--backend", "cuda", "--stats", str(report))
    told = json.loads(report.read_text())
    assert told["settings"]["backend"] == "cuda"
    assert told["counts"]["matches"] > 20
    kernel = "match_kernel" if search == "tree" else "count_kmer_mems"
    assert told["kernels"][kernel]["launches"] > 0
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])
    others, _ = output(*given, "-C")
    assert ours == others
    assert len(machine.devices) == 1
    return told


@pytest.mark.parametrize(
    "words",
    [
        "-l 12",
        "-l 12 -r",
        "-l 12 -b -c -L",
        "-l 12 -r -c -s",
        "-l 14 -mum -b",
        "-l 14 -mumreference -b -F",
        "-l 9 -b -t 3 --block-size 300",
        "-l 12 -b --policy QRTmrtn",
        "-l 12 -b --policy Tn --address-bits 32 --page-size auto",
        "-l 14 -b --page-size 700 -t 2",
        "-l 40 -b --page-size 50",
    ],
)
def test_reads_give_the_same_bytes(machine, output, words):
    check(machine, output, "q.fa", words)


@pytest.mark.parametrize("words", ["--search kmer", "--search tree", "--page-size 900"])
def test_an_index_gives_the_same_bytes(machine, output, words, tmp_path):
    index = str(tmp_path / "r.mgi")
    output("index", "r.fa", "-o", index, "-l", "12", *words.split())
    ours, _ = output(index, "q.fa", "-l", "14", "-b", "--backend", "cuda")
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])
    others, _ = output("r.fa", "q.fa", "-l", "14", "-b", "-C")
    assert ours == others
    assert ours.count(b"\n") > 100


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ("q.fa", "-l 12 -b -c"),
        ("q.fa", "-l 14 -mum -b -t 3 --block-size 300"),
        ("q.fa", "-l 9 -mumreference -r --max-memory 1"),
        ("long.fa", "-l 12 -b"),
        ("long.fa", "-l 20 -mum -r -c -t 3"),
    ],
)
def test_the_kmer_search_gives_the_same_bytes(machine, output, queries, words):
    check(machine, output, queries, words, "kmer")


@pytest.mark.parametrize(
    "words",
    [
        "-l 12 -b -t 3 --block-size 500",
        "-l 14 -mum -b -c",
        "-l 14 -mumreference --policy QRT",
        "-l 30 -b --page-size 50",
    ],
)
def test_pages_that_are_searched_in_groups_give_the_same_bytes(machine, output, words):
    size = "" if "--page-size" in words else " --page-size 700"
    told = check(machine, output, "q.fa", f"{words}{size} --max-memory 1")
    assert told["settings"]["page_groups"] == told["counts"]["pages"] >= 8


@pytest.mark.parametrize(
    "words",
    ["-l 12 -b", "-l 20 -mum -r -c", "-l 15 -b --page-size 2000", "-l 15 --max-memory 1 -t 3"],
)
def test_long_queries_in_pieces_give_the_same_bytes(machine, output, words):
    size = " --page-size 2000" if "--max-memory" in words else ""
    check(machine, output, "long.fa", words + size)


@pytest.mark.parametrize("words", ["-l 12 -b -t 3", "-l 15 -mum -b -t 2 --page-size 2000"])
def test_parts_of_one_query_are_the_work_of_all_threads(machine, output, words, monkeypatch):
    monkeypatch.setattr(plan, "SMALLEST_BLOCK", 16)
    memory = 2 * 3 * 1500 * plan.WORK_BYTES_PER_BASE
    launches, meeting = count(), Barrier(2, timeout=60)

    def prepare(device):
        def before_launch(kernel):
            # The second block is not read before all parts of the first have been searched.
            if kernel == "match_kernel" and next(launches) < 2:
                meeting.wait()

        device.before_launch = before_launch

    machine.prepare = prepare
    told = check(machine, output, "long.fa", f"{words} --gpu-memory {memory} --block-size 1500")
    # Two pieces of 1,024 starts make a part; a query has some 5,500 bases, on two strands.
    parts = -(-5_490 // 2_048)
    pages = told["counts"]["pages"]
    assert told["kernels"]["match_kernel"]["launches"] == 2 * 2 * parts * pages


def test_a_run_that_does_not_fit_the_device_gives_the_same_bytes(machine, output, monkeypatch):
    monkeypatch.setattr(plan, "SMALLEST_BLOCK", 16)
    memory = 2 * 3 * 434 * plan.WORK_BYTES_PER_BASE
    given = ["r.fa", "q.fa", "-l", "4", "-b", "--page-size", "1000", "--search", "tree"]
    cuda = ["--backend", "cuda", "--gpu-memory", str(memory), "-v"]
    ours, told = output(*given, *cuda)
    assert ours == output(*given, "-C")[0]
    assert "blocks of 434 bases" in told
    assert "queries do not fit the device" in told and "halving" in told
    assert "6 pages in 2 groups" in told
    assert everything_given_back(machine.devices[0])


def test_a_failure_in_a_search_is_an_error_and_leaves_nothing(machine, capfd):
    def prepare(device):
        def before_launch(kernel):
            device.refuse = lambda number, size: True

        device.before_launch = before_launch

    machine.prepare = prepare
    words = ["r.fa", "q.fa", "-o", "out", "-t", "2", "-l", "9", "--search", "tree"]
    assert main([*words, "--backend", "cuda"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("mummergpu: error: backend 'cuda': the matches of one query do not fit")
    assert not Path("out").exists()
    assert everything_given_back(machine.devices[0])


def test_a_number_of_no_device_is_an_error(machine, capfd):
    def prepare(device):
        if machine.numbers[-1] == 7:
            machine.devices.pop()
            raise BackendError("cuda", "there is no device 7; the driver finds 2")

    machine.prepare = prepare
    assert main(["r.fa", "q.fa", "-o", "out", "--backend", "cuda", "--device", "7"]) == 1
    assert "there is no device 7; the driver finds 2" in capfd.readouterr().err
    assert not machine.devices
