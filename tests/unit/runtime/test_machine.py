"""Memory and processors that a process may use, and work that several threads share in order."""

import os
import platform
import queue
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from mummergpu.runtime import memory, processors
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.memory import free_memory
from mummergpu.runtime.ordered_map import Prefetcher, ordered_map, ordered_results
from mummergpu.runtime.processors import first_processor, processor_count
from mummergpu.runtime.scratch import ThreadArray

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GiB available and no control groups yet."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {8 * GIB >> 10} kB\n")
    monkeypatch.setattr(memory, "_MEMORY_FACTS", str(tmp_path / "meminfo"))
    (tmp_path / "proc" / "self").mkdir(parents=True)
    left = memory._left_in_cgroups
    monkeypatch.setattr(memory, "_left_in_cgroups", lambda _: left(f"{tmp_path}/"))
    return tmp_path


def make_group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_free_memory_is_some_of_the_memory():
    assert 1 << 20 < free_memory() < 1 << 50


def test_without_control_groups_it_is_the_machines(machine):
    assert free_memory() == 8 * GIB
    (machine / "meminfo").unlink()
    assert 1 << 20 < free_memory() < 1 << 50


def test_a_limit_of_version_2_counts(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/pod/job\n")
    group = machine / "sys" / "fs" / "cgroup" / "pod" / "job"
    make_group(group, memory__max=2 * GIB, memory__current=GIB)
    assert free_memory() == GIB
    # What is cached of files is given up when memory is short.
    make_group(group, memory__stat=f"anon 5\ninactive_file {GIB // 2}\nslab 7")
    assert free_memory() == 3 * GIB // 2
    make_group(group, memory__current=3 * GIB)
    assert free_memory() == 0
    make_group(group, memory__max="max")
    assert free_memory() == 8 * GIB


def test_limits_of_the_groups_above_count(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/pod/job\n")
    groups = machine / "sys" / "fs" / "cgroup"
    make_group(groups / "pod" / "job", memory__max=6 * GIB, memory__current=0)
    make_group(groups / "pod", memory__max=5 * GIB, memory__current=GIB)
    assert free_memory() == 4 * GIB
    make_group(groups, memory__max=3 * GIB, memory__current=GIB)
    assert free_memory() == 2 * GIB


def test_a_container_sees_its_own_group_as_the_root(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/of/the/host\n")
    make_group(machine / "sys" / "fs" / "cgroup", memory__max=2 * GIB, memory__current=GIB)
    assert free_memory() == GIB


def test_a_limit_of_version_1_counts(machine):
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n")
    groups = machine / "sys" / "fs" / "cgroup" / "memory"
    stat = f"inactive_file 1\ntotal_inactive_file {GIB // 4}"
    bounds = {"memory__limit_in_bytes": 2 * GIB, "memory__usage_in_bytes": 3 * GIB // 2}
    make_group(groups / "job", memory__stat=stat, **bounds)
    make_group(groups, memory__limit_in_bytes=0x7FFFFFFFFFFFF000)
    assert free_memory() == 3 * GIB // 4


@pytest.mark.parametrize("content", ["many", "", "-"])
def test_files_that_make_no_sense_limit_nothing(machine, content):
    (machine / "proc" / "self" / "cgroup").write_text("0::/\n")
    make_group(machine / "sys" / "fs" / "cgroup", memory__max=content, memory__current=content)
    assert free_memory() == 8 * GIB


def test_memory_that_the_system_does_not_tell_is_assumed(monkeypatch):
    assert memory.total_memory() > 1 << 28

    def refuse(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(memory.os, "sysconf", refuse)
    assert memory.total_memory() == memory.ASSUMED_MEMORY


def test_processors_that_the_process_may_not_use_do_not_count(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert processor_count() == 3


@pytest.mark.parametrize(("told", "expected"), [(8, 8), (None, 1)])
def test_where_a_system_does_not_tell_which_may_be_used_all_count(told, expected, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: told)
    assert processor_count() == expected


def test_the_first_processor_is_described(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: A : B\nflags\t\t: x y\npower management:\n\nmodel name : C\n\n")
    monkeypatch.setattr(processors, "_DESCRIPTION", str(path))
    told = {b"model name": b"A : B", b"flags": b"x y", b"power management": b""}
    assert first_processor() == told


def test_a_description_that_is_not_complete_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: A\n")
    monkeypatch.setattr(processors, "_DESCRIPTION", str(path))
    with pytest.raises(ValueError, match="not complete"):
        first_processor()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        first_processor()


def write_groups(root, cgroup, files):
    """Write what the system tells of cgroups below a folder; return that."""
    for name, text in {"proc/self/cgroup": cgroup, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return f"{root}/"


GROUPS = {
    "none": ("0::/a\n", {}, None),
    "no limit": ("0::/a\n", {"a/cpu.max": "max 100000\n"}, None),
    "topmost": ("0::/\n", {"cpu.max": "100000 100000\n"}, 1),
    "half": ("0::/a\n", {"a/cpu.max": "50000 100000\n"}, 1),
    "two and a half": ("0::/a/b\n", {"a/b/cpu.max": "250000 100000\n"}, 3),
    "nested": ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2),
    "nested less": ("0::/a/b\n", {"a/b/cpu.max": "1 9\n", "a/cpu.max": "9 1\n"}, 1),
    "under the host's name": ("0::/host/x\n", {"cpu.max": "300000 100000\n"}, 3),
    "above the own": ("0::/../x\n", {"x/cpu.max": "300000 100000\n"}, 3),
    "damaged": ("0::/a\n", {"a/cpu.max": "what\n", "cpu.max": ""}, None),
    "version 1": (
        "12:pids:/a\n4:cpu,cpuacct:/a/b\n0::/a\n",
        {"cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1\n"}
        | {"cpu,cpuacct/a/b/cpu.cfs_period_us": "100000\n"}
        | {"cpu,cpuacct/a/cpu.cfs_quota_us": "150000\n"}
        | {"cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"},
        2,
    ),
    "version 1 in a container": (
        "4:cpu:/docker/x\n",
        {"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"},
        4,
    ),
    "both versions": (
        "3:cpuset:/\n2:cpu:/\n0::/a\n",
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
        | {"unified/a/cpu.max": "100000 50000\n"},
        2,
    ),
    "no line of theirs": ("what\n\n3:cpuset:/\n", {"cpu.max": "1 1\n"}, None),
}


@pytest.mark.parametrize("name", GROUPS)
def test_quotas_of_cgroups_bound_the_processors(name, tmp_path, monkeypatch):
    cgroup, files, expected = GROUPS[name]
    at = {f"sys/fs/cgroup/{file}": text for file, text in files.items()}
    root = write_groups(tmp_path, cgroup, at)
    assert processors._quota(root) == (expected or processors._NO_QUOTA)
    quota = processors._quota
    monkeypatch.setattr(processors, "_quota", lambda _: quota(root))
    for allowed in (1, 2, 64):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, count=allowed: set(range(count)))
        assert processor_count() == min(allowed, expected or allowed)


def test_a_system_without_cgroups_has_no_quota(tmp_path):
    assert processors._quota(f"{tmp_path}/") == processors._NO_QUOTA


def test_denormal_numbers_are_zero_meanwhile():
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("only the registers of x86-64 on Linux are known")
    least, half = [sys.float_info.min], [0.5]
    with pytest.raises(ValueError, match="to the caller"), flushed_floats():
        assert least[0] * half[0] == 0
        raise ValueError("to the caller")
    assert least[0] * half[0] > 0


def test_a_thread_gets_the_same_memory_again():
    made = ThreadArray(np.int32)
    first = made.of_size(100)
    assert first.shape == (100,) and first.dtype == np.int32 and first.flags.writeable
    assert np.shares_memory(first, made.of_size(7)) and made.of_size(7).size == 7
    larger = made.of_size(1000)
    assert larger.size == 1000 and not np.shares_memory(first, larger)
    assert np.shares_memory(larger, made.of_size(1))
    assert made.of_size(0).size == 0


def test_each_thread_has_memory_of_its_own():
    made = ThreadArray(np.uint8)
    here = made.of_size(50)
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(made.of_size, 50).result()
    assert not np.shares_memory(here, there)


def test_results_come_in_order_though_the_work_does_not():
    made = random.Random(3)
    waits = [made.random() / 200 for _ in range(60)]
    taken = []

    def work(number):
        time.sleep(waits[number])
        return number

    with ThreadPoolExecutor(4) as executor:
        ordered_map(executor, 7, range(60), work, taken.append)
    assert taken == list(range(60))


def test_no_more_items_than_the_window_are_drawn_ahead():
    drawn = taken = furthest = 0

    def items():
        nonlocal drawn, furthest
        for number in range(50):
            drawn += 1
            furthest = max(furthest, drawn - taken)
            yield number

    def take(_number):
        nonlocal taken
        taken += 1

    with ThreadPoolExecutor(2) as executor:
        ordered_map(executor, 5, items(), lambda number: number, take)
    assert taken == 50
    assert furthest == 5


def test_items_without_a_result_are_cut_until_they_have_one():
    taken = []

    def halves(numbers):
        middle = len(numbers) // 2
        return [numbers[:middle], numbers[middle:]]

    def few(numbers):
        return numbers if len(numbers) < 4 else None

    ranges = [range(0, 16), range(16, 17), range(17, 40)]
    with ThreadPoolExecutor(3) as executor:
        ordered_map(executor, 4, ranges, few, taken.append, halves)
    assert [number for numbers in taken for number in numbers] == list(range(40))


@pytest.mark.parametrize("culprit", ["items", "work", "take"])
def test_the_first_failure_ends_all(culprit):
    worked = threading.Semaphore(0)

    def fail_at_10(name, number):
        if culprit == name and number == 10:
            raise ValueError(name)
        return number

    def work(number):
        worked.release()
        return fail_at_10("work", number)

    items = (fail_at_10("items", number) for number in range(1000))
    take = partial(fail_at_10, "take")
    with ThreadPoolExecutor(2) as executor, pytest.raises(ValueError, match=culprit):
        ordered_map(executor, 4, items, work, take)
    count = 0
    while worked.acquire(blocking=False):
        count += 1
    assert count < 20


def test_parts_of_items_that_are_cut_are_processed_at_once_and_taken_in_order():
    together = threading.Barrier(4, timeout=20)

    def work(item):
        if len(item) == 2:
            return None
        together.wait()
        return item

    taken = []
    with ThreadPoolExecutor(4) as executor:
        ordered_map(executor, 2, ["ab", "cd"], work, taken.append, cut=list)
    assert taken == ["a", "b", "c", "d"]


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_full_window_waits_for_several_items(at_once):
    counts, finished = [], []
    is_full, is_drawn_again = threading.Event(), threading.Event()

    def items():
        for number in range(20):
            counts.append(len(finished))
            if number == 5:
                is_full.set()
            if number == 6:
                is_drawn_again.set()
            yield number

    def work(number):
        assert is_full.wait(20)
        if number == 1:
            is_drawn_again.wait(0.3)
        finished.append(number)
        return number

    with ThreadPoolExecutor(1) as executor:
        results = ordered_results(executor, 6, items(), work, at_once=at_once)
        assert list(results) == [*range(20)]
    # The sixth item filled the window; the next one was drawn after the wait.
    assert (counts[6] == 1) if at_once == 1 else (counts[6] >= at_once)


def test_items_are_drawn_ahead_in_order_by_another_thread():
    threads = set()

    def items():
        for number in range(40):
            threads.add(threading.current_thread())
            yield number

    with Prefetcher(items(), 3) as ahead:
        assert list(ahead) == list(range(40))
    assert len(threads) == 1
    assert threading.current_thread() not in threads
    assert not threads.pop().is_alive()


def test_fewer_may_wait_later():
    drawn = queue.SimpleQueue()
    with Prefetcher((drawn.put(number) or number for number in range(20)), 5) as ahead:
        # Five wait, and the thread holds another one.
        assert [drawn.get(timeout=10) for _ in range(6)] == list(range(6))
        ahead.limit(1)
        items = iter(ahead)
        assert [next(items) for _ in range(4)] == [0, 1, 2, 3]
        time.sleep(0.05)
        assert drawn.empty()
        assert list(items) == list(range(4, 20))


def test_no_more_are_drawn_than_may_wait():
    drawn = []
    enough = threading.Event()

    def items():
        for number in range(100):
            drawn.append(number)
            if number == 4:
                enough.set()
            yield number

    with Prefetcher(items(), 3) as ahead:
        assert next(iter(ahead)) == 0
        assert enough.wait(10)
        time.sleep(0.05)
        # One was taken, three wait, and one is in the thread's hand.
        assert drawn == [0, 1, 2, 3, 4]


def test_what_the_items_raise_comes_after_those_before():
    def items():
        yield 1
        yield 2
        raise ValueError("broken")

    taken = []
    with Prefetcher(items(), 5) as ahead, pytest.raises(ValueError, match="broken"):
        for item in ahead:
            taken.append(item)
    assert taken == [1, 2]


def test_a_failure_of_who_takes_the_items_ends_the_thread():
    closed = threading.Event()

    def items():
        try:
            number = 0
            while True:
                number += 1
                yield number
        finally:
            closed.set()

    endless = items()
    with pytest.raises(ValueError, match="taker"), Prefetcher(endless, 2) as ahead:
        for item in ahead:
            if item == 10:
                raise ValueError("taker")
    assert not [thread for thread in threading.enumerate() if thread.name == "read"]
    endless.close()
    assert closed.is_set()
