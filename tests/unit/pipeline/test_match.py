from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.options import match_options

from mummergpu.matching.tree import cpu as trees
from mummergpu.pipeline import match as pipeline
from mummergpu.pipeline import passes
from mummergpu.runtime.progress import NullProgress, Phase, Work
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand

BOTH = (Strand.FORWARD, Strand.REVERSE)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    made = random.Random(5)
    repeat = "".join(made.choices("ACGT", k=60))
    records = ["".join(made.choices("ACGT", k=400)) + repeat for _ in range(12)]
    reads = [record[start : start + 90] for record in records for start in (0, 130, 370)]
    reference, queries = tmp_path / "reference.fa", tmp_path / "reads.fa"
    reference.write_text("".join(f">r{n}\n{text}\n" for n, text in enumerate(records)))
    queries.write_text("".join(f">q{n}\n{text}\n" for n, text in enumerate(reads)))
    return str(reference), str(queries)


def output_of(
    files: tuple[str, str], folder: Path, progress: NullProgress | None = None, **told: object
) -> tuple[bytes, Stats]:
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
    pipeline.run(options, stats, progress or NullProgress(_Nowhere()), _ignore, _ignore)
    return path.read_bytes(), stats


def _ignore(_line: str) -> None:
    """Take a line that nobody wants to read."""


class _Nowhere:
    def write(self, _text: str) -> int:
        return 0

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize("most_files", [1, 2, 3, 100])
def test_earlier_matches_are_merged_when_their_files_become_many(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_files: int
) -> None:
    whole, _ = output_of(files, tmp_path)
    monkeypatch.setattr(passes, "MOST_SPILL_FILES", most_files)
    in_groups, stats = output_of(files, tmp_path, page_size=600, memory=1)
    assert stats.settings["page_groups"] > 8
    assert in_groups == whole
    assert whole.count(b"\n") > 200


def test_blocks_with_too_many_matches_are_cut(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = output_of(files, tmp_path)
    monkeypatch.setattr(trees, "SIZES", replace(trees.SIZES, most_rows=3))
    cut, _ = output_of(files, tmp_path, threads=3)
    assert cut == whole


class _Watched(NullProgress):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(_Nowhere())  # type: ignore[arg-type]
        self.told: list[Work] = []

    def tell(self, work: Work) -> None:
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
def test_progress_tells_what_is_written(
    files: tuple[str, str], tmp_path: Path, given: dict[str, object]
) -> None:
    progress = _Watched()
    _, stats = output_of(files, tmp_path, progress, **given)
    told = progress.told
    counts, groups = stats.counts, stats.settings["page_groups"]
    assert told[0] == Work(Phase.READING_REFERENCE)
    assert told[-1] == Work(Phase.READS, (counts["queries"],), counts["query_bases"], 1.0)
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


def test_progress_goes_on_within_a_long_query(
    files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = replace(trees.SIZES, piece_bases=100, long_query=1000, part_bases=200)
    monkeypatch.setattr(trees, "SIZES", sizes)
    genome = "".join(Path(files[0]).read_text().split("\n")[1::2])
    (tmp_path / "long.fa").write_text(f">long\n{genome}\n")

    def steps(queries: str) -> list[int]:
        progress = _Watched()
        output_of((files[0], queries), tmp_path, progress, page_size=10_000)
        reads = [work for work in progress.told if work.phase is Phase.READS]
        return [work.bases for work in reads if work.numbers == (0,) and work.bases]

    assert steps(files[1]) == []
    found = steps(str(tmp_path / "long.fa"))
    assert len(found) > 20 and found == sorted(found) and found[-1] == len(genome)
