"""The main job: groups of pages, blocks, progress and counts."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from helpers.options import match_options
from helpers.sequences import random_bases, read_fasta, write_fasta

from mummergpu.matching.options import Uniqueness
from mummergpu.matching.summary import FileCounts, LengthCount, MatchCounts, StrandCounts
from mummergpu.matching.tree import cpu as trees
from mummergpu.output.formats import target_of
from mummergpu.pipeline import block_search_loop
from mummergpu.pipeline import match as pipeline
from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.progress import Messages, Phase, Work
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand

BOTH = (Strand.FORWARD, Strand.REVERSE)


@pytest.fixture
def files(tmp_path):
    made = random.Random(5)
    repeat = random_bases(made, 60)
    records = [random_bases(made, 400) + repeat for _ in range(12)]
    reads = [record[start : start + 90] for record in records for start in (0, 130, 370)]
    named = {"reference.fa": ("r", records), "reads.fa": ("q", reads)}
    return [
        str(write_fasta(tmp_path / path, ((f"{name}{n}", text) for n, text in enumerate(texts))))
        for path, (name, texts) in named.items()
    ]


def output_of(files, folder, progress=None, **told):
    stats, path = Stats(), folder / "matches.txt"
    told = {"minimum_length": 12, "strands": BOTH, "block_size": 500, **told}
    options = match_options(files[0], (files[1],), str(path), backend="cpu", **told)
    pipeline.run(options, RunContext(options.threads, stats, progress or Messages(None)))
    return path.read_bytes(), stats


@pytest.mark.parametrize("max_files", [1, 2, 3, 100])
def test_earlier_matches_are_merged_when_their_files_become_many(
    files, tmp_path, monkeypatch, max_files
):
    whole, _ = output_of(files, tmp_path)
    monkeypatch.setattr(block_search_loop, "MOST_SPILL_FILES", max_files)
    in_groups, stats = output_of(files, tmp_path, page_size=600, memory=1)
    assert stats.settings["page_groups"] > 8
    assert in_groups == whole
    assert whole.count(b"\n") > 200


def test_blocks_with_too_many_matches_are_cut(files, tmp_path, monkeypatch):
    whole, _ = output_of(files, tmp_path)
    monkeypatch.setattr(trees, "SIZES", replace(trees.SIZES, max_rows=3))
    cut, _ = output_of(files, tmp_path, threads=3)
    assert cut == whole


class _Watched(Messages):
    """Keeps what it is told."""

    def __init__(self):
        super().__init__(None)
        self.told = []

    def tell(self, work):
        self.told.append(work)


SMALL = {"page_size": 600, "memory": 1}
RUNS = {
    "table": {"search": "kmer"},
    "tables in groups": {"search": "kmer", "threads": 3, **SMALL},
    "trees": {"search": "tree", "page_size": 600},
    "trees in groups": {"search": "tree", **SMALL},
}


@pytest.mark.parametrize("name", RUNS)
def test_progress_tells_what_is_written(files, tmp_path, name):
    progress = _Watched()
    _, stats = output_of(files, tmp_path, progress, **RUNS[name])
    told = progress.told
    counts, groups = stats.counts, stats.settings["page_groups"]
    assert told[0] == Work(Phase.READING_REFERENCE)
    assert told[-1] == Work(Phase.READS, (counts["queries"],), groups * counts["query_bases"], 1.0)
    pages = [work for work in told if work.phase is Phase.PAGES]
    assert pages[0].numbers == (0, counts["pages"]) and pages[0].bases == 0
    assert pages[-1].numbers == (counts["pages"], counts["pages"]) and pages[-1].share == 1.0
    searched = [work for work in told if work.phase in (Phase.READS, Phase.READS_OF_GROUP)]
    assert len(searched) >= groups * (counts["blocks"] + 1)
    for some in (pages, searched):
        shares = [work.share for work in some if work.share is not None]
        assert shares == sorted(shares) and len(shares) == len(some)
    in_groups = [work.numbers for work in searched if work.phase is Phase.READS_OF_GROUP]
    assert in_groups[-1:] == ([(counts["queries"], groups - 1, groups)] if groups > 1 else [])


def test_progress_goes_on_within_a_long_query(files, tmp_path, monkeypatch):
    sizes = replace(trees.SIZES, piece_bases=100, long_query=1000, batch_bases=200)
    monkeypatch.setattr(trees, "SIZES", sizes)
    genome = "".join(read_fasta(files[0]).values())
    write_fasta(tmp_path / "long.fa", {"long": genome})

    def steps(queries):
        progress = _Watched()
        output_of((files[0], queries), tmp_path, progress, page_size=10_000)
        reads = [work for work in progress.told if work.phase is Phase.READS]
        return [work.bases for work in reads if work.numbers == (0,) and work.bases]

    assert steps(files[1]) == []
    found = steps(str(tmp_path / "long.fa"))
    assert len(found) > 20 and found == sorted(found) and found[-1] == len(genome)


@pytest.mark.parametrize("uniqueness", Uniqueness)
@pytest.mark.parametrize("search", ["kmer", "tree"])
def test_the_summary_is_that_of_the_rows(files, tmp_path, uniqueness, search):
    """However the reference is cut into pages, and the queries into blocks and files."""
    genome = "".join(read_fasta(files[0]).values())
    write_fasta(tmp_path / "long.fa", {"long": genome[300:3000], "none": "AC" * 11})
    queries = (files[1], str(tmp_path / "long.fa"))
    found = []
    path = tmp_path / "out.tsv"
    told = {"strands": BOTH, "backend": "cpu", "minimum_length": 12, "summary": True}
    told |= {"uniqueness": uniqueness, "search": search}
    for given in (
        *({}, {"threads": 3, "block_size": 100}),
        *({"page_size": 600, "threads": 2}, {"page_size": 600, "memory": 1}),
    ):
        stats = Stats()
        options = match_options(files[0], queries, str(path), **told, **given)
        options = replace(options, outputs=(target_of(str(path)),))
        pipeline.run(options, RunContext(options.threads, stats))
        rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
        expected = _counts_of(rows, read_fasta(files[0]), queries)
        assert stats.match_counts == expected
        assert stats.counts["bases_covered"] == expected.bases_covered
        assert stats.counts["matches"] == len(rows) > 10
        found.append(expected)
    assert found == found[:1] * 4
    assert [file.queries for file in found[0].files] == [36, 2]


def _counts_of(rows, records, paths):
    """The counts of matches as the rows of the output have them."""
    covered = {name: np.zeros(len(bases), dtype=bool) for name, bases in records.items()}
    strands, lengths = Counter((row[4], row[0]) for row in rows), Counter()
    for *_, record, _, start, end, length in rows:
        covered[record][int(start) : int(end)] = True
        # Bins of 1, and from 1,024 on of 32 in each power of two.
        width = 1 if int(length) < 1024 else 32 << (int(length).bit_length() - 11)
        first = int(length) // width * width
        lengths[first, first + width - 1] += 1
    files = []
    for path in paths:
        queries = read_fasta(path)
        counts = [strands["+", name] + strands["-", name] for name in queries]
        bases = sum(map(len, queries.values()))
        files.append(FileCounts(path, len(queries), bases, np.count_nonzero(counts), sum(counts)))
    of_strands = []
    for name, sign in (("forward", "+"), ("reverse", "-")):
        own = [count for (strand, _), count in strands.items() if strand == sign and count]
        of_strands.append(StrandCounts(name, len(own), sum(own)))
    return MatchCounts(
        sum(int(np.count_nonzero(one)) for one in covered.values()),
        tuple(LengthCount(*bounds, count) for bounds, count in sorted(lengths.items())),
        tuple(files),
        tuple(of_strands),
    )
