"""Reads that are mapped from Python to an index of which a part is in memory at a time."""

import random
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.loops import each
from helpers.read_pairs import write_drifting_pairs
from helpers.sequences import random_bases

import mummergpu
from mummergpu.cli.main import main

PAIRS = 200
PAGES = ("--search", "kmer", "--page-size", "2k", "-l", "16")
MEMORY = {1: None, 2: 1_000_000, 5: 350_000}
"""The bytes with which the index has so many groups."""

COLUMNS = (
    *("read", "flag", "reference", "position", "mapping_quality", "cigar_offsets", "cigars"),
    *("template_length", "mate", "score", "second_score", "edit_distance"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs whose reads differ more and more from their places, and an index of small pages."""
    made = tmp_path_factory.mktemp("groups")
    write_drifting_pairs(made, PAIRS)
    assert main(["index", "-q", *PAGES, str(made / "r.fa"), "-o", str(made / "p.mgi")]) == 0
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def opened(groups):
    """The index with so many groups."""
    index = mummergpu.Index.open("p.mgi", max_memory=MEMORY[groups])
    plan = index._engine.kept_index(index.min_length).plan
    assert len(plan.groups) == groups
    return index


def rows_of(path):
    return [line for line in Path(path).read_bytes().splitlines() if line[:1] != b"@"]


@each(
    "words, arguments",
    [
        (["1.fq", "2.fq"], {}),
        (["1.fq", "2.fq", "-t", "1", "--block-size", "3000"], {"threads": 1}),
        (
            ["1.fq", "2.fq", "-I", "300,25", "-N", "2"],
            {"insert_size": (300, 25), "max_secondary": 2},
        ),
        (["1.fq", "2.fq", "--max-xa", "5"], {"max_xa": 5}),
        (["1.fq", "2.fq", "--orientation", "rf"], {"orientation": "rf"}),
        (["1.fq", "2.fq", "--max-occurrences", "2"], {"max_occurrences": 2}),
        # Of reads of which all matches are as short as the index finds, no second pass is made.
        (["1.fq", "2.fq", "-k", "16"], {"seed_length": 16}),
    ],
)
def test_rows_do_not_depend_on_the_groups(words, arguments):
    columns = []
    for groups, memory in MEMORY.items():
        limit = [] if memory is None else ["--max-memory", str(memory)]
        line = [
            *"map --backend cpu -q p.mgi".split(),
            *words,
            *limit,
            *"--read-group none -o x.sam".split(),
        ]
        assert main(line) == 0
        found = opened(groups).map("1.fq", "2.fq", backend="cpu", **arguments)
        found.write("y.sam", read_group="")
        assert rows_of("y.sam") == rows_of("x.sam")
        columns.append([getattr(found, name) for name in COLUMNS])
    for others in columns[1:]:
        for name, one, other in zip(COLUMNS, columns[0], others, strict=True):
            assert one.dtype == other.dtype and np.array_equal(one, other), name
    assert PAIRS < sum(flag & 4 == 0 for flag in columns[0][1].tolist())


def test_blocks_of_any_size_are_joined(monkeypatch):
    index = opened(5)
    expected = index.map("1.fq", "2.fq")
    monkeypatch.setattr("mummergpu.pipeline.map_reads.choose_block_size", lambda *_: 4000)
    found = index.map("1.fq", "2.fq", threads=2)
    for name in COLUMNS:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_a_reference_in_memory_is_mapped_to_in_groups(tmp_path):
    """Its pages are built anew for each pass; no page is smaller than a megabase."""
    chance = random.Random(2)
    bases = random_bases(chance, 3_000_000)
    lines = []
    for number in range(50):
        begin = chance.randrange(len(bases) - 100)
        lines.append(f">{number}_{begin}\n{bases[begin : begin + 100]}\n")
    (tmp_path / "reads.fa").write_text("".join(lines))
    index = mummergpu.Index.build([("large", bases)], 16, max_memory=6_000_000)
    assert len(index._engine.kept_index(16).plan.groups) > 1
    found = index.map(tmp_path / "reads.fa")
    begins = [int(name.split("_")[1]) for name in found.read_names]
    assert found.position.tolist() == begins and set(found.mapping_quality.tolist()) == {60}


def test_other_searches_go_on_before_and_after():
    """Also those of other threads, which wait."""
    index = opened(5)
    bases = Path("r.fa").read_text().splitlines()[1][300:400]
    expected = opened(1).match(bases, backend="cpu", strands="both")
    rows = opened(1).map("1.fq", "2.fq", backend="cpu").position
    found = []

    def search():
        matches = index.match(bases, backend="cpu", strands="both")
        found.append(
            np.array_equal(matches.reference_start, expected.reference_start)
            and np.array_equal(matches.length, expected.length)
        )

    threads = [threading.Thread(target=search) for _ in range(3)]
    search()
    for thread in threads:
        thread.start()
    assert np.array_equal(index.map("1.fq", "2.fq", backend="cpu").position, rows)
    for thread in threads:
        thread.join()
    search()
    assert found == [True] * 5


def test_a_failure_gives_the_index_back(monkeypatch):
    index = opened(2)
    with monkeypatch.context() as broken:
        broken.setattr("mummergpu.pipeline.map_reads.ReadMapping", _fail)
        with pytest.raises(mummergpu.MummergpuError, match="played"):
            index.map("1.fq", "2.fq", backend="cpu")
    assert len(index.map("1.fq", "2.fq", backend="cpu")) >= 2 * PAIRS


def _fail(*_arguments):
    raise mummergpu.MummergpuError("played")
