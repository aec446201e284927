"""Small studies for tests: data sets, options, and searchers that are not what they seem."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from helpers.in_memory import block_of, reference_of
from helpers.search_cases import SearchCase
from mummergpu.index.options import TreeOptions
from mummergpu.runtime.progress import Messages, Work
from mummergpu.sequence.strand import Strand
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.data_set import DataSet
from mummergpu.studies.layout_sweep import SweepOptions, sweep
from mummergpu.studies.records import RUNS_FILE, SweepInput, SweepMachine, SweepRun, SweepSetup
from mummergpu.studies.searcher import StudySearcher

GATHERS = {"merged": 2.0e8, "split": 1.0e8}


class QuickSearcher(StudySearcher):
    """The processor, which is not measured first."""

    def gathers_per_second(
        self, table_bytes: int, threads: int, map_function: Callable[..., object]
    ) -> dict[str, float]:
        assert table_bytes > 0
        return dict(GATHERS)


class Steps(Messages):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__(None)
        self.told: list[tuple[int | str, ...]] = []

    def tell(self, work: Work) -> None:
        self.told.append(work.numbers)


def data_of(
    case: SearchCase, parts: int = 1, strands: tuple[Strand, ...] = (Strand.FORWARD,)
) -> DataSet:
    """The reference and the queries of a case, in so many blocks."""
    size = -(-len(case.queries) // parts)
    pieces = [case.queries[begin : begin + size] for begin in range(0, len(case.queries), size)]
    blocks = tuple(map(block_of, pieces))
    reference = reference_of(case.records)
    return DataSet(case.name, reference, blocks, case.minimum_length, strands)


def options_of(policies: str | Sequence[str], case: SearchCase, **more: object) -> SweepOptions:
    """Options of a short sweep on the pages of a case."""
    codes = tuple(policies.split() if isinstance(policies, str) else policies)
    trees = TreeOptions(page_size=case.page_size, address_bits=more.pop("bits", 24))  # type: ignore[arg-type]
    given = {"runs": 2, "control_runs": 2, "threads": 2, **more}
    return SweepOptions(codes, trees=trees, **given)  # type: ignore[arg-type]


def sweep_into(
    folder: Path,
    data: DataSet,
    options: SweepOptions,
    searcher: StudySearcher | None = None,
    progress: Steps | None = None,
) -> int:
    """Sweep; return the number of new runs."""
    given = QuickSearcher() if searcher is None else searcher
    try:
        return sweep(data, options, given, folder, progress or Steps())
    finally:
        if searcher is None:
            given.close()


def planned_in(folder: Path) -> Counter[PlannedRun]:
    """How often each run stands in a folder of a sweep."""
    lines = (folder / RUNS_FILE).read_text().splitlines()
    values = [json.loads(line) for line in lines]
    assert [value["position"] for value in values] == list(range(len(values)))
    return Counter(PlannedRun(value["policy"], value["kind"], value["repeat"]) for value in values)


def wanted(policies: Sequence[str], runs: int, control_runs: int) -> Counter[PlannedRun]:
    """Each run of a sweep once."""
    every = [PlannedRun(code, "run", repeat) for code in policies for repeat in range(runs)]
    every += [PlannedRun("none", "control", repeat) for repeat in range(control_runs)]
    return Counter(every)


def some_run(policy: str = "none", kind: str = "run", repeat: int = 0, **more: object) -> SweepRun:
    """A run as a sweep might record it."""
    given = {
        "position": 0,
        "seconds": {"match": 0.25, "print": 0.5},
        "kernels": {},
        "bytes": {"trees": 100},
        "mems": 7,
        "candidate_matches": 9,
        "digest": "0badcafe",
        **more,
    }
    return SweepRun(policy=policy, kind=kind, repeat=repeat, **given)  # type: ignore[arg-type]


def some_setup(**more: object) -> SweepSetup:
    """A setup as a sweep might record it."""
    searched = SweepInput(
        "r.fa", "aa", "bb", 1000, 2, 500, 10, 50, 20, ("forward", "reverse"), 3, 400, 24
    )
    machine = SweepMachine("cpu", "a processor", "x86_64", 1 << 30, 0, 2, {}, {"python": "3"}, {})
    given = {
        "program": "mummergpu 1",
        "date": "2026-01-31",
        "policies": ("none", "m"),
        "runs": 3,
        "control_runs": 2,
        "seed": 1,
        "profile": False,
        "input": searched,
        "machine": machine,
        **more,
    }
    return SweepSetup(**given)  # type: ignore[arg-type]
