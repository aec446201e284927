"""The kernels that filter proteins for profiles on a GPU: cells a second, and the floor's share.

    python benchmarks/profile_kernels.py PROFILES PROTEINS [--residues 172e6] [--runs 5]
        [--parts kernels,variants,processor,compiling] [--in-detail 8] [--name FILE]
    ncu --csv --page raw --metrics METRICS -k regex:'find_cells|score_p' --log-file counts.csv
        python benchmarks/profile_kernels.py PROFILES PROTEINS --parts variants --runs 0
        --in-detail 3 --residues 4e6
    python benchmarks/profile_kernels.py ... --parts variants --runs 0 --counts counts.csv

Needs a CUDA device. The proteins are repeated, with their residues shuffled, until there are as
many residues as asked for. Each profile is compared with all of them, one profile after the other,
by SSV, by MSV and by Viterbi, by the kernels of a search: seconds of each kernel by the device's
own events, after one run that does not count. The floor of SSV and MSV is the larger of two
times: an emission row of the profile from shared memory for each residue, and the instructions of a
row; that of Viterbi is its instructions on two 16-bit numbers at once.

Of some profiles, spread over all lengths, there is more: `variants` are the choices of CUDAMPF
(`profile_variants.py`), which all find the same scores; `processor` has HMMER's filters and ours on
one and on all cores (`processor_filters.py`), and how many times as fast the GPU is; `compiling`
has NVRTC's time. METRICS are those of `profile_variants.py`. Writes `results/profile-kernels.json`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from devices import open_device
from measure import save, summary
from processor_filters import FILTERS, HmmerFilters, our_seconds, shortened
from profile_variants import ROW_POLICIES, compile_times, counters, data_of, variants

from mummergpu.cuda.device import Device
from mummergpu.cuda.kernel_cache import KernelCache, Programs
from mummergpu.hmm.device_filters import DeviceFilters
from mummergpu.hmm.device_work import STAGE, FilterWorker, Pairs
from mummergpu.hmm.filter_programs import RowShape, byte_shape, word_shape
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.profiles import read_profiles
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinFiles
from mummergpu.runtime.stats import Stats
from mummergpu.studies.profiles.data import chosen, suitable
from mummergpu.version import __version__

PARTS = ("kernels", "variants", "processor", "compiling")
RESIDUES_OF_CORE = {"S": 2e6, "M": 2e6, "V": 3e5, "G": 2e4}
"""What each core compares with a profile: some hundredths of a second, by the filter."""
SHARED_BYTES = 32e12
"""What an H200's multiprocessors read of their shared memory in a second."""
LANE_INSTRUCTIONS = 32e12
PAIR_INSTRUCTIONS = 16e12
"""Of those on two 16-bit numbers at once, which take part in every step of Viterbi."""
STEPS_OF_VITERBI, STEPS_OF_ROW = 11, 30
MEMORY = 16 << 30


def proteins(path: str, residues: float) -> ProteinBlock:
    """Return shuffled copies of the proteins of a file."""
    blocks = list(ProteinFiles([path], ProteinRules()).blocks())
    codes = np.concatenate([one.codes for one in blocks])
    sizes = np.concatenate([np.diff(one.offsets) for one in blocks])
    random = np.random.default_rng(3)
    copies = max(1, round(residues / codes.size))
    shuffled = [random.permutation(codes) for _ in range(copies)]
    offsets = np.concatenate([[0], np.cumsum(np.tile(sizes, copies))]).astype(np.int64)
    block = ProteinBlock(np.concatenate(shuffled), offsets)
    return chosen(block, suitable(block))


def floor_of_bytes(nodes: int, row: RowShape) -> float:
    """Return the cells a second that SSV cannot exceed."""
    registers, loads = row.registers, row.registers // 4 + (row.registers % 4 > 0)
    instructions = row.lanes * (registers + registers / 2 + loads + 4)
    return nodes / max(row.row_bytes / SHARED_BYTES, instructions / LANE_INSTRUCTIONS)


def floor_of_words(nodes: int, row: RowShape) -> float:
    """Return the cells a second that Viterbi cannot exceed."""
    instructions = row.lanes * (STEPS_OF_VITERBI * row.registers + STEPS_OF_ROW)
    return nodes * PAIR_INSTRUCTIONS / instructions


def seconds_of(
    stats: Stats, kernel: str, work: Callable[[], object], runs: int
) -> list[dict[str, float]]:
    """Return the seconds of a kernel in each of some runs, after one that does not count."""

    def total() -> float:
        each = stats.as_dict()["kernels"].get(kernel)
        return 0.0 if each is None else float(each["milliseconds"]) / 1e3

    times = []
    for _ in range(runs + 1):
        before = total()
        work()
        times.append({"seconds": total() - before})
    return times[1:]


def figure(
    nodes: int, residues: int, seconds: list[dict[str, float]], floor: float
) -> dict[str, Any]:
    """Return the seconds, and by their median the cells a second."""
    row = summary(seconds)
    gcups = nodes * residues / row["seconds"]["median"] / 1e9
    return row | {"gcups": gcups, "share_of_floor": gcups / floor * 1e9}


def measure(found: DeviceFilters, block: ProteinBlock, stats: Stats, runs: int) -> dict[str, Any]:
    """Return the figures of the kernels for the one profile of some filters."""
    nodes = found._own[0].profile.nodes
    row, words = byte_shape(nodes), word_shape(nodes)
    with found._worker() as worker:
        placed = worker.place(block, found._sequence_program)
        count, size = placed.order.size, int(block.codes.size)
        every = Pairs(np.zeros(count, dtype=np.int64), np.arange(count))
        cells = lambda: found._passing_cells(worker, placed, 0, 1)  # noqa: E731
        ssv = seconds_of(stats, "find_cells", cells, runs)

        def passes() -> None:
            costs = worker.upload("costs", found._constants.costs)
            found._scores(worker, placed, found._bytes, "score_passes", every, costs)

        msv = seconds_of(stats, "score_passes", passes, runs)
        floor = floor_of_bytes(nodes, row)
        result = {"S": figure(nodes, size, ssv, floor), "M": figure(nodes, size, msv, floor)}
        result["S"] |= {"lanes": row.lanes, "registers": row.registers}
        if found._constants.words_fit[0]:
            paths = lambda: viterbi(found, worker, block, every)  # noqa: E731
            seconds = seconds_of(stats, "score_paths", paths, runs)
            result["V"] = figure(nodes, size, seconds, floor_of_words(nodes, words))
    return result


def viterbi(found: DeviceFilters, worker: FilterWorker, block: ProteinBlock, every: Pairs) -> None:
    """Compare all proteins by Viterbi, with a warp each."""
    placed = worker.place(block, found._sequence_program)
    found._viterbi_words(worker, placed, block, every)


def on_processor(one: ProfileFilter, block: ProteinBlock, runs: int) -> dict[str, Any]:
    """Return the GCUPS of the processor's filters, on one core and on all: HMMER's and ours."""
    cores = len(os.sched_getaffinity(0))
    hmmer = HmmerFilters(one.profile, cores, int(np.diff(block.offsets).max()))
    result: dict[str, Any] = {}
    for kind in (*FILTERS, "G"):
        for threads in (1, cores):
            some = shortened(block, RESIDUES_OF_CORE[kind] * threads)
            work = {"hmmer": partial(hmmer.seconds, kind, some, threads)}
            if kind in FILTERS:
                work["ours"] = partial(our_seconds, one, kind, some, threads)
            cells = one.profile.nodes * int(some.codes.size)
            for name, run in work.items():
                row = summary([{"gcups": cells / run() / 1e9} for _ in range(runs + 1)][1:])
                result.setdefault(kind, {})[f"{name}, {threads}"] = row["gcups"]
    return result


def times_as_fast(row: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return how many times as fast as the processor's filters the kernels of a search are."""
    return {
        kind: {
            name: row["kernels"][kind]["gcups"] / gcups["median"]
            for name, gcups in row["processor"][kind].items()
        }
        for kind in FILTERS
        if kind in row["kernels"]
    }


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles")
    parser.add_argument("proteins")
    parser.add_argument("--residues", type=float, default=172e6)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=[*PARTS])
    parser.add_argument("--in-detail", type=int, default=8, help="profiles with all parts")
    parser.add_argument("--counts", help="what ncu wrote of the same command")
    parser.add_argument("--name", default="profile-kernels.json")
    return parser


class Machine:
    """The device, and what the parts share."""

    def __init__(self, options: argparse.Namespace, stack: ExitStack) -> None:
        self.options = options
        self.device: Device = stack.enter_context(closing(open_device(0)))
        stack.enter_context(self.device.current())
        self.executor = stack.enter_context(ThreadPoolExecutor(len(os.sched_getaffinity(0))))
        folder = Path(stack.enter_context(TemporaryDirectory()))
        self.cache = KernelCache(folder, print)
        self.block = proteins(options.proteins, options.residues)

    def figures(self, one: ProfileFilter, parts: list[str]) -> dict[str, Any]:
        """Return the figures of a profile."""
        options, device, cache = self.options, self.device, self.cache
        row: dict[str, Any] = {"name": one.profile.name, "nodes": one.profile.nodes}
        if "compiling" in parts:
            row["compiling"] = compile_times(device, one.profile.nodes)
        if "kernels" in parts:
            stats = Stats()
            own = device, Programs(device, cache), [one], MEMORY, stats, self.executor, "warp"
            filters = DeviceFilters(*own)
            with closing(filters) as found:
                row["kernels"] = measure(found, self.block, stats, options.runs)
        if "variants" in parts:
            data = data_of(one, self.block)
            own = data, ROW_POLICIES, options.runs, self.executor
            row["variants"] = variants(device, cache, *own)
        if "processor" in parts:
            row["processor"] = on_processor(one, self.block, options.runs)
            if "kernels" in parts:
                row["times_as_fast"] = times_as_fast(row)
        return row


def with_counts(rows: list[dict[str, Any]], path: str) -> None:
    """Add ncu's counts to the variants, which were launched in this order."""
    every = [variant for row in rows for variant in row.get("variants", [])]
    for variant, counts in zip(every, counters(path), strict=True):
        variant["counts"] = counts


def main() -> None:
    options = option_parser().parse_args()
    profiles = [*read_profiles(options.profiles)]
    filters = [ProfileFilter(one, FilterThresholds()) for one in profiles]
    filters.sort(key=lambda one: one.profile.nodes)
    places = np.linspace(0, len(filters) - 1, min(options.in_detail, len(filters)))
    chosen_ones = {round(place) for place in places}
    rows = []
    with ExitStack() as stack:
        machine = Machine(options, stack)
        if "kernels" in options.parts:
            # All at once: their programs are compiled side by side.
            programs = Programs(machine.device, machine.cache)
            own = machine.device, programs, filters, MEMORY, Stats(), machine.executor
            DeviceFilters(*own).close()
        for number, one in enumerate(filters):
            parts = [part for part in options.parts if part == "kernels" or number in chosen_ones]
            if parts:
                rows.append(machine.figures(one, parts))
                print(rows[-1], flush=True)
        facts = {"device": machine.device.name, "library": machine.device.library, "stage": STAGE}
    if options.counts:
        with_counts(rows, options.counts)
    residues = {
        "residues": int(machine.block.codes.size),
        "proteins": machine.block.offsets.size - 1,
    }
    versions = {"mummergpu": __version__}
    save(options.name, facts | {"versions": versions} | residues | {"profiles": rows})


if __name__ == "__main__":
    main()
