"""Whole sweeps on the processor: each run once, the control's matches, interruptions."""

from collections import Counter
from dataclasses import replace

import pytest
from helpers.opened_backends import GENOME
from helpers.search_cases import CASES, COLUMNS, ONE_PAGE, STRANDS
from helpers.studies import (
    GATHERS,
    QuickSearcher,
    Steps,
    data_of,
    options_of,
    planned_in,
    sweep_into,
    wanted,
)
from helpers.sweeps import read_sweep

from mummergpu.errors import BackendError, InputError, OptionError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.studies import layout_sweep as sweeping
from mummergpu.studies.combinations import PlannedRun, differing_policies
from mummergpu.studies.layout_sweep import TreeStore
from mummergpu.studies.measurement import Measurer, MemDigest
from mummergpu.studies.records import RUNS_FILE, SETUP_FILE

DATA = data_of(GENOME, 3)
ALL = differing_policies("cpu")
FEW = "none tn rt m"


def test_all_layouts_are_measured(tmp_path):
    progress = Steps()
    options = options_of(ALL, GENOME, runs=2, control_runs=3)
    assert sweep_into(tmp_path, DATA, options, progress=progress) == 16 * 2 + 3
    sweep = read_sweep(tmp_path)
    assert planned_in(tmp_path) == wanted(ALL, 2, 3)
    assert sweep.runs[0].policy == "none"
    expected = sum(map(len, GENOME.expected(STRANDS[0])))
    assert {run.mems for run in sweep.runs} == {expected}
    assert len({run.digest for run in sweep.runs}) == 1
    total = len(sweep.runs)
    assert progress.told == [(GENOME.name, number, total) for number in range(1, total + 1)]
    order = [run.policy for run in sweep.runs]
    assert order != sorted(order) and order[1:17] != order[17:33]


def test_the_setup_says_what_was_measured(tmp_path):
    data = data_of(GENOME, 2, STRANDS)
    options = options_of(FEW, GENOME, runs=1, control_runs=0, seed=7, threads=3)
    sweep_into(tmp_path, data, options)
    setup = read_sweep(tmp_path).setup
    assert setup.policies == ("none", "tn", "rt", "m")
    assert (setup.runs, setup.control_runs, setup.seed, setup.profile) == (1, 0, 7, False)
    given, machine = setup.input, setup.machine
    assert (given.name, given.minimum_length) == ("genome", GENOME.minimum_length)
    assert (given.reference_records, given.query_count) == (4, 13)
    assert given.reference_bases == sum(map(len, GENOME.records))
    assert given.query_bases == sum(map(len, GENOME.queries))
    assert given.query_digest == data.query_digest()
    assert given.strands == ("forward", "reverse")
    assert (given.pages, given.page_size) == (len(GENOME.page_plan), 130)
    assert given.address_bits == 24
    assert (machine.backend, machine.threads, machine.multiprocessors) == ("cpu", 3, 0)
    assert machine.gathers_per_second == GATHERS
    assert machine.device and machine.memory_bytes > 1 << 28
    assert {"python", "system", "numpy", "numba"} <= set(machine.versions)


def test_the_wide_format_is_measured(tmp_path):
    case = replace(GENOME, page_size=ONE_PAGE)
    sweep_into(tmp_path, DATA, options_of(ALL, case, runs=1, control_runs=0, bits=32))
    sweep = read_sweep(tmp_path)
    assert sweep.setup.input.address_bits == 32
    assert planned_in(tmp_path) == wanted(ALL, 1, 0)
    sizes = {run.policy: run.bytes["trees"] for run in sweep.runs}
    assert sizes["t"] > 24 << 20 > sizes["none"]


def test_nothing_is_done_twice(tmp_path, monkeypatch):
    options = options_of(FEW, GENOME)
    assert sweep_into(tmp_path, DATA, options) == 10
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(sweeping, "TreeStore", None)
    monkeypatch.setattr(QuickSearcher, "gathers_per_second", None)
    assert sweep_into(tmp_path, DATA, options) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_sweep_goes_on_after_any_run(tmp_path):
    options = options_of(FEW, GENOME)
    sweep_into(tmp_path, DATA, options)
    lines = (tmp_path / RUNS_FILE).read_bytes().splitlines(keepends=True)
    expected = wanted(FEW.split(), 2, 2)
    for count in range(len(lines)):
        progress = Steps()
        half = lines[count][: len(lines[count]) // 2]
        (tmp_path / RUNS_FILE).write_bytes(b"".join(lines[:count]) + half)
        assert sweep_into(tmp_path, DATA, options, progress=progress) == len(lines) - count
        assert planned_in(tmp_path) == expected
        after = (tmp_path / RUNS_FILE).read_bytes().splitlines(keepends=True)
        assert after[:count] == lines[:count]
        steps = range(count + 1, len(lines) + 1)
        assert [done for _, done, _ in progress.told] == list(steps)


def test_a_sweep_without_the_runs_of_the_control_goes_on(tmp_path):
    """Its first run is then one of the control, whose matches the others must have."""
    options = options_of(FEW, GENOME)
    sweep_into(tmp_path, DATA, options)
    lines = (tmp_path / RUNS_FILE).read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"policy":"none"' not in line]
    (tmp_path / RUNS_FILE).write_text("".join(kept))
    assert sweep_into(tmp_path, DATA, options) == len(lines) - len(kept) == 4
    after = [run.policy for run in read_sweep(tmp_path).runs]
    assert after[len(kept) :] == ["none"] * 4


def test_more_runs_and_policies_may_follow(tmp_path):
    assert sweep_into(tmp_path, DATA, options_of("none m", GENOME, runs=1, control_runs=0)) == 2
    progress = Steps()
    more = options_of("none rt", GENOME, runs=3, control_runs=1, seed=2)
    assert sweep_into(tmp_path, DATA, more, progress=progress) == 2 + 3 + 1
    # The run of `m` is not one of those that are shown.
    assert progress.told[0][1:] == (2, 7)
    assert progress.told[-1][1:] == (7, 7)
    assert planned_in(tmp_path) == wanted(["none", "rt"], 3, 1) + wanted(["m"], 1, 0)
    setup = read_sweep(tmp_path).setup
    assert (setup.policies, setup.runs) == (("none", "rt", "m"), 3)
    assert sweep_into(tmp_path, DATA, options_of("none m rt", GENOME, control_runs=1)) == 1
    assert planned_in(tmp_path)[PlannedRun("m", "run", 1)] == 1


def test_another_input_is_refused(tmp_path):
    options = options_of("none", GENOME)
    sweep_into(tmp_path, DATA, options)
    queries = (*GENOME.queries[:-1], GENOME.queries[-1] + "A")
    others = [
        (data_of(replace(GENOME, queries=queries)), options),
        (data_of(replace(GENOME, records=(*GENOME.records, "ACGT"))), options),
        (data_of(replace(GENOME, minimum_length=7)), options),
        (data_of(GENOME, 1, STRANDS), options),
        (DATA, options_of("none", replace(GENOME, page_size=140))),
        (DATA, options_of("none", GENOME, bits=32)),
    ]
    for data, given in others:
        with pytest.raises(InputError, match="holds a sweep with another input"):
            sweep_into(tmp_path, data, given)
    with pytest.raises(InputError, match="another number of threads"):
        sweep_into(tmp_path, DATA, options_of("none", GENOME, threads=1))
    assert sweep_into(tmp_path, data_of(GENOME, 5), options) == 0


def test_another_device_or_version_is_refused(tmp_path, monkeypatch):
    options = options_of("none", GENOME)
    sweep_into(tmp_path, DATA, options)
    with monkeypatch.context() as patched:
        patched.setattr("mummergpu.studies.machine.processor_name", lambda: "another")
        with pytest.raises(InputError, match="holds a sweep with another device"):
            sweep_into(tmp_path, DATA, options)
    with monkeypatch.context() as patched:
        patched.setattr(sweeping, "__version__", "77")
        with pytest.raises(InputError, match="holds a sweep with another program"):
            sweep_into(tmp_path, DATA, options)


def wrong_for(policy, column):
    """A measurement that takes one row of one column of a policy for another."""
    loaded = [""]
    load, update = Measurer.load, MemDigest.update

    def load_noting(self, code, pages, profile):
        loaded[0] = code
        load(self, code, pages, profile)

    def update_wrongly(self, found):
        if loaded[0] == policy:
            for mems in found.values():
                if mems.count:
                    getattr(mems, COLUMNS[column])[-1] += 1
        update(self, found)

    return load_noting, update_wrongly


@pytest.mark.parametrize("column", [1, 2, 3])
def test_other_matches_than_the_controls_are_an_error(tmp_path, monkeypatch, column):
    options = options_of(FEW, GENOME, runs=3)
    load, update = wrong_for("rt", column)
    with monkeypatch.context() as patched:
        patched.setattr(Measurer, "load", load)
        patched.setattr(MemDigest, "update", update)
        with pytest.raises(BackendError) as caught:
            sweep_into(tmp_path, DATA, options)
        assert caught.value.backend == "cpu"
        assert "policy 'rt' finds" in caught.value.message
        assert "matches that are not those of the control" in caught.value.message
        runs = read_sweep(tmp_path).runs
        assert runs and "rt" not in {run.policy for run in runs}
        # Not even if the runs of the control were made by another process.
        with pytest.raises(BackendError, match="policy 'rt' finds"):
            sweep_into(tmp_path, DATA, options)
        assert "rt" not in {run.policy for run in read_sweep(tmp_path).runs}
    sweep_into(tmp_path, DATA, options)
    assert planned_in(tmp_path) == wanted(FEW.split(), 3, 2)


def test_a_control_that_changes_is_an_error(tmp_path, monkeypatch):
    options = options_of("none", GENOME, runs=1, control_runs=1)
    sweep_into(tmp_path, DATA, replace(options, control_runs=0))
    load, update = wrong_for("none", 3)
    monkeypatch.setattr(Measurer, "load", load)
    monkeypatch.setattr(MemDigest, "update", update)
    with pytest.raises(BackendError, match="policy 'none' finds"):
        sweep_into(tmp_path, DATA, options)
    assert planned_in(tmp_path) == wanted(["none"], 1, 0)


@pytest.mark.parametrize(("room", "batches"), [(1, 16), (2, 16), (3, 8), (6, 4), (17, 1), (99, 1)])
def test_layouts_are_made_in_batches_where_memory_is_short(tmp_path, monkeypatch, room, batches):
    """Each is flattened once."""
    flattened = Counter[Layout]()
    batch_of = []
    flatten, divide = TreeStore.flatten, sweeping._batches

    def counted(store, layout):
        flattened[layout] += 1
        return flatten(store, layout)

    def noted(layouts, fitting):
        found = divide(layouts, fitting)
        batch_of.extend(set(batch) for batch in found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(TreeStore, "flatten", counted)
        patched.setattr(sweeping, "_batches", noted)
        patched.setattr(sweeping, "layouts_that_fit", lambda index: room)
        options = options_of(ALL, GENOME, runs=2, control_runs=3)
        progress = Steps()
        assert sweep_into(tmp_path, DATA, options, progress=progress) == 35
    assert planned_in(tmp_path) == wanted(ALL, 2, 3)
    assert len(batch_of) == batches
    assert set.union(*batch_of) == {Layout.of(Policy.from_code(code)) for code in ALL}
    assert sum(map(len, batch_of)) == 16
    assert set(flattened.values()) == {1} and len(flattened) == 16
    assert [done for _, done, _ in progress.told] == list(range(1, 36))


def test_a_batch_of_which_all_is_done_is_left_out(tmp_path, monkeypatch):
    """A sweep that goes on flattens only what it still needs."""
    options = options_of(ALL, GENOME, runs=1, control_runs=1)
    sweep_into(tmp_path, DATA, options)
    lines = (tmp_path / RUNS_FILE).read_text().splitlines(keepends=True)
    (tmp_path / RUNS_FILE).write_text("".join(each for each in lines if '"mrt"' not in each))
    flattened = Counter[Layout]()
    flatten = TreeStore.flatten

    def counted(store, layout):
        flattened[layout] += 1
        return flatten(store, layout)

    monkeypatch.setattr(TreeStore, "flatten", counted)
    monkeypatch.setattr(sweeping, "layouts_that_fit", lambda index: 1)
    assert sweep_into(tmp_path, DATA, options) == 1
    assert flattened == {Layout.of(Policy.from_code("mrt")): 1}


def test_trees_that_do_not_fit_together_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("mummergpu.runtime.memory.free_memory", lambda: 100_000)
    with pytest.raises(OptionError, match="do not fit in memory together") as caught:
        sweep_into(tmp_path / "new", DATA, options_of("none", GENOME))
    assert caught.value.option == "page_size"
    assert not (tmp_path / "new").exists()


def test_awkward_references_and_queries_are_measured(tmp_path):
    for number, case in enumerate(CASES[:18]):
        if not sum(map(len, case.queries)):
            continue
        options = options_of("none m rt", case, runs=1, control_runs=0, threads=1)
        folder = tmp_path / str(number)
        assert sweep_into(folder, data_of(case, 1, STRANDS), options) == 3
        expected = sum(len(rows) for strand in STRANDS for rows in case.expected(strand))
        assert {run.mems for run in read_sweep(folder).runs} == {expected}


def test_an_error_frees_the_folder(tmp_path, monkeypatch):
    options = options_of("none m", GENOME)
    with monkeypatch.context() as patched:
        patched.setattr(Measurer, "run", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sweep_into(tmp_path, DATA, options)
    assert sweep_into(tmp_path, DATA, options) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == [RUNS_FILE, SETUP_FILE]
