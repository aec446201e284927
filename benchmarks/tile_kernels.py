"""The kernels of whole matrices on a GPU: cells a second, with the directions and the paths.

    python benchmarks/tile_kernels.py [--cells 4e9]

Needs a CUDA device and `mummergpu[cuda]`. Aligns sets of tiles of one size, as many as make the
cells asked for, and single matrices in rounds; the tiles are copies with 10% of differences, as
those of a genome that has diverged. Writes `results/tile-viterbi/kernels.json`: milliseconds of
each kernel by the device's own events, medians after a warm-up, and cells of the matrices a second
for both kernels together. A cell is computed with some 10 instructions in this layout (of two
matrices at a time), so the floor is the device's rate of instructions over 10.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import numpy as np
from devices import open_device
from measure import RESULTS, save

from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.sources import read_sources
from mummergpu.mapping.genomes.options import NUCMER_COSTS
from mummergpu.runtime.stats import Stats
from mummergpu.viterbi.device.cuda_program import VITERBI_PROGRAM
from mummergpu.viterbi.device.device_matrix import DeviceMatrix
from mummergpu.viterbi.device.device_tiles import DeviceTiles
from mummergpu.viterbi.device.tile_set import TileSet

SIDES = (20, 60, 100, 200, 250, 500, 1000, 1500)
MATRIX_SIDES = (1_000, 5_000, 20_000, 100_000)
DIFFERENT = 0.1
RUNS = 3


def mutated(random: np.random.Generator, bases: np.ndarray) -> np.ndarray:
    """Return a copy of the same length, with differences."""
    changed = random.random(bases.size) < DIFFERENT
    return np.where(changed, random.integers(0, 4, bases.size), bases).astype(np.uint8)


def kernel_figures(times: list[dict[str, float]], cells: int) -> dict[str, Any]:
    """Return medians of the kernels, and cells a second of all together."""
    medians = {name: statistics.median(each[name] for each in times) for name in times[0]}
    total = statistics.median(sum(each.values()) for each in times)
    return {"cells": cells, "milliseconds": medians, "cells_per_second": cells / total * 1e3}


def kernel_times(stats: Stats) -> dict[str, float]:
    """Return the milliseconds of the kernels."""
    return {name: float(each["milliseconds"]) for name, each in stats.as_dict()["kernels"].items()}


def measure_tiles(device: Any, program: Any, side: int, cells: float) -> dict[str, Any]:
    """Align tiles of one size."""
    random = np.random.default_rng(side)
    count = max(2, int(cells / side**2))
    reference = random.integers(0, 4, count * side, dtype=np.uint8)
    queries = mutated(random, reference)
    starts, lengths = np.arange(count) * side, np.full(count, side)
    tiles = TileSet(starts, lengths, starts, lengths)
    times = []
    for _ in range(RUNS + 1):
        stats = Stats()
        aligner = DeviceTiles(device, program, NUCMER_COSTS, 8 << 30, stats)
        aligner.align(queries, reference, tiles)
        aligner.free()
        times.append(kernel_times(stats))
    return {"side": side, "tiles": count, **kernel_figures(times[1:], tiles.cells)}


def measure_matrix(device: Any, program: Any, side: int) -> dict[str, Any]:
    """Align two sequences in rounds."""
    random = np.random.default_rng(side)
    reference = random.integers(0, 4, side, dtype=np.uint8)
    query = mutated(random, reference)
    times = []
    for _ in range(RUNS + 1):
        stats = Stats()
        matrix = DeviceMatrix(device, program, NUCMER_COSTS, 64 << 30, stats)
        matrix.align(query, reference)
        matrix.free()
        times.append(kernel_times(stats))
    return {"side": side, **kernel_figures(times[1:], side**2)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cells", type=float, default=4e9)
    options = parser.parse_args()
    device = open_device(0)
    with device.current():
        cubin = KernelCache(None, print).cubin(read_sources(), VITERBI_PROGRAM, device.architecture)
        program = device.load(cubin)
        kernels = ("fill_tile_pairs", "fill_small_tile_pairs", "trace_tile_pairs", "fill_round")
        resources = {name: vars(program.resources(name)) for name in kernels}
        tiles = [measure_tiles(device, program, side, options.cells) for side in SIDES]
        for figure in tiles:
            print(figure)
        matrices = [measure_matrix(device, program, side) for side in MATRIX_SIDES]
        for figure in matrices:
            print(figure)
    (RESULTS / "tile-viterbi").mkdir(parents=True, exist_ok=True)
    results = {"device": device.name, "resources": resources, "tiles": tiles, "matrices": matrices}
    save("tile-viterbi/kernels.json", results)
    device.close()


if __name__ == "__main__":
    main()
