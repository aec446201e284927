"""What a run costs, and the hash of what it finds."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from helpers.in_memory import columns_of
from helpers.opened_backends import GENOME
from helpers.search_cases import CASES, ONE_PAGE, STRANDS, SearchCase, made_bases
from helpers.sequences import random_bases
from helpers.studies import QuickSearcher, data_of

from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand
from mummergpu.studies import measurement
from mummergpu.studies.combinations import PlannedRun, differing_policies
from mummergpu.studies.layout_sweep import TreeStore
from mummergpu.studies.measurement import Measurer, MemDigest, Snapshot, first_queries
from mummergpu.studies.records import STAGES, KernelRecord

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
    assert len({run.digest for run in runs}) == 1
    assert len(runs[0].digest) == 2 * 4 * 8
    assert len({run.bytes["trees"] for run in runs}) >= 3
    for run in runs:
        assert (run.kind, run.repeat, run.kernels) == ("run", 3, {})
        assert set(run.seconds) - {"ordering"} == {
            *("build", "order", "flatten", "match", "print", "search")
        }
        assert set(run.seconds) <= set(STAGES)
        assert all(value > 0 for value in run.seconds.values())
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
    data = data_of(GENOME)
    runs = measured(GENOME, data, ["none", "none", "m", "none"])
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
    assert (run.mems, run.digest) == (expected.mems, expected.digest)
    assert run.candidate_matches > 0


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
    assert len(seen) == count + 3


def test_columns_are_hashed_apart():
    """Numbers that change places between two columns change the hash."""
    turned = [[(row[1], row[0], row[2]) for row in rows] for rows in ROWS]
    assert digest_of({STRANDS[0]: turned}) != digest_of({STRANDS[0]: ROWS})


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


def test_visits_that_were_not_counted_are_none():
    """Also after a run in which they were."""
    stats = Stats()
    stats.add_kernel("match_kernel", "match_kernel", 1.0)
    stats.add_node_visits("match_kernel", 9)
    before = Snapshot.of(stats)
    stats.add_kernel("match_kernel", "match_kernel", 1.0)
    assert Snapshot.of(stats).since(before).kernels["match_kernel"].node_visits is None


def test_a_kernel_that_visits_no_node_was_counted_all_the_same():
    stats = Stats()
    for _ in range(2):
        before = Snapshot.of(stats)
        for name, visits in (("match_kernel", 5), ("write_mems", 0)):
            stats.add_kernel(name, "match_kernel", 1.0)
            stats.add_node_visits(name, visits)
        stats.add_kernel("merge_pages", "print_kernel", 1.0)
        cost = Snapshot.of(stats).since(before)
        visits_of = {name: kernel.node_visits for name, kernel in cost.kernels.items()}
        assert visits_of == {"match_kernel": 5, "write_mems": 0, "merge_pages": None}


def test_the_first_queries_are_about_as_many_as_asked_for():
    some = random.Random(1)
    queries = tuple(random_bases(some, 9) for _ in range(100))
    block = data_of(SearchCase("x", ("ACGT",), queries, 4)).blocks[0]
    for count in (1, 7, 50, 99, 100, 1000):
        head = first_queries(block, count)
        assert min(count, 100) / 2 <= head.query_count <= count
        assert np.array_equal(head.codes, block.codes[: head.base_count])
    assert first_queries(block, 100) is block
