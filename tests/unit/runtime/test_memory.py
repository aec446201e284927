"""How much memory is free: the machine's, and what containers are left."""

import pytest

from mummergpu.runtime import memory
from mummergpu.runtime.memory import free_memory

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
    make_group(
        machine / "sys" / "fs" / "cgroup" / "pod" / "job", memory__max=6 * GIB, memory__current=0
    )
    make_group(machine / "sys" / "fs" / "cgroup" / "pod", memory__max=5 * GIB, memory__current=GIB)
    assert free_memory() == 4 * GIB
    make_group(machine / "sys" / "fs" / "cgroup", memory__max=3 * GIB, memory__current=GIB)
    assert free_memory() == 2 * GIB


def test_a_container_sees_its_own_group_as_the_root(machine):
    (machine / "proc" / "self" / "cgroup").write_text("0::/of/the/host\n")
    make_group(machine / "sys" / "fs" / "cgroup", memory__max=2 * GIB, memory__current=GIB)
    assert free_memory() == GIB


def test_a_limit_of_version_1_counts(machine):
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n")
    make_group(
        machine / "sys" / "fs" / "cgroup" / "memory" / "job",
        memory__limit_in_bytes=2 * GIB,
        memory__usage_in_bytes=3 * GIB // 2,
        memory__stat=f"inactive_file 1\ntotal_inactive_file {GIB // 4}",
    )
    unlimited = 0x7FFFFFFFFFFFF000
    make_group(machine / "sys" / "fs" / "cgroup" / "memory", memory__limit_in_bytes=unlimited)
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
