"""Sweeps of layouts on the processor: the trees, what a run costs, whole sweeps."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pytest
from helpers.in_memory import columns_of, reference_of
from helpers.opened_backends import GENOME
from helpers.search_cases import CASES, COLUMNS, ONE_PAGE, STRANDS, SearchCase, made_bases
from helpers.sequences import random_bases
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
from helpers.trees import LAYOUTS, WIDE_LAYOUTS

from mummergpu.errors import BackendError, InputError, OptionError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.index.tree_index import build_page
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand
from mummergpu.studies import layout_sweep, measurement
from mummergpu.studies import layout_sweep as sweeping
from mummergpu.studies.combinations import PlannedRun, differing_policies
from mummergpu.studies.layout_sweep import TreeStore
from mummergpu.studies.measurement import Measurer, MemDigest, Snapshot, first_queries
from mummergpu.studies.records import RUNS_FILE, SETUP_FILE, STAGES, KernelRecord

WHOLE_GENOME = SearchCase("one page", GENOME.records, GENOME.queries, 6)
LENGTHS = {len(record) for record in GENOME.records}


def store_of(case):
    return TreeStore(reference_of(case.records), case.page_plan, map)


def differences(store, case, layout):
    """Say in what the pages of a store are not those of an ordinary run."""
    reference = reference_of(case.records)
    pages, _ = store.flatten(layout)
    found = []
    assert [page.page for page in pages] == case.page_plan
    for page in pages:
        expected = build_page(reference, page.page, layout, Stats())
        for name, value in vars(expected.tree).items():
            if not np.array_equal(getattr(page.tree, name), value):
                found.append(f"page {page.page.index}: {name}")
        if not np.array_equal(page.joined_reference, reference.codes):
            found.append("the reference")
    return found


@pytest.mark.parametrize(
    ("case", "layouts"),
    [
        (GENOME, [*LAYOUTS, LAYOUTS[2]]),
        (WHOLE_GENOME, [*LAYOUTS, *WIDE_LAYOUTS]),
    ],
    ids=["pages", "whole"],
)
def test_pages_are_those_of_an_ordinary_run(case, layouts):
    store = store_of(case)
    for layout in layouts:
        assert differences(store, case, layout) == []


def test_growing_and_ordering_happen_once(monkeypatch):
    # What has warmed up a store is not counted.
    monkeypatch.setattr(layout_sweep, "warm_up", lambda: None)
    steps = {}
    for name in ("grow_tree", "order_nodes", "flatten_tree"):
        steps[name] = Mock(wraps=getattr(layout_sweep, name))
        monkeypatch.setattr(layout_sweep, name, steps[name])
    store = store_of(GENOME)
    pages = len(GENOME.page_plan)
    assert pages >= 5 and [step.call_count for step in steps.values()] == [pages, 0, 0]
    seconds = [store.flatten(layout)[1] for layout in LAYOUTS]
    assert [step.call_count for step in steps.values()] == [pages, 2 * pages, 16 * pages]
    assert {each["build"] for each in seconds} == {store.build_seconds}
    for reordered in (False, True):
        of_order = {
            each["order"]
            for each, layout in zip(seconds, LAYOUTS, strict=True)
            if layout.node_reordering == reordered
        }
        assert len(of_order) == 1
    assert len({each["flatten"] for each in seconds}) == 16
    assert all(set(each) == {"build", "order", "flatten"} for each in seconds)
    assert all(value > 0 for each in seconds for value in each.values())


def test_seconds_are_summed_over_pages(monkeypatch):
    now = [0.0]

    def tick():
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(layout_sweep.time, "perf_counter", tick)
    store = store_of(GENOME)
    pages = float(len(GENOME.page_plan))
    assert store.flatten(LAYOUTS[3])[1] == {"build": pages, "order": pages, "flatten": pages}


def test_threads_make_the_same_trees():
    with ThreadPoolExecutor(3) as pool:
        store = TreeStore(reference_of(GENOME.records), GENOME.page_plan, pool.map)
        assert differences(store, GENOME, LAYOUTS[7]) == []


FORWARD = (Strand.FORWARD,)


def measured(case, data, policies=("none",), wide=False, threads=2):
    """A run of each policy on the processor."""
    searcher = QuickSearcher()
    runs = []
    with ThreadPoolExecutor(threads) as executor:
        store = TreeStore(data.reference, case.page_plan, executor.map)
        measurer = Measurer(searcher, data, case.minimum_length, executor)
        assert measurer.backend_name == "cpu"
        for position, code in enumerate(policies):
            pages, seconds = store.flatten(Layout.of(Policy.from_code(code), wide))
            measurer.load(code, pages, False)
            runs.append(measurer.run(PlannedRun(code, "run", 3), position, seconds))
    return runs


@pytest.mark.parametrize("wide", [False, True], ids=["paper", "wide"])
def test_every_layout_finds_the_same(wide):
    case = GENOME if not wide else replace(GENOME, page_size=ONE_PAGE)
    policies = differing_policies("cpu")
    runs = measured(case, data_of(case, 2, STRANDS), policies, wide)
    assert [run.policy for run in runs] == policies
    assert [run.position for run in runs] == list(range(16))
    expected = sum(len(rows) for strand in STRANDS for rows in case.expected(strand))
    assert {run.mems for run in runs} == {expected}
    assert len({run.digest for run in runs}) == 1 and len(runs[0].digest) == 2 * 4 * 8
    assert len({run.bytes["trees"] for run in runs}) >= 3
    for run in runs:
        assert (run.kind, run.repeat, run.kernels) == ("run", 3, {})
        assert set(run.seconds) - {"ordering"} == {
            *("build", "order", "flatten", "match", "print", "search")
        }
        assert set(run.seconds) <= set(STAGES) and all(value > 0 for value in run.seconds.values())
        assert run.kernel_seconds >= run.seconds["match"] + run.seconds["print"]
        assert run.candidate_matches > 0
        assert run.bytes["to_device"] == run.bytes["from_device"] == 0
    assert len({run.candidate_matches for run in runs}) == 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case.name)
def test_blocks_and_threads_do_not_matter(case, threads):
    found = set()
    for parts in (1, 2, 5):
        (run,) = measured(case, data_of(case, parts, STRANDS), threads=threads)
        found.add((run.mems, run.digest))
    (run,) = measured(case, data_of(case, 1, STRANDS), threads=2)
    assert found == {(run.mems, run.digest)}


def test_a_run_counts_itself_alone():
    """What other runs have found, and the queries of the warm-up, do not count."""
    runs = measured(GENOME, data_of(GENOME), ["none", "none", "m", "none"])
    assert len({(run.mems, run.candidate_matches, run.digest) for run in runs}) == 1


def test_long_queries_are_searched_in_pieces(monkeypatch):
    text = made_bases(np.random.default_rng(1), 3000, "ACGT")
    case = SearchCase("long", (text,), (text, text[500:900], "ACGT"), 20)
    data = data_of(case, 2)
    (expected,) = measured(case, data)
    with monkeypatch.context() as patched:
        from mummergpu.matching.tree import cpu

        small = replace(cpu.SIZES, piece_bases=64, long_query=256, batch_bases=128)
        patched.setattr(cpu, "SIZES", small)
        (run,) = measured(case, data)
    assert (run.mems, run.digest) == (expected.mems, expected.digest) and run.candidate_matches > 0


def test_time_for_hashing_is_not_time_for_searching(monkeypatch):
    now = [0.0]
    update = MemDigest.update

    def slow_update(self, found):
        now[0] += 1000.0
        update(self, found)

    def clock():
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr(MemDigest, "update", slow_update)
    monkeypatch.setattr(measurement.time, "perf_counter", clock)
    (run,) = measured(GENOME, data_of(GENOME, 3))
    assert 0 < run.seconds["search"] < 1


def digest_of(*blocks):
    digest = MemDigest(map)
    for block in blocks:
        digest.update({strand: columns_of(rows) for strand, rows in block.items()})
    return digest.text()


ROWS = [[(0, 5, 20), (3, 9, 21)], [], [(1, 7, 30)], [(2, 2, 22), (2, 8, 25)]]


def test_the_hash_does_not_depend_on_blocks():
    whole = digest_of({STRANDS[0]: ROWS, STRANDS[1]: ROWS[::-1]})
    for cut in range(1, len(ROWS)):
        parts = [(ROWS[:cut], ROWS[::-1][:cut]), (ROWS[cut:], ROWS[::-1][cut:])]
        assert digest_of(*(dict(zip(STRANDS, part, strict=True)) for part in parts)) == whole
    assert len(whole) == 2 * 4 * 8


def test_the_hash_changes_with_every_number():
    seen = {digest_of({STRANDS[0]: ROWS})}
    count = 1
    for query, rows in enumerate(ROWS):
        for place, row in enumerate(rows):
            for column in range(3):
                for more in (1, 1 << 31, 1 << 40):
                    changed = list(row)
                    changed[column] += more
                    every = [list(each) for each in ROWS]
                    every[query][place] = tuple(changed)
                    seen.add(digest_of({STRANDS[0]: every}))
                    count += 1
    for first, second in pairwise(range(len(ROWS))):
        every = [list(each) for each in ROWS]
        if every[first]:
            every[second].insert(0, every[first].pop())
            seen.add(digest_of({STRANDS[0]: every}))
            count += 1
    seen.add(digest_of({STRANDS[0]: [*ROWS, []]}))
    seen.add(digest_of({STRANDS[0]: ROWS, STRANDS[1]: ROWS}))
    seen.add(digest_of({STRANDS[0]: ROWS, STRANDS[1]: ROWS[::-1]}))
    # Numbers that change places between two columns.
    seen.add(digest_of({STRANDS[0]: [[(row[1], row[0], row[2]) for row in rows] for rows in ROWS]}))
    assert len(seen) == count + 4


def test_a_snapshot_tells_what_was_added():
    stats = Stats()
    stats.set_resources("idle", {"registers": 4})
    stats.add_kernel("match_kernel", "match_kernel", 5.0)
    stats.add_node_visits("match_kernel", 100)
    stats.add_kernel("old", "print_kernel", 1.0)
    stats.add_bytes(to_device=10)
    stats.add(candidate_matches=3)
    before = Snapshot.of(stats)
    stats.add_kernel("match_kernel", "match_kernel", 2.0)
    stats.add_kernel("match_kernel", "match_kernel", 1.5)
    stats.add_node_visits("match_kernel", 11)
    resources = {"registers": 32, "local_bytes": 8, "shared_bytes": 16, "occupancy": 0.5}
    stats.set_resources("match_kernel", resources)
    stats.add_kernel("new", "print_kernel", 0.25)
    stats.add_bytes(to_device=7, from_device=2)
    stats.add(candidate_matches=4)
    cost = Snapshot.of(stats).since(before)
    assert cost.kernels == {
        "match_kernel": KernelRecord(3.5, 2, 11, 32, 8, 16, 0.5),
        "new": KernelRecord(0.25, 1),
    }
    assert cost.bytes == {"to_device": 7, "from_device": 2}
    assert cost.counts == {"candidate_matches": 4}
    used = {name: value for name, value in cost.seconds.items() if value}
    assert used == pytest.approx({"match_kernel": 0.0035, "print_kernel": 0.00025})
    # A snapshot does not change with what comes later.
    assert before.kernels["match_kernel"] == KernelRecord(5.0, 1, 100)
    assert before.bytes == {"to_device": 10}


def test_a_kernel_that_visits_no_node_was_counted_all_the_same():
    stats = Stats()
    for _ in range(2):
        before = Snapshot.of(stats)
        for name, visits in (("match_kernel", 5), ("find_mems", 0)):
            stats.add_kernel(name, "match_kernel", 1.0)
            stats.add_node_visits(name, visits)
        stats.add_kernel("merge_pages", "print_kernel", 1.0)
        cost = Snapshot.of(stats).since(before)
        visits_of = {name: kernel.node_visits for name, kernel in cost.kernels.items()}
        assert visits_of == {"match_kernel": 5, "find_mems": 0, "merge_pages": None}
    before = Snapshot.of(stats)
    stats.add_kernel("match_kernel", "match_kernel", 1.0)
    assert Snapshot.of(stats).since(before).kernels["match_kernel"].node_visits is None


def test_the_first_queries_are_about_as_many_as_asked_for():
    some = random.Random(1)
    queries = tuple(random_bases(some, 9) for _ in range(100))
    block = data_of(SearchCase("x", ("ACGT",), queries, 4)).blocks[0]
    for count in (1, 7, 50, 99, 100, 1000):
        head = first_queries(block, count)
        assert min(count, 100) / 2 <= head.query_count <= count
        assert np.array_equal(head.codes, block.codes[: head.base_count])
    assert first_queries(block, 100) is block


BLOCKS = data_of(GENOME, 3)
ALL = differing_policies("cpu")
FEW = "none tn rt m"


def test_all_layouts_are_measured(tmp_path):
    progress = Steps()
    options = options_of(ALL, GENOME, runs=2, control_runs=3)
    assert sweep_into(tmp_path, BLOCKS, options, progress=progress) == 16 * 2 + 3
    sweep = read_sweep(tmp_path)
    assert planned_in(tmp_path) == wanted(ALL, 2, 3) and sweep.runs[0].policy == "none"
    assert {run.mems for run in sweep.runs} == {sum(map(len, GENOME.expected(STRANDS[0])))}
    assert len({run.digest for run in sweep.runs}) == 1
    total = len(sweep.runs)
    assert progress.told == [(GENOME.name, number, total) for number in range(1, total + 1)]
    order = [run.policy for run in sweep.runs]
    assert order != sorted(order) and order[1:17] != order[17:33]


def test_the_setup_says_what_was_measured(tmp_path):
    data = data_of(GENOME, 2, STRANDS)
    sweep_into(tmp_path, data, options_of(FEW, GENOME, runs=1, control_runs=0, seed=7, threads=3))
    setup = read_sweep(tmp_path).setup
    assert setup.policies == ("none", "tn", "rt", "m")
    assert (setup.runs, setup.control_runs, setup.seed, setup.profile) == (1, 0, 7, False)
    given, machine = setup.input, setup.machine
    assert (given.name, given.minimum_length) == ("genome", GENOME.minimum_length)
    assert (given.reference_records, given.query_count) == (4, 13)
    assert given.reference_bases == sum(map(len, GENOME.records))
    assert given.query_bases == sum(map(len, GENOME.queries))
    assert given.query_digest == data.query_digest() and given.strands == ("forward", "reverse")
    assert (given.pages, given.page_size) == (len(GENOME.page_plan), 130)
    assert given.address_bits == 24
    assert (machine.backend, machine.threads, machine.multiprocessors) == ("cpu", 3, 0)
    assert machine.gathers_per_second == GATHERS
    assert machine.device and machine.memory_bytes > 1 << 28
    assert {"python", "system", "numpy", "numba"} <= set(machine.versions)


def test_the_wide_format_is_measured(tmp_path):
    case = replace(GENOME, page_size=ONE_PAGE)
    sweep_into(tmp_path, BLOCKS, options_of("none t m", case, runs=1, control_runs=0, bits=32))
    sweep = read_sweep(tmp_path)
    assert sweep.setup.input.address_bits == 32
    assert planned_in(tmp_path) == wanted(["none", "t", "m"], 1, 0)
    sizes = {run.policy: run.bytes["trees"] for run in sweep.runs}
    assert sizes["t"] > 24 << 20 > sizes["none"]


def test_nothing_is_done_twice(tmp_path, monkeypatch):
    options = options_of(FEW, GENOME)
    assert sweep_into(tmp_path, BLOCKS, options) == 10
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(sweeping, "TreeStore", None)
    monkeypatch.setattr(QuickSearcher, "gathers_per_second", None)
    assert sweep_into(tmp_path, BLOCKS, options) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_sweep_goes_on_after_any_run(tmp_path):
    options = options_of(FEW, GENOME)
    sweep_into(tmp_path, BLOCKS, options)
    lines = (tmp_path / RUNS_FILE).read_bytes().splitlines(keepends=True)
    expected = wanted(FEW.split(), 2, 2)
    for count in range(len(lines)):
        progress = Steps()
        half = lines[count][: len(lines[count]) // 2]
        (tmp_path / RUNS_FILE).write_bytes(b"".join(lines[:count]) + half)
        assert sweep_into(tmp_path, BLOCKS, options, progress=progress) == len(lines) - count
        assert planned_in(tmp_path) == expected
        after = (tmp_path / RUNS_FILE).read_bytes().splitlines(keepends=True)
        assert after[:count] == lines[:count]
        assert [done for _, done, _ in progress.told] == list(range(count + 1, len(lines) + 1))


def test_a_sweep_without_the_runs_of_the_control_goes_on(tmp_path):
    """Its first run is then one of the control, whose matches the others must have."""
    options = options_of(FEW, GENOME)
    sweep_into(tmp_path, BLOCKS, options)
    lines = (tmp_path / RUNS_FILE).read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"policy":"none"' not in line]
    (tmp_path / RUNS_FILE).write_text("".join(kept))
    assert sweep_into(tmp_path, BLOCKS, options) == len(lines) - len(kept) == 4
    after = [run.policy for run in read_sweep(tmp_path).runs]
    assert after[len(kept) :] == ["none"] * 4


def test_more_runs_and_policies_may_follow(tmp_path):
    assert sweep_into(tmp_path, BLOCKS, options_of("none m", GENOME, runs=1, control_runs=0)) == 2
    progress = Steps()
    more = options_of("none rt", GENOME, runs=3, control_runs=1, seed=2)
    assert sweep_into(tmp_path, BLOCKS, more, progress=progress) == 2 + 3 + 1
    # The run of `m` is not one of those that are shown.
    assert progress.told[0][1:] == (2, 7) and progress.told[-1][1:] == (7, 7)
    assert planned_in(tmp_path) == wanted(["none", "rt"], 3, 1) + wanted(["m"], 1, 0)
    setup = read_sweep(tmp_path).setup
    assert (setup.policies, setup.runs) == (("none", "rt", "m"), 3)
    assert sweep_into(tmp_path, BLOCKS, options_of("none m rt", GENOME, control_runs=1)) == 1
    assert planned_in(tmp_path)[PlannedRun("m", "run", 1)] == 1


def test_another_input_is_refused(tmp_path):
    options = options_of("none", GENOME)
    sweep_into(tmp_path, BLOCKS, options)
    queries = (*GENOME.queries[:-1], GENOME.queries[-1] + "A")
    others = [
        (data_of(replace(GENOME, queries=queries)), options),
        (data_of(replace(GENOME, records=(*GENOME.records, "ACGT"))), options),
        (data_of(replace(GENOME, minimum_length=7)), options),
        (data_of(GENOME, 1, STRANDS), options),
        (BLOCKS, options_of("none", replace(GENOME, page_size=140))),
        (BLOCKS, options_of("none", GENOME, bits=32)),
    ]
    for data, given in others:
        with pytest.raises(InputError, match="holds a sweep with another input"):
            sweep_into(tmp_path, data, given)
    with pytest.raises(InputError, match="another number of threads"):
        sweep_into(tmp_path, BLOCKS, options_of("none", GENOME, threads=1))
    assert sweep_into(tmp_path, data_of(GENOME, 5), options) == 0


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
            sweep_into(tmp_path, BLOCKS, options)
        assert caught.value.backend == "cpu" and "policy 'rt' finds" in caught.value.message
        assert "matches that are not those of the control" in caught.value.message
        runs = read_sweep(tmp_path).runs
        assert runs and "rt" not in {run.policy for run in runs}
        # Not even if the runs of the control were made by another process.
        with pytest.raises(BackendError, match="policy 'rt' finds"):
            sweep_into(tmp_path, BLOCKS, options)
        assert "rt" not in {run.policy for run in read_sweep(tmp_path).runs}
    sweep_into(tmp_path, BLOCKS, options)
    assert planned_in(tmp_path) == wanted(FEW.split(), 3, 2)


def test_a_control_that_changes_is_an_error(tmp_path, monkeypatch):
    options = options_of("none", GENOME, runs=1, control_runs=1)
    sweep_into(tmp_path, BLOCKS, replace(options, control_runs=0))
    load, update = wrong_for("none", 3)
    monkeypatch.setattr(Measurer, "load", load)
    monkeypatch.setattr(MemDigest, "update", update)
    with pytest.raises(BackendError, match="policy 'none' finds"):
        sweep_into(tmp_path, BLOCKS, options)
    assert planned_in(tmp_path) == wanted(["none"], 1, 0)


def counted_flattening(monkeypatch):
    """Count from now on how often each layout is flattened."""
    flattened, flatten = Counter(), TreeStore.flatten

    def counted(store, layout):
        flattened[layout] += 1
        return flatten(store, layout)

    monkeypatch.setattr(TreeStore, "flatten", counted)
    return flattened


@pytest.mark.parametrize(("room", "batches"), [(2, 16), (6, 4), (17, 1)])
def test_layouts_are_made_in_batches_where_memory_is_short(tmp_path, monkeypatch, room, batches):
    """Each is flattened once."""
    flattened = counted_flattening(monkeypatch)
    batch_of = []
    divide = sweeping._batches

    def noted(layouts, fitting):
        found = divide(layouts, fitting)
        batch_of.extend(set(batch) for batch in found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(sweeping, "_batches", noted)
        patched.setattr(sweeping, "layouts_that_fit", lambda index: room)
        options = options_of(ALL, GENOME, runs=2, control_runs=3)
        progress = Steps()
        assert sweep_into(tmp_path, BLOCKS, options, progress=progress) == 35
    assert planned_in(tmp_path) == wanted(ALL, 2, 3) and len(batch_of) == batches
    assert set.union(*batch_of) == {Layout.of(Policy.from_code(code)) for code in ALL}
    assert sum(map(len, batch_of)) == 16
    assert set(flattened.values()) == {1} and len(flattened) == 16
    assert [done for _, done, _ in progress.told] == list(range(1, 36))


def test_a_batch_of_which_all_is_done_is_left_out(tmp_path, monkeypatch):
    """A sweep that goes on flattens only what it still needs."""
    options = options_of(ALL, GENOME, runs=1, control_runs=1)
    sweep_into(tmp_path, BLOCKS, options)
    lines = (tmp_path / RUNS_FILE).read_text().splitlines(keepends=True)
    (tmp_path / RUNS_FILE).write_text("".join(each for each in lines if '"mrt"' not in each))
    flattened = counted_flattening(monkeypatch)
    monkeypatch.setattr(sweeping, "layouts_that_fit", lambda index: 1)
    assert sweep_into(tmp_path, BLOCKS, options) == 1
    assert flattened == {Layout.of(Policy.from_code("mrt")): 1}


def test_trees_that_do_not_fit_together_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("mummergpu.runtime.memory.free_memory", lambda: 100_000)
    with pytest.raises(OptionError, match="do not fit in memory together") as caught:
        sweep_into(tmp_path / "new", BLOCKS, options_of("none", GENOME))
    assert caught.value.option == "page_size" and not (tmp_path / "new").exists()


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
            sweep_into(tmp_path, BLOCKS, options)
    assert sweep_into(tmp_path, BLOCKS, options) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == [RUNS_FILE, SETUP_FILE]
