from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.options import match_options

from mummergpu.matching.tree import cpu as trees
from mummergpu.pipeline import match as pipeline
from mummergpu.pipeline import passes
from mummergpu.runtime.progress import NullProgress
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


def output_of(files: tuple[str, str], folder: Path, **told: object) -> tuple[bytes, Stats]:
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
    pipeline.run(options, stats, NullProgress(_Nowhere()), _ignore, _ignore)
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
