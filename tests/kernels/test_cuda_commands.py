"""Whole commands with ``--backend cuda``, on the host's device: what ``-C`` writes, always."""

import json
import random
from itertools import count as numbers_from
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from helpers.hmmer import write_input
from helpers.host_device import everything_given_back
from helpers.mapped_reads import empty_table
from helpers.played_machine import GIB, NO_DRIVER, SOUND
from helpers.read_pairs import write_pairs, write_repeats
from helpers.sequences import random_bases, write_numbered

import mummergpu
from mummergpu.cli.main import main
from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.errors import BackendError
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import Candidates
from mummergpu.mapping.options import MAX_READ_BASES
from mummergpu.mapping.seeding import candidate_search
from mummergpu.mapping.seeding.device_candidates import DeviceCandidates
from mummergpu.matching.backends import cuda_streams
from mummergpu.matching.backends import memory_plan as plan
from mummergpu.matching.kmer import cuda_consumers
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.kmer.cuda_program import TEXT_KERNELS
from mummergpu.matching.kmer.cuda_search import KmerStreamSearcher
from mummergpu.pipeline import profile_job


def check(machine, output, queries, words, search="tree"):
    """Run the command on both backends; return the statistics of ``cuda``."""
    given = ["r.fa", queries, "--search", search, *words.split()]
    report = Path("stats.json")
    ours, _ = output(*given, "--backend", "cuda", "--stats", str(report))
    told = json.loads(report.read_text())
    assert told["settings"]["backend"] == "cuda" and told["counts"]["matches"] > 20
    kernel = "match_kernel" if search == "tree" else "count_kmer_mems"
    assert told["kernels"][kernel]["launches"] > 0
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])
    others, _ = output(*given, "-C")
    assert ours == others and len(machine.devices) == 1
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
    assert ours == others and ours.count(b"\n") > 100


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
    launches, meeting = numbers_from(), Barrier(2, timeout=60)

    def meet(device, kernel):
        # The second block is not read before all parts of the first have been searched.
        if kernel == "match_kernel" and next(launches) < 2:
            meeting.wait()

    machine.at_launch(meet)
    told = check(machine, output, "long.fa", f"{words} --gpu-memory {memory} --block-size 1500")
    # Two pieces of 1,024 starts make a part; a query has some 5,500 bases, on two strands.
    parts = -(-5_490 // 2_048)
    assert told["kernels"]["match_kernel"]["launches"] == 2 * 2 * parts * told["counts"]["pages"]


def test_a_run_that_does_not_fit_the_device_gives_the_same_bytes(machine, output, monkeypatch):
    monkeypatch.setattr(plan, "SMALLEST_BLOCK", 16)
    memory = 2 * 3 * 434 * plan.WORK_BYTES_PER_BASE
    given = ["r.fa", "q.fa", "-l", "4", "-b", "--page-size", "1000", "--search", "tree"]
    ours, told = output(*given, *["--backend", "cuda", "--gpu-memory", str(memory), "-v"])
    assert ours == output(*given, "-C")[0] and "blocks of 434 bases" in told
    assert "queries do not fit the device" in told and "halving" in told
    assert "6 pages in 2 groups" in told and everything_given_back(machine.devices[0])


def test_a_failure_in_a_search_is_an_error_and_leaves_nothing(machine, capfd):
    def refuse_all(device, kernel):
        device.refuse = lambda number, size: True

    machine.at_launch(refuse_all)
    words = ["r.fa", "q.fa", "-o", "out", "-t", "2", "-l", "9", "--search", "tree"]
    assert main([*words, "--backend", "cuda"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    assert last.startswith("mummergpu: error: backend 'cuda': the matches of one query do not fit")
    assert not Path("out").exists() and everything_given_back(machine.devices[0])


def test_a_number_of_no_device_is_an_error(machine, capfd):
    def prepare(device):
        if machine.numbers[-1] == 7:
            machine.devices.pop()
            raise BackendError("cuda", "there is no device 7; the driver finds 2")

    machine.prepare = prepare
    assert main(["r.fa", "q.fa", "-o", "out", "--backend", "cuda", "--device", "7"]) == 1
    assert "there is no device 7; the driver finds 2" in capfd.readouterr().err
    assert not machine.devices


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
        *("-s", "-mum", "-mumreference", "-mum -b -s", "a device that may not"),
        *("--page-size 900", "--page-size 900 --max-memory 1"),
    ],
)
def test_what_needs_columns_gets_columns(machine, output, monkeypatch, words):
    if words == "a device that may not":
        monkeypatch.setattr(KmerCudaBackend, "may_make_text", False)
        words = "-b"
    launches = check_text(machine, output, "r.fa", "q.fa", "-l", "12", *words.split())
    assert launches["count_kmer_mems"] > 0 and launches["count_text"] == 0


def test_the_device_makes_the_text_of_an_index_that_finds_shorter_matches_too(
    machine, output, tmp_path
):
    index = str(tmp_path / "r.mgi")
    output("index", "r.fa", "-o", index, "-l", "12", "--search", "kmer")
    for length in ("12", "14"):
        assert check_text(machine, output, index, "q.fa", "-l", length, "-b")["write_text"] > 0


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
    def refuse_large(device, kernel):
        if kernel == "count_text":
            device.refuse = lambda number, size: size > 20_000

    machine.at_launch(refuse_large)
    given = ["r.fa", "q.fa", "-l", "7", "-b", "--search", "kmer"]
    ours, told = output(*given, "--backend", "cuda", "-v")
    assert "queries do not fit the device" in told and "halving" in told
    assert everything_given_back(machine.devices[0]) and ours == output(*given, "-C")[0]


CANDIDATE_KERNELS = {"list_diagonals", "score_diagonals", "mark_candidates", "write_candidates"}


def rows(text):
    """The lines of SAM but for those that name the command."""
    return [line for line in text.splitlines() if not line.startswith(b"@PG")]


def mapped(output, *given):
    """Map on both backends, which must write the same; return the lines, and the kernels."""
    expected, _ = output("map", *given, "--backend", "cpu")
    ours, _ = output("map", *given, "--backend", "cuda", "--stats", "stats.json")
    assert rows(ours) == rows(expected)
    return rows(ours), json.loads(Path("stats.json").read_text())["kernels"]


@pytest.mark.parametrize(
    "words", [[], ["--insert-size", "220,50"], ["-a"], ["--seed-length", "20"]]
)
@pytest.mark.parametrize("reads", [["1.fq", "2.fq"], ["1.fq"]])
def test_both_backends_write_the_same_from_repeats(machine, output, words, reads):
    write_repeats(Path(), 60)
    lines, kernels = mapped(output, *words, "r.fa", *reads)
    assert len(lines) > 150 * len(reads) and set(kernels) >= CANDIDATE_KERNELS
    assert everything_given_back(machine.devices[0])


def test_reads_of_several_lengths_begin_anywhere_in_a_block(machine, output):
    """An index that lists all positions lets the processor look up one k-mer in a window."""
    write_repeats(Path(), 60)
    output("index", "-l", "16", "r.fa", "-o", "r.mgi")
    assert len(mapped(output, "r.mgi", "1.fq", "2.fq")[0]) > 300


@pytest.mark.parametrize("given", [{}, {"max_secondary": 3}, {"seed_length": 30}])
def test_an_index_in_python_takes_the_candidates_of_the_device(machine, given):
    """Its rows are those of the processor, and it is searched on the device once."""
    write_repeats(Path(), 60)
    with mummergpu.Index.build("r.fa", min_length=16) as index:
        expected = index.map("1.fq", "2.fq", backend="cpu", **given)
        assert not machine.devices
        for _ in range(2):
            found = index.map("1.fq", "2.fq", backend="cuda", **given)
            assert list(found) == list(expected) and len(found) >= 300
        (device,) = machine.devices
        assert set(device.launches) >= CANDIDATE_KERNELS
        # Other searches share the device with it.
        bases = Path("r.fa").read_text().split()[1][:90]
        assert list(index.match(bases, backend="cuda", strands="both")) == list(
            index.match(bases, backend="cpu", strands="both")
        )
    assert all(map(everything_given_back, machine.devices))


def test_both_backends_write_the_same_from_pairs(machine, output):
    files = write_pairs(Path(), 240)
    for reads in ([files.first, files.second], [files.first]):
        assert len(mapped(output, files.reference, *reads)[0]) > 240 * len(reads)


@pytest.mark.parametrize("reads", [["", "ACG"], ["ACGT" * 30, "N" * 80, ""], ["TTTTTTTT"]])
def test_reads_without_matches(machine, output, reads):
    write_numbered("few.fa", "", reads)
    assert len(mapped(output, "r.fa", "few.fa")[0]) >= len(reads)


def test_long_reads_are_searched_in_pieces(machine, output, monkeypatch):
    write_repeats(Path(), 60)
    monkeypatch.setattr(KmerCudaBackend, "long_query", 80)
    # No read that is mapped is longer than a piece: the windows of a piece begin with it.
    assert MAX_READ_BASES < KmerCudaBackend.piece_bases
    monkeypatch.setattr(KmerCudaBackend, "piece_bases", 120)
    assert "score_diagonals" not in mapped(output, "r.fa", "1.fq")[1]


def test_reads_with_many_matches_are_sorted_by_a_block(machine, output):
    write_repeats(Path(), 900)
    assert mapped(output, "r.fa", "1.fq")[1]["sort_long_reads"]["launches"] > 0


def test_blocks_that_do_not_fit_are_cut(machine, output, monkeypatch):
    write_repeats(Path(), 60)
    expected, _ = output("map", "r.fa", "1.fq", "2.fq", "--backend", "cpu")
    monkeypatch.setattr("mummergpu.matching.backends.cuda_streams.MAX_ROWS", 500)
    ours, _ = output("map", "r.fa", "1.fq", "2.fq", "--backend", "cuda")
    assert rows(ours) == rows(expected)
    use_matches = KmerStreamSearcher.use_matches

    def refuse_many(*given):
        if given[2].query_count > 80:
            raise DeviceMemoryError("no room")
        return use_matches(*given)

    monkeypatch.setattr("mummergpu.matching.backends.cuda_streams.MAX_ROWS", 1 << 24)
    monkeypatch.setattr(KmerStreamSearcher, "use_matches", refuse_many)
    ours, told = output("map", "r.fa", "1.fq", "2.fq", "--backend", "cuda", "-v")
    assert rows(ours) == rows(expected) and "do not fit the device: no room" in told
    assert all(map(everything_given_back, machine.devices))


def candidates_of_both(output, monkeypatch, words, files):
    """The candidates that the device finds, and those of the processor, as tables."""
    ours = []
    theirs = []
    find_on_device, find = DeviceCandidates.find, candidate_search.CandidateFinder.find

    def keep_ours(*given):
        ours.append(find_on_device(*given))
        return ours[-1]

    def keep_theirs(*given):
        found = find(*given)
        copies = (array.copy() for array in found[0])
        theirs.append((Candidates(*copies), given[1]))
        return found

    monkeypatch.setattr(DeviceCandidates, "find", keep_ours)
    output("map", *words, *files, "--backend", "cuda")
    monkeypatch.setattr(candidate_search.CandidateFinder, "find", keep_theirs)
    output("map", *words, *files, "--backend", "cpu")
    (found,) = ours
    # Before it, the sizes of templates are measured if there are pairs and no sizes are given.
    measured = len(files) - 2 - ("-I" in words)
    reads = found.offsets.size - 1
    expected, scoring = [one for one in theirs if one[0].counts.size == reads][measured]
    table = empty_table(expected.counts.size, expected.diagonals.size)
    found.fill(scoring, table)
    return table, expected


# With the last words, pairs of the largest size that has a penalty cost less than two single reads.
@pytest.mark.parametrize("words", ["", "-a", "--match 2 --mismatch 3", "-I 180,1 -U 60"])
def test_candidates_are_those_of_the_processor(machine, output, monkeypatch, words):
    """Number by number: what is chosen might be the same without it."""
    write_repeats(Path(), 45, seed=8)
    files = ["r.fa", "1.fq", "2.fq"]
    table, expected = candidates_of_both(output, monkeypatch, words.split(), files)
    assert table.counts.sum() > 400 and np.array_equal(table.offsets, expected.offsets)
    assert np.array_equal(table.counts, expected.counts)
    assert np.array_equal(table.seeds_kept, expected.seeds_kept)
    for first, count in zip(table.offsets, table.counts, strict=False):
        rows_of_read = slice(first, first + count)
        assert np.array_equal(table.diagonals[rows_of_read], expected.diagonals[rows_of_read])
        ours_of_read = np.delete(table.numbers[rows_of_read], column.MARK, axis=1)
        theirs_of_read = np.delete(expected.numbers[rows_of_read], column.MARK, axis=1)
        assert np.array_equal(ours_of_read, theirs_of_read)


def test_a_neighbour_is_as_far_as_the_longest_gap(machine, output, monkeypatch):
    """A flank without a match near it has an edit in each 31 bases, one with a neighbour need not.

    Each read skips bases of the reference: 99, 100, which is the longest gap, and 101.
    """
    genome = random_bases(random.Random(9), 2000)
    reads = [genome[300:340] + genome[340 + gap : 380 + gap] for gap in (99, 100, 101)]
    write_numbered("far.fa", "far", [genome])
    write_numbered("gaps.fa", "", reads)
    for table in candidates_of_both(output, monkeypatch, ["-a"], ["far.fa", "gaps.fa"]):
        assert table.counts.tolist() == [2, 2, 2]
        bounds = table.numbers[:6, column.BOUND].reshape(3, 2).tolist()
        # A bonus of 5 at the end that is reached, and at the other one less a gap of one base.
        assert bounds[0] == bounds[1] == [5 + 40 + 40 + 5 - 7] * 2 and max(bounds[2]) < 83


@pytest.mark.parametrize(
    ("verb", "words", "device", "number", "library"),
    [
        ("hmmscan", "", "", 0, "pycuda"),
        ("hmmsearch", "--nobias --F1 0.1 --F2 0.01", "--device 2", 2, "pycuda"),
        ("hmmsearch", "--max -E 1e-5", "--device-library cuda-bindings", 0, "cuda-bindings"),
    ],
)
def test_both_backends_write_the_same_of_profiles(
    machine, output, tmp_path, verb, words, device, number, library
):
    profiles, proteins = write_input(tmp_path)
    given = [verb, str(profiles), str(proteins), "--domtblout", "-", "--acc", *words.split()]
    expected, _ = output(*given, "-C")
    report = tmp_path / "stats.json"
    ours, _ = output(*given, "--backend", "cuda", *device.split(), "--stats", str(report))

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
    assert (machine.libraries, machine.numbers) == ([library], [number])
    assert everything_given_back(machine.devices[0])


MODEL = """hmm m { alphabet [A, C, G, T]; startstate s; state n emits e; s -> n 1; n -> n 1;
emission e = [1/4, 1/4, 1/4, 1/4]; } main() { x = new m(); print forward(x).score; }"""


@pytest.mark.parametrize(
    ("words", "number", "library"),
    [
        ("", 0, "pycuda"),
        ("--device 1 --gpu-memory 64M", 1, "pycuda"),
        ("--device-library cuda-bindings", 0, "cuda-bindings"),
    ],
)
def test_models_are_computed_on_the_device_that_is_named(machine, output, words, number, library):
    Path("m.hmm").write_text(MODEL)
    given = ["hmm", "m.hmm", "q.fa", "--any-letter", "N=*"]
    expected, _ = output(*given)
    ours, _ = output(*given, "--backend", "cuda", "--double", *words.split())
    assert ours == expected and (machine.libraries, machine.numbers) == ([library], [number])
    assert everything_given_back(machine.devices[0])


def test_a_limit_of_memory_holds_for_profiles(machine, tmp_path, capfd):
    words = ["hmmsearch", *map(str, write_input(tmp_path)), "--backend", "cuda"]
    assert main([*words, "--gpu-memory", "64k"]) == 1
    assert "more memory of the GPU" in capfd.readouterr().err
    assert everything_given_back(machine.devices[0])


def test_a_sweep_of_profiles_uses_the_device_that_is_named(machine, output, tmp_path):
    write_input(tmp_path)
    (tmp_path / "few.faa").write_text(">a\nMKVLAAGIVG\n>b\nMLLKDAERWG\n")
    files = [str(tmp_path / name) for name in ("cut.hmm", "few.faa")]
    words = "--runs 1 --policies Vrcs32 --backend cuda --device 1 --device-library cuda-bindings"
    output("sweep", *files, *words.split(), "-o", str(tmp_path / "study"))
    assert (set(machine.libraries), set(machine.numbers)) == ({"cuda-bindings"}, {1})


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
        assert np.array_equal(found.start, expected.start) and list(found) == list(expected)


def test_without_a_driver_the_search_says_so(machine, tmp_path, capfd):
    machine.looks(NO_DRIVER)
    assert main(["hmmsearch", *map(str, write_input(tmp_path)), "--backend", "cuda"]) == 1
    assert "backend 'cuda'" in capfd.readouterr().err


def test_a_device_that_fails_ends_the_search_and_nothing_is_left(machine, tmp_path, capfd):
    def fail(device, kernel):
        if kernel == "score_paths":
            raise BackendError("cuda", "the device failed: played")

    machine.at_launch(fail)
    profiles, proteins = write_input(tmp_path)
    words = ["hmmsearch", str(profiles), str(proteins), "--tblout", str(tmp_path / "t.txt")]
    assert main([*words, "--backend", "cuda"]) == 1
    assert "the device failed: played" in capfd.readouterr().err
    assert not (tmp_path / "t.txt").exists() and everything_given_back(machine.devices[0])


@pytest.mark.parametrize("method", ["wavefront", "streaming", "auto"])
def test_both_backends_write_the_same_alignments(machine, output, method, tmp_path):
    report = tmp_path / "stats.json"
    words = ["align", "--method", method, "r.fa", "middle.fa", "--format", "paf"]
    ours, _ = output(*words, "--backend", "cuda", "--stats", str(report))
    told = json.loads(report.read_text())
    assert told["settings"]["backend"] == "cuda" and told["kernels"]["fill_round"]["launches"] > 10
    assert ("trace_rounds" in told["kernels"]) == (method != "streaming")
    assert len(machine.devices) == 1 and everything_given_back(machine.devices[0])
    others, _ = output(*words, "-C")
    assert ours == others and ours.count(b"\n") == (13 if method == "auto" else 18)


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
        assert ("trace_tile_pairs" in json.loads(report.read_text())["kernels"]) == launches
        assert everything_given_back(machine.devices[-1])


def test_without_room_on_the_device_the_processor_aligns_tiles(machine, output, monkeypatch):
    given = ["align", "r.fa", "long.fa", "--format", "paf"]
    expected, _ = output(*given, "-C")
    monkeypatch.setattr("mummergpu.mapping.genomes.device_tiles.MIN_CELLS", 0)
    monkeypatch.setattr("mummergpu.pipeline.align_genomes.PART_OF_MEMORY", 1 << 40)
    ours, told = output(*given, "--backend", "cuda", "-v")
    assert ours == expected and "no room on the GPU" in told
    assert everything_given_back(machine.devices[-1])


def test_a_matrix_that_is_too_large_for_the_device_is_refused(machine, capfd, tmp_path):
    machine.memory_bytes = GIB >> 5
    first = tmp_path / "first.fa"
    first.write_text("\n".join(Path("r.fa").read_text().split("\n")[:2]) + "\n")
    words = [str(first), "long.fa", "--backend", "cuda", "--gpu-memory", "4M"]
    assert main(["align", "-q", "--method", "wavefront", *words]) == 1
    error = capfd.readouterr().err
    assert "of the GPU's memory: use --method streaming or tile (record 'g1')" in error
    assert "long.fa: a matrix of" in error and everything_given_back(machine.devices[0])
    assert main(["align", "-q", "--method", "streaming", *words]) == 0
