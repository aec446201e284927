"""The whole command where the device makes the text: what ``-C`` writes, always."""

import json
from pathlib import Path

import pytest
from helpers.host_device import everything_given_back

from mummergpu.matching.backends import cuda_streams
from mummergpu.matching.kmer import cuda_consumers
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.kmer.cuda_program import TEXT_KERNELS


def check_text(machine, output, *given):
    """Run the k-mer search on both backends; return the launches of the kernels of ``cuda``."""
    report = ["--stats", "stats.json"]
    ours, _ = output(*given, "--search", "kmer", "--backend", "cuda", *report)
    told = json.loads(Path("stats.json").read_text())
    assert all(map(everything_given_back, machine.devices))
    others, _ = output(*given, "--search", "kmer", "-C", *report)
    assert ours == others
    expected = json.loads(Path("stats.json").read_text())
    for name in ("counts", "files", "strands", "match_lengths"):
        assert told[name] == expected[name]
    assert told["counts"]["bases_covered"] > 0 and told["match_lengths"]
    assert ours.count(b"\n") > 20 and told["bytes"]["output"] == len(ours)
    launches = {name: kernel["launches"] for name, kernel in told["kernels"].items()}
    # Either the device makes all text, or the host does.
    assert ("format" not in told["stages"]) == (launches.get("write_text", 0) > 0)
    made = told["stages"].get("text_kernel", {"count": 0})
    assert made["count"] == sum(launches.get(name, 0) for name in TEXT_KERNELS)
    return launches


@pytest.mark.parametrize("reference", ["r.fa", "one.fa"])
@pytest.mark.parametrize(
    "words",
    [
        *("-l 12", "-l 12 -r", "-l 12 -r -c", "-l 12 -b -c -L", "-l 12 -b -F -L", "-l 40 -F"),
        *("-l 9 -b -t 3 --block-size 300", "-l 9 -b -L -t 2 --block-size 1"),
    ],
)
def test_the_device_makes_the_text(machine, output, reference, words):
    launches = check_text(machine, output, reference, "q.fa", *words.split())
    assert launches["write_text"] == launches["count_text"] > 0


@pytest.mark.parametrize(
    "words",
    [
        *("-s", "-mum", "-mumreference", "-mum -b -s"),
        *("--page-size 900", "--page-size 900 --max-memory 1"),
    ],
)
def test_what_needs_columns_gets_columns(machine, output, words):
    launches = check_text(machine, output, "r.fa", "q.fa", "-l", "12", *words.split())
    assert launches["count_kmer_mems"] > 0 and launches["count_text"] == 0


def test_a_device_that_may_not_make_text_gives_columns(machine, output, monkeypatch):
    monkeypatch.setattr(KmerCudaBackend, "may_make_text", False)
    launches = check_text(machine, output, "r.fa", "q.fa", "-l", "12", "-b")
    assert launches["write_kmer_mems"] > 0 and launches["count_text"] == 0


def test_the_device_makes_the_text_of_an_index_that_finds_shorter_matches_too(
    machine, output, tmp_path
):
    index = str(tmp_path / "r.mgi")
    output("index", "r.fa", "-o", index, "-l", "12", "--search", "kmer")
    for length in ("12", "14"):
        launches = check_text(machine, output, index, "q.fa", "-l", length, "-b")
        assert launches["write_text"] > 0


def test_long_queries_have_columns_and_others_text(machine, output, monkeypatch):
    monkeypatch.setattr(KmerCudaBackend, "long_query", 2000)
    monkeypatch.setattr(KmerCudaBackend, "piece_bases", 1000)
    given = ["r.fa", "long.fa", "-l", "12", "-b", "--search", "kmer", "--block-size", "1"]
    ours, _ = output(*given, "--backend", "cuda", "--stats", "stats.json")
    told = json.loads(Path("stats.json").read_text())
    # Of four blocks of one query, two are long.
    assert told["kernels"]["count_text"]["launches"] == told["stages"]["format"]["count"] == 2
    assert ours == output(*given, "-C")[0]


@pytest.mark.parametrize("limit", ["rows", "bytes", "bytes of nothing"])
def test_a_text_that_is_too_long_is_made_of_smaller_blocks(machine, output, monkeypatch, limit):
    if limit == "rows":
        monkeypatch.setattr(cuda_streams, "MAX_ROWS", 40)
    else:
        monkeypatch.setattr(cuda_consumers, "MAX_TEXT_BYTES", 2000 if limit == "bytes" else 10)
    given = ["r.fa", "q.fa", "-l", "9", "-b", "--search", "kmer"]
    ours, _ = output(*given, "--backend", "cuda", "--stats", "stats.json")
    told = json.loads(Path("stats.json").read_text())
    assert ours == output(*given, "-C")[0]
    assert (told["kernels"]["write_text"]["launches"] > 0) == (limit != "bytes of nothing")
    assert told["kernels"]["count_text"]["launches"] > 1


def test_a_text_that_does_not_fit_the_device_is_made_in_halves(machine, output):
    def prepare(device):
        def before_launch(kernel):
            if kernel == "count_text":
                device.refuse = lambda number, size: size > 20_000

        device.before_launch = before_launch

    machine.prepare = prepare
    given = ["r.fa", "q.fa", "-l", "7", "-b", "--search", "kmer"]
    ours, told = output(*given, "--backend", "cuda", "-v")
    assert "queries do not fit the device" in told and "halving" in told
    assert everything_given_back(machine.devices[0])
    assert ours == output(*given, "-C")[0]
