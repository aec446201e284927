"""The processors of this machine, and of systems that tell less."""

import os

import pytest

from mummergpu.runtime import processors
from mummergpu.runtime.processors import first_processor, processor_count


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
