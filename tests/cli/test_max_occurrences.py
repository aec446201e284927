"""--max-occurrences: which matches are lost, what tells it, and what it does not go with."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from helpers.sequences import random_bases

from mummergpu.cli.main import main

RANDOM = Random(8)
FLANKS = [random_bases(RANDOM, 300) for _ in range(3)]
REFERENCE = FLANKS[0] + "AC" * 150 + FLANKS[1] + "A" * 90 + FLANKS[2]
QUERIES = [REFERENCE, "AC" * 40 + FLANKS[1], FLANKS[2][::-1], FLANKS[0][50:] + "AC" * 60, "ACGT"]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("r.fa").write_text(f">r\n{REFERENCE}\n")
    Path("q.fa").write_text("".join(f">q{n}\n{query}\n" for n, query in enumerate(QUERIES)))
    return tmp_path


def rows(words: str, reference: str = "r.fa") -> list[str]:
    line = f"{reference} q.fa -b -C -l 20 -o out --stats stats.json {words}"
    assert main(line.split()) == 0
    return Path("out").read_text().splitlines()


def told() -> dict[str, dict[str, int]]:
    report: dict[str, dict[str, int]] = json.loads(Path("stats.json").read_text())
    return report


def kept(every: list[str], kmer_length: int, most: int) -> list[str]:
    """The rows whose first k-mer occurs at most so many times."""

    def is_kept(row: str) -> bool:
        if row.startswith(">"):
            return True
        begin = int(row.split()[0]) - 1
        kmer = REFERENCE[begin : begin + kmer_length]
        return sum(REFERENCE.startswith(kmer, at) for at in range(len(REFERENCE))) <= most

    return [row for row in every if is_kept(row)]


def test_matches_that_begin_with_a_frequent_kmer_are_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    every = rows("")
    assert told()["settings"]["max_occurrences"] is None
    expected = told()["settings"]["expected_search_seconds"]
    for most in (1, 5, 100):
        found = rows(f"--max-occurrences {most}")
        settings, counts = told()["settings"], told()["counts"]
        assert settings["query_step"] == 1
        assert settings["expected_search_seconds"] > expected
        assert (settings["max_occurrences"], settings["reference_step"]) == (most, 1)
        assert found == kept(every, settings["kmer_length"], most)
        assert len(QUERIES) * 2 < len(found) < len(every)
        assert f"{counts['skipped_lookups']:,} k-mers of the queries" in capfd.readouterr().err


def test_more_than_any_kmer_occurs_loses_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    every = rows("")
    capfd.readouterr()
    assert rows("--max-occurrences 1000") == every
    assert capfd.readouterr().err == ""
    assert "skipped_lookups" not in told()["counts"]


def test_quiet_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    rows("--max-occurrences 2 -q")
    assert capfd.readouterr().err == ""
    assert told()["counts"]["skipped_lookups"] > 100


@pytest.mark.parametrize(
    "words", ["-t 1", "-t 3 --block-size 100", "--block-size 1", "--max-memory 1G", "-q"]
)
def test_the_output_depends_on_the_input_and_the_option_alone(words: str) -> None:
    expected = rows("--max-occurrences 3")
    assert rows(f"--max-occurrences 3 {words}") == expected


def test_pieces_of_long_queries_lose_the_same_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from mummergpu.matching.kmer import cpu

    expected = rows("--max-occurrences 3")
    for bases in (7, 50, 64):
        sizes = replace(cpu.SIZES, piece_bases=bases, long_query=2 * bases, part_bases=3 * bases)
        monkeypatch.setattr(cpu, "SIZES", sizes)
        assert rows("--max-occurrences 3") == expected


def test_an_index_file_says_which_kmers_are_counted() -> None:
    every = rows("")
    assert main(["index", "r.fa", "-o", "r.mgi", "-q", "-l", "20"]) == 0
    assert rows("", "r.mgi") == every
    assert rows("--max-occurrences 1000", "r.mgi") == every
    found = rows("--max-occurrences 2", "r.mgi")
    assert set(found) < set(every)
    assert told()["settings"]["query_step"] == 1
    assert rows("--max-occurrences 2 -t 2 --block-size 50", "r.mgi") == found


def test_pages_are_counted_one_by_one() -> None:
    """A page size is the user's choice; without one, there is one page."""
    every = rows("")
    found = rows("--max-occurrences 30 --page-size 400")
    assert told()["settings"]["search"] == "kmer"
    assert set(rows("--max-occurrences 30")) <= set(found) <= set(every)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--search tree", "--max-occurrences and --search tree exclude each other"),
        ("--policy rt", "--max-occurrences and --policy exclude each other"),
        ("-mum", "--max-occurrences and -mum exclude each other"),
        ("-mumreference", "--max-occurrences and -mumreference exclude each other"),
        ("--max-occurrences 0", "'0' is not a positive integer"),
        ("--max-occurrences 4x", "'4x' is not a positive integer"),
    ],
)
def test_what_it_does_not_go_with(
    words: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(f"r.fa q.fa --max-occurrences 5 {words}".split()) == 2
    assert message in capfd.readouterr().err


def test_an_index_of_trees_counts_no_kmers(capfd: pytest.CaptureFixture[str]) -> None:
    assert main("index r.fa -o r.mgi -q --search tree".split()) == 0
    assert main("r.mgi q.fa --max-occurrences 5".split()) == 2
    assert "--max-occurrences: the index 'r.mgi' has trees, not k-mers" in capfd.readouterr().err
