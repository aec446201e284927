"""A run's matches as a picture: which are drawn, with which names, and what is left out."""

import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.options import match_options
from helpers.sequences import random_bases, reverse_complement, write_fasta
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.drawing import picture
from mummergpu.matching.kmer import cpu
from mummergpu.output.formats import target_of
from mummergpu.output.matches import picture_sink
from mummergpu.output.matches.picture_sink import SegmentColumns, SegmentStore, file_title
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.match import run
from mummergpu.sequence.strand import Strand

QUERIES = 40


class Inputs:
    """A reference of three records and queries from them, and what is drawn of them."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        made = random.Random(11)
        self.records = [random_bases(made, size) for size in (400, 30, 700)]
        self.queries = {}
        for number in range(QUERIES):
            text = made.choice((self.records[0], self.records[2]))
            at = made.randrange(len(text) - 60)
            piece = text[at : at + made.randrange(20, 60)]
            turned = made.random() >= 0.5
            self.queries[f"query{number}"] = reverse_complement(piece) if turned else piece
        write_fasta(folder / "r.fa", ((f"record{n}", one) for n, one in enumerate(self.records)))
        write_fasta(folder / "q.fa", self.queries)
        self.got = []
        monkeypatch.setattr(picture_sink, "picture_bytes", self._take)

    def _take(self, found, style, file_format):
        self.got.append((found, style))
        return file_format.encode()

    def draw(self, block_size=1 << 20):
        """What the picture was made of, beside the rows of a table."""
        paths = str(self.folder / "r.fa"), (str(self.folder / "q.fa"),)
        told = {"minimum_length": 8, "strands": tuple(Strand), "search": "kmer", "threads": 2}
        told |= {"picture": picture.PictureStyle(), "block_size": block_size}
        options = match_options(*paths, backend="cpu", **told)
        targets = [target_of(str(self.folder / name)) for name in ("x.png", "rows.tsv")]
        run(replace(options, outputs=tuple(targets)), RunContext(options.threads))
        assert (self.folder / "x.png").read_bytes() == b"png"
        found, style = self.got.pop()
        assert style.title == "q against r"
        return found

    def rows(self):
        lines = (self.folder / "rows.tsv").read_text().splitlines()[1:]
        fields = (line.split("\t") for line in lines)
        return [(one[0], one[5], int(one[2]), int(one[7]), int(one[9]), one[4]) for one in fields]


def segment_rows(segments):
    sides = []
    for side, positions in (
        (segments.queries, segments.query_positions),
        (segments.references, segments.reference_positions),
    ):
        numbers = side.numbers_of(positions)
        names = [side.names[number] for number in numbers.tolist()]
        sides += [names, (positions - np.asarray(side.offsets)[numbers]).tolist()]
    strands = ["+-"[int(reverse)] for reverse in segments.is_reverse]
    rows = zip(*sides, segments.lengths.tolist(), strands, strict=True)
    return [(query, record, at, start, length, strand)
            for query, at, record, start, length, strand in rows]  # fmt: skip


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    return Inputs(tmp_path, monkeypatch)


@pytest.mark.parametrize("max_rows", [None, 3])
@pytest.mark.parametrize("block_size", [1, 200, 1 << 20])
def test_a_dot_plot_gets_all_rows(inputs, block_size, max_rows, monkeypatch):
    """Those of a large block come in parts."""
    if max_rows is not None:
        monkeypatch.setattr(cpu, "SIZES", replace(cpu.SIZES, max_rows=max_rows))
    segments = inputs.draw(block_size)
    rows = inputs.rows()
    assert len(rows) > 40 and {row[5] for row in rows} == {"+", "-"}
    assert segment_rows(segments) == rows
    assert list(segments.queries.names) == list(inputs.queries)
    assert segments.queries.lengths.tolist() == list(map(len, inputs.queries.values()))
    assert segments.references.lengths.tolist() == list(map(len, inputs.records))
    assert (segments.match_count, segments.query_count) == (len(rows), QUERIES)


@pytest.mark.parametrize("block_size", [1, 200, 1 << 20])
def test_the_longest_matches_of_the_first_queries_stay(inputs, block_size, monkeypatch):
    monkeypatch.setattr(picture_sink, "MOST_QUERIES", 33)
    monkeypatch.setattr(picture_sink, "SegmentStore", lambda: SegmentStore(20))
    segments, names = inputs.draw(block_size), list(inputs.queries)
    rows = inputs.rows()
    placed = [row for row in rows if names.index(row[0]) < 33]
    order = sorted(range(len(placed)), key=lambda at: (-placed[at][4], at))
    assert segment_rows(segments) == [placed[at] for at in sorted(order[:20])]
    assert list(segments.queries.names) == names[:33]
    assert (segments.match_count, segments.query_count) == (len(rows), QUERIES)


def test_titles_are_the_names_of_files():
    paths = ("a/b/yeast.fa.gz", "reads.fastq", "x.2.fna", "-", ".fa", "plain", "index.mgi", "a.BAM")
    assert [file_title(path) for path in paths] == [
        *("yeast", "reads", "x.2", "standard input", ".fa", "plain", "index.mgi", "a")
    ]


def columns_of(lengths, first):
    places = np.arange(first, first + len(lengths), dtype=np.int64)
    return SegmentColumns(places, places + 1000, np.array(lengths, np.int64), places % 2 == 1)


@given(st.lists(st.lists(st.integers(1, 6), max_size=9), max_size=8), st.integers(1, 20))
def test_the_longest_stay_and_of_equals_the_first(parts, most):
    store = SegmentStore(most)
    count = 0
    for lengths in parts:
        store.add(columns_of(lengths, count).longer_than(store.longest_dropped))
        count += len(lengths)
    found = store.columns()
    every = [length for lengths in parts for length in lengths]
    best = sorted(sorted(range(count), key=lambda at: (-every[at], at))[:most])
    assert found.reference_positions.tolist() == best
    assert found.query_positions.tolist() == [at + 1000 for at in best]
    assert found.lengths.tolist() == [every[at] for at in best]
    assert found.is_reverse.tolist() == [at % 2 == 1 for at in best]
    assert store.columns().lengths.tolist() == found.lengths.tolist()
