"""Reads that are mapped from Python: the columns say what the command writes."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.alignment_tools import samtools
from helpers.read_pairs import write_pairs

import mummergpu
from mummergpu.cli.main import main

PAIRS = 150
GROUP = "@RG\\tID:x\\tSM:y"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mapped")
    write_pairs(made, PAIRS)
    words = ["map", "-C", "-q", *(str(made / name) for name in ("r.fa", "1.fq", "2.fq"))]
    assert main([*words, "-R", GROUP, "-o", str(made / "x.sam")]) == 0
    return made


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def index(folder: Path) -> mummergpu.Index:
    return mummergpu.Index.build(folder / "r.fa", min_length=16)


@pytest.fixture(scope="module")
def alignments(index: mummergpu.Index, folder: Path) -> mummergpu.Alignments:
    return index.map(folder / "1.fq", folder / "2.fq")


def rows_of(path: str) -> list[list[str]]:
    text = Path(path).read_text().splitlines()
    return [line.split("\t") for line in text if line[0] != "@"]


def test_columns_are_those_of_the_command(alignments: mummergpu.Alignments) -> None:
    names = [*alignments.reference_names, "*"]
    tags = {"score": "AS", "second_score": "XS", "edit_distance": "NM"}
    for row, fields in enumerate(rows_of("x.sam")):
        assert alignments.read_names[alignments.read[row]] == fields[0]
        assert alignments.flag[row] == int(fields[1])
        assert names[alignments.reference[row]].split()[0] == fields[2]
        assert alignments.position[row] + 1 == int(fields[3])
        assert alignments.mapping_quality[row] == int(fields[4])
        assert alignments.cigar(row) == fields[5]
        assert alignments.template_length[row] == int(fields[8])
        assert alignments.mate[row] == row ^ 1
        told = dict(field.split(":", 1) for field in fields[11:])
        for column, tag in tags.items():
            if not alignments.flag[row] & 4:
                assert told[tag] == f"i:{getattr(alignments, column)[row]}"
    assert len(alignments) == len(rows_of("x.sam")) == alignments.read_lengths.size == 2 * PAIRS
    mapped = int((alignments.flag & 4 == 0).sum())
    assert repr(alignments) == f"<mummergpu.Alignments: 300 rows, {mapped} of them mapped>"


def test_files_are_those_of_the_command(alignments: mummergpu.Alignments) -> None:
    alignments.write("y.sam", read_group=GROUP)
    assert rows_of("y.sam") == rows_of("x.sam")
    alignments.write("y.bam", sort=True, mark_duplicates=True)
    assert int(samtools("view", "-c", "y.bam", "two")) > 20
    with pytest.raises(mummergpu.MummergpuError, match="needs BAM or CRAM"):
        alignments.write("y.sam", sort=True)
    found = mummergpu.map("r.fa", "1.fq", "2.fq", output="z.sam", read_group=GROUP, threads=1)
    assert rows_of("z.sam") == rows_of("x.sam")
    assert (found.queries, found.mapped) == (2 * PAIRS, int((alignments.flag & 4 == 0).sum()))
    assert found.properly_paired == int((alignments.flag & 2 != 0).sum()) > PAIRS
    assert found.output_bytes == Path("z.sam").stat().st_size


def test_blocks_are_joined(
    index: mummergpu.Index, alignments: mummergpu.Alignments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mummergpu.api.engine.Engine.block_bases", lambda *_: 2000)
    found = index.map("both.fq", interleaved=True, threads=2)
    for name in ("read", "flag", "position", "cigar_offsets", "cigars", "mate", "score"):
        assert np.array_equal(getattr(found, name), getattr(alignments, name)), name
        assert getattr(found, name).dtype == getattr(alignments, name).dtype
    single = index.map(["1.fq", "2.fq"])
    assert len(single) == 2 * PAIRS and set(single.mate.tolist()) == {-1}


def test_tables_of_arrow(alignments: mummergpu.Alignments) -> None:
    pytest.importorskip("pyarrow")
    table = alignments.to_arrow()
    rows: list[dict[str, Any]] = table.slice(40, 2).to_pylist()
    assert [row["name"] for row in rows] == ["pair20", "pair20"]
    assert rows[0]["position"] == alignments.position[40]
    assert len(table) == 2 * PAIRS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reads": []}, "name at least one file"),
        ({"reads": ["1.fq"], "mates": ["2.fq", "2.fq"]}, "2 files of mates for 1"),
        ({"reads": "1.fq", "mates": "2.fq", "interleaved": True}, "have no other file"),
        ({"reads": "1.fq", "insert_size": (1, 2, 3)}, "is not a mean and a deviation"),
        ({"reads": "1.fq", "insert_size": (-1, 2)}, "are not numbers of bases"),
        ({"reads": "1.fq", "seed_length": 3}, "finds no matches of less than"),
        ({"reads": "1.fq", "backend": "gpu"}, "'gpu' is not one of"),
    ],
)
def test_wrong_arguments(index: mummergpu.Index, arguments: Any, message: str) -> None:
    with pytest.raises(mummergpu.MummergpuError, match=message):
        index.map(**arguments)


def test_no_reads_have_no_rows(index: mummergpu.Index) -> None:
    Path("empty.fq").write_text("")
    found = index.map("empty.fq")
    assert len(found) == 0 and found.cigar_offsets.tolist() == [0] and found.read_names == []


def test_examples() -> None:
    import mummergpu.api.alignments

    assert doctest.testmod(mummergpu.api.alignments).failed == 0
