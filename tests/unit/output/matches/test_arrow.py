"""Arrow and Parquet files hold every match once, in groups that no block size changes."""

import io
import random
from pathlib import Path

import pytest
from helpers.sequences import random_bases, write_fasta

import mummergpu
from mummergpu.cli.main import main
from mummergpu.output.matches import arrow
from mummergpu.runtime.stats import Stats

FORMATS = ("arrow", "parquet")
MADE = random.Random(5)
BASES = random_bases(MADE, 3000)
RECORDS = [("one", BASES[:1000]), ("two", BASES[1000:]), ("thrée", BASES[500:1500])]
QUERIES = [
    *((f"q{n}", BASES[at : at + 80]) for n, at in enumerate(range(0, 2900, 25))),
    ("none", "A" * 30),
    ("q0", BASES[700:900]),
    ("x" * 500, BASES[2000:2100]),
]
COLUMNS = ["query", "reference", "query_start", "reference_start", "length", "reverse"]


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_fasta("r.fa", RECORDS)
    write_fasta("q.fa", QUERIES)


@pytest.fixture
def pyarrow():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture
def small_groups(monkeypatch):
    """Groups of few rows, so that a small file has many of them."""
    monkeypatch.setattr(arrow.RowGroups.__init__, "__defaults__", (7, arrow.NAME_BYTES))
    monkeypatch.setattr(arrow, "GROUP_ROWS", 7)


def run(words):
    return main(["r.fa", "q.fa", "-b", "-C", "-q", "-l", "20", *words.split()])


def expected_rows():
    return [tuple(row) for row in mummergpu.Index.build("r.fa").match(QUERIES, strands="both")]


def table_of(pyarrow, content, format_name):
    if format_name == "arrow":
        return pyarrow.ipc.open_file(pyarrow.py_buffer(content)).read_all()
    from pyarrow import parquet

    return parquet.read_table(io.BytesIO(content))


def rows_of(table):
    return list(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("format_name", FORMATS)
def test_groups_of_rows_do_not_depend_on_blocks_and_threads(pyarrow, format_name, monkeypatch):
    from pyarrow import parquet

    found = set()
    for number, words in enumerate(["-t 1", "-t 3 --block-size 100", "-t 2 --block-size 1"]):
        name = f"{number}.{format_name}"
        assert run(f"-o {name} {words}") == 0
        found.add(Path(name).read_bytes())
    (content,) = found
    expected, table = expected_rows(), table_of(pyarrow, content, format_name)
    assert table.column_names == COLUMNS and rows_of(table) == expected
    assert table.schema.types[2:] == [*[pyarrow.int64()] * 3, pyarrow.bool_()]
    if format_name == "parquet":
        metadata = parquet.ParquetFile(io.BytesIO(content)).metadata
        sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
        encodings = metadata.row_group(0).column(0).encodings
        assert "RLE_DICTIONARY" in encodings
    else:
        file = pyarrow.ipc.open_file(pyarrow.py_buffer(content))
        sizes = [file.get_batch(n).num_rows for n in range(file.num_record_batches)]
        # What polars refuses to read.
        assert (file.stats.num_dictionary_batches, file.stats.num_dictionary_deltas) == (1, 0)
    assert set(sizes[:-1]) == {7} and sum(sizes) == len(expected)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("format_name", FORMATS)
def test_a_block_with_too_many_matches_is_never_whole_in_memory(pyarrow, format_name):
    m = mummergpu.Index.build("r.fa").match(QUERIES, strands="both")
    reference = m._searched.reference
    pieces = []
    stats = Stats()
    sink = arrow.ArrowSink(format_name, reference, pieces.append, stats, max_rows=10)
    prepared = sink.prepare(m._block, m._mems())
    assert not isinstance(prepared, type(iter([]))), "a generator makes the columns when asked"
    before = len(pieces)
    sizes = []
    add = sink._groups.add

    def watched(batch):
        sizes.append(batch.num_rows)
        return add(batch)

    sink._groups.add = watched  # type: ignore[method-assign]
    sink.write(prepared)
    assert len(pieces) > before and max(sizes) <= 7 and sum(sizes) == len(m)
    sink.finish()
    content = b"".join(pieces)
    assert rows_of(table_of(pyarrow, content, format_name)) == expected_rows()


def test_groups_end_where_names_are_too_long(pyarrow):
    names = [MADE.choice(["", "a", "bc" * 4, "d" * 30, "é"]) for _ in range(500)]
    numbers = list(range(500))
    whole = pyarrow.record_batch({"query": pyarrow.array(names), "n": pyarrow.array(numbers)})
    cut = set()
    for size in (1, 3, 50, 500):
        groups = arrow.RowGroups(pyarrow, 20, 25)
        found = [group for at in range(0, 500, size) for group in groups.add(whole.slice(at, size))]
        last = groups.rest()
        found += [] if last is None else [last]
        assert [n for group in found for n in group["n"].to_pylist()] == numbers
        for group in found:
            held = sum(len(name.encode()) for name in group["query"].to_pylist())
            assert group.num_rows <= 20 and (held <= 25 or group.num_rows == 1)
        cut.add(tuple(group.num_rows for group in found))
    assert len(cut) == 1 and len(cut.pop()) > 25


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_run_without_matches_gives_an_empty_table(pyarrow, format_name):
    Path("q.fa").write_text(">a\nACGT\n")
    assert run(f"-o x.{format_name}") == 0
    table = table_of(pyarrow, Path(f"x.{format_name}").read_bytes(), format_name)
    assert table.num_rows == 0 and table.column_names == COLUMNS


@pytest.mark.parametrize("format_name", FORMATS)
def test_names_of_any_bytes_are_kept_apart(pyarrow, format_name):
    lines = [b">a\xff", BASES[:50].encode(), b">a\xfe", BASES[:50].encode(), b">\xc3\xa9", b"A"]
    Path("q.fa").write_bytes(b"\n".join(lines))
    Path("r.fa").write_bytes(b">r\xe9\n" + BASES.encode())
    assert run(f"-o x.{format_name}") == 0
    table = table_of(pyarrow, Path(f"x.{format_name}").read_bytes(), format_name)
    assert table["query"].to_pylist() == ["a\\xff", "a\\xfe"]
    assert set(table["reference"].to_pylist()) == {"r\\xe9"}
    m = next(mummergpu.Index.build("r.fa").stream("q.fa", strands="both"))
    assert rows_of(m.to_arrow()) == rows_of(table)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("format_name", FORMATS)
def test_polars_reads_it(pyarrow, format_name):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert run(f"-o x.{format_name}") == 0
    read = {"arrow": polars.read_ipc, "parquet": polars.read_parquet}[format_name]
    assert read(f"x.{format_name}").rows() == expected_rows()
