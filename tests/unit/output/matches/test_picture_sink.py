"""A run's matches as a picture: which are drawn, with which names, and what is left out."""

import random
from dataclasses import replace

import pytest
from helpers.options import match_options
from helpers.sequences import random_bases, reverse_complement

from mummergpu.drawing import picture
from mummergpu.output.formats import target_of
from mummergpu.output.matches import picture_sink
from mummergpu.output.matches.picture_sink import SegmentStore, file_title
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.match import run
from mummergpu.sequence.strand import Strand

BOTH = (Strand.FORWARD, Strand.REVERSE)


def text_rows(path, names, lengths):
    """The rows of MUMmer's text: query, record, starts on the forward strand, length, strand."""
    rows = []
    query, is_reverse = "", False
    for line in path.read_text().splitlines():
        words = line.split()
        if words[0] == ">":
            query, is_reverse = words[1], "Reverse" in words
            continue
        record, place, start, length = words[0], *(int(word) for word in words[1:])
        start = start - 1
        if is_reverse:
            start = lengths[names.index(query)] - start - length
        rows.append((query, record, start, place - 1, length, is_reverse))
    return rows


def segment_rows(segments):
    rows = []
    queries = segments.queries.numbers_of(segments.query_positions).tolist()
    records = segments.references.numbers_of(segments.reference_positions).tolist()
    for at, (query, record) in enumerate(zip(queries, records, strict=True)):
        rows.append(
            (
                segments.queries.names[query],
                segments.references.names[record],
                int(segments.query_positions[at] - segments.queries.offsets[query]),
                int(segments.reference_positions[at] - segments.references.offsets[record]),
                int(segments.lengths[at]),
                bool(segments.is_reverse[at]),
            )
        )
    return rows


class Inputs:
    """A reference of three records and queries from them, and what the pictures got."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        made = random.Random(11)
        self.records = [random_bases(made, size) for size in (400, 30, 700)]
        self.queries = []
        for _ in range(40):
            text = made.choice((self.records[0], self.records[2]))
            at = made.randrange(len(text) - 60)
            piece = text[at : at + made.randrange(20, 60)]
            self.queries.append(piece if made.random() < 0.5 else reverse_complement(piece))
        self.names = [f"query{number}" for number in range(len(self.queries))]
        self._write("r.fa", [f"record{number}" for number in range(3)], self.records)
        self._write("q.fa", self.names, self.queries)
        self.got = []
        monkeypatch.setattr(picture_sink, "picture_bytes", self._take)

    def _write(self, name, names, texts):
        lines = [f">{one}\n{text}\n" for one, text in zip(names, texts, strict=True)]
        (self.folder / name).write_text("".join(lines))

    def _take(self, found, style, file_format):
        self.got.append((found, style))
        return file_format.encode()

    def run(self, targets, block_size):
        options = match_options(
            str(self.folder / "r.fa"),
            (str(self.folder / "q.fa"),),
            minimum_length=8,
            strands=BOTH,
            search="kmer",
            backend="cpu",
            four_columns=True,
            block_size=block_size,
            threads=2,
            picture=picture.PictureStyle(),
        )
        run(replace(options, outputs=targets), RunContext(options.threads))

    def draw(self, block_size=1 << 20):
        """What the picture was made of, beside the rows of the text."""
        path = self.folder / "x.png"
        text = self.folder / "rows.txt"
        self.run((target_of(str(path)), target_of(str(text))), block_size)
        assert path.read_bytes() == b"png"
        found, style = self.got.pop()
        assert style.title == "q against r"
        return found

    def rows(self):
        lengths = [len(query) for query in self.queries]
        return text_rows(self.folder / "rows.txt", self.names, lengths)


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    return Inputs(tmp_path, monkeypatch)


@pytest.mark.parametrize("block_size", [1, 200, 1 << 20])
def test_a_dot_plot_gets_all_rows(inputs, block_size):
    segments = inputs.draw(block_size)
    rows = inputs.rows()
    assert len(rows) > 40 and {row[5] for row in rows} == {False, True}
    assert segment_rows(segments) == rows
    assert list(segments.queries.names) == inputs.names
    assert segments.queries.lengths.tolist() == [len(query) for query in inputs.queries]
    assert segments.references.lengths.tolist() == [len(record) for record in inputs.records]
    assert (segments.match_count, segments.query_count) == (len(rows), 40)


@pytest.mark.parametrize("block_size", [1, 200, 1 << 20])
def test_the_longest_matches_of_the_first_queries_stay(inputs, block_size, monkeypatch):
    monkeypatch.setattr(picture_sink, "MOST_QUERIES", 33)
    monkeypatch.setattr(picture_sink, "SegmentStore", lambda: SegmentStore(20))
    segments = inputs.draw(block_size)
    rows = inputs.rows()
    placed = [row for row in rows if inputs.names.index(row[0]) < 33]
    order = sorted(range(len(placed)), key=lambda at: (-placed[at][4], at))
    assert segment_rows(segments) == [placed[at] for at in sorted(order[:20])]
    assert list(segments.queries.names) == inputs.names[:33]
    assert (segments.match_count, segments.query_count) == (len(rows), 40)


def test_rows_of_a_large_block_come_in_parts(inputs, monkeypatch):
    from mummergpu.matching.kmer import cpu

    monkeypatch.setattr(cpu, "SIZES", replace(cpu.SIZES, max_rows=3))
    assert segment_rows(inputs.draw()) == inputs.rows()


def test_titles_are_the_names_of_files():
    paths = ("a/b/yeast.fa.gz", "reads.fastq", "x.2.fna", "-", ".fa", "plain", "index.mgi", "a.BAM")
    assert [file_title(path) for path in paths] == [
        *("yeast", "reads", "x.2", "standard input", ".fa", "plain", "index.mgi", "a")
    ]
