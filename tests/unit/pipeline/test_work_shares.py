"""Blocks and tasks are as large as memory and threads like them, and wait for each other."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.records.record_arrays import Records
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.pipeline.block_search_loop import LEAST_SHARE, SAFETY, SAFETY_OF_SMALL, BlockParts
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.mapping_groups import MemoryGate
from mummergpu.pipeline.profile_job import NumberedProteins
from mummergpu.pipeline.search_profiles import ProfileSearch, _Found, _Task
from mummergpu.sequence.codes import MARGIN

SIZES = WorkSizes(10_000, 10, 10, 10, 1000, 100)
TASKS = 200
PROFILES = 40
PATIENCE = 20


def block_of(lengths):
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    codes = np.arange(offsets[-1] + 2 * MARGIN, dtype=np.int64).astype(np.uint8)
    names = np.frombuffer(b"n" * len(lengths), dtype=np.uint8)
    return QueryBlock(3, codes, offsets, names, np.arange(len(lengths) + 1, dtype=np.int64))


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.lists(st.integers(0, 99)))
def test_parts_are_the_block(lengths, densities):
    block, parts = block_of(lengths), BlockParts(SIZES)
    found = []
    rest = iter(densities)
    for part in parts.parts(block):
        found.append(part)
        if (rows := next(rest, None)) is not None:
            parts.add(part.base_count, rows * part.base_count // 30)
    assert all(part.query_count > 0 and part.index == 3 for part in found)
    assert [n for part in found for n in np.diff(part.offsets).tolist()] == lengths
    assert np.concatenate([part.codes for part in found]).tolist() == block.codes.tolist()


def test_the_first_part_is_small_and_the_others_as_large_as_matches_allow():
    block, parts = block_of([10] * 200), BlockParts(SIZES)
    sizes = []
    for part in parts.parts(block):
        sizes.append(part.base_count)
        parts.add(part.base_count, part.base_count)
    assert sizes[0] == SIZES.first_batch_bases
    assert set(sizes[1:-1]) == {int(SIZES.max_rows / SAFETY) // 10 * 10}


def test_no_matches_cut_nothing_and_many_cut_to_small_parts():
    parts = BlockParts(SIZES)
    parts.add(100, 0)
    assert parts.max_bases() >= 100_000
    # Some matches a base leave what fits, with less to spare, and very many no less than a small
    # part of the first.
    parts.add(100, 800)
    assert parts.max_bases() == int(SIZES.max_rows / SAFETY_OF_SMALL / 8) < SIZES.first_batch_bases
    parts.add(100, 10**9)
    assert parts.max_bases() == max(1, SIZES.first_batch_bases // LEAST_SHARE)


def test_many_matches_are_forgotten_after_a_while():
    parts = BlockParts(SIZES)
    parts.add(100, 10_000)
    dense = parts.max_bases()
    for _ in range(40):
        parts.add(100, 1)
    assert parts.max_bases() > 10 * dense


@pytest.mark.parametrize("size", [10, 25, None])
def test_together_tasks_take_no_more_than_there_is(size):
    shared, lock = MemoryGate(size), threading.Lock()
    held = []
    most = []
    both = threading.Barrier(2)

    def work(number):
        # Some take more than there is.
        wanted = 1 + number * 7 % 30
        with shared.taken(wanted):
            with lock:
                held.append(wanted)
                most.append(list(held))
            with lock:
                held.remove(wanted)
        return wanted

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(TASKS)))
    assert len(done) == len(most) == TASKS
    assert not held
    assert all(sum(one) <= (size or math.inf) or len(one) == 1 for one in most)

    def wait_for_each_other(wanted):
        with shared.taken(wanted):
            both.wait(timeout=20)

    # Two that fit have it at the same time.
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(wait_for_each_other, [5, 5]))) == 2


def test_what_was_taken_is_free_after_an_error():
    shared = MemoryGate(5)
    for _ in range(2):
        with pytest.raises(ValueError, match="here"), shared.taken(5):
            raise ValueError("here")


def some_proteins(count):
    offsets = np.arange(count + 1)
    names = np.full(count, ord("x"), dtype=np.uint8)
    records = Records(np.zeros(count + 2 * MARGIN, dtype=np.uint8), offsets, names, offsets)
    return NumberedProteins(records, 0, None, np.zeros(0, dtype=np.int64))


def test_many_short_tasks_are_done_while_one_is_long(monkeypatch):
    done = []
    enough = threading.Event()
    context = RunContext(threads=2)
    search = ProfileSearch(None, context, None, None)

    def work(_, task):
        if task.number == 0:
            assert enough.wait(PATIENCE), f"{len(done)} of the others were done meanwhile"
        else:
            done.append(task.number)
            if len(done) == PROFILES - 1:
                enough.set()
        return _Found(task.proteins, task.number, None)

    monkeypatch.setattr(search, "_search", work)
    proteins = some_proteins(3)
    tasks = (_Task(proteins, number) for number in range(PROFILES))
    with closing(search._found([None] * PROFILES, tasks)) as results:
        assert [one.number for one in results] == [*range(PROFILES)]
    context.executor.shutdown()


def test_memory_holds_few_blocks_though_one_is_long(monkeypatch):
    drawn = []
    gate = threading.Event()
    context = RunContext(threads=2)
    search = ProfileSearch(None, context, None, None)

    def work(_, task):
        if task.survivors is not None:
            gate.wait(0.5)
        return _Found(task.proteins, task.number, None)

    def tasks():
        for block in range(200):
            drawn.append(block)
            yield _Task(some_proteins(2), 0, np.array([0]) if block == 0 else None)

    monkeypatch.setattr(search, "_search", work)
    with closing(search._found([None], tasks())) as results:
        next(results)
        assert len(drawn) <= context.window + 1
    context.executor.shutdown()


def test_survivors_are_cut_for_the_sums_and_again_for_what_is_left():
    task = _Task(some_proteins(3000), 5, np.arange(3000))
    parts = [*task.parts()]
    assert [one.survivors.size for one in parts if one.survivors is not None] == [1024, 1024, 952]
    parts[2].is_summed = True
    again = [one.survivors for one in parts[2].parts() if one.survivors is not None]
    assert [one.size for one in again] == [64] * 14 + [56]
    assert np.concatenate(again).tolist() == [*range(2048, 3000)]
