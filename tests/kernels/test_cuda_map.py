"""``map`` with ``--backend cuda``, on the host's device: what ``-C`` writes.

The kernels find the candidates of reads, and keep those that may matter.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.host_device import everything_given_back
from helpers.read_pairs import write_pairs, write_repeats

import mummergpu
from mummergpu.cuda.device import DeviceMemoryError
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import NUMBERS, RESCUE_ROWS, Candidates
from mummergpu.mapping.options import MAX_READ_BASES
from mummergpu.mapping.seeding import candidate_search
from mummergpu.mapping.seeding.device_candidates import DeviceCandidates
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.kmer.cuda_search import KmerStreamSearcher
from mummergpu.viterbi.recurrence.model import Costs

KERNELS = {"list_diagonals", "score_diagonals", "mark_candidates", "write_candidates"}


def rows(text):
    """The lines of SAM but for those that name the command."""
    return [line for line in text.splitlines() if not line.startswith(b"@PG")]


@pytest.mark.parametrize(
    "words", [[], ["--insert-size", "220,50"], ["-a"], ["--seed-length", "20"]]
)
@pytest.mark.parametrize("reads", [["1.fq", "2.fq"], ["1.fq"]])
def test_both_backends_write_the_same_from_repeats(machine, output, tmp_path, words, reads):
    write_repeats(Path(), 60)
    report = tmp_path / "stats.json"
    given = ["map", *words, "r.fa", *reads]
    expected, _ = output(*given, "--backend", "cpu")
    ours, _ = output(*given, "--backend", "cuda", "--stats", str(report))
    assert rows(ours) == rows(expected) and len(rows(ours)) > 150 * len(reads)
    assert set(json.loads(report.read_text())["kernels"]) >= KERNELS
    assert everything_given_back(machine.devices[0])


def test_reads_of_several_lengths_begin_anywhere_in_a_block(machine, output):
    """An index that lists all positions lets the processor look up one k-mer in a window."""
    write_repeats(Path(), 60)
    output("index", "-l", "16", "r.fa", "-o", "r.mgi")
    expected, _ = output("map", "r.mgi", "1.fq", "2.fq", "--backend", "cpu")
    ours, _ = output("map", "r.mgi", "1.fq", "2.fq", "--backend", "cuda")
    assert rows(ours) == rows(expected) and len(rows(ours)) > 300


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
        assert set(device.launches) >= KERNELS
        # Other searches share the device with it.
        bases = Path("r.fa").read_text().split()[1][:90]
        assert list(index.match(bases, backend="cuda", strands="both")) == list(
            index.match(bases, backend="cpu", strands="both")
        )
    assert all(map(everything_given_back, machine.devices))


def test_both_backends_write_the_same_from_pairs(machine, output):
    files = write_pairs(Path(), 240)
    for words in ([files.first, files.second], [files.first]):
        expected, _ = output("map", files.reference, *words, "--backend", "cpu")
        ours, _ = output("map", files.reference, *words, "--backend", "cuda")
        assert rows(ours) == rows(expected) and len(rows(ours)) > 240 * len(words)


@pytest.mark.parametrize("reads", [["", "ACG"], ["ACGT" * 30, "N" * 80, ""], ["TTTTTTTT"]])
def test_reads_without_matches(machine, output, reads):
    Path("few.fa").write_text("".join(f">{n}\n{bases}\n" for n, bases in enumerate(reads)))
    expected, _ = output("map", "r.fa", "few.fa", "--backend", "cpu")
    ours, _ = output("map", "r.fa", "few.fa", "--backend", "cuda")
    assert rows(ours) == rows(expected) and len(rows(ours)) >= len(reads)


def test_long_reads_are_searched_in_pieces(machine, output, tmp_path, monkeypatch):
    write_repeats(Path(), 60)
    monkeypatch.setattr("mummergpu.matching.kmer.cuda.KmerCudaBackend.long_query", 80)
    # No read that is mapped is longer than a piece: the windows of a piece begin with it.
    assert MAX_READ_BASES < KmerCudaBackend.piece_bases
    monkeypatch.setattr("mummergpu.matching.kmer.cuda.KmerCudaBackend.piece_bases", 120)
    report = tmp_path / "stats.json"
    expected, _ = output("map", "r.fa", "1.fq", "--backend", "cpu")
    ours, _ = output("map", "r.fa", "1.fq", "--backend", "cuda", "--stats", str(report))
    assert rows(ours) == rows(expected)
    assert "score_diagonals" not in json.loads(report.read_text())["kernels"]


def test_reads_with_many_matches_are_sorted_by_a_block(machine, output, tmp_path):
    write_repeats(Path(), 900)
    report = tmp_path / "stats.json"
    expected, _ = output("map", "r.fa", "1.fq", "--backend", "cpu")
    ours, _ = output("map", "r.fa", "1.fq", "--backend", "cuda", "--stats", str(report))
    assert rows(ours) == rows(expected)
    assert json.loads(report.read_text())["kernels"]["sort_long_reads"]["launches"] > 0


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


@pytest.mark.parametrize("words", [[], ["-a"], ["--match", "2", "--mismatch", "3"]])
def test_candidates_are_those_of_the_processor(machine, output, monkeypatch, words):
    """Number by number: what is chosen might be the same without it."""
    write_repeats(Path(), 45, seed=8)
    ours = []
    theirs = []
    find_on_device, find = DeviceCandidates.find, candidate_search.CandidateFinder.find

    def keep_ours(*given):
        ours.append(find_on_device(*given))  # type: ignore[arg-type]
        return ours[-1]

    def keep_theirs(*given):
        found = find(*given)  # type: ignore[arg-type]
        copies = (array.copy() for array in found)
        theirs.append(Candidates(*copies))
        return found

    monkeypatch.setattr(DeviceCandidates, "find", keep_ours)
    output("map", *words, "r.fa", "1.fq", "2.fq", "--backend", "cuda")
    monkeypatch.setattr(candidate_search.CandidateFinder, "find", keep_theirs)
    output("map", *words, "r.fa", "1.fq", "2.fq", "--backend", "cpu")
    (found,) = ours
    # Before it, the sizes of templates are measured.
    expected = [one for one in theirs if one.counts.size == found.offsets.size - 1][1]
    size = expected.diagonals.size
    table = Candidates(
        np.zeros_like(expected.offsets),
        np.zeros_like(expected.counts),
        np.zeros(size, dtype=np.int64),
        np.zeros((size, NUMBERS), dtype=np.int32),
        np.zeros_like(expected.seeds_kept),
    )
    match = int(words[1]) if "--match" in words else 1
    found.fill(RESCUE_ROWS, Costs(match, *[0] * 8), table)
    assert found.rows.size > 400
    assert np.array_equal(table.offsets, expected.offsets)
    assert np.array_equal(table.counts, expected.counts)
    assert np.array_equal(table.seeds_kept, expected.seeds_kept)
    for first, count in zip(table.offsets, table.counts, strict=False):
        rows_of_read = slice(first, first + count)
        assert np.array_equal(table.diagonals[rows_of_read], expected.diagonals[rows_of_read])
        ours_of_read = np.delete(table.numbers[rows_of_read], column.MARK, axis=1)
        theirs_of_read = np.delete(expected.numbers[rows_of_read], column.MARK, axis=1)
        assert np.array_equal(ours_of_read, theirs_of_read)
