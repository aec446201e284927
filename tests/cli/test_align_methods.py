"""The command ``align --method``: whole sequences from end to end."""

import random
from pathlib import Path

import numpy as np
import pytest
from helpers.genomes import changed
from helpers.sequences import random_bases, reverse_complement
from helpers.whole_alignments import whole_alignment

from mummergpu.cli.main import main
from mummergpu.mapping.genomes.options import NUCMER_COSTS


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two records and three queries, in files of the working folder."""
    monkeypatch.chdir(tmp_path)
    some = random.Random(4)
    records = [random_bases(some, 900), random_bases(some, 300) + "NNN" + random_bases(some, 80)]
    queries = [
        changed(records[0][100:800], some, 0.2, 0.03),
        reverse_complement(changed(records[1], some, 0.1, 0.02)),
        random_bases(some, 40),
    ]
    for name, texts in (("r", records), ("q", queries)):
        text = "".join(f">{name}{n}\n{one}\n" for n, one in enumerate(texts))
        Path(f"{name}.fa").write_text(text)
    return records, queries


def codes(text):
    return np.array(["ACGT".find(base) if base in "ACGT" else 4 for base in text], dtype=np.uint8)


def trimmed(path):
    """A path without the gaps at its ends."""
    kinds = [operation & 15 for operation in path]
    last = len(kinds) - kinds[::-1].index(0)
    return path[kinds.index(0) : last]


def run(capfd, *words, code=0):
    assert main(["align", "-q", "-C", *words]) == code
    found = capfd.readouterr()
    return found.out if code == 0 else found.err


@pytest.mark.parametrize("method", ["wavefront", "streaming"])
def test_each_query_is_aligned_with_each_record(capfd, files, method):
    rows = [
        line.split("\t")
        for line in run(capfd, "--method", method, "r.fa", "q.fa", "--format", "paf").splitlines()
    ]
    expected = {}
    for q, query in enumerate(files[1]):
        for r, record in enumerate(files[0]):
            both = [
                whole_alignment(codes(text), codes(record), NUCMER_COSTS)
                for text in (query, reverse_complement(query))
            ]
            strand = "+" if both[0][0] >= both[1][0] else "-"
            score, path = both[strand == "-"]
            gaps = [operation for operation in path if operation not in trimmed(path)]
            lost = sum(3 + 7 * (gap >> 4) for gap in gaps if gap in (path[0], path[-1]))
            expected[f"q{q}", f"r{r}"] = strand, score + lost
    assert len(rows) == 6
    for row in rows:
        strand, score = expected[row[0], row[5]]
        assert row[4] == strand
        found = next(int(field[5:]) for field in row if field.startswith("AS:i:"))
        # Gaps of one kind that meet when they go to the left become one, which scores more.
        assert found >= score


def test_sequences_that_are_too_long_are_refused(capfd, tmp_path, monkeypatch):
    long, short = tmp_path / "long.fa", tmp_path / "short.fa"
    long.write_text(">long\n" + "ACGTTGCA" * (1 << 17) + "A\n")
    short.write_text(">one\nACGT\n>empty\n\n")
    error = run(capfd, "--method", "streaming", str(short), str(long), code=1)
    assert "at most 1,048,576 bases on each side" in error and "(record 'long')" in error
    monkeypatch.setattr("mummergpu.pipeline.matrix_opening.free_memory", lambda: 1000)
    error = run(capfd, "--method", "wavefront", str(short), str(short), code=1)
    assert "of memory: use --method streaming or tile (record 'one')" in error
    paf = run(capfd, "--method", "streaming", str(short), str(short), "--format", "paf")
    assert paf.count("\n") == 1
