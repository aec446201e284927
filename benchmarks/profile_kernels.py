"""The kernels that filter proteins for profiles on a GPU: cells a second, and the floor's share.

    python benchmarks/profile_kernels.py PROFILES PROTEINS [--residues 172e6]
        [--viterbi-residues 2e7] [--name FILE]

Needs a CUDA device. The proteins are repeated, with their residues shuffled, until there are as
many residues as asked for. Each profile is compared with all of them, one profile after the other,
by SSV, by MSV, and with some of them by Viterbi: seconds of each kernel by the device's own events,
the best of three runs after one that does not count. The floor of SSV and MSV is the larger of two
times: an emission row of the profile from shared memory for each residue, and the instructions of a
row; that of Viterbi is its instructions on two 16-bit numbers at once. Writes
`results/profile-kernels.json`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measure import save

from mummergpu.cuda.bindings_device import BindingsDevice
from mummergpu.cuda.kernel_cache import KernelCache
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
from mummergpu.version import __version__

RUNS = 3
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
    return ProteinBlock(np.concatenate(shuffled), offsets)


def floor_of_bytes(nodes: int, row: RowShape) -> float:
    """Return the cells a second that SSV cannot exceed."""
    registers, loads = row.registers, row.registers // 4 + (row.registers % 4 > 0)
    instructions = row.lanes * (registers + registers / 2 + loads + 4)
    return nodes / max(row.row_bytes / SHARED_BYTES, instructions / LANE_INSTRUCTIONS)


def floor_of_words(nodes: int, row: RowShape) -> float:
    """Return the cells a second that Viterbi cannot exceed."""
    instructions = row.lanes * (STEPS_OF_VITERBI * row.registers + STEPS_OF_ROW)
    return nodes * PAIR_INSTRUCTIONS / instructions


def seconds_of(stats: Stats, kernel: str, work: Callable[[], object]) -> float:
    """Return the least seconds of a kernel in some runs."""

    def total() -> float:
        each = stats.as_dict()["kernels"].get(kernel)
        return 0.0 if each is None else float(each["milliseconds"]) / 1e3

    times = []
    for _ in range(RUNS + 1):
        before = total()
        work()
        times.append(total() - before)
    return min(times[1:])


def figure(nodes: int, residues: int, seconds: float, floor: float) -> dict[str, float]:
    gcups = nodes * residues / seconds / 1e9
    return {"seconds": seconds, "gcups": gcups, "share_of_floor": gcups / floor * 1e9}


def measure(
    found: DeviceFilters, block: ProteinBlock, few: ProteinBlock, stats: Stats
) -> dict[str, Any]:
    """Return the figures of the one profile of some filters."""
    nodes = found._own[0].profile.nodes
    result: dict[str, Any] = {"nodes": nodes}
    row, words = byte_shape(nodes), word_shape(nodes)
    with found._worker() as worker:
        placed = worker.place(block, found._sequence_program)
        count, size = placed.order.size, int(block.codes.size)
        every = Pairs(np.zeros(count, dtype=np.int64), np.arange(count))
        ssv = seconds_of(stats, "find_cells", lambda: found._passing_cells(worker, placed, 0, 1))
        result["ssv"] = figure(nodes, size, ssv, floor_of_bytes(nodes, row))
        result["ssv"] |= {"lanes": row.lanes, "registers": row.registers}

        def passes() -> None:
            costs = worker.upload("costs", found._constants.costs)
            found._scores(worker, placed, found._bytes, "score_passes", every, costs)

        msv = seconds_of(stats, "score_passes", passes)
        result["msv"] = figure(nodes, size, msv, floor_of_bytes(nodes, row))
        viterbi(found, worker, few, stats, result, floor_of_words(nodes, words))
    return result


def viterbi(
    found: DeviceFilters,
    worker: FilterWorker,
    few: ProteinBlock,
    stats: Stats,
    result: dict[str, Any],
    floor: float,
) -> None:
    """Add the figures of Viterbi, if a device can compute it for the profile."""
    placed = worker.place(few, found._sequence_program)
    count = placed.order.size
    every = Pairs(np.zeros(count, dtype=np.int64), np.arange(count))
    if not found._constants.words_fit[0]:
        return
    work = lambda: found._viterbi_words(worker, placed, few, every)  # noqa: E731
    seconds = seconds_of(stats, "score_paths", work)
    if seconds:
        result["viterbi"] = figure(result["nodes"], int(few.codes.size), seconds, floor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiles")
    parser.add_argument("proteins")
    parser.add_argument("--residues", type=float, default=172e6)
    parser.add_argument("--viterbi-residues", type=float, default=2e7)
    parser.add_argument("--name", default="profile-kernels.json")
    options = parser.parse_args()
    block = proteins(options.proteins, options.residues)
    few = proteins(options.proteins, options.viterbi_residues)
    rows = []
    with ExitStack() as stack:
        # PyCUDA does not grant kernels the shared memory that they need.
        device = stack.enter_context(closing(BindingsDevice(0)))
        stack.enter_context(device.current())
        executor = stack.enter_context(ThreadPoolExecutor(16))
        cache = KernelCache(Path(stack.enter_context(TemporaryDirectory())), print)
        filters = [
            ProfileFilter(one, FilterThresholds()) for one in read_profiles(options.profiles)
        ]
        # All at once: their programs are compiled side by side.
        DeviceFilters(device, cache, filters, MEMORY, Stats(), executor).close()
        for one in sorted(filters, key=lambda one: one.profile.nodes):
            stats = Stats()
            with closing(DeviceFilters(device, cache, [one], MEMORY, stats, executor)) as found:
                rows.append({"name": one.profile.name} | measure(found, block, few, stats))
            print(rows[-1], flush=True)
        facts = {"device": device.name, "stage": STAGE, "runs": RUNS}
    versions = {"mummergpu": __version__}
    residues = {"residues": int(block.codes.size), "viterbi_residues": int(few.codes.size)}
    save(options.name, facts | {"versions": versions} | residues | {"profiles": rows})


if __name__ == "__main__":
    main()
