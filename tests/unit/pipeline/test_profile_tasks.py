"""Long comparisons of profiles do not hold up the others."""

import threading
from contextlib import closing

import numpy as np

from mummergpu.input.records.record_arrays import Records
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.profile_job import NumberedProteins
from mummergpu.pipeline.search_profiles import ProfileSearch, _Found, _Task
from mummergpu.sequence.codes import MARGIN

PROFILES = 40
PATIENCE = 20


def some_proteins(count):
    offsets = np.arange(count + 1)
    names = np.full(count, ord("x"), dtype=np.uint8)
    records = Records(np.zeros(count + 2 * MARGIN, dtype=np.uint8), offsets, names, offsets)
    return NumberedProteins(records, 0, None, np.zeros(0, dtype=np.int64))


def a_search(context):
    unused = None
    return ProfileSearch(unused, context, unused, unused)


def test_many_short_tasks_are_done_while_one_is_long(monkeypatch):
    done = []
    enough = threading.Event()
    context = RunContext(threads=2)
    search = a_search(context)

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
    search = a_search(context)

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
