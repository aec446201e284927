"""Genomes that are aligned from Python: the columns say what the command writes."""

import random
from pathlib import Path

import numpy as np
import pytest
from helpers.genomes import changed
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta

import mummergpu
from mummergpu.cli.main import main
from mummergpu.errors import InputError

ROW_NAMES = list(mummergpu.GenomeAlignment._fields)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A reference of two records; contigs of it, changed, some reversed, one repeated, one not."""
    made = tmp_path_factory.mktemp("aligned")
    chance = random.Random(8)
    first, second = (random_bases(chance, size) for size in (6000, 3000))
    second += first[1000:2000]
    contigs = {
        "all": changed(first, chance, 0.004, 0.003),
        "turned": reverse_complement(changed(second, chance, 0.004, 0.003)),
        "none": random_bases(chance, 500),
        "joined": changed(first[3000:4500], chance, 0.004, 0.003)
        + changed(second[500:1500], chance, 0.004, 0.003),
    }
    write_fasta(made / "r.fa", {"one first": first, "two": second})
    write_fasta(made / "q.fa", contigs)
    write_fasta(made / "none.fa", {"none": contigs["none"]})
    words = ["align", "-C", "-q", "-maxmatch", f"{made}/r.fa", f"{made}/q.fa"]
    assert main([*words, "-o", f"{made}/x.delta", "-o", f"{made}/x.paf"]) == 0
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def index(folder):
    return mummergpu.Index.build(folder / "r.fa")


@pytest.fixture(scope="module")
def found(index, folder):
    return index.align(folder / "q.fa", mode="all")


def rows_of(path):
    return [line.split("\t") for line in Path(path).read_text().splitlines()]


def test_rows_and_columns_are_those_of_the_command(found):
    rows = rows_of("x.paf")
    assert len(found) == len(rows) > 5
    assert set(found.reverse.tolist()) == {False, True}
    of_columns = [name for name in ROW_NAMES if name not in ("query", "reference", "cigar")]
    for number, (row, fields) in enumerate(zip(found, rows, strict=True)):
        assert row == found[number] == found[number - len(found)]
        query, record = found.query[number], found.reference[number]
        assert row.query == found.query_names[query]
        assert row.reference == found.reference_names[record]
        for name in of_columns:
            assert getattr(row, name) == getattr(found, name)[number]
        assert fields[:10] == [
            *(row.query, str(found.query_lengths[query]), str(row.query_start)),
            *(str(row.query_end), "+-"[row.reverse]),
            *(row.reference, str(found.reference_lengths[record]), str(row.reference_start)),
            *(str(row.reference_end), fields[9]),
        ]
        assert row.identity == int(fields[9]) / int(fields[10])
        tags = {field[:2]: field[5:] for field in fields[12:]}
        assert [str(row.errors), str(row.score), row.cigar] == [tags[n] for n in ("NM", "AS", "cg")]
        packed = found.cigars[found.cigar_offsets[number] : found.cigar_offsets[number + 1]]
        text = "".join(f"{one >> 4}{'MID'[one & 15]}" for one in packed.tolist())
        assert text == row.cigar == found.cigar(number)
    assert found.cigar_offsets[-1] == found.cigars.size


def test_a_selection_is_written_alone(found):
    kept = found[found.reverse]
    kept.write("kept.paf")
    assert rows_of("kept.paf") == [row for row in rows_of("x.paf") if row[4] == "-"]
    assert kept.query_names == found.query_names
    assert list(found[1:4]) == list(found)[1:4]
    assert list(found[::2]) == list(found)[::2]
    for wrong in (slice(None, None, -1), "a", np.ones(1, dtype=np.bool_)):
        with pytest.raises(IndexError):
            found[wrong]  # type: ignore[index]
    with pytest.raises(IndexError):
        found[len(found)]


def test_one_to_one_is_that_of_the_command(found):
    kept = found.one_to_one()
    assert 0 < len(kept) < len(found)
    kept.write("kept.delta")
    mummergpu.align("r.fa", "q.fa", "one.delta", mode="all", one_to_one=True)
    assert Path("kept.delta").read_bytes() == Path("one.delta").read_bytes()


def test_the_first_arguments_need_no_names(index):
    named = {"min_length": 30, "strands": "reverse", "mode": "mum", "backend": "cpu", "threads": 1}
    expected = list(index.align(Path("q.fa"), **named))
    assert list(index.align(Path("q.fa"), *named.values())) == expected != []
    stats = mummergpu.align("r.fa", "q.fa", "run.paf", *named.values())
    assert len(rows_of("run.paf")) == stats.alignments == len(expected)
    assert stats.queries == Path("q.fa").read_text().count(">")


@pytest.fixture
def short():
    """Three sequences: parts of both records, one of them reversed, and one that is like none."""
    chance = random.Random(4)
    records = read_fasta("r.fa")
    named = [
        ("part", changed(records["one"][300:900], chance, 0.004, 0.003)),
        ("turned", reverse_complement(changed(records["two"][100:600], chance, 0.004, 0.003))),
        ("none", random_bases(chance, 90)),
    ]
    write_fasta("short.fa", named)
    return named


def test_tiles_are_the_usual_method(index, short):
    for method in ("wavefront", "streaming", "tile"):
        assert len(index.align([], method=method)) == 0
    tiles = index.align(short, backend="cpu", gap_open=9, method="tile")
    assert list(tiles) == list(index.align(short, backend="cpu", gap_open=9))
    assert len(tiles) < 6


ABOUT_MATCHES = {"min_length": 30, "mode": "mum", "min_cluster": 9, "max_gap": 9, "extend": False}
ABOUT_MATCHES |= {"diagonal_difference": 9, "diagonal_factor": 0.5, "break_length": 9}


@pytest.mark.parametrize("name", ABOUT_MATCHES)
def test_methods_without_matches_refuse_what_is_about_them(index, name):
    option = {name: ABOUT_MATCHES[name]}
    with pytest.raises(mummergpu.MummergpuError, match=f"{name}.* is about matches"):
        index.align(Path("q.fa"), method="streaming", **option)
    with pytest.raises(mummergpu.MummergpuError, match=f"{name}.* is about matches"):
        mummergpu.align("r.fa", "q.fa", "wrong.paf", method="wavefront", **option)
    assert not Path("wrong.paf").exists()
    assert len(index.align(Path("q.fa"), **option)) > 0


def test_auto_is_the_wave_front_for_alike_sequences_and_tiles_for_others(short):
    name, text = short[0]
    chance = random.Random(3)
    one = mummergpu.Index.build([(name, changed(text, chance, 0.15, 0.01))], min_length=11)
    both = [short[0], ("long", 3 * text)]
    for file in (False, True):
        if file:
            write_fasta("both.fa", both)
        queries = Path("both.fa") if file else both
        found = list(one.align(queries, backend="cpu", method="auto"))
        tiles = list(one.align(both, backend="cpu"))
        whole = list(one.align([short[0]], backend="cpu", method="wavefront"))
        assert found == whole + [row for row in tiles if row.query == "long"]
        assert len(whole) == 1 and whole[0] not in tiles and len(found) > 1


def test_a_matrix_that_is_too_large_names_the_query(index, short, monkeypatch):
    monkeypatch.setattr("mummergpu.pipeline.matrix_opening.free_memory", lambda: 1000)
    for queries, path in ((short, "<memory>"), (Path("short.fa"), "short.fa")):
        with pytest.raises(InputError, match="GiB of memory: use") as raised:
            index.align(queries, backend="cpu", method="wavefront")
        assert (raised.value.path, raised.value.record) == (path, "part")
    assert len(index.align(short, backend="cpu", method="streaming")) == 6
    name = "mummergpu.pipeline.matrix_opening.free_temporary_bytes"
    monkeypatch.setattr(name, lambda: 1000)
    with pytest.raises(InputError, match=r"GiB in '/.*': use --method tile, or another TMPDIR"):
        index.align(short, backend="cpu", method="streaming")
    closed = mummergpu.Index.build(short)
    closed.close()
    with pytest.raises(mummergpu.MummergpuError, match="the index is closed"):
        closed.align(short, method="streaming")


def test_repeats_of_a_genome_are_found_in_itself():
    chance = random.Random(2)
    repeat = random_bases(chance, 300)
    parts = [random_bases(chance, size) for size in (900, 700, 800)]
    itself = [("itself", parts[0] + repeat + parts[1] + repeat + parts[2])]
    index = mummergpu.Index.build(itself)
    (whole,) = index.align(itself, mode="all")
    assert (whole.query_start, whole.query_end) == (0, 3000)
    found = index.align(itself, mode="all", simplify=False)
    places = sorted((row.query_start, row.reference_start, row.cigar) for row in found)
    assert places == [(0, 0, "3000M"), (900, 1900, "300M"), (1900, 900, "300M")]


def test_blocks_are_joined(index, found, monkeypatch):
    monkeypatch.setattr("mummergpu.api.engine.Engine.block_bases", lambda *_: 1000)
    named = list(read_fasta("q.fa").items())
    for queries in (named, [Path("q.fa")]):
        again = index.align(queries, mode="all", threads=2)
        assert list(again) == list(found)
        assert again.query_names == found.query_names
        for name in ("query", "reference", "cigar_offsets", "cigars", "identity", "score"):
            assert getattr(again, name).dtype == getattr(found, name).dtype
            assert np.array_equal(getattr(again, name), getattr(found, name)), name
        again.one_to_one().write("again.paf")
        found.one_to_one().write("first.paf")
        assert rows_of("again.paf") == rows_of("first.paf")
    index.align(named, mode="all").write("memory.delta")
    assert Path("memory.delta").read_text().splitlines()[0].endswith("<memory>")
    lines = [Path(name).read_text().splitlines()[1:] for name in ("memory.delta", "x.delta")]
    assert lines[0] == lines[1]


def test_several_files_have_no_delta(index):
    twice = index.align([Path("q.fa"), Path("q.fa")])
    assert len(twice) == 2 * len(index.align(Path("q.fa")))
    twice.write("twice.paf")
    with pytest.raises(mummergpu.MummergpuError, match="of one file of queries"):
        twice.write("twice.delta")
    assert not Path("twice.delta").exists()


def test_what_a_delta_has_no_room_for(index, tmp_path, monkeypatch):
    bases = read_fasta("r.fa")["one"]
    named = index.align(bases)
    named.write("named.delta")
    of_nameless = mummergpu.Index.build([("", bases)])
    for aligned in (index.align([("", bases)]), of_nameless.align(bases)):
        assert len(aligned) == 1
        aligned.write("nameless.paf")
        with pytest.raises(mummergpu.MummergpuError, match="delta needs names"):
            aligned.write("nameless.delta")
    (tmp_path / "a blank").mkdir()
    monkeypatch.chdir(tmp_path / "a blank")
    named.write("x.delta")
    assert Path("x.delta").read_text().splitlines()[0].endswith(" <memory>")
    Path("a query.fa").write_text(f">a\n{bases}\n")
    with pytest.raises(mummergpu.MummergpuError, match="a blank in its path"):
        index.align(Path("a query.fa")).write("y.delta")
    assert not Path("y.delta").exists()


def test_tables(found):
    pytest.importorskip("pyarrow")
    rows = found.to_arrow().to_pylist()
    assert [tuple(row[name] for name in ROW_NAMES) for row in rows] == list(found)
    pytest.importorskip("pandas")
    frame = found.to_pandas()[ROW_NAMES]
    assert [tuple(row) for row in frame.itertuples(index=False)] == list(found)
    pytest.importorskip("polars")
    assert found.to_polars()[ROW_NAMES].rows() == list(found)


def test_nothing_to_align(index):
    for queries in ([], [("empty", "")], "ACGT" * 3):
        nothing = index.align(queries)
        assert len(nothing) == len(nothing.one_to_one()) == len(nothing[:]) == 0
        assert nothing.cigar_offsets.tolist() == [0]
        nothing.write("nothing.paf")
        assert Path("nothing.paf").read_bytes() == b""
    assert repr(nothing) == "0 alignments of 1 query"
    mummergpu.align("r.fa", "none.fa", "nothing.paf", one_to_one=True)
    assert Path("nothing.paf").read_bytes() == b""
