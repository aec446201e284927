"""An index from Python finds what the command finds, from memory and from files."""

import doctest
import gc
import multiprocessing
import pickle
import random
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from helpers.children import child, printed_by
from helpers.sequences import random_bases, reverse_complement, write_fasta

import mummergpu
import mummergpu.api.tables
from mummergpu.errors import OptionError

ROOT = Path(mummergpu.__file__).parents[1]
MADE = random.Random(11)
BASES = random_bases(MADE, 4000)
RECORDS = [("one", BASES[:1500]), ("empty", ""), ("two words", BASES[1500:] + "NN" + BASES[:400])]


READ = BASES[5:65]


def made_queries():
    found = [("none", ""), ("short", "ACG")]
    for number in range(60):
        begin = MADE.randrange(3900)
        read = BASES[begin : begin + MADE.randrange(30, 200)]
        if number % 3 == 0:
            read = reverse_complement(read)
        if number % 4 == 0:
            read = read[:20] + "A" + read[21:]
        found.append((f"q{number}", read))
    return found


QUERIES = made_queries()


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_fasta("r.fa", (record for record in RECORDS if record[1]))
    write_fasta("q.fa", QUERIES)


@pytest.fixture(scope="module")
def index():
    return mummergpu.Index.build(RECORDS, min_length=12)


def columns_of(m):
    columns = (m.query, m.reference, m.query_start, m.reference_start, m.length, m.reverse)
    return [column.tolist() for column in columns]


def found_by(index, **told):
    """The columns of all queries on both strands."""
    return columns_of(index.match(QUERIES, strands="both", **told))


def test_every_match_is_one_and_none_can_be_longer(index):
    m = index.match(QUERIES, strands="both")
    assert len(m) > 60 and m.reverse.any() and not m.reverse.all()
    references = dict(RECORDS)
    for row in m:
        query = dict(QUERIES)[row.query]
        piece = query[row.query_start : row.query_start + row.length]
        if row.reverse:
            piece = reverse_complement(piece)
        record = references["two words" if row.reference == "two" else row.reference]
        assert record[row.reference_start : row.reference_start + row.length] == piece
    assert m.query_names == [name for name, _ in QUERIES]
    assert m.query_lengths.tolist() == [len(bases) for _, bases in QUERIES]
    assert m.reference_names == ["one", "empty", "two"]
    assert m.reference_lengths.tolist() == [len(bases) for _, bases in RECORDS]
    assert m.offsets.size == len(QUERIES) + 1 and m.offsets[-1] == len(m)
    assert (np.diff(m.offsets) == np.bincount(m.query, minlength=len(QUERIES))).all()


def test_a_query_without_a_match_is_counted_wherever_it_is(index):
    matching = RECORDS[0][1][500:540]
    for bases, counts in ((["TTTT", matching, "TTTT"], [0, 1, 0]), ([matching, "A"], [1, 0])):
        m = index.match([(f"q{number}", one) for number, one in enumerate(bases)])
        assert np.diff(m.offsets).tolist() == counts


def test_one_index_serves_every_longer_length_and_refuses_shorter_ones(index):
    every = index.match(QUERIES, strands="both")
    for length in (12, 13, 40, 100):
        kept = every[every.length >= length]
        assert found_by(index, min_length=length) == columns_of(kept)
    with pytest.raises(mummergpu.MummergpuError, match="min_length: this index finds"):
        index.match(QUERIES, min_length=3, strands="both")


def test_an_index_comes_back_from_its_file(index):
    index.save("r.mgi")
    with mummergpu.Index.open("r.mgi") as opened:
        opened.verify()
        assert (opened.names, opened.min_length) == (["one", "empty", "two"], 12)
        assert opened.lengths.tolist() == index.lengths.tolist()
        assert found_by(opened) == found_by(index)
        Path("r2.fa").write_text(Path("r.fa").read_text().replace("A", "C", 1))
        with pytest.raises(mummergpu.MummergpuError, match="the index is not of"):
            opened.verify("r2.fa")
        with pytest.raises(mummergpu.MummergpuError, match="save: the index is in the file"):
            opened.save("other.mgi")
    with pytest.raises(mummergpu.MummergpuError, match="the index is closed"):
        opened.match("ACGT", strands="both")


def test_too_little_memory_for_all_tables_changes_no_match(index):
    small = mummergpu.Index.build(RECORDS, min_length=12, max_memory=1)
    assert found_by(small) == found_by(index)


def test_many_threads_search_one_index(index):
    expected = [found_by(index), found_by(index, min_length=30)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: found_by(index, min_length=12 + n % 2 * 18), range(40)))
    assert found == expected * 20


def test_a_forked_process_goes_on(index):
    expected = found_by(index)
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: theirs.send(found_by(index)))
    child.start()
    assert ours.poll(60) and ours.recv() == expected
    child.join()
    assert child.exitcode == 0


def test_a_stream_that_is_broken_off_ends_its_threads(index):
    Path("many.fa").write_text(Path("q.fa").read_text() * 200)
    before = set(threading.enumerate())
    for m in index.stream("many.fa", threads=3, strands="both"):
        assert len(m) > 0
        break
    del m
    gc.collect()
    assert set(threading.enumerate()) <= before


def test_a_compressed_file_leaves_no_thread(index):
    before = set(threading.enumerate())
    index.match(QUERIES).write("x.tsv.gz")
    assert set(threading.enumerate()) <= before


def test_a_stream_always_comes_in_the_same_parts(index):
    Path("many.fa").write_text(Path("q.fa").read_text() * 300)
    parts = {
        tuple(len(m.query_names) for m in index.stream("many.fa", strands="both")) for _ in range(4)
    }
    assert len(parts) == 1 and len(parts.pop()) > 1


def test_searches_of_one_index_share_what_they_know_of_its_records(index, monkeypatch):
    first = index.match(QUERIES, strands="both")
    monkeypatch.setattr(mummergpu.api.tables, "record_lookup", pytest.fail)
    second = index.match(QUERIES, strands="both")
    assert list(first) == list(second)
    second.reference_names.clear()
    assert second[0] == first[0] and index.names == first.reference_names == ["one", "empty", "two"]


def test_matches_are_a_sequence(index):
    m = index.match(QUERIES, strands="both")
    assert list(m)[3] == m[3] == m[3 - len(m)]
    assert list(m[2:9:3]) == [m[2], m[5], m[8]]
    assert list(m[m.reverse]) == [row for row in m if row.reverse]
    assert repr(m).startswith(f"{len(m)} matches of {len(QUERIES)} queries\n  q")
    assert repr(m).endswith("\n  ...")
    for wrong in ("x", [1, 2], m.reverse[1:]):
        with pytest.raises(IndexError):
            m[wrong]  # type: ignore[index]
    with pytest.raises(IndexError):
        m[len(m)]
    none = index.match([], strands="both")
    assert len(none) == 0 and none.query_names == [] and none.offsets.tolist() == [0]


def test_tables(index):
    m = index.match([*QUERIES, QUERIES[5]], strands="both")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    rows = [tuple(row) for row in m]
    assert [tuple(row.values()) for row in m.to_arrow().to_pylist()] == rows
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert [tuple(row) for row in m.to_pandas().itertuples(index=False)] == rows
    pytest.importorskip("polars", reason="polars is not installed")
    assert m.to_polars().rows() == rows


def test_numbers_and_paths_of_other_libraries_are_taken(index):
    expected = list(index.match(QUERIES, min_length=14, threads=1))
    numbers = {"min_length": np.uint16(14), "threads": np.int32(1)}
    assert list(index.match(QUERIES, any_letters=np.bool_(False), **numbers)) == expected
    with_qualities = [(name, bases.encode(), "F" * len(bases)) for name, bases in QUERIES]
    assert list(index.match(with_qualities, min_length=14)) == expected
    for path in ("q.fa", b"q.fa", Path("q.fa")):
        (block,) = index.stream(path, min_length=14)  # type: ignore[arg-type]
        assert list(block) == expected


def test_files_that_are_wrong_are_errors_with_their_line(index):
    Path("bad.fa").write_text(">a\nACGT\n!\n")
    with pytest.raises(mummergpu.MummergpuError, match=r"bad\.fa:3: '!'"):
        list(index.stream("bad.fa", strands="both"))
    with pytest.raises(mummergpu.MummergpuError, match=r"no\.fa: no such file"):
        mummergpu.Index.build("no.fa")
    with pytest.raises(mummergpu.MummergpuError, match="paths: name at least one file"):
        index.stream()
    index.save("r.mgi")
    with pytest.raises(mummergpu.MummergpuError, match=r"use Index\.open"):
        mummergpu.Index.build("r.mgi")


EXAMPLES = """
mummergpu mummergpu.api.index mummergpu.api.matches mummergpu.api.alignments
mummergpu.api.aligned_genomes mummergpu.api.hidden_markov_model mummergpu.sequence.codes
mummergpu.mapping.options mummergpu.output.options
"""


@pytest.mark.parametrize("module", EXAMPLES.split())
def test_examples_do_what_they_say(module):
    done = doctest.testmod(import_module(module))
    assert done.failed == 0 and done.attempted > 0


def test_all_lists_the_public_names():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mummergpu.nothing  # noqa: B018
    places = {*mummergpu._PLACES, *mummergpu._MODULES, "__version__"}
    assert sorted(mummergpu.__all__) == mummergpu.__all__ and set(mummergpu.__all__) == places
    program = """
    import sys
    import mummergpu
    assert not {"numba", "numpy"} & set(sys.modules)
    assert set(mummergpu.__all__) <= set(dir(mummergpu))
    from mummergpu import *
    assert Index is mummergpu.Index and plot is mummergpu.plot and map is mummergpu.map
    assert "numba" not in sys.modules
    """
    printed_by("-c", textwrap.dedent(program), cwd=ROOT)


def test_long_compiling_is_told_once(tmp_path):
    """Python prints a warning where nobody has set up a log; a warm cache needs none."""
    program = """
    import numpy as np
    from mummergpu.api import log
    from mummergpu.output.sorting.row_tables import radix_order
    log.SILENT_SECONDS = 0.0
    log.context_of(1)
    radix_order(np.arange(9, dtype=np.uint64), 4)
    """
    more = {"env": {"MUMMERGPU_CACHE_DIR": str(tmp_path)}, "cwd": ROOT, "check": True}
    told = [child("-c", textwrap.dedent(program), **more).stderr for _ in range(2)]
    line = "mummergpu compiles for this processor, once, for a minute or two; kept in"
    assert told == [f"{line} '{tmp_path / 'processor'}'\n", ""]


class Seq:
    """A sequence as Biopython has it."""

    def __init__(self, bases):
        self._bases = bases

    def __bytes__(self):
        return self._bases.encode()

    def __iter__(self):
        return iter(self._bases)

    def __len__(self):
        return len(self._bases)


class SeqRecord:
    """A record as Biopython has it."""

    def __init__(self, name, bases):
        self.id, self.seq, self.description = name, Seq(bases), name
        self.letter_annotations = {"phred_quality": [30] * len(bases)}

    def __iter__(self):
        return iter(self.seq)


def records():
    """The record r of other libraries."""
    pysam = pytest.importorskip("pysam")
    pyhmmer = pytest.importorskip("pyhmmer.easel")
    turned = pysam.AlignedSegment()
    turned.query_name, turned.flag = "r", 16
    turned.query_sequence = reverse_complement(READ)
    text = pyhmmer.TextSequence(name="r", sequence=READ)
    return {
        "row": ("r", READ),
        "Seq": ("r", Seq(READ)),
        "SeqRecord": SeqRecord("r", READ),
        "FastxRecord": pysam.FastxRecord(name="r", sequence=READ, quality="I" * len(READ)),
        "AlignedSegment": turned,
        "TextSequence": text,
        "DigitalSequence": text.digitize(pyhmmer.Alphabet.dna()),
    }


def test_records_of_other_libraries_are_queries_reads_and_references(index):
    given = records()
    queries, reads = index.match([given["row"]]), index.map([given["row"]])
    for name, record in given.items():
        assert list(index.match([record])) == list(queries) and queries.query_names == ["r"], name
        assert list(index.map([record])) == list(reads), name
        other = mummergpu.Index.build([record], min_length=12)
        assert other.names == ["r"] and other.lengths.tolist() == [len(READ)]
        if name not in ("row", "Seq"):
            assert list(index.match(record)) == list(queries), name
            assert list(index.map(record)) == list(reads), name
            mates = index.map([(record, record)])
            assert list(mates.flag & 1) == [1, 1], name
    index.map([given["FastxRecord"]]).write("q.sam")
    assert Path("q.sam").read_text().splitlines()[-1].split("\t")[10] == "I" * len(READ)


def test_a_text_is_a_query_and_a_read(index):
    assert list(index.match(Seq(READ))) == list(index.match(READ))
    expected = list(index.map([("read", READ)]))
    assert list(index.map(READ)) == list(index.map(Seq(READ))) == expected
    (found,) = index.stream_map(READ)
    assert list(found) == expected
    Path(READ).write_text(f">own\n{READ}\n")
    assert [row.name for row in index.map(READ)] == ["own"]
    for wrong in ("ACGTX.fa", ""):
        with pytest.raises(mummergpu.MummergpuError):
            index.map(wrong)


def test_an_index_goes_to_another_process(monkeypatch):
    in_memory = mummergpu.Index.build(RECORDS, 12, index_for="memory", max_memory=1 << 30)
    in_memory.save("r.mgi")
    opened = mummergpu.Index.open("r.mgi", max_memory=1 << 30)
    built = mummergpu.Index.build("r.fa", 12, threads=1)
    sent = [pickle.dumps(one) for one in (in_memory, opened, built)]
    assert max(map(len, sent[1:])) < 500
    monkeypatch.chdir("/")
    for one, text in zip((in_memory, opened, built), sent, strict=True):
        other = pickle.loads(text)
        assert list(other.match(READ)) == list(one.match(READ)) and len(other.match(READ)) > 0
        assert list(other.map(READ)) == list(one.map(READ))
        assert other._engine.options == one._engine.options and repr(other) == repr(one)
        assert pickle.loads(pickle.dumps(other)).names == one.names
    opened.close()
    with pytest.raises(OptionError, match="the index is closed"):
        pickle.dumps(opened)
