import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.options import match_options
from helpers.sequences import random_bases

from mummergpu.matching.options import Uniqueness
from mummergpu.matching.summary import FileCounts, LengthCount, MatchCounts, StrandCounts
from mummergpu.matching.tree import cpu as trees
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
    reference, queries = tmp_path / "reference.fa", tmp_path / "reads.fa"
    reference.write_text("".join(f">r{n}\n{text}\n" for n, text in enumerate(records)))
    queries.write_text("".join(f">q{n}\n{text}\n" for n, text in enumerate(reads)))
    return str(reference), str(queries)


def output_of(files, folder, progress=None, **told):
    stats = Stats()
    path = folder / "matches.txt"
    reference, queries = files
    options = match_options(
        reference,
        (queries,),
        str(path),
        minimum_length=12,
        strands=BOTH,
        backend="cpu",
        block_size=500,
        **told,  # type: ignore[arg-type]
    )
    shown = progress or Messages(None)
    pipeline.run(options, RunContext(options.threads, stats, shown))
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


@pytest.mark.parametrize(
    "given",
    [
        {"search": "kmer"},
        {"search": "kmer", "threads": 3, "page_size": 600, "memory": 1},
        {"search": "tree", "page_size": 600},
        {"search": "tree", "page_size": 600, "memory": 1},
    ],
    ids=str,
)
def test_progress_tells_what_is_written(files, tmp_path, given):
    progress = _Watched()
    _, stats = output_of(files, tmp_path, progress, **given)
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
    genome = "".join(Path(files[0]).read_text().split("\n")[1::2])
    (tmp_path / "long.fa").write_text(f">long\n{genome}\n")

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
    genome = "".join(Path(files[0]).read_text().split("\n")[1::2])
    (tmp_path / "long.fa").write_text(f">long\n{genome[300:3000]}\n>none\nACACACACACACACACACACAC\n")
    queries = (files[1], str(tmp_path / "long.fa"))
    found = []
    for given in (
        {},
        {"threads": 3, "block_size": 100},
        {"page_size": 600, "threads": 2},
        {"page_size": 600, "memory": 1},
    ):
        stats = Stats()
        path = tmp_path / "out"
        told = {"strands": BOTH, "backend": "cpu", "minimum_length": 12, **given}
        options = match_options(
            files[0], queries, str(path), summary=True, uniqueness=uniqueness, search=search, **told
        )
        pipeline.run(options, RunContext(options.threads, stats))
        expected = _counts_of(path.read_text(), Path(files[0]), queries)
        assert stats.match_counts == expected
        assert stats.counts["bases_covered"] == expected.bases_covered
        assert stats.counts["matches"] == sum(file.matches for file in expected.files) > 10
        found.append(expected)
    assert found == found[:1] * 4
    assert [file.queries for file in found[0].files] == [36, 2]


def _counts_of(text, reference, paths):
    """The counts of matches as the text of the output has them."""
    records = reference.read_text().split(">")[1:]
    lengths_of = {record.split("\n")[0]: len(record.split("\n")[1]) for record in records}
    covered = {name: np.zeros(length, dtype=bool) for name, length in lengths_of.items()}
    matches = Counter()
    lengths = Counter()
    query = strand = ""
    for line in text.splitlines():
        if line.startswith("> "):
            query, _, word = line[2:].partition(" ")
            strand = "reverse" if word else "forward"
            continue
        name, start, _, length = line.split()
        covered[name][int(start) - 1 : int(start) - 1 + int(length)] = True
        matches[query, strand] += 1
        lengths[int(length)] += 1
    files = []
    for path in paths:
        pairs = [one.split("\n")[:2] for one in Path(path).read_text().split(">")[1:]]
        counts = [matches[name, "forward"] + matches[name, "reverse"] for name, _ in pairs]
        bases = sum(len(text) for _, text in pairs)
        files.append(FileCounts(path, len(pairs), bases, np.count_nonzero(counts), sum(counts)))
    strands = tuple(
        StrandCounts(
            name,
            len([1 for _, strand in matches if strand == name]),
            sum(count for (_, strand), count in matches.items() if strand == name),
        )
        for name in ("forward", "reverse")
    )
    binned = Counter()
    for length, count in lengths.items():
        width = 1 if length < 1024 else 32 << (length.bit_length() - 11)
        first = length // width * width
        binned[first, first + width - 1] += count
    return MatchCounts(
        sum(int(np.count_nonzero(one)) for one in covered.values()),
        tuple(LengthCount(*bounds, count) for bounds, count in sorted(binned.items())),
        tuple(files),
        strands,
    )
