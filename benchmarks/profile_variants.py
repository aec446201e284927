"""Variants of the filters on a GPU for `profile_kernels.py`: policies, compiling, and counters.

Each policy of rows is a program of its own (`mummergpu/hmm/filter_variants.py`).
"""

from __future__ import annotations

import csv
import dataclasses
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from typing import Any

from measure import summary

from mummergpu.cuda.device import Device
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.nvrtc import compile_program
from mummergpu.cuda.program import read_sources
from mummergpu.hmm.filter_programs import byte_program, byte_shape, word_program, word_shape
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.studies.profiles.data import ProfileData, chosen, digest_of_scores, suitable
from mummergpu.studies.profiles.device_scores import DeviceScores
from mummergpu.studies.profiles.policies import device_policy_of, filter_of

ROW_POLICIES = (
    *("Srcs32", "Srcc32", "Sbcs32", "Sscs32", "Slcs32", "Slts32"),
    *("Mrcs32", "Mscs32", "Mlcs32", "Mlts32"),
    *("Vrcs32", "Vrcc32", "Vscs32", "Vlcs32", "Vlts32"),
)
"""CUDAMPF's choices for a warp a sequence: the row in registers, in bytes, in shared and in local
memory, its length compiled or not, and tables in shared memory or through the cache."""

METRICS = {
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "l1_hits": "l1tex__t_sector_hit_rate.pct",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "nanoseconds": "gpu__time_duration.sum",
}
"""What ncu counts, in per cent but for the time."""


class Checker:
    """Sees to it that all policies of a filter find the same scores."""

    def __init__(self, data: ProfileData, executor: Executor | None, kinds: str) -> None:
        self._data = data
        self._found: dict[str, str] = {}
        if executor is not None:
            for kind in kinds:
                expected = data.expected(kind, executor.map)
                self._found[kind] = digest_of_scores(expected)

    def check(self, code: str, kind: str, scores: Any) -> None:
        """End the benchmark if scores differ from those of the processor, or of the first."""
        found = digest_of_scores(self._data.settled(kind, scores))
        if self._found.setdefault(kind, found) != found:
            raise SystemExit(f"{code} finds other scores of '{self._data.name}'")


def data_of(one: ProfileFilter, block: ProteinBlock) -> ProfileData:
    """Return a data set of the proteins that all policies can compare."""
    return ProfileData(one.profile.name, one, chosen(block, suitable(block)))


def measured(
    scores: DeviceScores, data: ProfileData, codes: Sequence[str], runs: int, checker: Checker
) -> Iterator[dict[str, Any]]:
    """Yield the figures of policies that suit a profile, after one run that does not count.

    Without runs there is one launch of each, which a profiler watches.
    """
    cells = data.nodes * int(data.block.codes.size)
    for code in codes:
        policy = device_policy_of(code)
        if scores.program_of(policy) is None:
            continue
        prepared = scores.prepare(policy)
        own, seconds = prepared.launch, []
        for run in range(runs + 1):
            found = scores.run(prepared)
            if run:
                seconds.append({"seconds": sum(found.milliseconds.values()) / 1e3})
        checker.check(code, filter_of(policy), found.scores)
        row: dict[str, Any] = {"policy": code, "again": found.again}
        row |= vars(prepared.program.resources(own.kernel, own.shape))
        row |= {"threads": own.shape.threads, "blocks": own.blocks}
        if seconds:
            row |= summary(seconds)
            row["gcups"] = cells / row["seconds"]["median"] / 1e9
        yield row


def variants(
    device: Device,
    cache: KernelCache,
    data: ProfileData,
    codes: Sequence[str],
    runs: int,
    executor: Executor,
) -> list[dict[str, Any]]:
    """Return the figures of policies for a profile; their programs are compiled side by side."""
    with closing(DeviceScores(device, cache, data)) as scores:
        every = {scores.program_of(device_policy_of(code)) for code in codes} - {None}
        list(executor.map(scores.programs.cubin, every))
        kinds = "".join({filter_of(device_policy_of(code)) for code in codes} & {"S", "M"})
        checker = Checker(data, executor if runs else None, kinds)
        return [*measured(scores, data, codes, runs, checker)]


def compile_times(device: Device, nodes: int) -> dict[str, Any]:
    """Return the seconds to compile and to load the two programs of a profile, one by one.

    A macro that no program had makes each new to NVRTC, which may keep what it compiled.
    """
    sources, found = read_sources(), {}
    programs = {"bytes": byte_program(byte_shape(nodes)), "words": word_program(word_shape(nodes))}
    for name, program in programs.items():
        unseen = ("UNSEEN", time.time_ns())
        source = dataclasses.replace(program.source, macros=(*program.source.macros, unseen))
        begin = time.perf_counter()
        image = compile_program(sources, source, device.architecture)
        compiled = time.perf_counter()
        device.load(image)
        found[name] = {
            "compile_seconds": compiled - begin,
            "load_seconds": time.perf_counter() - compiled,
            "image_bytes": len(image),
        }
    return found


def counters(path: str) -> list[dict[str, Any]]:
    """Return ncu's counts by launch, from what it writes with --csv --page raw."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.startswith('"')]
    names, _units, *rows = csv.reader(lines)
    places = {short: names.index(metric) for short, metric in METRICS.items()}
    kernel = names.index("Kernel Name")
    return [
        {"kernel": row[kernel]}
        | {short: float(row[place].replace(",", "")) for short, place in places.items()}
        for row in rows
    ]
