"""The whole command with ``--backend cuda`` beside ``-C``: the same bytes."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

LENGTHS = {"LMONO": 20, "SSUIS": 10, "HSILL": 14, "CBRIGG": 100}
SEARCHES = ["tree", "kmer"]


def run(*arguments):
    command = [sys.executable, "-m", "mummergpu", *arguments]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done


@pytest.fixture(scope="module")
def workloads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workloads")
    for name in LENGTHS:
        run("workload", name, "-o", str(folder / name), "--scale", "0.01")
    return folder


def files(workloads, name):
    return [str(workloads / name / "reference.fa"), str(workloads / name / "reads.fq")]


@cache
def on_processor(*given):
    """Return what the processor gives; the libraries of devices have it in common."""
    return run(*given, "-C").stdout


def check(on_device, *given):
    """Return what both searches write on the device: what a tree gives on the processor."""
    expected = on_processor(*given, "--search", "tree")
    for search in SEARCHES:
        found = run(*given, *on_device, "--search", search).stdout
        assert found == expected, search
    return expected


@pytest.mark.parametrize("name", LENGTHS)
def test_workloads_give_the_same_bytes(workloads, on_device, name):
    text = check(on_device, *files(workloads, name), "-b", "-l", str(LENGTHS[name]))
    assert text.count(b"\n") > 1000


@pytest.mark.parametrize(
    "options",
    [
        ["-r", "-c", "-L"],
        ["-mum", "-b"],
        ["-mumreference", "-s", "-F"],
        ["-b", "--page-size", "300k"],
        ["-b", "--page-size", "90k", "--max-memory", "1", "-t", "3"],
        ["-b", "--block-size", "20k", "-t", "5"],
        ["-b", "-l", "33", "-t", "2"],
    ],
    ids=" ".join,
)
def test_options_give_the_same_bytes(workloads, on_device, options):
    check(on_device, *files(workloads, "LMONO"), *options)


@pytest.mark.parametrize(
    "options",
    [["-r"], ["-b", "-c", "-L"], ["-b", "-F"], ["-b", "-l", "11"], ["-b", "-s"], ["-b", "-mum"]],
    ids=" ".join,
)
def test_text_that_the_device_makes_is_the_same(workloads, on_device, options, tmp_path):
    report = tmp_path / "stats.json"
    given = [*files(workloads, "SSUIS"), *options]
    found = run(*given, *on_device, "--search", "kmer", "--stats", str(report)).stdout
    assert found == on_processor(*given)
    told = json.loads(report.read_text())
    needs_columns = "-s" in options or "-mum" in options
    assert (told["kernels"]["write_text"]["launches"] == 0) == needs_columns
    assert ("text_kernel" not in told["stages"]) == needs_columns
    assert told["bytes"]["output"] == len(found)


@pytest.mark.parametrize(
    "options",
    [
        ["-b", "--policy", "QRTmrtn"],
        ["-b", "--page-size", "auto", "--address-bits", "32", "--policy", "Tt"],
    ],
    ids=" ".join,
)
def test_policies_give_the_same_bytes(workloads, on_device, options):
    given = [*files(workloads, "LMONO"), *options]
    assert run(*given, *on_device).stdout == on_processor(*given)


def test_a_genome_as_one_query_gives_the_same_bytes(workloads, on_device):
    reference = files(workloads, "LMONO")[0]
    other = files(workloads, "SSUIS")[0]
    check(on_device, reference, reference, other, "-b", "-l", "25")


def test_many_records_give_the_same_bytes(workloads, on_device, tmp_path):
    """Of some bases, and of none; with Ns, and one of a single base over and over."""
    text = Path(files(workloads, "LMONO")[0]).read_text().split("\n", 1)[1].replace("\n", "")
    pieces = [text[begin : begin + begin % 400] for begin in range(0, 400_000, 197)]
    pieces[7:7] = ["N" * 50, "A" * 3000, "ACGT" * 500, text[:300] + "N" * 9 + text[300:700]]
    records = tmp_path / "records.fa"
    records.write_text("".join(f">r{n}\n{piece}\n" for n, piece in enumerate(pieces)))
    queries = [str(records), files(workloads, "LMONO")[1]]
    assert check(on_device, str(records), *queries, "-b", "-l", "18").count(b"\n") > 10_000


def test_a_run_larger_than_the_memory_limit_ends_right(workloads, on_device):
    # Too little for all pages and for the matches of a block: groups of pages, halved blocks.
    given = [*files(workloads, "SSUIS"), "-b", "-l", "8", "--page-size", "500k"]
    given += ["--block-size", "100k"]
    small = run(*given, "--search", "tree", *on_device, "--gpu-memory", "120M", "-v")
    assert small.stdout == on_processor(*given)
    assert b" in 1 group;" not in small.stderr
    assert b"halving" in small.stderr


def test_tables_larger_than_the_memory_limit_end_right(workloads, on_device):
    given = [*files(workloads, "SSUIS"), "-b", "-l", "8", "--search", "kmer"]
    given += ["--block-size", "100k"]
    limits = ["--gpu-memory", "120M", "--max-memory", "1", "--page-size", "1M"]
    small = run(*given, *limits, *on_device, "-v")
    assert small.stdout == on_processor(*given)
    assert b" in 1 group;" not in small.stderr
    assert b"halving" in small.stderr


def test_a_second_start_compiles_nothing(workloads, on_device, tmp_path):
    report = tmp_path / "stats.json"
    given = [*files(workloads, "LMONO"), *on_device, "--stats", str(report), "--profile"]
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


def test_the_kernels_of_a_kmer_search_are_told(workloads, on_device, tmp_path):
    report = tmp_path / "stats.json"
    run(*files(workloads, "LMONO"), *on_device, "--stats", str(report))
    told = json.loads(report.read_text())
    assert (told["settings"]["backend"], told["settings"]["search"]) == ("cuda", "kmer")
    assert set(told["kernels"]) >= {"pack_codes", "count_kmer_mems", "write_kmer_mems"}
    kernel = told["kernels"]["count_kmer_mems"]
    assert kernel["milliseconds"] > 0 and kernel["launches"] > 0
    assert kernel["resources"]["registers"] > 0 and kernel["resources"]["local_bytes"] == 0
    assert told["stages"]["kmer_kernel"]["seconds"] > 0
    assert told["bytes"]["to_device"] > 0 and told["bytes"]["from_device"] > 0


def test_a_device_that_is_not_there_is_an_error(workloads, on_device):
    command = [sys.executable, "-m", "mummergpu", *files(workloads, "LMONO")]
    done = subprocess.run([*command, *on_device, "--device", "99"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "device 99" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("search", SEARCHES)
def test_processes_with_a_gpu_each_write_the_same_bytes(workloads, search):
    pytest.importorskip("distributed")
    given = [*files(workloads, "LMONO"), "-b", "--search", search]
    cluster = ["--backend", "cuda", "--cluster", "local:2", "-t", "2"]
    assert run(*given, *cluster).stdout == run(*given, "-C").stdout


def test_auto_takes_the_device_for_trees(workloads):
    given = [*files(workloads, "LMONO"), "--search", "tree", "-v"]
    assert b"backend cuda" in run(*given).stderr


def test_auto_leaves_the_device_alone_where_it_would_only_cost_time(workloads):
    assert b"backend cpu" in run(*files(workloads, "LMONO"), "-v").stderr


def test_the_doctor_finds_the_device():
    assert b"--backend auto takes cuda\n" in run("doctor").stdout
