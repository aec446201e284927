"""What a study searches, under which policies and in which order, and by what."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pytest
from helpers.loops import each
from helpers.search_cases import CASES
from helpers.sequences import random_bases
from helpers.studies import data_of, wanted
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.errors import BackendError, InputError, OptionError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.matching import open_cuda
from mummergpu.matching.options import DeviceOptions
from mummergpu.sequence.strand import Strand
from mummergpu.studies import combinations, gathers, machine
from mummergpu.studies.data_set import make_data_set, read_data_set
from mummergpu.studies.gathers import (
    LANES,
    RECORD_WORDS,
    fill_table,
    follow_records,
    processor_gathers,
)
from mummergpu.studies.searcher import StudySearcher, open_searcher


def test_there_are_128_combinations_of_seven_letters():
    codes = combinations.every_policy()
    assert codes[0] == combinations.CONTROL == "none" and len(codes) == len(set(codes)) == 128
    assert all(Policy.from_code(code).code == code for code in codes) and codes[-1] == "QRTmrtn"


def test_the_processor_has_no_textures():
    assert combinations.differing_policies("cuda") == combinations.every_policy()
    codes = combinations.differing_policies("cpu")
    assert codes[0] == combinations.CONTROL and len(codes) == 16
    assert not set("".join(codes[1:])) - set("mrtn")
    assert len({Layout.of(Policy.from_code(code)) for code in codes}) == 16


@pytest.mark.parametrize(
    ("text", "backend", "expected"),
    [
        ("none", "cpu", "none"),
        ("m", "cpu", "none m"),
        ("nm,mn", "cuda", "none mn"),
        ("Tn,m", "cpu", "none m Tn"),
        ("?", "cpu", "none n t r m"),
        ("?", "cuda", "none n t r m T R Q"),
        ("*rt*", "cpu", "none rt rtn mrt mrtn"),
        ("[QR]m,t", "cuda", "none t Rm Qm"),
        ("none,none", "cuda", "none"),
    ],
)
def test_policies_are_chosen_by_codes_and_patterns(text, backend, expected):
    assert combinations.choose_policies(text, backend) == expected.split()


def test_a_pattern_stands_for_all_that_match_it():
    assert (
        combinations.choose_policies("*", "cuda")
        == combinations.choose_policies("all", "cuda")
        == combinations.every_policy()
    )
    with_tree_texture = combinations.choose_policies("T*", "cuda")
    assert len(with_tree_texture) == 1 + 16
    assert all(code.startswith("T") for code in with_tree_texture[1:])


@pytest.mark.parametrize(
    ("text", "backend", "told"),
    [
        ("T*", "cpu", "no policy on the cpu matches 'T*'"),
        ("*x*", "cuda", "no policy on the cuda matches '*x*'"),
        ("m,Z", "cuda", "'Z' is not made of"),
        ("mm", "cuda", "twice"),
        ("", "cuda", "'' is not made of"),
        ("m,", "cuda", "'' is not made of"),
        ("all,m", "cuda", "'all' is not made of"),
    ],
)
def test_what_is_no_policy_is_an_error(text, backend, told):
    with pytest.raises(OptionError) as caught:
        combinations.choose_policies(text, backend)
    assert caught.value.option == "policies" and told in caught.value.message


@pytest.mark.parametrize("wide", [False, True])
def test_combinations_of_a_layout_differ_in_textures_only(wide):
    groups = combinations.by_layout(combinations.every_policy(), wide)
    assert len(groups) == 16
    for layout, codes in groups.items():
        assert len(codes) == 8 and layout.wide == wide
        assert {Layout.of(Policy.from_code(code), wide) for code in codes} == {layout}
        assert len({code.replace("none", "").strip("QRT") for code in codes}) == 1


CODES = ["none", "m", "Tn", "QRT", "r", "t", "mrt"]


def flat(visits):
    return [run for visit in visits for run in visit]


@pytest.mark.parametrize(("runs", "rounds"), [(1, 1), (5, 5), (5, 2), (5, 1), (4, 3), (2, 2)])
@pytest.mark.parametrize("control_runs", [0, 1, 10, 50])
@pytest.mark.parametrize("profile", [False, True])
def test_each_run_is_planned_once(runs, rounds, control_runs, profile):
    visits = combinations.order_of_visits(CODES, runs, rounds, control_runs, 3, profile)
    expected = wanted(CODES, runs, control_runs)
    if profile:
        expected.update(combinations.PlannedRun(code, "profile", 0) for code in CODES)
    assert Counter(flat(visits)) == expected
    assert all(len({run.policy for run in visit}) == 1 for visit in visits)
    own = [visit for visit in visits if visit[0].kind != "control"]
    assert len(own) == rounds * len(CODES)
    for number in range(rounds):
        of_round = own[number * len(CODES) : (number + 1) * len(CODES)]
        assert {visit[0].policy for visit in of_round} == set(CODES)
        sizes = {len([run for run in visit if run.kind == "run"]) for visit in of_round}
        assert len(sizes) == 1 and runs // rounds <= sizes.pop() <= -(-runs // rounds)
    for code in CODES:
        repeats = [run.repeat for run in flat(own) if (run.policy, run.kind) == (code, "run")]
        assert repeats == sorted(repeats)


def test_nodes_are_counted_at_the_end_of_the_last_visit():
    visits = combinations.order_of_visits(CODES, 4, 2, 0, 1, True)
    for visit in visits[: len(CODES)]:
        assert {run.kind for run in visit} == {"run"}
    for visit in visits[len(CODES) :]:
        assert [run.kind for run in visit] == ["run", "run", "profile"]


def test_the_seed_gives_the_order():
    orders = [combinations.order_of_visits(CODES, 3, 3, 2, seed, False) for seed in (*range(8), 7)]
    assert orders[-1] == orders[-2] and len({tuple(map(tuple, order)) for order in orders}) == 8
    # A sweep may go on with a later Python.
    order = [visit[0].policy for visit in combinations.order_of_visits(CODES, 1, 1, 0, 1, False)]
    assert order == ["QRT", "mrt", "t", "Tn", "none", "r", "m"]


def test_each_round_has_another_order():
    codes = combinations.every_policy()
    visits = combinations.order_of_visits(codes, 3, 3, 0, 1, False)
    orders = [[visit[0].policy for visit in visits[128 * n : 128 * n + 128]] for n in range(3)]
    assert len({*map(tuple, orders), tuple(codes)}) == 4


@pytest.mark.parametrize("control_runs", [1, 2, 7, 10, 63])
def test_the_control_is_spread_evenly(control_runs):
    visits = combinations.order_of_visits(combinations.every_policy(), 2, 2, control_runs, 1, False)
    places = [number for number, visit in enumerate(visits) if visit[0].kind == "control"]
    assert [visits[place][0].repeat for place in places] == list(range(control_runs))
    between = [after - before for before, after in pairwise([-1, *places, len(visits)])]
    inner = between[1:-1]
    ideal = len(visits) / control_runs
    assert all(abs(gap - ideal) <= 1 for gap in inner)
    assert all(abs(gap - ideal / 2) < 2 for gap in (between[0], between[-1]))


FORWARD = (Strand.FORWARD,)
CASE = CASES[0]
QUERIES = ("ACGTACGT", "", "TTGACA", "N", "GATTACA", "AC")


def digest_of(queries, parts=1):
    return data_of(replace(CASE, queries=queries), parts).query_digest()


@pytest.fixture
def files(tmp_path):
    bases = random_bases(random.Random(2), 500)
    (tmp_path / "r.fa").write_text(f">one\n{bases[:300]}\n>two\n{bases[300:]}\n")
    reads = [bases[start : start + 30 + start % 50] for start in range(0, 400, 9)]
    (tmp_path / "q.fa").write_text("".join(f">q{n}\n{read}\n" for n, read in enumerate(reads)))
    (tmp_path / "renamed.fa").write_text("".join(f">other {read}\n{read}\n" for read in reads))
    (tmp_path / "empty.fa").write_text("")
    (tmp_path / "protein.fa").write_text(">p\nMKVLEERRWQPFHLIKAMKVLEERRWQPFHLIK\n")
    return tmp_path


def read_files(files, *queries, block_size=1 << 20, **more):
    paths = [str(files / name) for name in queries]
    return read_data_set("x", str(files / "r.fa"), paths, block_size, 20, FORWARD, **more)


def test_the_hash_does_not_depend_on_blocks_nor_on_names(files):
    assert len({digest_of(QUERIES, parts) for parts in range(1, 7)}) == 1
    read_so = [read_files(files, "q.fa", block_size=size) for size in [1, 50, 333, 1 << 20]]
    assert len({len(data.blocks) for data in read_so}) == 4
    assert {data.query_digest() for data in [*read_so, read_files(files, "renamed.fa")]} == {
        read_so[0].query_digest()
    }
    assert {data.query_count for data in read_so} == {45}
    assert len({data.query_bases for data in read_so}) == 1


def test_the_hash_changes_with_every_base_border_and_order():
    seen = {digest_of(QUERIES)}
    count = 1
    for number, query in enumerate(QUERIES):
        for place in range(len(query)):
            for base in set("ACGTN") - {query[place]}:
                changed = query[:place] + base + query[place + 1 :]
                seen.add(digest_of((*QUERIES[:number], changed, *QUERIES[number + 1 :])))
                count += 1
    joined = "".join(QUERIES)
    borders = np.cumsum([len(query) for query in QUERIES])
    for number in range(len(QUERIES) - 1):
        for place in set(range(len(joined) + 1)) - {borders[number]}:
            ends = sorted([*np.delete(borders, number), place])
            pieces = tuple(joined[a:b] for a, b in zip([0, *ends], ends, strict=False))
            if pieces != QUERIES:
                seen.add(digest_of(pieces))
    assert digest_of(QUERIES[::-1]) not in seen and digest_of(QUERIES[:-1]) not in seen
    assert digest_of((*QUERIES, "")) not in seen and digest_of(("", *QUERIES)) not in seen
    # Different borders give different hashes, and so do different bases.
    assert len(seen) > count + 50


def test_figures_of_the_queries():
    data = data_of(replace(CASE, queries=QUERIES), 3)
    assert (len(data.blocks), data.query_count, data.query_bases) == (3, 6, 24)
    assert data.median_query_length == 4
    assert [block.query_count for block in data.blocks] == [2, 2, 2]


def test_files_are_read(files):
    data = read_files(files, "q.fa", "renamed.fa")
    assert data.query_count == 90 and data.reference.record_lengths.tolist() == [300, 200]
    assert (data.name, data.minimum_length, data.strands) == ("x", 20, FORWARD)


def test_no_queries_is_an_error(files):
    with pytest.raises(InputError, match="has no queries to measure with") as caught:
        read_files(files, "empty.fa")
    assert caught.value.path == str(files / "empty.fa")


def test_rules_are_kept(files):
    with pytest.raises(InputError, match=r"empty\.fa"):
        read_files(files, "q.fa", "empty.fa", rules=QueryRules(no_empty=True))
    with pytest.raises(InputError, match=r"protein\.fa"):
        read_files(files, "protein.fa")
    assert read_files(files, "protein.fa", rules=QueryRules(any_letters=True)).query_count == 1
    proteins = [str(files / "protein.fa")] * 2
    with pytest.raises(InputError, match=r"protein\.fa"):
        read_data_set("x", proteins[0], [str(files / "q.fa")], 100, 20, FORWARD)
    rules = QueryRules(any_letters=True)
    assert read_data_set("x", proteins[0], proteins[:1], 100, 20, FORWARD, rules).query_count == 1


def test_a_workload_is_made_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = make_data_set("SSUIS", 0.0005, None, 1 << 20, None, FORWARD)
    assert list(tmp_path.iterdir()) == [] and (data.name, data.minimum_length) == ("SSUIS", 10)
    assert data.reference.base_count > 2_000_000 and data.query_count == 500
    again = make_data_set("SSUIS", 0.0005, None, 1 << 14, 31, (Strand.REVERSE,))
    assert again.query_digest() == data.query_digest()
    assert (again.minimum_length, again.strands) == (31, (Strand.REVERSE,))
    assert len(again.blocks) > len(data.blocks)
    other = make_data_set("SSUIS", 0.0005, 5, 1 << 20, None, FORWARD)
    assert other.query_digest() != data.query_digest()


@pytest.mark.parametrize(("name", "scale"), [("NOSUCH", 1.0), ("LMONO", 0.0), ("LMONO", -1.0)])
def test_what_is_no_workload_is_an_error(name, scale):
    with pytest.raises(OptionError):
        make_data_set(name, scale, None, 1 << 20, None, FORWARD)


def no_device(*given):
    raise BackendError("cuda", "there is no device")


def test_the_processor_is_opened_without_a_look_at_devices(monkeypatch):
    monkeypatch.setattr(open_cuda, "open_cuda_backend", None)
    searcher = open_searcher(DeviceOptions(backend="cpu"), lambda line: None)
    assert type(searcher) is StudySearcher and not searcher.is_device
    searcher.set_policy("QRT", True)
    searcher.compile_programs(["QRT"], False, True)
    assert searcher.block_size == searcher.backend.sizes.block_bases
    searcher.close()


def test_without_a_device_the_processor_is_taken(monkeypatch):
    monkeypatch.setattr(open_cuda, "open_cuda_backend", no_device)
    notices = []
    searcher = open_searcher(DeviceOptions(backend="auto"), notices.append)
    assert type(searcher) is StudySearcher and notices == ["no cuda backend: there is no device"]


def test_a_device_that_is_asked_for_has_to_be_there(monkeypatch):
    monkeypatch.setattr(open_cuda, "open_cuda_backend", no_device)
    with pytest.raises(BackendError, match="there is no device"):
        open_searcher(DeviceOptions(backend="cuda"), lambda line: None)


def test_the_processor_is_measured(monkeypatch):
    monkeypatch.setattr(gathers, "PROCESSOR_GATHERS", 1 << 10)
    with ThreadPoolExecutor(2) as pool:
        rates = StudySearcher().gathers_per_second(10_000, 2, pool.map)
    told = StudySearcher().machine(2, rates)
    assert (told.backend, told.threads, told.gathers_per_second) == ("cpu", 2, rates)
    assert told.device == machine.processor_name()
    assert told.architecture and told.memory_bytes > 1 << 28
    assert (told.multiprocessors, told.clocks_megahertz) == (0, {})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: A: fast one\nmodel name\t: Another\n", "A: fast one"),
        ("processor\t: 0\n", None),
        (None, None),
    ],
)
def test_the_name_of_the_processor(monkeypatch, text, name):
    monkeypatch.setattr(machine, "open", opener(text), raising=False)
    found = machine.processor_name()
    assert found and name in (None, found)


def opener(text):
    """What opens a file of the system that has a text, or that is not there."""
    opened = FileNotFoundError if text is None else lambda *given, **more: StringIO(text)
    return Mock(side_effect=opened)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVRM version: NVIDIA UNIX Module  580.82.07  Release\nGCC version 1.2\n", "580.82.07"),
        ("NVRM version: unknown\n", None),
        ("", None),
        (None, None),
    ],
)
def test_the_version_of_the_driver(monkeypatch, text, expected):
    monkeypatch.setattr(machine, "open", opener(text), raising=False)
    assert machine._kernel_driver() == ({} if expected is None else {"driver": expected})
    # Libraries that are missing have none.
    assert set(machine._versions(("numpy", "no-such"))) == {"python", "system", "numpy"}


def table_of(records):
    table = np.zeros(records * RECORD_WORDS, dtype=np.uint64)
    fill_table(table)
    return table


def shape_of(split, records):
    """The words from a record to the next, and from its first half to its second."""
    return (2, 2 * records) if split else (RECORD_WORDS, 2)


@settings(max_examples=200)
@given(
    records=st.integers(1, 400),
    split=st.booleans(),
    first=st.integers(0, 1 << 40),
    steps=st.integers(0, 300),
    words=st.sampled_from(["filled", "zeros", "ones"]),
)
def test_addresses_stay_in_the_table(records, split, first, steps, words):
    table = table_of(records)
    if words != "filled":
        table[:] = 0 if words == "zeros" else (1 << 63) - 1
    before = table.copy()
    addresses = (np.arange(LANES, dtype=np.int64) + first) % records
    for _ in range(3):
        follow_records(table, records, *shape_of(split, records), addresses, steps)
        assert addresses.min() >= 0 and addresses.max() < records
    assert np.array_equal(table, before)


@each("records, split", [(1, False), (7, True), (1000, False), (1000, True), (1 << 16, False)])
def test_addresses_are_those_that_the_records_name(records, split):
    table = table_of(records)
    stride, second = shape_of(split, records)
    addresses = np.arange(LANES, dtype=np.int64) % records
    expected = addresses.tolist()
    for step in range(40):
        for lane, address in enumerate(expected):
            both = int(table[address * stride]) + int(table[address * stride + second])
            key = (step * LANES + lane) * 0x9E3779B1
            expected[lane] = ((both + key) % (1 << 32)) * records >> 32
    total = follow_records(table, records, stride, second, addresses, 40)
    assert addresses.tolist() == expected and total == sum(expected)


@each("records, split", [(500, False), (500, True), (20_000, False), (20_000, True)])
def test_chains_do_not_go_in_circles(records, split):
    """Else a table of gigabytes would seem to be read from a cache."""
    table = table_of(records)
    stride, second = shape_of(split, records)
    seen = np.zeros(records, dtype=bool)
    every = []
    for steps in range(0, 4 * records // LANES, 8):
        # A number of steps from the start: the keys depend on it.
        at = np.arange(LANES, dtype=np.int64) % records
        follow_records(table, records, stride, second, at, steps)
        every.append(at)
    seen[np.concatenate(every)] = True
    count = len(every) * LANES
    assert seen.mean() == pytest.approx(1 - np.exp(-count / records), rel=0.15)
    # Lanes that have met go on apart.
    assert all(np.unique(at).size > LANES * 3 // 4 for at in every)


def test_a_table_is_filled_with_different_words():
    table = table_of(5000)
    assert np.unique(table).size == table.size
    assert np.unique(table & 0xFFFFFFFF).size > 0.99 * table.size
    assert abs(float((table & 0xFFFFFFFF).mean()) / (1 << 31) - 1) < 0.02


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("table_bytes", [0, 1, 32, 1000, 1 << 18])
def test_tables_of_any_size_have_rates(monkeypatch, table_bytes, threads):
    monkeypatch.setattr(gathers, "PROCESSOR_GATHERS", 1 << 10)
    with ThreadPoolExecutor(threads) as pool:
        rates = processor_gathers(table_bytes, 3, threads, pool.map)
    assert set(rates) == {"merged", "split"} and all(rate > 0 for rate in rates.values())


def test_a_rate_is_the_records_of_all_threads_in_the_median_time(monkeypatch):
    # The first turn warms up; of the others the median counts.
    lengths = iter([50.0, 1.0, 9.0, 2.0] * 2)
    now, turns = [0.0], []

    def clock():
        return now[0]

    def map_function(function, numbers):
        numbers = list(numbers)
        turns.append(numbers)
        now[0] += next(lengths)
        return map(function, numbers)

    monkeypatch.setattr(gathers.time, "perf_counter", clock)
    rates = processor_gathers(1 << 12, 3, 5, map_function)
    per_thread = LANES * gathers.PROCESSOR_GATHERS
    assert rates == {"merged": 5 * per_thread / 2.0, "split": 5 * per_thread / 2.0}
    assert turns == [[0, 1, 2, 3, 4]] * 8


def test_threads_follow_chains_of_their_own(monkeypatch):
    starts, tables = [], []

    def noted(table, records, stride, second, addresses, steps):
        starts.append(addresses.tolist())
        tables.append((table.size, records, stride, second))
        assert addresses.max() * stride + second < table.size
        return 0

    monkeypatch.setattr(gathers, "follow_records", noted)
    processor_gathers(1 << 14, 1, 3, map)
    assert len(starts) == 2 * 2 * 3
    assert sorted(start for each in starts[:3] for start in each) == list(range(3 * LANES))
    assert set(tables) == {(2048, 512, 4, 2), (2048, 512, 2, 1024)}
