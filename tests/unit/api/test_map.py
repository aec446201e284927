"""Reads that are mapped from Python: the columns say what the command writes."""

import gc
import random
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers.alignment_tools import sam_rows as rows_of
from helpers.alignment_tools import samtools
from helpers.loops import each
from helpers.read_pairs import write_drifting_pairs, write_pairs
from helpers.sequences import random_bases, read_fasta, reverse_complement, write_fasta

import mummergpu
from mummergpu.cli.main import main
from mummergpu.errors import OptionError

PAIRS = 150
GROUP = "@RG\\tID:x\\tSM:y"
DTYPES = {
    **{"read": np.int64, "flag": np.uint16, "reference": np.int32, "position": np.int64},
    **{"mapping_quality": np.uint8, "cigar_offsets": np.int64, "cigars": np.uint32},
    **{"template_length": np.int32, "mate": np.int64, "score": np.int32},
    **{"second_score": np.int32, "edit_distance": np.int32, "reverse": np.bool_},
}
OF_ROWS = ("flag", "position", "mapping_quality", "template_length", "mate", "score")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("mapped")
    write_pairs(made, PAIRS)
    words = f"map --backend cpu -q {made}/r.fa {made}/1.fq {made}/2.fq -o {made}/x.sam -R"
    assert main([*words.split(), GROUP]) == 0
    return made


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture(scope="module")
def index(folder):
    return mummergpu.Index.build(folder / "r.fa", min_length=16)


@pytest.fixture(scope="module")
def alignments(index, folder):
    return index.map(folder / "1.fq", folder / "2.fq")


def columns_of(alignments):
    return [getattr(alignments, name).tolist() for name in DTYPES]


def test_rows_and_columns_are_those_of_the_command(alignments):
    rows, lines = list(alignments), rows_of("x.sam")
    assert len(rows) == len(lines) == alignments.read_lengths.size == 2 * PAIRS
    assert rows[7] == alignments[7] == alignments[7 - len(rows)]
    for number, (row, fields) in enumerate(zip(rows, lines, strict=True)):
        assert row.name == alignments.read_names[alignments.read[number]]
        record = alignments.reference[number]
        assert row.reference == (alignments.reference_names[record] if record >= 0 else None)
        assert row.cigar == alignments.cigar(number) == alignments.cigar(number - len(rows))
        for name in OF_ROWS:
            assert getattr(row, name) == getattr(alignments, name)[number]
        assert row.reverse == bool(row.flag & 16) and row.mate == number ^ 1
        assert fields[:6] == [
            *(row.name, str(row.flag), row.reference or "*", str(row.position + 1)),
            *(str(row.mapping_quality), row.cigar),
        ]
        assert row.template_length == int(fields[8])
        if not row.flag & 4:
            told = dict(field.split(":i:") for field in fields[11:] if ":i:" in field)
            numbers = row.score, alignments.second_score[number], alignments.edit_distance[number]
            assert numbers == (int(told["AS"]), int(told["XS"]), int(told["NM"]))
    records = read_fasta("r.fa").values()
    assert alignments.reference_lengths.tolist() == list(map(len, records))
    mapped = int((alignments.flag & 4 == 0).sum())
    assert repr(alignments) == f"<mummergpu.Alignments: 300 rows, {mapped} of them mapped>"
    for wrong in ("a", [1], slice(None, None, -1), np.ones(3, dtype=np.bool_), len(rows)):
        with pytest.raises(IndexError):
            alignments[wrong]  # type: ignore[index]
    with pytest.raises(IndexError):
        alignments.cigar(len(rows))


def test_sorted_files_have_an_index_and_runs_tell_their_counts(alignments):
    alignments.write("y.bam", sort=True, mark_duplicates=True)
    assert int(samtools("view", "-c", "y.bam", "two")) > 20
    with pytest.raises(mummergpu.MummergpuError, match="needs BAM or CRAM"):
        alignments.write("y.sam", sort=True)
    found = mummergpu.map("r.fa", "1.fq", "2.fq", output="z.sam", read_group=GROUP, threads=1)
    assert (found.queries, found.mapped) == (2 * PAIRS, int((alignments.flag & 4 == 0).sum()))
    assert found.properly_paired == int((alignments.flag & 2 != 0).sum()) > PAIRS
    assert found.output_bytes == Path("z.sam").stat().st_size


def test_blocks_are_joined(index, alignments, monkeypatch):
    monkeypatch.setattr("mummergpu.pipeline.map_reads.choose_block_size", lambda *_: 2000)
    found = index.map("both.fq", interleaved=True, threads=2)
    assert columns_of(found) == columns_of(alignments)
    single = index.map(["1.fq", "2.fq"])
    assert len(single) == 2 * PAIRS and set(single.mate.tolist()) == {-1}


@pytest.fixture(scope="module")
def mates(folder):
    """The first and the second mates of the files."""
    found = []
    for name in ("1.fq", "2.fq"):
        lines = (folder / name).read_text().splitlines()
        found.append([(lines[n][1:], lines[n + 1], lines[n + 3]) for n in range(0, len(lines), 4)])
    return found


def test_reads_in_memory_are_mapped_as_those_of_files(index, alignments, mates):
    first, second = mates
    numbers = [(name, bases, [ord(one) - 33 for one in text]) for name, bases, text in first]
    arrays = []
    for name, bases, text in second:
        qualities = np.frombuffer(text.encode(), dtype=np.uint8) - 33
        arrays.append((name.encode(), bases.encode(), qualities))
    pairs = list(zip(first, second, strict=True))
    for found in (
        index.map(pairs),
        index.map(first, second),
        index.map(numbers, iter(arrays)),
        index.map((list(pair) for pair in pairs), threads=1),
        index.map([read for pair in pairs for read in pair], interleaved=True),
    ):
        assert columns_of(found) == columns_of(alignments)
        assert found.read_names == alignments.read_names
        found.write("memory.sam", read_group=GROUP)
        assert rows_of("memory.sam") == rows_of("x.sam")
    stats = mummergpu.map("r.fa", pairs, output="memory.sam", read_group=GROUP)
    assert rows_of("memory.sam") == rows_of("x.sam") and stats.queries == 2 * PAIRS
    mummergpu.map("r.fa", first, iter(second), output="memory.sam")
    assert "@RG\tID:reads\tSM:reads" in Path("memory.sam").read_text()


def test_reads_in_memory_need_no_qualities(index, mates):
    named = [(name, bases) for name, bases, _ in mates[0]]
    expected = index.map(write_fasta("1.fa", named))
    for reads in (named, [(*read, None) for read in named], dict(named).items()):
        assert list(index.map(reads)) == list(expected)
    mixed = [read if n % 2 else read[:2] for n, read in enumerate(mates[0])]
    index.map(mixed).write("mixed.sam")
    told = [fields[10] == "*" for fields in rows_of("mixed.sam")]
    assert told == [n % 2 == 0 for n in range(PAIRS)]


def test_an_error_of_who_makes_the_reads_is_theirs(index):
    def reads():
        yield "r", "ACGT"
        raise ZeroDivisionError

    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError):
        index.map(reads())
    assert set(threading.enumerate()) <= before


def test_columns_have_their_types(index, alignments, monkeypatch):
    Path("empty.fq").write_text("")
    none = index.map("empty.fq")
    assert len(none) == 0 and none.cigar_offsets.tolist() == [0] and none.read_names == []
    monkeypatch.setattr("mummergpu.pipeline.map_reads.choose_block_size", lambda *_: 3000)
    blocks = index.map("1.fq", "2.fq")
    for found in (alignments, alignments[:0], alignments[3:9], blocks, none):
        for name, dtype in DTYPES.items():
            assert getattr(found, name).dtype == dtype, name


def test_slices_and_masks_select_rows(index, alignments, monkeypatch):
    monkeypatch.setattr("mummergpu.pipeline.map_reads.choose_block_size", lambda *_: 3000)
    blocks = index.map("1.fq", "2.fq", threads=2)
    for whole in (alignments, blocks):
        for key in (slice(5, 90), slice(None, None, 3), whole.mapping_quality > 30, whole.reverse):
            part = whole[key]
            numbers = np.arange(len(whole))[key]
            places = {row: place for place, row in enumerate(numbers.tolist())}
            rows = [whole[int(number)] for number in numbers]
            expected = [row._replace(mate=places.get(row.mate, -1)) for row in rows]
            assert list(part) == expected and len(part) == len(expected) > 10
            assert part.read_names == whole.read_names
            assert part.cigar_offsets[-1] == part.cigars.size
            assert list(part[2:9]) == list(part)[2:9] or part.mate.max() > 0


def test_a_selection_of_whole_templates_is_written(alignments):
    proper = alignments[(alignments.flag & 2) != 0]
    proper.write("proper.sam", read_group=GROUP)
    expected = [fields for fields in rows_of("x.sam") if int(fields[1]) & 2]
    assert rows_of("proper.sam") == expected and 0 < len(expected) < 2 * PAIRS
    alignments[10:20].write("ten.sam", read_group=GROUP)
    assert rows_of("ten.sam") == rows_of("x.sam")[10:20]
    first = alignments[(alignments.flag & 64) != 0]
    for cut in (first, first[:3], alignments[1:4]):
        with pytest.raises(mummergpu.MummergpuError, match="write: a read, or its mate, has rows"):
            cut.write("cut.sam")
    assert not Path("cut.sam").exists()


def test_blocks_come_one_by_one(index, alignments, monkeypatch):
    monkeypatch.setattr("mummergpu.pipeline.map_reads.choose_block_size", lambda *_: 3000)
    before = set(threading.enumerate())
    blocks = list(index.stream_map("1.fq", "2.fq", threads=2))
    assert len(blocks) > 5
    rows = [row._replace(mate=-1) for block in blocks for row in block]
    assert rows == [row._replace(mate=-1) for row in alignments]
    assert all((block.mate ^ 1 == np.arange(len(block))).all() for block in blocks)
    sizes = [len(block) for block in blocks]
    again = index.stream_map("1.fq", "2.fq", threads=2)
    assert [len(block) for block in again] == sizes
    for _ in index.stream_map("1.fq", "2.fq", threads=2):
        break
    gc.collect()
    assert set(threading.enumerate()) <= before
    with pytest.raises(mummergpu.MummergpuError, match="threads: 0 is not positive"):
        index.stream_map("1.fq", threads=0)


def test_reads_are_asked_for_as_they_are_mapped(index, mates, monkeypatch):
    monkeypatch.setattr("mummergpu.pipeline.map_reads.choose_block_size", lambda *_: 3000)
    monkeypatch.setattr("mummergpu.api.map_run.TEMPLATES_OF_LENGTHS", 3 * PAIRS)
    reads = iter(mates[0] * 200)
    stream = index.stream_map(reads, threads=1)
    assert len(next(stream)) > 0
    stream.close()
    assert len(list(reads)) > 20 * PAIRS


def test_tables(alignments):
    pytest.importorskip("pyarrow")
    rows = alignments.to_arrow().to_pylist()
    found = [mummergpu.Alignment(**row) for row in rows]
    places = [None if row.position < 0 else row.position for row in alignments]
    expected = [row._replace(position=at) for row, at in zip(alignments, places, strict=True)]
    assert found == expected and any(row.reference is None for row in found)
    pytest.importorskip("pandas")
    frame = alignments.to_pandas()
    assert frame["cigar"].tolist() == [row.cigar for row in alignments]
    names = [name if isinstance(name, str) else None for name in frame["reference"]]
    assert names == [row.reference for row in alignments]
    assert frame["position"].isna().tolist() == [row.position < 0 for row in alignments]
    frame.loc[:, ["position", "score"]] = 7
    assert [row.score for row in alignments] == [row.score for row in expected]
    assert set(alignments.position.tolist()) != {7}
    pytest.importorskip("polars")
    assert alignments.to_polars().rows() == [tuple(row) for row in expected]


def test_a_cigar_is_text_everywhere(index):
    pytest.importorskip("pyarrow")
    bases = read_fasta("r.fa")["one"]
    query = [("q", bases[100:160] + bases[165:230])]
    for found in (index.map(query), index.align(query, min_cluster=20)):
        texts = [found[0].cigar, found.cigar(0), found.to_arrow()["cigar"].to_pylist()[0]]
        assert texts == ["60M5D65M"] * 3
        assert found.cigars.tolist() == [60 << 4, 5 << 4 | 2, 65 << 4]
    none = index.map([("none", "ACGT")])
    assert none[0].cigar == none.cigar(0) == none.to_arrow()["cigar"].to_pylist()[0] == "*"


WRONG = [
    (mummergpu.Scores, {"match": 0}, "match", "0 is not between 1 and 20"),
    (mummergpu.Scores, {"gap_extend": (1, 0)}, "insertion_extend", "not between 1 and"),
    (mummergpu.Scores, {"gap_open": (1, 2, 3)}, "gap_open", "nor two such as"),
    (mummergpu.Scores, {"clipping": 1000}, "clipping", "1000 is more than 100"),
    (mummergpu.RecordStyle, {"tags": "ms"}, "tags", "'ms' is none of"),
    (mummergpu.RecordStyle, {"header_lines": ["@CO"]}, "header_lines", "no line of a"),
    (mummergpu.RecordStyle, {"soft_clips": "no"}, "soft_clips", "neither True nor False"),
]


@each("kind, told, option, message", WRONG)
def test_wrong_scores_and_styles(kind, told, option, message):
    with pytest.raises(OptionError, match=message) as error:
        kind(**told)
    assert error.value.option == option


def test_cram_cannot_tell_equal_bases(alignments):
    style = mummergpu.RecordStyle(equal_bases=True)
    with pytest.raises(OptionError, match="CRAM has no operations"):
        alignments.write("x.cram", style=style)
    with pytest.raises(OptionError, match="CRAM has no operations"):
        mummergpu.map("r.fa", "1.fq", output="x.cram", style=style)


@pytest.mark.parametrize("call", ["map", "Index.map", "Index.stream_map"])
def test_alternative_contigs_are_ignored_only_if_asked(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bases = random_bases(random.Random(5), 500)
    write_fasta("g.fa", {"g": bases})
    index = mummergpu.Index.build(Path("g.fa"), 16)
    reads = [("r", bases[100:200])]
    calls = {
        "map": partial(mummergpu.map, "g.fa", reads, output="x.sam"),
        "Index.map": partial(index.map, reads),
        "Index.stream_map": partial(index.stream_map, reads),
    }
    calls[call]()
    Path("g.fa.alt").write_text("h\t0\tg\t1\t60\t500M\t*\t0\t0\t*\t*\n")
    with pytest.raises(OptionError, match=r"'g.fa.alt' names alternative contigs") as error:
        calls[call]()
    assert error.value.option == "ignore_alt"
    calls[call](ignore_alt=True)


@pytest.mark.parametrize(
    ("begins", "size"), [((300, 500), 200), ((300, 340), 40), ((300, 300), 0), ((300, 301), 1)]
)
def test_template_lengths_count_both_ends(begins, size):
    """From 5' end to 5' end, both included, as bwa: on whatever strands the mates lie."""
    bases = random_bases(random.Random(5), 900)
    index = mummergpu.Index.build([("chr", bases)], min_length=16)
    mates = [bases[begin : begin + 100] for begin in begins]
    for strands, distance in (("++", size), ("--", size), ("+-", size + 99), ("-+", size - 99)):
        pair = [
            ("p", reverse_complement(read) if strand == "-" else read)
            for read, strand in zip(mates, strands, strict=True)
        ]
        found = index.map([pair[0]], [pair[1]], insert_size=(300, 50), backend="cpu")
        expected = distance + (distance > 0) - (distance < 0)
        assert found.template_length.tolist() == [expected, -expected], strands


PAGES = ("--search", "kmer", "--page-size", "2k", "-l", "16")
MEMORY = {1: None, 2: 1_000_000, 5: 350_000}
"""The bytes with which an index of small pages has so many groups."""


@pytest.fixture(scope="module")
def drifting(tmp_path_factory):
    """Pairs whose reads differ more and more from their places, and an index of small pages."""
    made = tmp_path_factory.mktemp("groups")
    write_drifting_pairs(made, PAIRS)
    assert main(["index", "-q", *PAGES, f"{made}/r.fa", "-o", f"{made}/p.mgi"]) == 0
    return made


@pytest.fixture
def opened(drifting, monkeypatch):
    """Opens the index with so many groups."""
    monkeypatch.chdir(drifting)

    def with_groups(count):
        index = mummergpu.Index.open("p.mgi", max_memory=MEMORY[count])
        assert len(index._engine.kept_index(index.min_length).plan.groups) == count
        return index

    return with_groups


WORDS = {
    "-t 1 --block-size 3000 -I 300,25 -N 2": {"insert_size": (300, 25), "max_secondary": 2},
    "--max-xa 5 --orientation rf": {"max_xa": 5, "orientation": "rf"},
    # Of reads of which all matches are as short as the index finds, no second pass is made.
    "-k 16 --max-occurrences 2": {"seed_length": 16, "max_occurrences": 2},
}


@each("words, arguments", WORDS.items())
def test_rows_do_not_depend_on_the_groups(words, arguments, opened):
    columns = []
    for groups in (1, 5):
        limit = f"--max-memory {MEMORY[groups]}" if MEMORY[groups] else ""
        line = f"map --backend cpu -q p.mgi 1.fq 2.fq {words} {limit} --read-group none -o x.sam"
        assert main(line.split()) == 0
        found = opened(groups).map("1.fq", "2.fq", backend="cpu", **arguments)
        found.write("y.sam", read_group="")
        assert rows_of("y.sam") == rows_of("x.sam")
        columns.append(columns_of(found))
    assert columns[1] == columns[0]
    assert PAIRS < sum(row.flag & 4 == 0 for row in found)


def test_other_searches_go_on_before_and_after(opened):
    """Also those of other threads, which wait."""
    index = opened(5)
    bases = read_fasta("r.fa")["one"][300:400]
    expected = opened(1).match(bases, backend="cpu", strands="both")
    rows = opened(1).map("1.fq", "2.fq", backend="cpu").position
    found = []

    def search():
        matches = index.match(bases, backend="cpu", strands="both")
        found.append(list(matches) == list(expected))

    threads = [threading.Thread(target=search) for _ in range(3)]
    search()
    for thread in threads:
        thread.start()
    assert np.array_equal(index.map("1.fq", "2.fq", backend="cpu").position, rows)
    for thread in threads:
        thread.join()
    search()
    assert found == [True] * 5


def test_a_failure_gives_the_index_back(opened, monkeypatch):
    index = opened(2)
    with monkeypatch.context() as broken:
        broken.setattr("mummergpu.pipeline.map_reads.ReadMapping", _fail)
        with pytest.raises(mummergpu.MummergpuError, match="played"):
            index.map("1.fq", "2.fq", backend="cpu")
    assert len(index.map("1.fq", "2.fq", backend="cpu")) >= 2 * PAIRS


def _fail(*_arguments):
    raise mummergpu.MummergpuError("played")
