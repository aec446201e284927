"""The command with ``--backend cuda`` beside ``-C``: the same bytes."""

import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers.gpu_turns import in_turn
from helpers.hmmer import write_input
from helpers.profile_scores import check_numbers, tried
from helpers.profiles import block_of, built, profiles, sequences_like
from helpers.read_pairs import write_pairs, write_repeats

import mummergpu
from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.cuda.kernel_cache import Programs
from mummergpu.hmm.device_filters import DeviceFilters
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.options import FilterThresholds
from mummergpu.runtime.stats import Stats

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

LENGTHS = {"LMONO": 20, "SSUIS": 10, "HSYNTH": 14, "CBRIGG": 100}
SEARCHES = ["tree", "kmer"]


def run(*arguments):
    done = subprocess.run([sys.executable, "-m", "mummergpu", *arguments], capture_output=True)
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
        assert run(*given, *on_device, "--search", search).stdout == expected, search
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


def test_a_genome_as_one_query_gives_the_same_bytes(workloads, on_device):
    reference = files(workloads, "LMONO")[0]
    check(on_device, reference, reference, files(workloads, "SSUIS")[0], "-b", "-l", "25")


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
    assert small.stdout == on_processor(*given) and b" in 1 group;" not in small.stderr
    assert b"halving" in small.stderr


def test_tables_larger_than_the_memory_limit_end_right(workloads, on_device):
    given = [*files(workloads, "SSUIS"), "-b", "-l", "8", "--search", "kmer"]
    given += ["--block-size", "100k"]
    limits = ["--gpu-memory", "120M", "--max-memory", "1", "--page-size", "1M"]
    small = run(*given, *limits, *on_device, "-v")
    assert small.stdout == on_processor(*given) and b" in 1 group;" not in small.stderr
    assert b"halving" in small.stderr


@pytest.mark.parametrize(
    ("search", "kernel", "stage"),
    [("tree", "match_kernel", "match_kernel"), ("kmer", "count_kmer_mems", "kmer_kernel")],
)
def test_a_second_start_compiles_nothing(workloads, on_device, tmp_path, search, kernel, stage):
    report = tmp_path / "stats.json"
    given = [*files(workloads, "LMONO"), *on_device, "--stats", str(report), "--search", search]
    given += ["--profile"] * (search == "tree")
    run(*given)
    run(*given)
    told = json.loads(report.read_text())
    settings, launched = told["settings"], told["kernels"][kernel]
    assert (settings["backend"], settings["search"]) == ("cuda", search)
    assert (settings["kernel_cache_hits"], settings["kernel_cache_misses"]) == (1, 0)
    assert launched["milliseconds"] > 0 and launched["launches"] > 0
    assert search == "kmer" or launched["node_visits"] > 0
    assert launched["resources"]["registers"] > 0 == launched["resources"]["local_bytes"]
    assert told["stages"][stage]["seconds"] > 0
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
    assert b"backend cuda" in run(*[*files(workloads, "LMONO"), "--search", "tree", "-v"]).stderr


def test_auto_leaves_the_device_alone_where_it_would_only_cost_time(workloads):
    assert b"backend cpu" in run(*files(workloads, "LMONO"), "-v").stderr


def test_the_doctor_finds_the_device():
    assert b"--backend auto takes cuda\n" in run("doctor").stdout


def mapped_rows(folder, *arguments):
    """The lines of SAM that the command writes on both, but for those that name it."""
    rows = []
    for backend in ("cpu", "cuda"):
        words = ["map", "-q", *arguments, "--backend", backend]
        command = [sys.executable, "-m", "mummergpu", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
        rows.append([line for line in done.stdout.splitlines() if not line.startswith(b"@PG")])
    assert rows[0] == rows[1]
    return rows[0]


@pytest.mark.parametrize("words", [[], ["-a"], ["--max-xa", "5"], ["-I", "320,60"]])
@pytest.mark.parametrize("reads", [["1.fq", "2.fq"], ["1.fq"]])
def test_reads_of_repeats(tmp_path, words, reads):
    write_repeats(tmp_path, 400, pairs=3000, longest=150)
    assert len(mapped_rows(tmp_path, *words, "r.fa", *reads)) > 3000 * len(reads)


def test_pairs(tmp_path):
    files = write_pairs(tmp_path, 4000, 150)
    assert len(mapped_rows(tmp_path, files.reference, files.first, files.second)) > 8000


def test_reads_of_several_lengths_and_an_index(tmp_path):
    """An index that lists all positions lets the processor look up one k-mer in a window."""
    write_repeats(tmp_path, 400, pairs=3000, longest=150)
    made = random.Random(2)
    for name in ("1.fq", "2.fq"):
        lines = (tmp_path / name).read_text().splitlines()
        for at in range(0, len(lines), 4):
            bases = made.randrange(90, 151)
            lines[at + 1], lines[at + 3] = lines[at + 1][:bases], lines[at + 3][:bases]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    index = mummergpu.Index.build(tmp_path / "r.fa", min_length=16)
    index.save(tmp_path / "r.mgi")
    assert mapped_rows(tmp_path, "r.mgi", "1.fq", "2.fq")
    files = tmp_path / "1.fq", tmp_path / "2.fq"
    expected = list(index.map(*files, backend="cpu"))
    for _ in range(2):
        assert list(index.map(*files, backend="cuda")) == expected
    index.close()


@pytest.fixture(scope="module")
def current_device(cuda_device):
    """The first device, which is current."""
    with in_turn(False):
        device = BindingsDevice(0)
    with closing(device), device.current():
        yield device


def opened(device, cache, some, thresholds):
    filters = [ProfileFilter(one, thresholds) for one in some]
    with ThreadPoolExecutor(4) as executor:
        return DeviceFilters(device, Programs(device, cache), filters, 4 << 30, Stats(), executor)


@pytest.mark.parametrize(
    "nodes", [1, 2, 16, 17, 64, 65, 99, 100, 130, 249, 250, 400, 641, 803, 1100, 1600, 2405, 3000]
)
def test_the_scores_are_those_of_the_processor(current_device, cache, nodes):
    profile = built(nodes)
    with closing(opened(current_device, cache, [profile], FilterThresholds())) as found:
        check_numbers(found, tried(profile, 400))


def test_the_scores_of_real_profiles_are_those_of_the_processor(current_device, cache):
    for profile in profiles():
        with closing(opened(current_device, cache, [profile], FilterThresholds())) as found:
            check_numbers(found, tried(profile, 400))


@pytest.mark.parametrize(
    "thresholds",
    [FilterThresholds(), FilterThresholds(F1=0.3, F2=0.1), FilterThresholds(bias_filter=False)],
    ids=repr,
)
def test_the_survivors_are_those_of_the_processor(current_device, cache, thresholds):
    some = [*profiles(), *map(built, (5, 300, 99, 100, 700, 4000))]
    every = [one for profile in some for one in sequences_like(profile, 500)]
    long = np.random.default_rng(2).integers(0, 20, 100_000).astype(np.uint8)
    order = np.random.default_rng(3).permutation(len(every))
    block = block_of([long, *(every[number] for number in order)])
    expected = [ProfileFilter(one, thresholds).survivors(block, Stats()) for one in some]
    assert sum(one.size for one in expected) > 500
    with closing(opened(current_device, cache, some, thresholds)) as found:
        for _ in range(3):
            for here, there in zip(expected, found.survivors(block), strict=True):
                assert here.tolist() == there.tolist()


@pytest.mark.parametrize("verb", ["hmmsearch", "hmmscan"])
@pytest.mark.parametrize("words", ["", "--nobias --F1 0.1 --F2 0.01"])
def test_both_backends_write_the_same(cuda_device, tmp_path, verb, words):
    def rows(*further):
        given = [verb, *map(str, write_input(tmp_path)), "--domtblout", "-", "-q"]
        command = [sys.executable, "-m", "mummergpu", *given, *words.split(), *further]
        done = subprocess.run(command, capture_output=True, check=True)
        return [line for line in done.stdout.splitlines() if not line.startswith(b"#")]

    expected = rows("-C")
    assert rows("--backend", "cuda") == expected and len(expected) > 5
