"""Small studies for tests: data sets, options, and searchers that are not what they seem."""

import json
from collections import Counter

from helpers.in_memory import block_of, reference_of
from mummergpu.index.options import TreeOptions
from mummergpu.runtime.progress import Messages
from mummergpu.sequence.strand import Strand
from mummergpu.studies.combinations import PlannedRun
from mummergpu.studies.data_set import DataSet
from mummergpu.studies.layout_sweep import SweepOptions, sweep
from mummergpu.studies.records import RUNS_FILE, SweepInput, SweepMachine, SweepRun, SweepSetup
from mummergpu.studies.searcher import StudySearcher

GATHERS = {"merged": 2.0e8, "split": 1.0e8}


class QuickSearcher(StudySearcher):
    """The processor, which is not measured first."""

    def gathers_per_second(self, table_bytes, threads, map_function):
        assert table_bytes > 0
        return dict(GATHERS)


class Steps(Messages):
    """Keeps what it is told."""

    def __init__(self):
        super().__init__(None)
        self.told = []

    def tell(self, work):
        self.told.append(work.numbers)


def data_of(case, parts=1, strands=(Strand.FORWARD,)):
    """The reference and the queries of a case, in so many blocks."""
    size = -(-len(case.queries) // parts)
    pieces = [case.queries[begin : begin + size] for begin in range(0, len(case.queries), size)]
    blocks = tuple(map(block_of, pieces))
    return DataSet(case.name, reference_of(case.records), blocks, case.minimum_length, strands)


def options_of(policies, case, **more):
    """Options of a short sweep on the pages of a case."""
    codes = tuple(policies.split() if isinstance(policies, str) else policies)
    trees = TreeOptions(page_size=case.page_size, address_bits=more.pop("bits", 24))
    given = {"runs": 2, "control_runs": 2, "threads": 2, **more}
    return SweepOptions(codes, trees=trees, **given)


def sweep_into(folder, data, options, searcher=None, progress=None):
    """Sweep; return the number of new runs."""
    given = QuickSearcher() if searcher is None else searcher
    try:
        return sweep(data, options, given, folder, progress or Steps())
    finally:
        if searcher is None:
            given.close()


def planned_in(folder):
    """How often each run stands in a folder of a sweep."""
    values = [json.loads(line) for line in (folder / RUNS_FILE).read_text().splitlines()]
    assert [value["position"] for value in values] == list(range(len(values)))
    return Counter(PlannedRun(value["policy"], value["kind"], value["repeat"]) for value in values)


def wanted(policies, runs, control_runs):
    """Each run of a sweep once."""
    every = [PlannedRun(code, "run", repeat) for code in policies for repeat in range(runs)]
    every += [PlannedRun("none", "control", repeat) for repeat in range(control_runs)]
    return Counter(every)


def some_run(policy="none", kind="run", repeat=0, **more):
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
    return SweepRun(policy=policy, kind=kind, repeat=repeat, **given)


def some_setup(**more):
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
    return SweepSetup(**given)
